"""fio's own document against the files made from it: equal as written, and each changed figure is found."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fairtrial.workloads.fio import output
from fairtrial.workloads.fio.agreeing import contradictions


def job(bins: dict[str, int]) -> dict[str, Any]:
    """As much of a job as is read."""
    count = sum(bins.values())
    side = {
        "total_ios": count,
        "io_bytes": 4096 * count,
        "iops": 10.0 * count,
        "clat_ns": {"N": count, "mean": 1000.0, "min": 900, "max": 5000, "bins": bins},
    }
    none = {**side, "total_ios": 0, "io_bytes": 0, "iops": 0.0, "clat_ns": {"N": 0, "mean": 0.0, "min": 0, "max": 0}}
    return {"read": side, "write": none, "usr_cpu": 10.0, "sys_cpu": 20.0, "job_runtime": 1000, "total_err": 0}


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    document = {"jobs": [job({"996": 5, "5024": 2})]}
    (tmp_path / "fio.json").write_text("a note before\n" + json.dumps(document), encoding="utf-8")
    found = output.intervals([], output.whole(document), width_ms=100, life_ns=(0, 10**9))
    (tmp_path / "latency.hlog").write_text(output.latency_log(found), encoding="utf-8")
    own = {"client": {"cpu_s": 3.0}, **json.loads(json.dumps(output.result(document)))}
    own["client"] |= {"cpu_s": 3.0}
    (tmp_path / "result.json").write_text(json.dumps(own), encoding="utf-8")
    return tmp_path


def result(directory: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((directory / "result.json").read_text(encoding="utf-8"))
    return found


def test_files_as_they_were_made_agree(directory: Path) -> None:
    assert contradictions(directory, result(directory)) == []


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("iops", lambda found: found.update(iops=71.0)),
        ("bytes_moved", lambda found: found["bytes_moved"].update(read=1)),
        ("transactions", lambda found: found["transactions"]["read"].update(committed=8)),
        ("latency", lambda found: found["latency"]["read"].update(max=5001)),
    ],
)
def test_a_figure_that_fio_did_not_print_is_found(
    directory: Path, name: str, change: Callable[[dict[str, Any]], None]
) -> None:
    changed = result(directory)
    change(changed)
    (sentence,) = contradictions(directory, changed)
    assert sentence.startswith(f"result.json: {name} is ")


def test_a_class_that_fio_did_not_count_is_found(directory: Path) -> None:
    document = output.document((directory / "fio.json").read_text(encoding="utf-8"))
    document["jobs"][0]["read"]["clat_ns"]["bins"] = {"996": 4, "5024": 3}
    (directory / "fio.json").write_text(json.dumps(document), encoding="utf-8")
    (sentence,) = contradictions(directory, result(directory))
    assert sentence == "latency.hlog: 7 of read in other classes than fio.json has them"


def test_a_document_that_is_gone_is_no_agreement(directory: Path) -> None:
    (directory / "fio.json").unlink()
    with pytest.raises(OSError, match=r"fio\.json"):
        contradictions(directory, result(directory))
