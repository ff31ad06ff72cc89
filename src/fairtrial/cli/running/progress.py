"""Progress for a person: a live line on a terminal, one line per trial elsewhere."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from fairtrial.live.words import loading, outcome, probed, probing, rate, stage
from fairtrial.protocol.generated import LoadingProgress, ProbedProgress, ProbingProgress, RateProgress
from fairtrial.protocol.progress import ProgressLine
from fairtrial.record.models import Plan, PlannedTrial, TrialRecord
from fairtrial.run import Progress as RunProgress
from fairtrial.study.catalogue import MetricDefinition
from fairtrial.words import duration
from fairtrial.workloads import throughput_of


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

    def logs(self, directory: Path) -> None:
        """See `fairtrial.run.Progress`."""

    def load(self, line: ProgressLine) -> None:
        """See `fairtrial.run.Progress`."""

    def trial_finished(self, trial: TrialRecord) -> None:
        """See `fairtrial.run.Progress`."""
        left = f"{duration(self._left_s)} left"
        self._console.print(f"{self._where}  {outcome(trial)}  {left}", markup=False, soft_wrap=True)

    def paused(self, *, waits: bool) -> None:
        """See `fairtrial.run.Progress`."""

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

    def logs(self, directory: Path) -> None:
        """See `fairtrial.run.Progress`."""

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

    def paused(self, *, waits: bool) -> None:
        """See `fairtrial.run.Progress`."""
        self._bar.update(self._task, now="paused" if waits else "")

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
