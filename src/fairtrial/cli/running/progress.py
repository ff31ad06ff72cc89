"""Progress for a person: a live line on a terminal, one line per trial elsewhere."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from fairtrial.protocol.generated import LoadingProgress, ProbedProgress, ProbingProgress, RateProgress
from fairtrial.protocol.progress import ProgressLine
from fairtrial.record.models import Plan, PlannedTrial, TrialRecord
from fairtrial.run import Progress as RunProgress
from fairtrial.study.catalogue import MetricDefinition
from fairtrial.study.resolved import ResolvedTrial
from fairtrial.words import duration
from fairtrial.workloads import workload_of

MINUTE_S = 60
MILLISECOND_NS = 1e6


def throughput_of(trial: ResolvedTrial) -> MetricDefinition | None:
    """The metric that says how much a trial's workload did per time; None if there is none."""
    workload = workload_of(trial.workload)
    return workload.metrics()[workload.throughput] if workload.throughput else None


def rate(per_s: float, throughput: MetricDefinition | None) -> str:
    """How much a workload does now, in the unit of its throughput."""
    if throughput is None:
        return f"{per_s:,.0f}/s"
    return f"{per_s * (MINUTE_S if throughput.unit.endswith('/min') else 1):,.0f} {throughput.unit}"


def outcome(trial: TrialRecord) -> str:
    """One trial in a few words: its throughput and errors, or the time it took, or why it is invalid."""
    if not trial.valid:
        return f"invalid: {trial.invalid_reason}"
    if "highest_rate_per_s" in trial.scalars:
        return f"highest rate {trial.scalars['highest_rate_per_s']:,.0f}/s"
    throughput = throughput_of(trial.resolved)
    if throughput is not None and throughput.name in trial.scalars:
        errors = trial.scalars.get("errors")
        failed = f", {errors:,.0f} error{'' if errors == 1 else 's'}" if errors else ""
        return f"{trial.scalars[throughput.name]:,.0f} {throughput.unit}{failed}"
    if "elapsed_s" in trial.scalars:
        return f"{trial.scalars['elapsed_s']:.3g} s"
    return "done"


def stage(trial: PlannedTrial) -> str:
    """Where in the run a trial stands: its round, or that it is one with probes."""
    return "diagnostic" if trial.diagnostic else f"round {trial.round}"


def loading(line: LoadingProgress) -> str:
    """How far a load is: units, rows, rows per second, time left."""
    text = f"loading {line.done:.0f}/{line.total:.0f}  {line.rows:,} rows  {line.rows_per_s:,.0f}/s"
    return text if line.left_s is None else f"{text}  {duration(line.left_s)} left"


def probing(line: ProbingProgress | ProbedProgress) -> str:
    """The probe that a search has begun, and the rate that it offers."""
    return f"probe {line.probe} at {line.rate_per_s:,.0f}/s"


def probed(line: ProbedProgress) -> str:
    """What came out of a probe, and the bounds that are believed now."""
    measured = "no request completed"
    if line.latency_ns is not None:
        measured = f"{line.percentile} {line.latency_ns / MILLISECOND_NS:.3g} ms"
    text = f"{probing(line)} {'met' if line.met else 'missed'} ({measured})"
    if line.met_per_s is not None or line.missed_per_s is not None:
        text += f", between {_bound(line.met_per_s)} and {_bound(line.missed_per_s)}"
    return text


def _bound(rate_per_s: float | None) -> str:
    return "?" if rate_per_s is None else f"{rate_per_s:,.0f}/s"


class ProgressLines:
    """One line per finished trial, for logs and pipes."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._where = ""
        self._left_s = 0.0

    def trial_started(self, trial: PlannedTrial, *, number: int, total: int, left_s: float) -> None:
        """See `fairtrial.run.Progress`."""
        self._where = f"{stage(trial)}  trial {number}/{total}  {trial.cell} · {trial.arm}"
        self._left_s = left_s * (total - number) / (total - number + 1)  # once this one has finished

    def phase(self, name: str) -> None:
        """See `fairtrial.run.Progress`."""

    def load(self, line: ProgressLine) -> None:
        """See `fairtrial.run.Progress`."""

    def trial_finished(self, trial: TrialRecord) -> None:
        """See `fairtrial.run.Progress`."""
        left = f"{duration(self._left_s)} left"
        self._console.print(f"{self._where}  {outcome(trial)}  {left}", markup=False, soft_wrap=True)

    def note(self, text: str) -> None:
        """See `fairtrial.run.Progress`."""
        self._console.print(text, markup=False, soft_wrap=True)


class ProgressBar:
    """A live bar: round, trial, what runs, its rate now, time left."""

    def __init__(self, bar: Progress, plan: Plan) -> None:
        self._bar, self._plan = bar, plan
        self._throughput: MetricDefinition | None = None
        self._task = bar.add_task("", total=None, now="", left="")
        self._what = ""
        self._probe = ""  # of a search: what is probed
        self._verdict = ""  # of its last probe

    def trial_started(self, trial: PlannedTrial, *, number: int, total: int, left_s: float) -> None:
        """See `fairtrial.run.Progress`."""
        self._what = f"trial {number}/{total}  {trial.cell} · {trial.arm}"
        self._throughput = throughput_of(self._plan.resolved[trial.cell][trial.arm])
        self._bar.update(
            self._task,
            description=stage(trial),
            completed=number - 1,
            total=total,
            now=self._what,
            left=f"{duration(left_s)} left",
        )

    def phase(self, name: str) -> None:
        """See `fairtrial.run.Progress`."""
        self._probe = self._verdict = ""
        self._bar.update(self._task, now=f"{self._what}  {name}")

    def load(self, line: ProgressLine) -> None:
        """See `fairtrial.run.Progress`."""
        if isinstance(line, RateProgress):
            self._drives(rate(line.per_s, self._throughput))
        elif isinstance(line, LoadingProgress):
            self._bar.update(self._task, now=f"{self._what}  {loading(line)}")
        elif isinstance(line, ProbingProgress):
            self._probe = probing(line)
            self._drives("")
        elif isinstance(line, ProbedProgress):
            self._probe, self._verdict = "", probed(line)
            self._drives("")

    def _drives(self, rate: str) -> None:
        """Of a search, what is probed and what came out last, beside the rate now."""
        parts = (self._what, self._probe, rate, self._verdict)
        self._bar.update(self._task, now="  ".join(part for part in parts if part))

    def trial_finished(self, trial: TrialRecord) -> None:
        """See `fairtrial.run.Progress`."""
        self._bar.update(self._task, advance=1)
        if not trial.valid:
            self.note(f"{trial.trial.id} is invalid: {trial.invalid_reason}")

    def note(self, text: str) -> None:
        """See `fairtrial.run.Progress`."""
        self._bar.console.print(text, markup=False)


@contextlib.contextmanager
def progress_for(console: Console, plan: Plan) -> Iterator[RunProgress]:
    """A bar on a terminal, lines elsewhere."""
    if not console.is_terminal:
        yield ProgressLines(console)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[now]}", markup=False),
        TextColumn("{task.fields[left]}", markup=False),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        yield ProgressBar(bar, plan)
