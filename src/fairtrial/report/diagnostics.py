"""What probes gave, cell by cell and arm beside arm, in the same figures for the text, the page and report.json.

Exploratory: probes slow what they look at, and a trial or two per arm has no interval. No estimate uses any of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from pydantic import BaseModel, ConfigDict

from fairtrial.metrics.telemetry import probes
from fairtrial.metrics.telemetry.probes import ProbeFinding
from fairtrial.record import Record
from fairtrial.report import numbers
from fairtrial.report.tables import cell_label
from fairtrial.words import counted, cut

SYMBOLS_SHOWN: Final = 20  # per table; the whole profile is among the trial's files
NAME_SHOWN: Final = 44  # characters of a function and of what it is from: both, and two arms, fit a line of the text
ORIGIN_SHOWN: Final = 26
LINES_IN_TEXT: Final = 30  # of an output, in report.txt; the page shows what report.json holds
SIGNIFICANT: Final = 4  # digits of a rate: a single trial knows no more
LARGEST_PLAIN: Final = 1e4  # rates from here on are whole numbers with separators
CAUTION: Final = (
    "Exploratory: a probe slows down what it observes, and so few trials allow no interval. No estimate, count or "
    "verdict of this report includes these trials."
)
APART: Final = "These trials ran on different hosts, which also differ in what the probes count:"
PROFILE_NOTE: Final = "Share of all processors' samples, idle ones included; –: not among the most frequent ones kept."
RATES_NOTE: Final = "Per second of the probe, summed over all processors; time counters are summed, too."


class DiagnosticTrial(BaseModel):
    """One diagnostic trial as report.json holds it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    trial: str
    cell: str
    arm: str
    valid: bool
    invalid_reason: str = ""
    probes: tuple[ProbeFinding, ...] = ()


@dataclass(frozen=True)
class ProbeOutput:
    """What one probe printed in one trial, with whose it is."""

    caption: str
    lines: tuple[str, ...]
    left_out: int


@dataclass(frozen=True)
class ProbeSection:
    """One probe in one cell: a table (its first `left` columns are text), or outputs."""

    title: str
    note: str = ""
    header: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    left: int = 1
    outputs: tuple[ProbeOutput, ...] = ()


def of_record(record: Record) -> list[DiagnosticTrial]:
    """Every diagnostic trial with what its probes gave; an invalid one's say nothing.

    Raises:
        RecordError: a raw file is missing or damaged.
    """
    return [
        DiagnosticTrial(
            trial=each.trial.id,
            cell=each.trial.cell,
            arm=each.trial.arm,
            valid=each.valid,
            invalid_reason=each.invalid_reason,
            probes=tuple(probes.read(record.trial_directory(each.trial.id))) if each.valid else (),
        )
        for each in record.diagnostics
    ]


def summary(record: Record, trials: Sequence[DiagnosticTrial]) -> list[str]:
    """How many there were, with which probes, and which gave nothing; empty for a study without probes."""
    if not record.plan.probes:
        return []
    named = ", ".join(probe.label for probe in record.plan.probes)
    planned = len(record.plan.diagnostics)
    said = [f"{len(trials)} of {counted(planned, 'diagnostic trial')} ran, after all others, with {named}. {CAUTION}"]
    if len(set((hosts := _hosts(record)).values())) > 1:
        each_on = ", ".join(f"{trial} on {host or 'this machine'}" for trial, host in hosts.items())
        said.append(f"{APART} {each_on}.")
    return said + [f"{each.trial} has no result: {each.invalid_reason}" for each in trials if not each.valid]


def sections(record: Record, trials: Sequence[DiagnosticTrial]) -> Iterator[ProbeSection]:
    """By cell, then probe, in the plan's order."""
    arms, hosts = record.plan.factors[record.plan.arm], _hosts(record)
    for cell in record.plan.cells:
        here = [each for each in trials if each.cell == cell.name and each.valid]
        for number, probe in enumerate(record.plan.probes, start=1):
            pairs = [(each, finding) for each in here for finding in each.probes if finding.number == number]
            if pairs:
                together = len({hosts.get(each.trial, "") for each, _ in pairs}) == 1
                yield _section(f"{cell_label(cell.levels)}: {probe.label}", pairs, arms=arms, together=together)


