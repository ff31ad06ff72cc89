"""What an A/A run found, kept at the place it ran on, so that later reports there show its noise floor."""

from __future__ import annotations

from fairtrial.analyse.noise import profile as noise
from fairtrial.analyse.noise.models import WHOLE
from fairtrial.analyse.selection import select
from fairtrial.places import KEPT
from fairtrial.record import Record
from fairtrial.run.noise import keep
from fairtrial.run.opening import opened
from fairtrial.run.progress import Progress


def keep_noise(record: Record, *, progress: Progress) -> None:
    """Keeps the profile of a finished A/A run at each of its places.

    Raises:
        PlaceError: the place cannot be reached again, or not written; the report has the profile all the same.
    """
    every = {opening.place: opening for opening in record.places}
    for opening in every.values():
        trials = noise.at_place(record.plan, record.trials, opening.place)
        selection = select(record.plan, trials, contrast=None)
        profile = noise.profile(record.plan, selection, kernel=str(opening.facts.get("kernel", "")))
        sized = profile.model_copy(update={"size": record.plan.size or WHOLE})
        if profile.metrics:
            with opened(opening.place, directory=record.directory, progress=progress, disk=KEPT) as place:
                keep(place, sized.model_dump(mode="json"), study=record.plan.study, size=record.plan.size)
            progress.note(f"kept the noise floor of this place ({opening.place.kind}) for later reports")
