"""What a trial's server and load have left running: ended before settings are undone, and named in the record.

It would run beside the next trial, of another arm, and nobody would see it there.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Final

from fairtrial.errors import PlaceError, StreamLostError, StuckError
from fairtrial.protocol.generated import Swept
from fairtrial.run.trial.outcome import TrialOutcome
from fairtrial.wire.open_place import OpenPlace

HINT: Final = "end them by hand, or look at the place's disks and kernel log; then start again or `--resume`"

Phase = Callable[[str], AbstractContextManager[None]]


def end(place: OpenPlace, *, grace_s: float) -> Swept:
    """Ends it: SIGTERM, unless its group had one, and after a grace SIGKILL.

    Raises:
        StuckError: it does not even end then.
    """
    swept = place.agent.sweep(grace_s)
    if swept.left:
        programs = ", ".join(swept.programs) or "processes"
        raise StuckError(f"{programs} of the trial's server or load still run after they were killed", hint=HINT)
    return swept


@contextlib.contextmanager
def ended(places: Sequence[OpenPlace], outcome: TrialOutcome, *, phase: Phase) -> Iterator[None]:
    """Around a server and its load: what they leave running at any place is ended, whatever became of them."""
    try:
        yield
    except StreamLostError:
        raise  # the agent ends everything
    except Exception:
        with contextlib.suppress(PlaceError):  # what went wrong first is the news
            _end(places, outcome, phase=phase)
        raise
    _end(places, outcome, phase=phase)


def _end(places: Sequence[OpenPlace], outcome: TrialOutcome, *, phase: Phase) -> None:
    with phase("stop"):
        programs = {name for place in places for name in end(place, grace_s=place.limits.grace_s).programs}
    outcome.left_running = sorted(name if name.isprintable() else ascii(name) for name in programs)
