"""A block's trials taken into the record: whole, with their host's name, or not at all."""

from __future__ import annotations

from pathlib import Path

from fairtrial.errors import PlaceError
from fairtrial.farm.orders import Order, Outcome
from fairtrial.record import Writer
from fairtrial.record.files import hashes
from fairtrial.record.models import TrialRecord
from fairtrial.record.reader import refuse_links


def arrived(outcome: Outcome, directory: Path, *, order: Order) -> list[TrialRecord]:
    """The trials of a block as the record will have them, after a look at whether they are those, and came whole.

    Raises:
        PlaceError: they are others than the block's, or a file differs from what the host wrote.
        RecordError: a host left something that is neither a regular file nor a directory.
    """
    files = {finished.trial: finished.files for finished in outcome.finished}
    if not _is_of(order, outcome):
        raise PlaceError(
            f"what {outcome.host} brought back is not block {order.block} of {order.cell}",
            hint="look at its version of fairtrial, and at who else uses it",
        )
    for name in (trial.trial.id for trial in outcome.trials):
        refuse_links(directory / name)
        if hashes(directory / name) != files.get(name):
            raise PlaceError(
                f"the files of {name} are not those that {outcome.host} wrote",
                hint="check the disks and the network between",
            )
    return [trial.model_copy(update={"host": outcome.host}) for trial in outcome.trials]


def _is_of(order: Order, outcome: Outcome) -> bool:
    """Whether they are the block's trials in their order, up to one that is invalid or to what ended the block."""
    brought = [trial.trial for trial in outcome.trials]
    ended = outcome.failure is not None or not all(trial.valid for trial in outcome.trials)
    return brought == order.trials[: len(brought)] and (ended or len(brought) == len(order.trials))


def adopt(writer: Writer, trial: TrialRecord, directory: Path) -> None:
    """Makes a trial's directory part of the record. Durable on return."""
    partial = writer.begin(trial.trial.id)
    (partial / "log").rmdir()
    partial.rmdir()
    (directory / trial.trial.id).rename(partial)
    writer.commit(trial)