def _hosts(record: Record) -> dict[str, str]:
    """Of a farm's diagnostic trials, each a block of its own; empty texts elsewhere."""
    return {each.trial.id: each.host for each in record.diagnostics}


_Findings = Sequence[tuple[DiagnosticTrial, ProbeFinding]]


def _section(title: str, pairs: _Findings, *, arms: Sequence[str], together: bool) -> ProbeSection:
    """What one probe gave; without ratios of rates where trials did not run `together`, on one host."""
    kind = pairs[0][1].kind
    if kind == "perf_stat":
        header = ("event", *(f"{arm}, per s" for arm in arms), *(f"{arm} / {arms[0]}" for arm in arms[1:]))
        columns = len(header) if together else 1 + len(arms)
        rows = tuple(row[:columns] for row in _counters(pairs, arms=arms))
        return ProbeSection(title, RATES_NOTE, header[:columns], rows)
    if kind == "perf_record":
        header = ("function", "from", *arms)
        return ProbeSection(title, PROFILE_NOTE, header, tuple(_profile(pairs, arms=arms)), left=2)
    return ProbeSection(title, outputs=tuple(_output(each, finding) for each, finding in pairs))


def _counters(pairs: _Findings, *, arms: Sequence[str]) -> Iterator[tuple[str, ...]]:
    for event in dict.fromkeys(event for _, finding in pairs for event in finding.counters):
        rates = [_rate([finding for each, finding in pairs if each.arm == arm], event) for arm in arms]
        base = rates[0]
        ratios = [None if not base or rate is None else rate / base for rate in rates[1:]]
        yield (event, *(_rated(rate) for rate in rates), *(numbers.ratio(ratio) for ratio in ratios))


def _rate(findings: Sequence[ProbeFinding], event: str) -> float | None:
    """Counts per second over an arm's trials together; None where none could count."""
    counts = [
        (finding.counters[event], finding.seconds)
        for finding in findings
        if finding.counters.get(event) is not None and finding.seconds
    ]
    if not counts:
        return None
    return sum(count or 0.0 for count, _ in counts) / sum(seconds for _, seconds in counts)


def _rated(rate: float | None) -> str:
    if rate is None:
        return numbers.ABSENT
    return f"{rate:,.0f}" if round(rate) >= LARGEST_PLAIN else f"{rate:.{SIGNIFICANT}g}"


def _profile(pairs: _Findings, *, arms: Sequence[str]) -> Iterator[tuple[str, ...]]:
    shares: dict[tuple[str, str], dict[str, float]] = {}
    for arm in arms:
        findings = [finding for each, finding in pairs if each.arm == arm]
        total = sum(finding.samples for finding in findings)
        for finding in findings:
            for symbol in finding.symbols:
                of_arm = shares.setdefault((symbol.symbol, symbol.origin), {})
                of_arm[arm] = of_arm.get(arm, 0.0) + symbol.share * finding.samples / total
    ordered = sorted(shares.items(), key=lambda each: (-max(each[1].values()), each[0]))
    for (name, origin), by_arm in ordered[:SYMBOLS_SHOWN]:
        shown = (f"{by_arm[arm] * 100:.1f} %" if arm in by_arm else numbers.ABSENT for arm in arms)
        yield (cut(name, NAME_SHOWN), cut(origin, ORIGIN_SHOWN), *shown)


def _output(trial: DiagnosticTrial, finding: ProbeFinding) -> ProbeOutput:
    what = "lines that changed" if finding.kind == "file" else f"over {finding.seconds or 0:.1f} s"
    caption = f"{trial.arm} ({trial.trial}), {what}" + ("" if finding.lines else ": none")
    return ProbeOutput(caption=caption, lines=finding.lines, left_out=finding.lines_left_out)
