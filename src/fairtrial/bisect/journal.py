"""journal.jsonl of a bisection: as a run's, with lines of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from fairtrial.bisect.models import Event, JournalLine
from fairtrial.record import journal
from fairtrial.record.journal import NAME, Kind, LineReader

BISECTION: Final = Kind(JournalLine, of="bisection", whole="bisection", command="fairtrial bisect")


def events(directory: Path) -> list[Event]:
    """Whole lines of a journal, in order.

    Raises:
        RecordError: a line that is not the last cannot be read, or the sequence has a gap.
    """
    path = directory / NAME
    return [line.entry for line in LineReader(path, BISECTION).lines()] if path.exists() else []


class Journal(journal.Journal):
    """The open journal of a bisection that goes on.

    Raises:
        PlaceError: another process has it.
    """

    def __init__(self, directory: Path) -> None:
        super().__init__(directory / NAME, BISECTION)
