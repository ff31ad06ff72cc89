"""Outputs of tools that measure programs and functions, as `data/README.md` lists them: one row per trial."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.inference.tables import judged, only_comparison, rows_of, rows_of_files

from fairtrial.analyse.models import Analysis
from fairtrial.errors import InputError
from fairtrial.imports import Rows

DATA = Path(__file__).with_name("data")


def rows(name: str) -> Rows:
    return rows_of_files(DATA / name)


def document(name: str) -> dict[str, object]:
    return json.loads((DATA / name).read_text())


def codes(analysis: Analysis) -> set[str]:
    return {doubt.code for doubt in analysis.doubts}


def test_times_of_hyperfine_are_trials_of_commands() -> None:
    found = judged(rows("hyperfine.json"))
    assert found.levels == ("sleep 0.01", "sleep 0.012")
    one, two = (summary.values for summary in found.cells[0].summaries["time_s"])
    assert [list(one), list(two)] == [each["times"] for each in document("hyperfine.json")["results"]]
    assert found.metrics["time_s"].better == "lower"
    (doubt,) = (each for each in found.doubts if each.code == "shared_state")
    assert "the commands are not interleaved" in doubt.message


@pytest.mark.parametrize(
    ("codes", "message"),
    [
        ([0, 3, 3], r"results\.0\.exit_codes: `a` exited with status 3 in 2 of 3 runs"),
        ([0, None, 0], r"results\.0\.exit_codes: `a` was killed by a signal in 1 of 3 runs"),
    ],
)
def test_a_command_of_hyperfine_that_failed_is_refused(codes: list[int | None], message: str) -> None:
    with pytest.raises(InputError, match=message):
        rows_of(json.dumps({"results": [{"command": "a", "times": [1.0, 2.0, 3.0], "exit_codes": codes}]}))


def test_parameters_of_hyperfine_are_columns() -> None:
    frame = rows("hyperfine-parameters.json").frame
    assert frame.group_by("command", "parameter_n").len().sort("command").rows() == [
        ("sleep 0.001", "1", 4),
        ("sleep 0.002", "2", 4),
    ]


def export(*results: tuple[str, str]) -> str:
    times = [1.0, 1.1, 1.2]
    return json.dumps({"results": [{"command": name, "times": times, "parameters": {"n": n}} for name, n in results]})


@pytest.mark.parametrize(
    ("old", "new", "cells"),
    [
        ([("a 1", "1"), ("b 1", "1")], [("a 1", "1"), ("b 1", "1")], ["a 1", "b 1"]),
        ([("old 1", "1"), ("old 2", "2")], [("new 1", "1"), ("new 2", "2")], ["1", "2"]),
        ([("old", "1")], [("new", "1")], ["all"]),
    ],
)
def test_commands_of_one_label_are_not_mixed(
    tmp_path: Path, old: list[tuple[str, str]], new: list[tuple[str, str]], *, cells: list[str]
) -> None:
    for label, results in (("old", old), ("new", new)):
        (tmp_path / label).write_text(export(*results))
    found = judged(rows_of_files(f"old={tmp_path}/old", f"new={tmp_path}/new"))
    assert [cell.cell for cell in found.cells] == cells


def test_one_name_of_several_parameters_is_not_mixed() -> None:
    found = judged(rows_of(export(("old", "1"), ("new", "1"), ("old", "2"), ("new", "2"))), baseline="old")
    assert (found.levels, [cell.cell for cell in found.cells]) == (("old", "new"), ["1", "2"])


def test_runs_of_hyperfine_in_files_of_their_own_are_clusters(tmp_path: Path) -> None:
    given = []
    for run in range(1, 5):
        for label, command in (("a", "sleep 0.01"), ("b", "sleep 0.02")):
            times = [0.01 * (1 + (label == "b")) + 0.0001 * (run + turn) for turn in range(3)]
            path = tmp_path / f"{label}{run}.json"
            path.write_text(json.dumps({"results": [{"command": command, "times": times}]}))
            given.append(path)
    found = judged(rows_of_files(*given), cluster="file", baseline="sleep 0.01")
    assert only_comparison(found, "time_s").n == 4
    assert "shared_state" not in codes(found)
    assert "shared_state" in codes(judged(rows_of_files(*given), baseline="sleep 0.01"))


def test_one_time_per_file_shares_nothing(tmp_path: Path) -> None:
    given = []
    for run in range(8):
        path = tmp_path / f"{run}.json"
        path.write_text(json.dumps({"results": [{"command": "ab"[run % 2], "times": [1.0 + run / 100]}]}))
        given.append(f"{'ab'[run % 2]}={path}")
    assert "shared_state" not in codes(judged(rows_of_files(*given), baseline="a"))


def test_files_may_be_arms_and_conditions(tmp_path: Path) -> None:
    given = []
    for name in "ab":
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps({"results": [{"command": "c", "times": [1.0, 1.1, 1.2]}]}))
        given.append(path)
    assert judged(rows_of_files(*given), arm="file").levels == tuple(map(str, given))
    found = judged(rows_of_files(*(f"x={each}" for each in given), f"y={given[0]}"), by=("file",))
    assert len(found.cells) == 2
    assert "shared_state" in codes(found)


def test_repetitions_of_google_benchmark_are_read_and_aggregates_left_out() -> None:
    frame = rows("google-benchmark.json").frame
    repetitions = [each for each in document("google-benchmark.json")["benchmarks"] if each["run_type"] == "iteration"]
    assert frame["benchmark"].to_list() == [each["name"] for each in repetitions]
    scale = {"ns": 1, "us": 1000}
    assert frame["real_time_ns"].to_list() == [each["real_time"] * scale[each["time_unit"]] for each in repetitions]
    assert frame["items_per_second"].drop_nulls().len() == 6
    assert frame["rounds"].to_list()[:6] == [100.0] * 3 + [1000.0] * 3


def test_aggregates_of_old_versions_are_known_by_their_names() -> None:
    old = [{"name": name, "real_time": 1, "cpu_time": 1, "time_unit": "ms"} for name in ("b", "b", "b_mean", "c_mean")]
    found = rows_of(json.dumps({"context": {}, "benchmarks": old}))
    assert found.frame.select("benchmark", "real_time_ns").rows() == [("b", 1e6), ("b", 1e6), ("c_mean", 1e6)]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("google-benchmark-failed.json", r"benchmarks\.0: BM_Broken/1 failed: no input"),
        ("google-benchmark-skipped.json", r"benchmarks\.0: BM_Skipped was skipped: no device"),
        ("google-benchmark-aggregates.json", "benchmarks: expected repetitions, found aggregates alone"),
    ],
)
def test_what_google_benchmark_did_not_measure_is_refused(name: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        rows(name)


def test_benchmarks_are_cells_of_two_labels_and_a_counter_that_one_has_leaves_the_others_out() -> None:
    path = DATA / "google-benchmark.json"
    labelled = rows_of_files(f"old={path}", f"new={path}")
    assert [cell.cell for cell in judged(labelled).cells] == ["BM_Xor/100", "BM_Xor/1000", "BM_Millis"]
    counted = judged(labelled, values=("items_per_second",))
    assert [cell.cell for cell in counted.cells] == ["BM_Xor/100", "BM_Xor/1000"]
    assert counted.counts.finished == counted.counts.used == 12
    assert "shared_state" in codes(counted)


def test_lines_of_go_are_trials_with_all_their_units_and_settings() -> None:
    found = rows("go.txt")
    frame = found.frame
    assert frame["benchmark"].unique(maintain_order=True).to_list() == [
        "Xor-2",
        "Copy-2",
        "Size/n=small-2",
        "Size/n=large-2",
    ]
    assert frame["ns_per_op"].to_list()[:4] == [40.75, 58.56, 56.05, 47.09]
    assert frame.row(3, named=True).items() >= {"MB_per_s": 86973.46, "B_per_op": 0, "allocs_per_op": 0}.items()
    assert set(frame["pkg"]) == {"example.org/sums"}
    units = {name: (each.unit, each.better, each.kind) for name, each in found.definitions.items()}
    assert units["ns_per_op"] == ("ns/op", "lower", "wall_clock")
    assert units["MB_per_s"] == ("MB/s", "higher", "wall_clock")
    assert units["allocs_per_op"] == ("allocs/op", "lower", "count")
    assert rows("go-verbose.txt").frame.height == frame.height


def test_old_and_new_files_of_go_are_compared_by_benchmark_as_benchstat_does() -> None:
    found = judged(rows_of_files(f"old={DATA / 'go.txt'}", f"new={DATA / 'go-verbose.txt'}"))
    assert (found.levels, len(found.cells)) == (("old", "new"), 4)
    with pytest.raises(InputError, match="no column to compare is named"):
        judged(rows_of_files(DATA / "go.txt", DATA / "go-verbose.txt"))


def test_settings_between_lines_of_go_hold_from_there_on() -> None:
    lines = "commit: a1\nBenchmarkX 10 5 ns/op\ncommit: b2\nBenchmarkX 10 6 ns/op\nBenchmarks are text\n"
    found = rows_of("pkg: p\n" + lines)
    assert found.frame.select("pkg", "commit", "benchmark", "ns_per_op").rows() == [
        ("p", "a1", "X", 5.0),
        ("p", "b2", "X", 6.0),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("BenchmarkX 10 5 ns/op\n--- FAIL: BenchmarkY\n", "standard input:2:1: expected benchmarks that pass"),
        ("BenchmarkX 10 5 ns/op\nFAIL\tpkg 1s\n", "standard input:2:1: expected benchmarks that pass"),
        ("BenchmarkX 10 5 ns/op 7\n", "standard input:1:1: expected pairs of a number and its unit, found '5 ns/op 7'"),
        ("BenchmarkX 10 5 a-b 6 a_b\n", "standard input:1:1: expected every unit once, found '5 a-b 6 a_b'"),
        ("BenchmarkX-2 \thello\n 10 5 ns/op\n", "standard input:2:1: expected the benchmark's name before its result"),
        ("BenchmarkX 10 x ns/op\ngoos: linux\n", "standard input:1:1: expected pairs of a number and its unit"),
        ("goos: linux\nPASS\n", "standard input:1:1: expected the output of `go test -bench`"),
    ],
)
def test_what_go_did_not_measure_is_refused_by_line(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        rows_of(text, format_name="go")
    assert str(caught.value).startswith(message)


def test_a_directory_of_criterion_is_read_with_the_names_of_its_benchmarks() -> None:
    found = rows_of_files(DATA / "criterion")
    assert found.frame["benchmark"].unique(maintain_order=True).to_list() == ["loops/xor/100", "sqrt"]
    samples = document("criterion/sqrt/new/sample.json")
    expected = [time / count for time, count in zip(samples["times"], samples["iters"], strict=True)]
    assert found.frame.filter(benchmark="sqrt")["ns_per_iteration"].to_list() == expected
    assert judged(found).levels == ("loops/xor/100", "sqrt")


def test_raw_csv_of_criterion_gives_what_its_json_gives() -> None:
    raw = rows("criterion-raw.csv").frame
    parsed = rows_of_files(DATA / "criterion" / "loops" / "xor" / "100" / "new" / "sample.json").frame
    columns = ["benchmark", "ns_per_iteration"]
    assert raw.select(columns).equals(parsed.select(columns))


def test_baselines_of_criterion_are_named_by_patterns(tmp_path: Path) -> None:
    for baseline in ("before", "new"):
        directory = tmp_path / "group" / "name" / baseline
        directory.mkdir(parents=True)
        for name in ("sample.json", "benchmark.json"):
            (directory / name).write_bytes((DATA / "criterion" / "sqrt" / "new" / name).read_bytes())
    found = judged(rows_of_files(f"old={tmp_path}/**/before/sample.json", f"new={tmp_path}"))
    assert found.levels == ("old", "new")


@pytest.mark.parametrize(
    ("sample", "benchmark", "message"),
    [
        ('{"iters": [1.0], "times": [1.0]}', None, r"s/sample\.json: no benchmark\.json beside it"),
        ('{"iters": [1.0], "times": [1.0]}', '{"group_id"', r"benchmark\.json:1:11: not a complete JSON document"),
        ('{"iters": [1.0], "times": []}', "", "times: expected as many times as iters, found 0 and 1"),
        ('{"iters": [0.0], "times": [1.0]}', '{"full_id": "b"}', r"iters\.0: expected a number of iterations, found 0"),
        ('{"iters": [], "times": []}', '{"full_id": "b"}', "expected at least one sample"),
    ],
)
def test_a_directory_of_criterion_that_is_not_whole_is_refused(
    tmp_path: Path, sample: str, benchmark: str | None, *, message: str
) -> None:
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "sample.json").write_text(sample)
    if benchmark is not None:
        (tmp_path / "s" / "benchmark.json").write_text(benchmark)
    with pytest.raises(InputError, match=message):
        rows_of_files(tmp_path / "s" / "sample.json")


def test_a_fork_of_jmh_is_a_trial_in_nanoseconds_or_operations_per_second() -> None:
    frame = rows("jmh.json").frame
    thrpt, avgt, sample = (frame.filter(mode=mode) for mode in ("thrpt", "avgt", "sample"))
    by_mode = {each["mode"]: each for each in document("jmh.json")}
    forks = by_mode["thrpt"]["primaryMetric"]["rawData"]
    assert thrpt["ops_per_s"].to_list() == pytest.approx([1000 * sum(fork) / len(fork) for fork in forks])
    forks = by_mode["avgt"]["primaryMetric"]["rawData"]
    assert avgt["ns_per_op"].to_list() == pytest.approx([1000 * sum(fork) / len(fork) for fork in forks])
    (pairs, *_) = by_mode["sample"]["primaryMetric"]["rawDataHistogram"]
    total = sum(value * count for iteration in pairs for value, count in iteration)
    mean = 1e6 * total / sum(count for iteration in pairs for _, count in iteration)
    assert sample["ns_per_op"][0] == pytest.approx(mean)
    assert sample["fork"].to_list() == [1, 2]
    assert set(frame["benchmark"]) == {"sums.Sums.sqrt:n=100", "sums.Sums.xor:n=100"}


def test_modes_of_jmh_stand_apart_and_a_metric_that_some_lack_must_be_named() -> None:
    labelled = rows_of_files(f"old={DATA / 'jmh.json'}", f"new={DATA / 'jmh.json'}")
    with pytest.raises(InputError, match="no column of values is named; expected one of `ops_per_s`"):
        judged(labelled)
    found = judged(labelled, values=("ns_per_op",))
    assert [cell.cell for cell in found.cells] == ["sums.Sums.xor:n=100+avgt", "sums.Sums.sqrt:n=100+sample"]
    assert "shared_state" not in codes(found)


def test_profilers_of_jmh_are_columns_in_their_units() -> None:
    found = rows("jmh.json")
    assert found.definitions["gc_alloc_rate_norm"].unit == "B/op"
    assert found.definitions["gc_alloc_rate_norm"].better == "lower"
    assert found.definitions["p0_50_ns_per_op"].unit == "ns/op"


def jmh(**primary: object) -> str:
    return json.dumps([{"jmhVersion": "1", "benchmark": "b", "mode": "avgt", "primaryMetric": primary}])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (jmh(scoreUnit="us/op", rawData=[[1.0], []]), r"0\.primaryMetric\.rawData: b has a fork without iterations"),
        (jmh(rawData=[[1.0]]), r"0\.primaryMetric\.scoreUnit: Field required"),
        (jmh(scoreUnit="us/op"), "expected at least one fork of a benchmark, found none"),
        (jmh(scoreUnit="us/op", rawData=[["x"]]), r"0\.primaryMetric\.rawData\.0\.0: Input should be a valid number"),
    ],
)
def test_what_jmh_did_not_measure_is_refused(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        rows_of(text)


GO = "BenchmarkX 10 5 ns/op 2 B/op 1 allocs/op 3 MB/s 7 hits/op 8 errors/s 9 p99-ns\n"
GOOGLE = {"name": "b", "real_time": 1, "cpu_time": 1, "time_unit": "ns", "bytes_per_second": 2, "hits": 3, "ops/s": 4}


@pytest.mark.parametrize(
    ("text", "lower", "higher", "unknown"),
    [
        (GO, "ns_per_op B_per_op allocs_per_op", "MB_per_s", "hits_per_op errors_per_s p99_ns"),
        ("Unit p99-ns better=lower assume=exact\n" + GO, "ns_per_op p99_ns", "MB_per_s", "hits_per_op"),
        (
            json.dumps({"context": {}, "benchmarks": [GOOGLE]}),
            "real_time_ns cpu_time_ns",
            "bytes_per_second ops/s",
            "hits",
        ),
        (
            json.dumps(
                [
                    {
                        "benchmark": "b",
                        "mode": "thrpt",
                        "primaryMetric": {"scoreUnit": "ops/ms", "rawData": [[1.0]]},
                        "secondaryMetrics": {
                            name: {"scoreUnit": unit, "rawData": [[1.0]]}
                            for name, unit in {
                                "cycles": "#/op",
                                "pause": "ms",
                                "CPI": "clks/insn",
                                "IPC": "insns/clk",
                                "gc.count": "counts",
                                "hits": "#",
                            }.items()
                        },
                    }
                ]
            ),
            "cycles pause CPI gc_count",
            "ops_per_s IPC",
            "hits",
        ),
    ],
)
def test_only_known_units_have_a_direction(text: str, lower: str, higher: str, *, unknown: str) -> None:
    found = rows_of(text)
    for names, better in ((lower, "lower"), (higher, "higher")):
        assert {found.definitions[name].better for name in names.split()} == {better}
        assert found.undirected.isdisjoint(names.split())
    assert found.undirected >= set(unknown.split())


def test_a_counter_of_the_users_is_judged_in_the_direction_that_is_given() -> None:
    path = DATA / "google-benchmark.json"
    found = rows_of_files(f"old={path}", f"new={path}")
    asked = ("real_time_ns", "rounds")
    with pytest.raises(
        InputError, match=r"rounds: the format does not say whether higher or lower is better"
    ) as caught:
        judged(found, values=asked)
    assert caught.value.hint == "give --better rounds=lower or --better rounds=higher"
    analysis = judged(found, values=asked, better_of={"rounds": "lower"})
    assert [analysis.metrics[name].better for name in asked] == ["lower", "lower"]
    assert judged(found, values=asked, better=("lower", "higher")).metrics["rounds"].better == "higher"
    with pytest.raises(InputError, match=r"--better: `round` is not judged; .*did you mean `rounds`"):
        judged(found, values=asked, better_of={"round": "lower"})


def test_rounds_of_pytest_benchmark_are_trials_and_its_mean_where_it_kept_no_data() -> None:
    frame = rows("pytest-benchmark.json").frame
    first = document("pytest-benchmark.json")["benchmarks"][0]
    assert frame["benchmark"][0] == "test_sums.py::test_sum[10]"
    assert frame["time_ns"].to_list()[:6] == pytest.approx([1e9 * time for time in first["stats"]["data"]])
    saved = rows("pytest-benchmark-saved.json").frame
    means = [each["stats"]["mean"] for each in document("pytest-benchmark-saved.json")["benchmarks"]]
    assert saved["time_ns"].to_list() == pytest.approx([1e9 * mean for mean in means])
