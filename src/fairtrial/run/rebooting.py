"""Places that boot anew before every trial: when they do, what a kernel that does not come up costs, the way back."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from typing import Any

from fairtrial.errors import FairtrialError, HostBootError
from fairtrial.places import Place, boots_anew, place_of
from fairtrial.record import Writer
from fairtrial.record.models import Clock, PlannedTrial, TrialRecord
from fairtrial.run.opening import holder
from fairtrial.run.progress import Progress
from fairtrial.run.trial.outcome import TrialOutcome
from fairtrial.study.resolved import Section


def begins_with_boot(*places: Section | None) -> bool:
    """Whether one of them boots for every trial."""
    return any(boots_anew(place) for place in places if place is not None)


def is_same_boot(trial: PlannedTrial, following: PlannedTrial | None) -> bool:
    """Whether the next trial is planned for the boot of this one."""
    return following is not None and trial.boot != "" and trial.boot == following.boot


def unbooted(writer: Writer, planned: PlannedTrial, error: HostBootError) -> TrialRecord:
    """Commits a trial whose kernel did not come up: it is invalid, and costs its block."""
    writer.begin(planned.id)
    trial = TrialOutcome(invalid_reason=str(error)).record(
        planned,
        plan=writer.plan,
        resolved=writer.plan.resolved[planned.cell][planned.arm],
        clock=Clock(monotonic_ns=time.monotonic_ns(), realtime_ns=time.time_ns()),
        subject={},
    )
    writer.commit(trial)
    return trial


@contextlib.contextmanager
def default_again(writer: Writer, progress: Progress) -> Iterator[None]:
    """Brings every place that boots back to its default kernel when the run ends, however it does.

    Raises:
        PlaceError: one does not come back, and nothing worse has happened.
    """
    resolved = [trial for arms in writer.plan.resolved.values() for trial in arms.values()]
    sections = dict.fromkeys(section for trial in resolved for section in (trial.place, *trial.clients))
    places = [place_of(section) for section in sections if boots_anew(section)]
    try:
        yield
    except BaseException:
        if places:
            progress.note("bringing hosts back to their default kernels, which may take a restart")
        for place, error in _left(places, writer):  # what ended the run is the news
            why = str(error) or "interrupted"
            progress.note(f"{place.title} may still run a kernel of this run ({why}): the next run there ends that")
        raise
    if failed := _left(places, writer):
        raise failed[0][1]


def _left(places: Sequence[Place[Any]], writer: Writer) -> list[tuple[Place[Any], FairtrialError | KeyboardInterrupt]]:
    """Brings each back, whatever becomes of other machines before it; those that may not be, and why."""
    failed: list[tuple[Place[Any], FairtrialError | KeyboardInterrupt]] = []
    for place in places:
        if any(place.machine == each.machine for each, _ in failed):
            continue  # it was waited for, and its power was turned, for another arm's kernel
        try:
            place.leave(holder=holder(writer.directory))
        except (FairtrialError, KeyboardInterrupt) as error:
            failed.append((place, error))
    return failed
