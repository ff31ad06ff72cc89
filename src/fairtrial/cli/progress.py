"""Progress for a person: a live line on a terminal, one line per trial elsewhere."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from fairtrial.cli.plan import duration
from fairtrial.record.models import PlannedTrial, TrialRecord
from fairtrial.run import Progress as RunProgress

MINUTE_S = 60


def outcome(trial: TrialRecord) -> str:
    """One trial in a few words: its throughput, or why it is invalid."""
    if not trial.valid:
        return f"invalid: {trial.invalid_reason}"
    if "throughput_tpm" in trial.scalars:
        return f"{trial.scalars['throughput_tpm']:,.0f} tpm"
    if "elapsed_s" in trial.scalars:
        return f"{trial.scalars['elapsed_s']:.3g} s"
    return "done"


def loading(line: Mapping[str, Any]) -> str:
    """How far a load is: units, rows, rows per second, time left."""
    text = f"loading {line['done']:.0f}/{line['total']:.0f}"
    if "rows" in line:
        text += f"  {line['rows']:,} rows  {line['rows_per_s']:,.0f}/s"
    if line.get("left_s") is not None:
        text += f"  {duration(line['left_s'])} left"
    return text


class Lines:
    """One line per finished trial, for logs and pipes."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._where = ""
        self._left_s = 0.0

    def trial_started(self, trial: PlannedTrial, *, number: int, total: int, left_s: float) -> None:
        """See `fairtrial.run.Progress`."""
        self._where = f"round {trial.round}  trial {number}/{total}  {trial.cell} · {trial.arm}"
        self._left_s = left_s * (total - number) / (total - number + 1)  # once this one has finished

    def phase(self, name: str) -> None:
        """See `fairtrial.run.Progress`."""

    def load(self, line: Mapping[str, Any]) -> None:
        """See `fairtrial.run.Progress`."""

    def trial_finished(self, trial: TrialRecord) -> None:
        """See `fairtrial.run.Progress`."""
        left = f"left {duration(self._left_s)}"
        self._console.print(f"{self._where}  {outcome(trial)}  {left}", markup=False, soft_wrap=True)

    def note(self, text: str) -> None:
        """See `fairtrial.run.Progress`."""
        self._console.print(text, markup=False, soft_wrap=True)


class Bar:
    """A live bar: round, trial, what runs, its rate now, time left."""

    def __init__(self, bar: Progress) -> None:
        self._bar = bar
        self._task = bar.add_task("", total=None, now="", left="")
        self._what = ""

    def trial_started(self, trial: PlannedTrial, *, number: int, total: int, left_s: float) -> None:
        """See `fairtrial.run.Progress`."""
        self._what = f"trial {number}/{total}  {trial.cell} · {trial.arm}"
        self._bar.update(
            self._task,
            description=f"round {trial.round}",
            completed=number - 1,
            total=total,
            now=self._what,
            left=f"left {duration(left_s)}",
        )

    def phase(self, name: str) -> None:
        """See `fairtrial.run.Progress`."""
        self._bar.update(self._task, now=f"{self._what}  {name}")

    def load(self, line: Mapping[str, Any]) -> None:
        """See `fairtrial.run.Progress`."""
        if line.get("progress") == "rate":
            self._bar.update(self._task, now=f"{self._what}  {line['per_s'] * MINUTE_S:,.0f} tpm")
        elif line.get("progress") == "loading":
            self._bar.update(self._task, now=f"{self._what}  {loading(line)}")

    def trial_finished(self, trial: TrialRecord) -> None:
        """See `fairtrial.run.Progress`."""
        self._bar.update(self._task, advance=1)
        if not trial.valid:
            self.note(f"{trial.trial.id} is invalid: {trial.invalid_reason}")

    def note(self, text: str) -> None:
        """See `fairtrial.run.Progress`."""
        self._bar.console.print(text, markup=False)


@contextlib.contextmanager
def progress_for(console: Console) -> Iterator[RunProgress]:
    """A bar on a terminal, lines elsewhere."""
    if not console.is_terminal:
        yield Lines(console)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[now]}", markup=False),
        TextColumn("{task.fields[left]}", markup=False),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        yield Bar(bar)
