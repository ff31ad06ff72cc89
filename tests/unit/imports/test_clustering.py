"""Samples of one run as one trial: what is averaged, how, and what is said of it."""

from __future__ import annotations

import numpy as np
import pytest
from support.inference.tables import judged, only_comparison

from fairtrial.analyse.models import Analysis
from fairtrial.errors import InputError
from fairtrial.report.text.console import render

HEADER = "kernel,memory,run,second,tps\n"
ASKED = {"values": ("tps",), "arm": "kernel", "by": ("memory",)}


def value(kernel: str, run: int, second: int) -> float:
    """Slow changes of a run, with an arm's effect; of the arms together no two runs are alike."""
    return 100.0 * (1.1 if kernel == "new" else 1.0) * (1 + 0.01 * run) * (1 + 0.05 * np.sin(second / 5 + run))


ROWS = [
    (kernel, memory, run, second, value(kernel, run, second))
    for kernel in ("old", "new")
    for memory in ("low", "high")
    for run in range(5)
    for second in range(30)
]


def table(*rows: tuple[object, ...]) -> str:
    return HEADER + "".join(",".join(map(str, row)) + "\n" for row in rows)


def averaged(rows: list[tuple[object, ...]], *, geometric: bool) -> list[tuple[object, ...]]:
    """The same by hand: a row per run."""
    found = []
    for key in dict.fromkeys(row[:3] for row in rows):
        values = [row[4] for row in rows if row[:3] == key and row[4] != "NA"]
        mean = np.exp(np.mean(np.log(values))) if geometric else np.mean(values)
        found.append((*key, 0, repr(float(mean))))
    return found


def codes(of: Analysis) -> set[str]:
    return {doubt.code for doubt in of.doubts}


def test_a_cluster_is_one_trial() -> None:
    every, clustered = judged(table(*ROWS), **ASKED), judged(table(*ROWS), **ASKED, cluster="run")
    assert only_comparison(every, "tps", "low").n == 150
    assert only_comparison(clustered, "tps", "low").n == 5
    assert (clustered.counts.rows, clustered.counts.used) == (600, 20)
    assert every.counts.rows == 0


@pytest.mark.parametrize("geometric", [True, False])
def test_means_are_on_the_scale_that_is_compared(*, geometric: bool) -> None:
    rows = ROWS if geometric else [(*row[:4], row[4] - 150) for row in ROWS]
    found = only_comparison(judged(table(*rows), **ASKED, cluster="run"), "tps", "high")
    by_hand = only_comparison(judged(table(*averaged(rows, geometric=geometric)), **ASKED), "tps", "high")
    assert (found.ratio.estimate is not None) == geometric
    assert found.difference.estimate == pytest.approx(by_hand.difference.estimate)
    assert (found.ratio.low, found.p) == (pytest.approx(by_hand.ratio.low), pytest.approx(by_hand.p))


def test_one_cells_zeros_leave_the_others_logarithms() -> None:
    rows = [(*row[:4], 0 if row[1:4] == ("low", 2, 7) else row[4]) for row in ROWS]
    before, found = (judged(table(*each), **ASKED, cluster="run") for each in (ROWS, rows))
    assert only_comparison(found, "tps", "high") == only_comparison(before, "tps", "high")
    low = {each.arm: each for each in next(cell for cell in found.cells if cell.cell == "low").summaries["tps"]}
    assert low["old"].values[2] == pytest.approx(np.mean([row[4] for row in rows if row[:3] == ("old", "low", 2)]))


def test_equal_rows_keep_their_value_to_the_last_digit() -> None:
    rows = [("old" if n < 42 else "new", "low", n % 6, 0, 0.1) for n in range(100)]
    found = only_comparison(judged(table(*rows), **ASKED, cluster="run"), "tps", "low")
    assert {doubt.code for doubt in found.doubts} == {"zero_variance"}


