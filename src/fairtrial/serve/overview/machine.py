"""What this machine is fit for: findings, and which ready studies it can run at which sizes. Changes nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from fairtrial.doctor import judged, look
from fairtrial.doctor.programs import PROGRAMS
from fairtrial.errors import PlaceError
from fairtrial.places import open_place
from fairtrial.record.models import Finding
from fairtrial.studies import ready
from fairtrial.study.resolved import Section
from fairtrial.wire.open_place import OpenPlace

LOCAL: Final = Section({"local": {}})
HOLDER: Final = "fairtrial serve"


@dataclass(frozen=True)
class ThisMachine:
    """What is known.

    Attributes:
        at: when, UTC.
        ready: of each study; empty where nobody looked, and then `studies` is all there is.
        problem: why the machine could not be looked at.
    """

    at: str
    studies: tuple[ready.BundledStudy, ...]
    observed: bool
    ready: tuple[ready.ReadyStudy, ...] = ()
    findings: tuple[Finding, ...] = ()
    problem: str = ""


def described(at: str) -> ThisMachine:
    """The studies alone."""
    return ThisMachine(at, tuple(map(ready.described, ready.bundled())), observed=False)


def looked_at(at: str) -> ThisMachine:
    """Looks at this machine, without its lock and without booting anything."""
    try:
        with open_place(LOCAL.kind, LOCAL.parameters, holder=HOLDER, lock=False) as agent:
            place = OpenPlace(agent=agent)
            seen = look(place, programs=PROGRAMS.values())
            found = tuple(ready.ready(place, seen, at=LOCAL))
    except PlaceError as error:
        known = described(at)
        return ThisMachine(at, known.studies, observed=False, problem=f"{error} ({error.hint})")
    return ThisMachine(
        at, tuple(each.study for each in found), observed=True, ready=found, findings=tuple(judged(seen))
    )
