"""What changed with an arm, in a line per cell and as a table: the counters of telemetry, ranked by the analysis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fairtrial.analyse.models import Analysis
from fairtrial.analyse.why.models import CellWhy, CertainChange, CounterChange, RatioInterval
from fairtrial.analyse.why.ranking import CHANGES_KEPT, LEVEL, speaks, speaks_certainly
from fairtrial.report import numbers
from fairtrial.words import counted

NAMED: Final = 4  # changes in a cell's line: one of each subsystem, the strongest
ROWS: Final = 12  # of a cell's table in the text; report.json and the page have all that are kept
HEADER: Final = ("subsystem", "counter", "baseline", "arm", "per second", "per unit of work", "effect", "q")
LEFT: Final = 2
CAUTION: Final = (  # what the tables say and do not say
    "Exploratory and correlational: these counters moved with the arm; they may be its cause, its consequence or "
    "neither. Effect: mean over standard deviation of the blocks' differences, with its 95 % interval; q: "
    "Benjamini-Hochberg over all counters of all cells explained. Counters are per second, processor time in shares."
)
LABELS: Final = {
    "vmstat:pgmajfault": "major faults",
    "vmstat:pgfault": "page faults",
    "vmstat:pgscan_direct": "pages scanned in direct reclaim",
    "vmstat:pgsteal_direct": "direct reclaim",
    "vmstat:pgsteal_kswapd": "background reclaim",
    "vmstat:workingset_refault_file": "refaults of files",
    "vmstat:workingset_refault_anon": "refaults of anonymous memory",
    "vmstat:pswpin": "swap-ins",
    "vmstat:pswpout": "swap-outs",
    "vmstat:pgpgin": "KiB read in",
    "vmstat:pgpgout": "KiB written out",
    "cpu:context_switches": "context switches",
    "cpu:forks": "forks",
    "cpu:running": "running threads",
    "cpu:blocked": "threads blocked on I/O",
    "pressure:memory.some.total_us": "memory stall (PSI)",
    "pressure:io.some.total_us": "I/O stall (PSI)",
    "pressure:cpu.some.total_us": "CPU stall (PSI)",
}
_LARGE: Final = 10.0  # ratios from here on, and below one over it, are said as ratios


def lines(analysis: Analysis) -> list[str]:
    """One line per cell and arm with an effect: `why (medium): swap-ins per transaction −41 %, …`."""
    sentences = []
    for cell in analysis.why:
        named = _named(cell, margin=analysis.margin)
        arm = f", {cell.arm}" if len(analysis.levels) > 2 else ""  # noqa: PLR2004 - with two arms it is clear which
        said = ", ".join(phrase(change, unit=cell.unit) for change in named)
        sure = [each for each in cell.certain if speaks_certainly(each, margin=analysis.margin)]
        also = f"; the same in every trial: {_certain(sure, most=NAMED, unit=cell.unit)}" if sure else ""
        sentences.append(f"why ({cell.cell}{arm}): {said or _nothing(cell)}{also}")
    return sentences


def _certain(changes: Sequence[CertainChange], *, most: int, unit: str) -> str:
    """`swap-ins 0 → 120.5 per transaction, server threads 4 → 8 and 3 more`; per second without a unit of work."""

    def exact(change: CertainChange, value: float) -> str:
        return f"{value:,.0f}" if change.form != "share" and value.is_integer() else _shown(change, value)

    per = f" per {unit or 'second'}"
    said = ", ".join(
        f"{_marked(each)} {exact(each, each.baseline)} → {exact(each, each.arm)}{per if each.form == 'counter' else ''}"
        for each in changes[:most]
    )
    return f"{said} and {len(changes) - most} more" if len(changes) > most else said


def _nothing(cell: CellWhy) -> str:
    """Why no counter is named: none moved, or those that did may not mean the same or moved by too little."""
    moved = [change for change in cell.changes if change.p_adjusted < LEVEL]
    if not moved:
        return f"none of {cell.tested} counters changed beyond chance"
    noted = sum(bool(change.note) for change in moved)
    reasons = {"that may not mean the same in both arms": noted, "by less than the margin": len(moved) - noted}
    at_least = "at least " if len(moved) == CHANGES_KEPT else ""
    why_not = ", ".join(f"{n} {reason}" for reason, n in reasons.items() if n)
    return f"{at_least}{len(moved)} of {cell.tested} counters changed beyond chance: {why_not}"


def _named(cell: CellWhy, *, margin: float) -> list[CounterChange]:
    """The strongest counter of each subsystem, a level where it has none; then more of those with a name for people."""
    spoken = [change for change in cell.changes if speaks(change, margin=margin)]
    happened = [change for change in spoken if change.form != "level"]
    chosen: dict[str, CounterChange] = {}
    for change in [*happened, *spoken]:
        chosen.setdefault(change.subsystem, change)
    known = [change for change in happened if change.counter in LABELS and change not in chosen.values()]
    return [*chosen.values(), *known][:NAMED]


def phrase(change: CounterChange, *, unit: str) -> str:
    """`major faults per transaction −41 %`, `iowait −12 pp`, `swap-outs 0 → 120 per second`."""
    name = label(change.counter)
    if change.form == "share":
        return f"{name} {_points(change.difference)}"
    if change.per_work is not None:
        return f"{name} per {unit} {moved(change.per_work)}"
    if change.per_second is not None:
        return f"{name} per second {moved(change.per_second)}"
    if change.level is not None:
        return f"{name} {moved(change.level)}"
    per = " per second" if change.form == "counter" else ""
    return f"{name} {_value(change.baseline)} → {_value(change.arm)}{per}"


def label(counter: str) -> str:
    """A counter's name for people; its own where it has no better."""
    source, _, column = counter.partition(":")
    if source == "cpu" and column.endswith(" share"):
        return column.removesuffix(" share")
    return LABELS.get(counter, column if source in ("vmstat", "memory") else f"{source} {column}")


