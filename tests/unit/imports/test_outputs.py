"""Real outputs of fio and sysbench as tables: figures as the tools print them, and what cannot be had left out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.inference.tables import judged, only_comparison, rows_of, rows_of_files

from fairtrial.analyse.inference.comparing import CENSORED
from fairtrial.errors import InputError

OUTPUTS = Path(__file__).with_name("outputs")


def figures(name: str) -> dict[str, object]:
    return rows_of_files(OUTPUTS / name).frame.row(0, named=True)


def jobs(name: str) -> list[dict[str, object]]:
    return json.loads((OUTPUTS / name).read_text())["jobs"]


def test_percentiles_from_bins_are_those_that_fio_computed_itself() -> None:
    found = figures("fio-one-bins.json")
    (job,) = jobs("fio-one-bins.json")
    for side in ("read", "write"):
        printed = job[side]["clat_ns"]["percentile"]
        for name in ("50", "90", "95", "99", "99.9"):
            assert found[f"{side}_clat_ns_p{name}"] == printed[f"{float(name):.6f}"]


def test_clones_add_up_and_their_means_weigh_by_count() -> None:
    found = figures("fio-clones-bins.json")
    one, two = jobs("fio-clones-bins.json")
    assert found["job"] == "pair"
    assert found["iops"] == sum(job[side]["iops"] for job in (one, two) for side in ("read", "write"))
    counts = [job["read"]["clat_ns"]["N"] for job in (one, two)]
    means = [job["read"]["clat_ns"]["mean"] for job in (one, two)]
    assert found["read_clat_ns_mean"] == pytest.approx((means[0] * counts[0] + means[1] * counts[1]) / sum(counts))
    assert found["read_clat_ns_max"] == max(job["read"]["clat_ns"]["max"] for job in (one, two))


def test_percentiles_of_clones_lie_between_theirs_and_are_absent_without_bins() -> None:
    found = figures("fio-clones-bins.json")
    each = [job["read"]["clat_ns"]["percentile"]["90.000000"] for job in jobs("fio-clones-bins.json")]
    assert min(each) <= found["read_clat_ns_p90"] <= max(each)
    assert not [name for name in figures("fio-clones.json") if "_p9" in name]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("sysbench-cpu.txt", {}),
        ("sysbench-oltp.txt", {"transactions_per_s": 597.53, "queries_per_s": 11950.64, "latency_ms_p95": 10.27}),
        ("sysbench-fileio.txt", {}),
        ("sysbench-memory.txt", {}),
    ],
)
def test_what_sysbench_prints_is_found(name: str, expected: dict[str, float]) -> None:
    found, text = figures(name), (OUTPUTS / name).read_text()
    assert expected.items() <= found.items()
    assert found["events_per_s"] == found["events"] / found["total_time_s"]
    assert f"total number of events:              {found['events']:.0f}\n" in text
    assert f"avg:                                    {found['latency_ms_mean']:.2f}" in text
    if "fileio" in name:
        assert f"reads/s:                      {found['reads_per_s']:.2f}" in text
        assert f"written, MiB/s:               {found['written_mib_per_s']:.2f}" in text
    if "memory" in name:
        assert f"({found['operations_per_s']:.2f} per second)" in text
        assert f"({found['transferred_mib_per_s']:.2f} MiB/sec)" in text


def sysbench(events: int) -> str:
    text = (OUTPUTS / "sysbench-oltp.txt").read_text()
    return text.replace("events:              5979", f"events:              {events}")


def fio(**job: object) -> str:
    return json.dumps({"fio version": "fio-3.33", "jobs": [{"jobname": "w", **job}]})


def test_a_folder_of_outputs_is_compared_by_labels_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    for block in range(1, 9):
        (tmp_path / f"old-{block}.txt").write_text(sysbench(6000 + 10 * block))
        (tmp_path / f"new-{block}.txt").write_text(sysbench(6600 + 11 * block + block % 2))
    rows = rows_of_files(f"old={tmp_path}/old-*.txt", f"new={tmp_path}/new-*.txt")
    found = only_comparison(judged(rows, block="number"), "events_per_s")
    assert (found.baseline, found.arm, found.n, found.verdict) == ("old", "new", 8, "faster")
    assert found.ratio.estimate == pytest.approx(1.1, abs=0.001)


def test_a_folder_of_outputs_is_compared_by_fields_of_their_names(tmp_path: Path) -> None:
    for block in range(1, 7):
        for kernel, events in (("old", 6000), ("new", 5000)):
            (tmp_path / f"{kernel}-{block}.txt").write_text(sysbench(events + block))
    rows = rows_of_files(tmp_path, names="{kernel}-{block}.txt")
    found = judged(rows, arm="kernel", block="block", baseline="old")
    assert only_comparison(found, "events_per_s").verdict == "slower"
    assert found.metrics["events_per_s"].unit == "events/s"


def test_percentiles_are_known_by_the_tools_own_classes(tmp_path: Path) -> None:
    """Of sysbench a class apart, of fio in one class: neither faster nor equivalent within 1 %."""
    of_sysbench, of_fio = ((OUTPUTS / name).read_text() for name in ("sysbench-oltp.txt", "fio-one-bins.json"))
    for metric, ratio, old, new in (
        ("latency_ms_p95", 1.0185, of_sysbench, of_sysbench.replace(" 10.27\n", " 10.46\n")),
        ("read_clat_ns_p95", 1, of_fio, of_fio),
    ):
        for label, text in (("old", old), ("new", new)):
            for number in range(1, 9):
                (tmp_path / f"{metric}-{label}-{number}").write_text(text)
        rows = rows_of_files(f"old={tmp_path}/{metric}-old-*", f"new={tmp_path}/{metric}-new-*")
        found = only_comparison(judged(rows, values=(metric,), margin=0.01), metric)
        assert found.method.endswith(CENSORED)
        assert found.verdict == "undecided"
        assert found.ratio.estimate == pytest.approx(ratio, abs=1e-4)


def test_latency_is_better_low_without_being_told(tmp_path: Path) -> None:
    for label, name in (("one", "fio-one-bins.json"), ("two", "fio-clones-bins.json")):
        (tmp_path / f"{label}.json").write_text((OUTPUTS / name).read_text())
    rows = rows_of_files(f"one={tmp_path}/one.json", f"two={tmp_path}/two.json")
    found = judged(rows, values=("read_iops", "read_clat_ns_p99"))
    assert [each.better for each in found.metrics.values()] == ["higher", "lower"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (sysbench(0), "sysbench processed no events"),
        (sysbench(1) * 2, "expected one run of sysbench, found 2"),
        ('{"fio version": "fio-3.33", "jobs": [', "not a complete JSON document"),
        ('{"fio version": "fio-3.33", "jobs": []}', "no job did any I/O"),
        (f"{fio()}\n{fio()}", r"standard input:2:1: expected one run of fio, found 2"),
        (fio(error=5, read={"total_ios": 1, "clat_ns": {"N": 1}}), "fio reports error 5 in job w"),
    ],
)
def test_an_output_of_nothing_is_refused(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        rows_of(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (fio(read={"iops": "many"}), r"jobs\.0\.read\.iops: Input should be a valid number"),
        ('{"fio version": "3", "jobs": [{}]}', r"jobs\.0\.jobname: Field required"),
        (fio(read={"total_ios": 1}), r"jobs\.0: expected .*, missing: read\.iops, read\.bw_bytes"),
        (fio(trim={"clat_ns": {"N": 1, "mean": 4}}), r"jobs\.0: expected .*, missing: trim\.clat_ns\.max"),
    ],
)
def test_a_complete_document_with_an_odd_field_names_it_on_one_line(text: str, message: str) -> None:
    with pytest.raises(InputError, match=rf"^standard input: {message}[^\n]*$") as refused:
        rows_of(text)
    assert "as fio wrote it" in refused.value.hint


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (fio(total_err=2, read={"total_ios": 9, "iops": 3, "bw_bytes": 1}), "io_errors is above 0 in 1 of 1 rows"),
        (sysbench(9).replace("(0.00 per", "(0.50 per", 1), "ignored_errors_per_s is above 0 in 1 of 1 rows, up to 0.5"),
    ],
)
def test_errors_that_a_run_went_on_after_are_said(text: str, message: str) -> None:
    (doubt,) = (each for each in rows_of(text).doubts if each.code == "partly_failed")
    assert doubt.message.startswith(message)


def test_kinds_are_not_mixed() -> None:
    with pytest.raises(InputError, match="expected files of one kind"):
        rows_of_files(OUTPUTS / "sysbench-cpu.txt", OUTPUTS / "fio-clones.json")


def test_jobs_of_one_file_that_are_no_clones_stand_apart(tmp_path: Path) -> None:
    document = json.loads((OUTPUTS / "fio-clones.json").read_text())
    document["jobs"][1]["jobname"] = "other"
    for label in ("a", "b"):
        (tmp_path / f"{label}.json").write_text(json.dumps(document))
    rows = rows_of_files(f"a={tmp_path}/a.json", f"b={tmp_path}/b.json")
    assert [cell.cell for cell in judged(rows, block="number").cells] == ["pair", "other"]
    assert judged(rows, arm="job", baseline="other").levels == ("other", "pair")


def test_a_job_that_did_not_do_what_is_judged_is_left_out(tmp_path: Path) -> None:
    document = json.loads((OUTPUTS / "fio-clones.json").read_text())
    document["jobs"][1] |= {"jobname": "writer", "read": {}}
    for label in ("a", "b"):
        (tmp_path / label).write_text(json.dumps(document))
    found = judged(rows_of_files(f"a={tmp_path}/a", f"b={tmp_path}/b"), values=("read_iops",))
    assert ([cell.cell for cell in found.cells], found.counts.used) == (["all"], 2)


def test_half_of_a_character_in_a_name_is_refused() -> None:
    document = json.loads((OUTPUTS / "fio-one-bins.json").read_text())
    document["jobs"][0]["jobname"] = "\ud800"
    with pytest.raises(InputError, match="expected text, found"):
        rows_of(json.dumps(document))
