"""Progress of a comparison: one line that says what every command takes so far, gone at the end."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from fairtrial.compare.showing import scale_of
from fairtrial.protocol.progress import ProgressLine
from fairtrial.record.models import PlannedTrial, TrialRecord
from fairtrial.words import duration


class OneLine:
    """On a terminal a line, elsewhere only what deserves a note."""

    def __init__(self, console: Console, *, metric: str, unit: str) -> None:
        self._console, self._metric, self._unit = console, metric, unit
        self._values: dict[str, list[float]] = defaultdict(list)
        columns = (
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            TextColumn("{task.fields[now]}", markup=False),
        )
        self._bar = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
        self._task = self._bar.add_task("trying the commands", total=None, now="")

    @contextlib.contextmanager
    def shown(self) -> Iterator[OneLine]:
        """Draws until the block ends."""
        with self._bar:
            yield self

    def trial_started(self, trial: PlannedTrial, *, number: int, total: int, left_s: float) -> None:
        """See `fairtrial.run.Progress`."""
        so_far = {arm: fmean(values) for arm, values in sorted(self._values.items())}
        scale = scale_of(self._unit, list(so_far.values()))
        means = "  ".join(f"{arm} {scale.value(mean)} {scale.unit}".rstrip() for arm, mean in so_far.items())
        now = "   ".join(part for part in (f"running {trial.arm}", means, f"{duration(left_s)} left") if part)
        self._bar.update(self._task, description=f"round {trial.round}", completed=number - 1, total=total, now=now)

    def phase(self, name: str) -> None:
        """See `fairtrial.run.Progress`."""

    def logs(self, directory: Path) -> None:
        """See `fairtrial.run.Progress`."""

    def load(self, line: ProgressLine) -> None:
        """See `fairtrial.run.Progress`."""

    def trial_finished(self, trial: TrialRecord) -> None:
        """See `fairtrial.run.Progress`."""
        if not trial.valid:
            self.note(f"{trial.trial.arm} in round {trial.trial.round} is invalid: {trial.invalid_reason}")
        elif self._metric in trial.scalars:
            self._values[trial.trial.arm].append(trial.scalars[self._metric])

    def paused(self, *, waits: bool) -> None:
        """See `fairtrial.run.Progress`."""

    def note(self, text: str) -> None:
        """See `fairtrial.run.Progress`."""
        self._console.print(text, markup=False, soft_wrap=True)
