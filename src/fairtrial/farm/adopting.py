"""A block's trials taken into the record: whole, with their host's name, or not at all."""

from __future__ import annotations

from pathlib import Path

from fairtrial.errors import PlaceError
from fairtrial.farm.orders import Outcome
from fairtrial.record import Writer
from fairtrial.record.files import hashes
from fairtrial.record.models import TrialRecord


def arrived(outcome: Outcome, directory: Path) -> list[TrialRecord]:
    """The trials of a block as the record will have them, after a look at whether their files came whole.

    Raises:
        PlaceError: a file differs from what the host wrote.
    """
    for finished in outcome.finished:
        if hashes(directory / finished.trial) != finished.files:
            raise PlaceError(
                f"the files of {finished.trial} are not those that {outcome.host} wrote",
                hint="check the disks and the network between",
            )
    return [trial.model_copy(update={"host": outcome.host}) for trial in outcome.trials]


def adopt(writer: Writer, trial: TrialRecord, directory: Path) -> None:
    """Makes a trial's directory part of the record. Durable on return."""
    partial = writer.begin(trial.trial.id)
    (partial / "log").rmdir()
    partial.rmdir()
    (directory / trial.trial.id).rename(partial)
    writer.commit(trial)
