"""Outputs of tools that load servers, as `data/README.md` lists them: one row per run, and per test in it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.inference.tables import judged, rows_of, rows_of_files

from fairtrial.errors import InputError

DATA = Path(__file__).with_name("data")


def figures(name: str) -> dict[str, object]:
    row = rows_of_files(DATA / name).frame.row(0, named=True)
    return {key: value for key, value in row.items() if isinstance(value, float)}


def test_a_report_of_pgbench_is_a_trial() -> None:
    assert figures("pgbench.txt") == {
        "tps": 789.266769,
        "transactions": 1585.0,
        "failed_transactions": 0.0,
        "latency_ms_mean": 2.534,
        "connection_ms": 8.666,
    }


def test_the_whole_of_pgbench_is_read_and_not_a_script_or_a_second() -> None:
    found = figures("pgbench-scripts.txt")
    assert (found["tps"], found["transactions"]) == (97.010128, 193)
    assert (found["latency_ms_mean"], found["latency_ms_sd"], found["lag_ms_mean"]) == (2.38, 5.017, 0.759)


def test_the_rate_of_old_versions_of_pgbench_is_the_one_without_connecting() -> None:
    text = (DATA / "pgbench.txt").read_text()
    two = "tps = 700.5 (including connections establishing)\ntps = 701.5 (excluding connections establishing)\n"
    assert rows_of(text[: text.rindex("tps")] + two).frame["tps"].to_list() == [701.5]


def test_a_summary_of_wrk_is_a_trial_with_and_without_latencies() -> None:
    assert figures("wrk.txt") == {
        "requests_per_s": 2719.34,
        "requests": 5447.0,
        "transferred_bytes_per_s": pytest.approx(496.6 * 1024),
        "latency_ms_mean": 2.18,
        "latency_ms_max": 31.16,
        "socket_errors": 0.0,
        "error_responses": 0.0,
    }
    assert {f"latency_ms_p{each}" for each in (50, 75, 90, 99)} < set(figures("wrk-latency.txt"))
    assert figures("wrk-latency.txt")["latency_ms_p99"] == 15.54
    assert figures("wrk-slow.txt")["latency_ms_p50"] == figures("wrk-slow.txt")["latency_ms_p99"] == 1250.0


WRK2 = """\
  Latency Distribution (HdrHistogram - Recorded Latency)
 50.000%    1.14ms
 99.999%    2.75s 
100.000%    3.01s 

  Detailed Percentile spectrum:
       Value   Percentile   TotalCount 1/(1-Percentile)
       1.140     0.500000         2103         2.00
#[Mean    =        1.500, StdDeviation   =        0.500]
----------------------------------------------------------
  Latency Distribution (HdrHistogram - Uncorrected Latency (measured without taking delayed starts into account))
 50.000%    0.90ms
100.000%    1.02s 

