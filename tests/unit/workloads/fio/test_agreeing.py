"""fio's own document against the files made from it: equal as written, and each changed figure is found."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.inference import printed

from fairtrial.workloads.fio.output import contradictions


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    printed.fio(tmp_path)
    return tmp_path


def changed(path: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    found = json.loads(path.read_text(encoding="utf-8").removeprefix("a note before\n"))
    change(found)
    path.write_text(json.dumps(found), encoding="utf-8")


def test_files_as_they_were_made_agree(directory: Path) -> None:
    assert contradictions(directory) == []


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
    changed(directory / "result.json", change)
    (sentence,) = contradictions(directory)
    assert sentence.startswith(f"result.json: {name} is ")


def test_a_class_that_fio_did_not_count_is_found(directory: Path) -> None:
    other = {"996": 4, "5024": 3}
    changed(directory / "fio.json", lambda found: found["jobs"][0]["read"]["clat_ns"].update(bins=other))
    (sentence,) = contradictions(directory)
    assert sentence == "latency.hlog: 7 of read in other classes than fio.json gives"


def test_a_document_that_is_gone_is_no_agreement(directory: Path) -> None:
    (directory / "fio.json").unlink()
    with pytest.raises(OSError, match=r"fio\.json"):
        contradictions(directory)
