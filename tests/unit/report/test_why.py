"""What changed with an arm, as it is said: the line per cell, the table, the notes."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pytest

from fairtrial.analyse.models import Analysis
from fairtrial.analyse.why.models import CellWhy, CertainChange, CounterChange, Form, RatioInterval, Subsystem
from fairtrial.record import Record
from fairtrial.record.models import Plan, TrialRecord
from fairtrial.report import analysing, text, why
from fairtrial.report.scene import Scene


def change(  # noqa: PLR0913 - a change has many figures
    counter: str,
    *,
    form: Form = "counter",
    subsystem: Subsystem = "memory",
    per_work: float | None = None,
    per_second: float | None = None,
    level: float | None = None,
    difference: float = 1.0,
    q: float = 0.001,
    note: str = "",
) -> CounterChange:
    def about(ratio: float | None) -> RatioInterval | None:
        return None if ratio is None else RatioInterval(ratio=ratio, low=ratio * 0.9, high=ratio * 1.1)

    return CounterChange(
        counter=counter,
        form=form,
        subsystem=subsystem,
        baseline=0.22 if form == "share" else 0.0,
        arm=0.10 if form == "share" else 120.0,
        per_second=about(per_second),
        per_work=about(per_work),
        level=about(level),
        difference=difference,
        difference_low=difference - 0.01,
        difference_high=difference + 0.01,
        standardised=-3.0,
        standardised_low=-4.5,
        standardised_high=-1.4,
        p=q / 10,
        p_adjusted=q,
        note=note,
    )


REFAULTS = change("vmstat:workingset_refault_file", per_work=0.59, per_second=0.65)
IOWAIT = change("cpu:iowait share", form="share", subsystem="io", difference=-0.12)
BEGUN = change("vmstat:pswpout", per_work=None)
CACHED = change("memory:Cached", form="level", level=1.2)
NOTED = change("vmstat:pgactivate", per_work=3.0, note="counted by another rule")
WEAK = change("vmstat:pgfault", per_work=0.5, q=0.4)
WITHIN = change("vmstat:pgfault", per_work=1.005)


def cell(*changes: CounterChange) -> CellWhy:
    return CellWhy(
        cell="low", baseline="delete", arm="wal", n=6, unit="transaction", tested=90, constant=30, changes=changes
    )


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        (REFAULTS, "refaults of files per transaction −41 %"),
        (IOWAIT, "iowait −12 pp"),
        (BEGUN, "swap-outs 0 → 120.0 per second"),
        (CACHED, "Cached +20 %"),
        (change("vmstat:pgscan_direct", per_second=0.981), "pages scanned in direct reclaim per second −1.9 %"),
        (change("server:log_waits", subsystem="server", per_work=23.4), "server log_waits per transaction × 23"),
        (change("vmstat:pswpin", per_work=0.0031), "swap-ins per transaction × 0.00310"),
        (change("cpu:user share", form="share", subsystem="cpu", difference=0.034), "user +3.4 pp"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_change_is_said_in_the_words_of_its_form(one: CounterChange, expected: str) -> None:
    assert why.phrase(one, unit="transaction") == expected


def test_a_cells_line_names_the_strongest_counter_of_each_subsystem_and_no_noted_or_weak_one(
    analysis: Analysis,
) -> None:
    explained = analysis.model_copy(update={"why": (cell(CACHED, NOTED, REFAULTS, IOWAIT, WEAK),)})
    assert why.lines(explained) == ["why (low): refaults of files per transaction −41 %, iowait −12 pp"]


def test_a_level_speaks_where_its_subsystem_has_no_counter(analysis: Analysis) -> None:
    explained = analysis.model_copy(update={"why": (cell(CACHED),)})
    assert why.lines(explained) == ["why (low): Cached +20 %"]


def test_a_cell_in_which_nothing_moved_beyond_chance_says_so(analysis: Analysis) -> None:
    explained = analysis.model_copy(update={"why": (cell(WEAK),)})
    assert why.lines(explained) == ["why (low): none of 90 counters changed beyond chance"]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ([NOTED, WEAK], ("1", "1 that may not mean the same in both arms")),
        ([WITHIN], ("1", "1 by less than the margin")),
        (
            [NOTED, *[WITHIN] * 39],
            ("at least 40", "1 that may not mean the same in both arms, 39 by less than the margin"),
        ),
    ],
)
def test_a_cell_in_which_nothing_that_moved_is_named_says_why(
    analysis: Analysis, changes: list[CounterChange], said: tuple[str, str]
) -> None:
    explained = analysis.model_copy(update={"why": (cell(*changes),)})
    assert why.lines(explained) == [f"why (low): {said[0]} of 90 counters changed beyond chance: {said[1]}"]


def test_a_gauge_below_zero_is_printed() -> None:
    offset = change("prometheus-1:offset", form="level").model_copy(update={"baseline": -3e-6, "arm": -4e-6})
    assert why.rows(cell(offset))[0][2:4] == ["-0.000003000", "-0.000004000"]
    assert why.phrase(offset, unit="") == "prometheus-1 offset -0.000003000 → -0.000004000"


def test_a_line_holds_four_changes_at_most(analysis: Analysis) -> None:
    many = [change(name, per_work=0.5) for name in why.LABELS]
    (line,) = why.lines(analysis.model_copy(update={"why": (cell(*many),)}))
    assert line.count("−50 %") == why.NAMED


def test_a_table_has_a_figure_under_each_heading_and_marks_what_carries_a_note() -> None:
    found = cell(REFAULTS, IOWAIT, NOTED)
    rows = [dict(zip(why.HEADER, row, strict=True)) for row in why.rows(found)]
    assert rows[0]["per unit of work"] == "−41 % (0.531 – 0.649)"
    assert rows[0]["effect"] == "−3.0 (−4.5 – −1.4)"
    assert rows[1]["per second"] == "−12 pp (−13.0 – −11.0)"
    assert (rows[1]["baseline"], rows[1]["arm"]) == ("22.0 %", "10.0 %")
    assert rows[2]["counter"] == "pgactivate †"
    assert why.notes(found) == ["† pgactivate: counted by another rule."]


def test_what_differs_by_the_same_in_every_trial_is_said_beside_the_ranking(analysis: Analysis) -> None:
    swaps, threads, total = (
        CertainChange(counter=counter, form=form, baseline=baseline, arm=arm, p=0.03125)
        for counter, form, baseline, arm in (
            ("vmstat:pswpin", "counter", 0.0, 500.0),
            ("process-server:threads", "level", 4.0, 8.0),
            ("memory:MemTotal", "level", 1_000.0, 1_001.0),
        )
    )
    noted = swaps.model_copy(update={"counter": "vmstat:pgalloc_dma", "note": "another kernel"})
    found = cell(REFAULTS).model_copy(update={"certain": (swaps, threads, total, noted)})
    (line,) = why.lines(analysis.model_copy(update={"why": (found,)}))
    assert line.endswith("; the same in every trial: swap-ins 0 → 500 per transaction, process-server threads 4 → 8")
    assert why.summary(found).endswith(
        " Not tested, because they differ by the same in every trial (p = 0.0312 by exchanging the arms): swap-ins 0 → "
        "500 per transaction, process-server threads 4 → 8, MemTotal 1,000 → 1,001, pgalloc_dma † 0 → 500 per "
        "transaction."
    )
    assert why.notes(found) == ["† pgalloc_dma: another kernel."]
    alone = found.model_copy(update={"unit": "", "certain": (swaps,)})
    listed = alone.model_copy(update={"changes": (REFAULTS,) * 40})
    assert "; the 40 strongest are listed." in why.summary(listed)
    assert "; the 12 strongest are listed." in why.summary(listed, shown=why.ROWS)
    assert why.summary(alone).endswith(": swap-ins 0 → 500 per second.")
    many = cell(REFAULTS).model_copy(update={"certain": (threads,) * 14})
    assert why.summary(many).endswith(" and 2 more.")
    few = cell(REFAULTS).model_copy(update={"certain": (threads.model_copy(update={"p": 0.25}),)})
    assert "every trial" not in why.lines(analysis.model_copy(update={"why": (few,)}))[0]


def test_the_text_explains_a_cell_and_says_that_it_is_correlation(record: Record, analysis: Analysis) -> None:
    assert "Why: what changed" not in text.render(Scene(record, analysis))
    said = " ".join(text.render(Scene(record, analysis.model_copy(update={"why": (cell(REFAULTS, NOTED),)}))).split())
    assert "why (low): refaults of files per transaction −41 %" in said
    assert "Exploratory and correlational" in said
    assert "90 counters and levels compared, 30 never varied" in said


def test_it_is_asked_of_the_rounds_that_the_verdicts_are_of(record: Record, monkeypatch: pytest.MonkeyPatch) -> None:
    """A block that is void counts where a cell stopped, as in the analysis, and in no figure."""
    other = Record(directory=record.directory, plan=record.plan, journal=record.journal)
    vars(other)["voided_blocks"] = frozenset({("low", 1)})
    seen: list[tuple[int, Collection[tuple[str, int]]]] = []

    def noted(_plan: Plan, trials: Sequence[TrialRecord], *, voided: Collection[tuple[str, int]]) -> list[TrialRecord]:
        seen.append((len(trials), voided))
        return list(trials)

    monkeypatch.setattr(analysing, "in_time", noted)
    analysing.analysed(other)
    assert seen == [(len(record.trials), other.voided_blocks)]
