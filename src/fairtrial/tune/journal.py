"""tune.jsonl: as a run's journal, with lines of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from fairtrial.record.journal import Journal, Kind, LineReader
from fairtrial.tune.events import TuneEvent, TuneLine

NAME: Final = "tune.jsonl"
TUNING: Final = Kind(TuneLine, of="tuning", whole="directory", command="fairtrial tune")


def read(directory: Path) -> list[TuneEvent]:
    """The journal's whole lines, in order.

    Raises:
        RecordError: not a tuning's directory, or a damaged one.
    """
    return [line.entry for line in LineReader(directory / NAME, TUNING).lines()]


class TuneJournal(Journal):
    """The open journal of a tuning that goes on.

    Args:
        directory: the tuning's.
        new: whether it begins here.

    Attributes:
        events: its lines so far.

    Raises:
        PlaceError: another process has it.
        RecordError: not a tuning's directory, or a damaged one.
    """

    def __init__(self, directory: Path, *, new: bool = False) -> None:
        if new:
            (directory / NAME).touch(exist_ok=False)
        read(directory)  # opening would make the file of a directory that is no tuning's
        super().__init__(directory / NAME, TUNING)
        self.events = read(directory)  # as it is while nobody else writes

    def append(self, entry: TuneEvent) -> None:  # type: ignore[override]  # lines of this kind alone
        """See `Journal`."""
        super().append(entry)
        self.events.append(entry)
