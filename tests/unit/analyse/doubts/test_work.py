"""Counts per transaction of trials that came differently far are doubted; of equal work they are not."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from fairtrial.analyse.doubts import work as work_doubts
from fairtrial.analyse.models import DOUBT_CODES
from fairtrial.record.models import TrialRecord

FAULTS = "major_faults_per_transaction"


def trials(*given: tuple[str, float]) -> list[TrialRecord]:
    made: list[Any] = [
        SimpleNamespace(trial=SimpleNamespace(cell=cell), scalars={"transactions": n, FAULTS: 0.1}) for cell, n in given
    ]
    return cast("list[TrialRecord]", made)


def test_equal_work_raises_none_nor_does_work_of_different_cells() -> None:
    equal = trials(("few", 100), ("few", 103), ("many", 4000), ("many", 4007))
    assert list(work_doubts.about(equal, primary=[FAULTS])) == []


def test_another_metric_is_not_doubted_whatever_trials_did() -> None:
    assert list(work_doubts.about(trials(("few", 100), ("few", 900)), primary=["throughput_tpm"])) == []
    assert list(work_doubts.about([], primary=[FAULTS])) == []


def test_the_cell_with_the_most_unequal_work_is_named() -> None:
    given = trials(("few", 100), ("few", 120), ("many", 87), ("many", 1274), ("same", 5), ("same", 5), ("same", 0))
    (found,) = work_doubts.about(given, primary=["throughput_tpm", FAULTS])
    assert found.code == "unequal_work"
    assert found.code in DOUBT_CODES
    assert found.message.startswith("trials did 87 to 1,274 transactions in cell many (2 of 3 cells")
    assert FAULTS in found.message