def moved(by: RatioInterval) -> str:
    """`−41 %`; `× 23` where percents would be thousands, `× 0.00310` where they would all be −100."""
    if by.ratio >= _LARGE:
        return f"× {by.ratio:,.0f}"
    if by.ratio <= 1 / _LARGE:
        return f"× {numbers.ratio(by.ratio)}"
    return f"{'+' if by.ratio >= 1 else '−'}{abs(by.ratio - 1) * 100:.{0 if abs(by.ratio - 1) >= 0.1 else 1}f} %"  # noqa: PLR2004


def rows(cell: CellWhy) -> list[list[str]]:
    """A row per kept change, under `HEADER`, strongest first."""
    return [
        [
            change.subsystem,
            _marked(change),
            _shown(change, change.baseline),
            _shown(change, change.arm),
            _plain(change),
            numbers.ABSENT if change.per_work is None else _with_interval(change.per_work),
            _effect(change),
            numbers.p_value(change.p_adjusted),
        ]
        for change in cell.changes
    ]


def notes(cell: CellWhy) -> list[str]:
    """Why some counters may not mean the same in both arms: a sentence per reason, with the counters."""
    by_note: dict[str, list[str]] = {}
    every: tuple[CounterChange | CertainChange, ...] = (*cell.changes, *cell.certain)
    for change in every:
        if change.note:
            by_note.setdefault(change.note, []).append(label(change.counter))
    return [f"† {', '.join(names)}: {note}." for note, names in by_note.items()]


def summary(cell: CellWhy, *, shown: int = CHANGES_KEPT) -> str:
    """How much was looked at; `shown`: how many are listed at most."""
    return (
        f"{cell.arm} against {cell.baseline} over {counted(cell.n, 'block')}: {cell.tested} counters and levels "
        f"compared, {cell.constant} never varied; the {min(shown, len(cell.changes))} strongest are listed."
        f"{_of_certain(cell)}"
    )


def _of_certain(cell: CellWhy) -> str:
    if not cell.certain:
        return ""
    p = numbers.p_in_words(cell.certain[0].p)
    return (
        f" Not tested, because they differ by the same in every trial ({p} by exchanging the arms): "
        f"{_certain(cell.certain, most=ROWS, unit=cell.unit)}."
    )


def _plain(change: CounterChange) -> str:
    if change.form == "share":
        interval = f"{change.difference_low * 100:.1f} – {change.difference_high * 100:.1f}".replace("-", "−")
        return f"{_points(change.difference)} ({interval})"
    chosen = change.per_second or change.level
    return numbers.ABSENT if chosen is None else _with_interval(chosen)


def _with_interval(by: RatioInterval) -> str:
    return f"{moved(by)} ({numbers.ratio_interval(by.low, by.high)})"


def _effect(change: CounterChange) -> str:
    interval = ""
    if change.standardised_low is not None and change.standardised_high is not None:
        interval = f" ({change.standardised_low:.1f} – {change.standardised_high:.1f})"
    return f"{change.standardised:+.1f}{interval}".replace("-", "−")


def _points(difference: float) -> str:
    points = abs(difference) * 100
    return f"{'+' if difference >= 0 else '−'}{points:.{0 if points >= 10 else 1}f} pp"  # noqa: PLR2004 - digits


def _marked(change: CounterChange | CertainChange) -> str:
    return label(change.counter) + (" †" if change.note else "")


def _shown(change: CounterChange | CertainChange, value: float) -> str:
    return f"{value * 100:.1f} %" if change.form == "share" else _value(value)


def _value(value: float) -> str:
    return f"{value:,.{numbers.decimals(value)}f}" if value else "0"
