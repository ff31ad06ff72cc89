"""What an A/A run found, kept at the place it ran on, so that later reports there show its noise floor."""

from __future__ import annotations

from fairtrial.analyse.noise import profile as noise
from fairtrial.analyse.noise.models import WHOLE
from fairtrial.analyse.selection import select
from fairtrial.places import KEPT, boots_anew
from fairtrial.record import Record
from fairtrial.run.noise import keep
from fairtrial.run.opening import opened
from fairtrial.run.progress import Progress
from fairtrial.study.resolved import Section


def keep_noise(record: Record, *, progress: Progress) -> None:
    """Keeps the profile of a finished A/A run at each of its places, of what ran there, but not at hosts of a farm.

    Raises:
        PlaceError: the place cannot be reached again, or not written; the report has the profile all the same.
    """
    every = {opening.place: opening for opening in record.places if not opening.host}
    if any(opening.host for opening in record.places):
        progress.note("the noise floor is of all hosts together, so that none of them keeps it")
    here = [trial for trial in record.trials if not trial.host]
    for opening in every.values():
        trials = noise.at_place(record.plan, here, opening.place)
        selection = select(record.plan, trials, contrast=None)
        profile = noise.profile(record.plan, selection, kernel=str(opening.facts.get("kernel", "")))
        sized = profile.model_copy(update={"size": record.plan.size or WHOLE})
        if profile.metrics:
            with opened(_as_it_is(opening.place), directory=record.directory, progress=progress, disk=KEPT) as place:
                keep(place, sized.model_dump(mode="json"), study=record.plan.study, size=record.plan.size)
            progress.note(f"kept the noise floor of this place ({opening.place.kind}) for later reports")


def _as_it_is(place: Section) -> Section:
    """The place without a boot of its own: nobody would boot its default kernel again."""
    parameters = place.parameters
    if not boots_anew(place) or not isinstance(parameters, dict):
        return place
    return Section({place.kind: {name: value for name, value in parameters.items() if name != "boot"}})
