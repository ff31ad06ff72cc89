"""A program that a trial runs for as long as its test wants: until a file is gone."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from support.command_line import Desk

NAME = "held-program.sh"
PROGRAM = """\
while [ -e {file} ]; do
    for pass in {file}-passes/*; do [ -e "$pass" ] && rmdir "$pass" 2>/dev/null && break 2; done
    sleep 0.05
done
sleep 0.1
"""


@dataclass(frozen=True)
class Held:
    """The program at a desk, held back by nothing yet."""

    here: Desk

    @property
    def run(self) -> str:
        """Its command line; more words behind it change nothing."""
        path = self.here.directory / NAME
        path.write_text(PROGRAM.format(file=self._file), encoding="utf-8")
        return f"sh {path}"

    @property
    def _file(self) -> Path:
        return self.here.directory / "held"

    def hold(self, *, after: int = 0) -> None:
        """From now on it does not end, once so many have."""
        for number in range(after):
            Path(f"{self._file}-passes/{number}").mkdir(parents=True)
        self._file.touch()

    def is_held(self) -> bool:
        """Whether it is held back."""
        return self._file.exists()

    def release(self) -> None:
        """It ends."""
        self._file.unlink()

    def is_running(self) -> bool:
        """Whether a trial has begun."""
        return bool(self.running())

    def running(self) -> set[int]:
        """The processes that run it."""
        return {pid for pid, command in self.here.processes().items() if NAME in command}