def test_clusters_pair_within_blocks_and_a_block_may_be_one() -> None:
    """A run of each arm, one after the other: the run is the block, and its rows are one trial of each."""
    with pytest.raises(InputError, match="expected one row for") as refused:
        judged(table(*ROWS), **ASKED, block="run")
    assert "--cluster" in str(refused.value.hint)
    found = judged(table(*ROWS), **ASKED, block="run", cluster="run")
    assert (only_comparison(found, "tps", "low").n, found.paired) == (5, True)


def test_two_clusters_of_an_arm_in_a_block_are_refused() -> None:
    with pytest.raises(InputError, match="expected one cluster for kernel old, memory low"):
        judged(table(*(row for row in ROWS if row[3] < 2)), **ASKED, block="second", cluster="run")


def test_missing_rows_are_left_out_and_counted_and_an_empty_cluster_is_a_missing_trial() -> None:
    rows = [(*row[:4], "NA" if row[:3] == ("old", "low", 1) and row[3] > 27 else row[4]) for row in ROWS]
    found = judged(table(*rows), **ASKED, cluster="run")
    by_hand = judged(table(*averaged(rows, geometric=True)), **ASKED)
    assert only_comparison(found, "tps", "low").p == pytest.approx(only_comparison(by_hand, "tps", "low").p)
    assert [doubt.message for doubt in found.doubts if doubt.code == "missing"] == [
        "2 of 600 rows have no finite value and are left out of their clusters"
    ]
    lost = [(*row[:4], "NA" if row[:3] == ("old", "low", 1) else row[4]) for row in ROWS]
    without = judged(table(*lost), **ASKED, cluster="run")
    assert "missing" not in codes(without)
    assert "missing" in {doubt.code for doubt in only_comparison(without, "tps", "low").doubts}


def test_rows_that_depend_are_doubted_and_their_clusters_are_not() -> None:
    assert "dependent_rows" in codes(judged(table(*ROWS), **ASKED))
    assert "dependent_rows" not in codes(judged(table(*ROWS), **ASKED, cluster="run"))


def test_rows_in_another_order_of_time_are_judged_in_that() -> None:
    """Seconds of all runs by turns: rows of an arm no longer follow one another in the file, but do in time."""
    mixed = [ROWS[index] for index in np.random.default_rng(5).permutation(len(ROWS))]
    timed = [(*row[:3], 1000 * row[2] + row[3], row[4]) for row in mixed]
    asked = {**ASKED, "baseline": "old"}
    assert "dependent_rows" not in codes(judged(table(*mixed), **asked))
    assert "dependent_rows" in codes(judged(table(*timed), **asked, time="second"))


def test_blocks_are_asked_for_their_differences_instead() -> None:
    rows = [(kernel, memory, 30 * run + second, 0, tps) for kernel, memory, run, second, tps in ROWS]
    found = codes(judged(table(*rows), **ASKED, block="run"))
    assert "dependent_rows" not in found


@pytest.mark.parametrize("written", ["", "NA", " "])
def test_a_row_without_cluster_is_refused_where_it_stands(written: str) -> None:
    rows = [(*row[:2], written if index == 4 else row[2], *row[3:]) for index, row in enumerate(ROWS)]
    with pytest.raises(InputError) as refused:
        judged(table(*rows), **ASKED, cluster="run")
    assert str(refused.value) == (
        f"standard input:6:9: run: expected the name of a cluster, found {written.strip()!r} "
        "(name the run that the row is a sample of)"
    )


def test_a_column_that_is_missing_or_is_something_else_already_is_refused() -> None:
    with pytest.raises(
        InputError, match=r"standard input: --cluster: unknown column `runs`.* \(did you mean `run`\?\)"
    ):
        judged(table(*ROWS), **ASKED, cluster="runs")
    with pytest.raises(InputError, match="--arm, --cluster: column `kernel` is named by more than one option"):
        judged(table(*ROWS), **ASKED, cluster="kernel")


def test_a_report_says_how_many_rows_became_how_many_trials() -> None:
    (*_, last) = render(judged(table(*ROWS), **ASKED, cluster="run")).renderables
    assert last.plain == "20 of 20 finished trials used, 600 rows in 20 clusters"