"""  # noqa: W291 - as wrk2 prints it


def wrk_with(distribution: str) -> str:
    summary = (DATA / "wrk.txt").read_text()
    return summary.replace("  5447 requests", distribution + "  5447 requests")


def test_latencies_of_wrk2_are_the_corrected_ones() -> None:
    found = rows_of(wrk_with(WRK2)).frame.row(0, named=True)
    assert {key: value for key, value in found.items() if "_p" in key and "latency" in key} == {
        "latency_ms_p50": 1.14,
        "latency_ms_p99.999": 2750.0,
        "latency_ms_p100": 3010.0,
    }


@pytest.mark.parametrize("line", ["     99%    1.35d ", "     99%", "a word"])
def test_a_percentile_of_wrk_that_is_none_is_refused_by_its_line(line: str) -> None:
    with pytest.raises(InputError, match="standard input:8:1: expected a percentile and a time in us, ms, s, m or h"):
        rows_of(wrk_with(f"  Latency Distribution\n     50%    1.14ms\n{line}\n"))


@pytest.mark.parametrize(
    ("name", "message"),
    [("wrk-errors.txt", "every response was an error"), ("wrk-unanswered.txt", "no request was answered")],
)
def test_a_run_of_wrk_in_which_nothing_succeeded_is_refused(name: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        rows_of_files(DATA / name)


def test_a_run_of_wrk_in_which_some_requests_failed_is_said_to_be() -> None:
    errors = "  Non-2xx or 3xx responses: 1200\nRequests/sec"
    found = rows_of((DATA / "wrk.txt").read_text().replace("Requests/sec", errors))
    (doubt,) = (each for each in found.doubts if each.code == "partly_failed")
    assert doubt.message == "error_responses is above 0 in 1 of 1 rows, up to 1,200"
    assert "partly_failed" not in {each.code for each in rows_of_files(DATA / "wrk.txt").doubts}


ABORTED = "pgbench: error: Run was aborted; the above results are incomplete.\n"
EACH = "number of transactions actually processed: "


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [("(without initial connection time)\n", f"()\n{ABORTED}", 15), (f"{EACH}1585\n", f"{EACH}1585/2000\n", 10)],
)
def test_a_run_of_pgbench_in_which_a_client_gave_up_is_refused(old: str, new: str, line: int) -> None:
    text = (DATA / "pgbench.txt").read_text()
    with pytest.raises(InputError, match=f"standard input:{line}:1: expected a run to its end, found"):
        rows_of(text.replace(old, new))
    failed = text.replace(f"{EACH}1585\n", f"{EACH}1585/1590\n").replace(
        "failed transactions: 0", "failed transactions: 5"
    )
    assert rows_of(failed).frame["failed_transactions"].to_list() == [5.0]


def test_times_and_sizes_of_wrk_have_one_unit_each() -> None:
    text = (DATA / "wrk.txt").read_text().replace("2.18ms    3.08ms  31.16ms", "250.00us    3.08ms  1.50s ")
    text = text.replace("496.60KB", "1.50GB").replace(
        "Requests/sec", "  Socket errors: connect 1, read 2, write 0, timeout 3\nRequests/sec"
    )
    found = rows_of(text).frame.row(0, named=True)
    assert (found["latency_ms_mean"], found["latency_ms_max"]) == (0.25, 1500.0)
    assert found["transferred_bytes_per_s"] == 1.5 * 2**30
    assert found["socket_errors"] == 6


@pytest.mark.parametrize(("name", "tool", "line"), [("wrk.txt", "wrk", 9), ("pgbench.txt", "pgbench", 17)])
def test_two_runs_in_a_file_are_refused_by_the_line_of_the_second(name: str, tool: str, line: int) -> None:
    with pytest.raises(InputError, match=f"standard input:{line}:1: expected one run of {tool}, found 2"):
        rows_of((DATA / name).read_text() * 2)


def test_tests_of_redis_benchmark_are_conditions() -> None:
    path = DATA / "redis-benchmark.csv"
    found = judged(rows_of_files(f"always={path}", f"everysec={path}"), values=("rps", "p99_latency_ms"))
    assert [cell.cell for cell in found.cells] == ["SET", "GET", "INCR"]
    assert [each.better for each in found.metrics.values()] == ["higher", "lower"]
    assert rows_of_files(path).frame["rps"].to_list() == [121951.22, 138888.89, 185185.19]


def test_old_versions_of_redis_benchmark_have_no_header() -> None:
    assert rows_of('"SET","1000.50"\n"GET","2000.25"\n').frame.select("test", "rps").rows() == [
        ("SET", 1000.5),
        ("GET", 2000.25),
    ]


def test_a_word_where_redis_benchmark_has_numbers_is_named_by_line_and_column() -> None:
    text = (DATA / "redis-benchmark.csv").read_text().replace("0.023", "fast", 1)
    with pytest.raises(InputError, match="standard input:2:1: p50_latency_ms: expected a number, found 'fast'"):
        rows_of(text)


def test_results_of_hammerdb_are_trials_with_their_users() -> None:
    text = (DATA / "hammerdb.txt").read_text()
    more = text.replace("2 Active", "8 Active").replace("15794 NOPM", "31000 NOPM")
    found = rows_of(text + more)
    assert found.frame.select("virtual_users", "nopm", "tpm").rows() == [
        ("2", 15794.0, 36823.0),
        ("8", 31000.0, 36823.0),
    ]
    old = "Vuser 1:TEST RESULT : System achieved 90000 PostgreSQL TPM at 40000 NOPM\n"
    assert rows_of(old).frame.select("nopm", "tpm").rows() == [(40000.0, 90000.0)]


def test_a_virtual_user_of_hammerdb_that_failed_is_refused_by_its_line() -> None:
    text = (DATA / "hammerdb.txt").read_text() + "Vuser 2:FINISHED FAILED\n"
    with pytest.raises(InputError, match="standard input:29:1: expected virtual users that succeed"):
        rows_of(text)


def test_every_statistic_that_a_script_of_k6_asks_for_is_read() -> None:
    metrics = {"iteration_duration": {"p(99.9)": 9.5, "count": 3}, "vus": {"value": 1, "min": 1, "max": 1}}
    frame = rows_of(json.dumps({"metrics": metrics})).frame
    assert frame["iteration_duration_p99.9"].to_list() == [9.5]
    assert not [name for name in frame.columns if name.startswith("vus")]


def test_metrics_of_a_script_of_k6_have_no_direction_unless_they_are_times_or_failures() -> None:
    shares = {name: {"passes": 1, "fails": 1, "value": 0.5} for name in ("cache_hits", "login_errors", "checks")}
    trends = {name: {"avg": 1.0} for name in ("queue_depth", "login_duration", "iteration_duration")}
    found = rows_of(json.dumps({"metrics": shares | trends}))
    assert found.undirected == {"cache_hits_share", "queue_depth_avg"}
    better = {name: each.better for name, each in found.definitions.items() if name not in found.undirected}
    assert better.pop("checks_share") == "higher"
    assert set(better.values()) == {"lower"}


def test_a_summary_of_k6_has_the_figures_that_it_prints() -> None:
    found = figures("k6-summary.json")
    assert found["http_req_duration_p95"] == 22.5
    assert found["http_req_duration{expected_response:true}_avg"] == 12.25
    assert (found["http_reqs_count"], found["http_reqs_per_s"]) == (200.0, 20.0)
    assert (found["checks_share"], found["http_req_failed_share"]) == (0.99, 0.01)
    assert not [name for name in found if name.startswith("vus")]
    definitions = rows_of_files(DATA / "k6-summary.json").definitions
    units = {name: (each.unit, each.better) for name, each in definitions.items()}
    assert units["http_req_duration{expected_response:true}_avg"] == ("ms", "lower")
    assert units["http_reqs_per_s"] == ("http_reqs/s", "higher")
    assert units["data_sent_per_s"] == ("B/s", "higher")
    assert units["checks_share"] == ("share", "higher")
    assert units["http_req_failed_share"] == ("share", "lower")


def test_a_summary_that_a_script_of_k6_wrote_gives_the_same() -> None:
    document = json.loads((DATA / "k6-summary.json").read_text())
    document["metrics"] = {name: {"type": "?", "values": each} for name, each in document["metrics"].items()}
    nested = rows_of(json.dumps(document)).frame.drop("file")
    assert nested.equals(rows_of_files(DATA / "k6-summary.json").frame.drop("file"))


def test_lines_of_k6_are_reduced_as_its_summary_does() -> None:
    found = figures("k6-lines.json")
    assert found["http_req_duration_avg"] == found["http_req_duration_med"] == 15.0
    assert (found["http_req_duration_min"], found["http_req_duration_max"]) == (10.0, 20.0)
    assert found["http_req_duration_p90"] == 19.0
    assert found["http_req_duration_p95"] == 19.5
    assert (found["http_reqs_count"], found["http_reqs_per_s"]) == (11.0, 1.1)
    assert found["http_req_failed_share"] == pytest.approx(1 / 11)
    assert "vus_avg" not in found


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"value":2,', '"value":1e999,', r"standard input:7:1: expected a line of k6's --out json, found data"),
        ('"value":2,', '"value":"two",', r"standard input:7:1: expected a line of k6's --out json, found data"),
        ('{"type":"Point"', '{"type":"Pint"', "standard input:7:1: expected a line of k6's --out json, found type"),
        ('"metric":"vus"}\n', '"metric":"other"}\n', "standard input:7:1: expected the type of vus"),
    ],
)
def test_a_line_of_k6_that_is_wrong_is_named(old: str, new: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        rows_of((DATA / "k6-lines.json").read_text().replace(old, new, 1))


def test_runs_of_the_phoronix_test_suite_are_trials_of_systems_by_test() -> None:
    found = rows_of_files(DATA / "phoronix.xml")
    assert found.frame.select("test", "system", "MIPS").rows()[:4] == [
        ("7-Zip Compression: Test: Compression Rating", "old", 6001.0),
        ("7-Zip Compression: Test: Compression Rating", "old", 6010.0),
        ("7-Zip Compression: Test: Compression Rating", "old", 6025.0),
        ("7-Zip Compression: Test: Compression Rating", "new", 6111.0),
    ]
    units = {name: (each.unit, each.better) for name, each in found.definitions.items()}
    assert units == {"MIPS": ("MIPS", "higher"), "Seconds": ("Seconds", "lower")}
    with pytest.raises(InputError, match="no column of values is named; expected one of `MIPS`, `Seconds`"):
        judged(found)
    analysis = judged(found, values=("MIPS",))
    assert (analysis.levels, len(analysis.cells)) == (("old", "new"), 2)
    assert analysis.counts.used == 13
    assert "shared_state" in {doubt.code for doubt in analysis.doubts}


def test_two_versions_of_a_test_of_phoronix_are_two_tests() -> None:
    text = (DATA / "phoronix.xml").read_text()
    result = text[text.index("<Result>") : text.index("</Result>") + len("</Result>")]
    both = text.replace("</PhoronixTestSuite>", result.replace("22.01", "23.01") + "</PhoronixTestSuite>")
    found = judged(rows_of(both), values=("MIPS",), baseline="old")
    tests = [cell.cell.partition(": ")[0] for cell in found.cells if "Compression Rating" in cell.cell]
    assert tests == ["7-Zip Compression 22.01", "7-Zip Compression 23.01"]


def test_a_system_without_a_result_in_a_test_of_phoronix_is_left_out_and_said_to_be() -> None:
    text = (DATA / "phoronix.xml").read_text()
    figures = text[text.index("<Value>") : text.index("</RawString>")]
    found = rows_of(text.replace(figures, "<Value></Value><RawString>", 1))
    whole = rows_of(text).frame
    assert found.frame.height == whole.height - 3
    (doubt,) = (each for each in found.doubts if each.code == "missing")
    assert "7-Zip Compression: Test: Compression Rating on old: no result in numbers" in doubt.message


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("6001:6010:6025", "6001:x", r"Result 1 \(7-Zip Compression\)\.old\.RawString: expected numbers separated"),
        ("<Proportion>HIB", "<Proportion>UP", r"Result 1 \(7-Zip Compression\)\.Proportion: expected HIB or LIB"),
        ("</PhoronixTestSuite>", "", "standard input:102:1: not a complete XML document"),
        ('<?xml version="1.0"?>', '<!DOCTYPE x [<!ENTITY a "b">]>', "expected no entities of its own"),
        ("BAR_GRAPH", "LINE_GRAPH", "expected at least one result in numbers"),
    ],
)
def test_a_result_of_phoronix_that_is_wrong_is_named(old: str, new: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        rows_of((DATA / "phoronix.xml").read_text().replace(old, new))


def test_a_run_that_is_one_summary_is_said_to_be() -> None:
    for name in ("wrk.txt", "pgbench.txt", "hammerdb.txt", "redis-benchmark.csv", "k6-lines.json"):
        path = DATA / name
        found = judged(rows_of_files(f"a={path}", f"b={path}"))
        assert "summarised" in {doubt.code for doubt in found.doubts}, name
