"""`fairtrial doctor`: whether places are fit to measure on, and which studies could run there."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from fairtrial.cli import places
from fairtrial.errors import PlaceError
from fairtrial.studies import ready
from fairtrial.study.resolved import Section
from fairtrial.words import counted

if TYPE_CHECKING:
    from rich.console import RenderableType

    from fairtrial.doctor import PlaceObservation
    from fairtrial.record.models import Finding, Plan
    from fairtrial.run.feasibility.study import Lack, StudyFeasibility
    from fairtrial.wire.open_place import OpenPlace

FINDING: Final = 1
LOCAL: Final = "local"
HOLDER: Final = "fairtrial doctor"
MACHINE_LOCK: Final = "/run/fairtrial/machine.lock"  # root's, of all its state directories (crates/state)
STYLES: Final = {"fine": "green", "caution": "yellow", "unfit": "bold red", "unknown": "dim"}
WORDS: Final = {True: ("yes", "green"), False: ("no", "yellow"), None: ("elsewhere", "dim")}


@dataclass(frozen=True)
class PlaceFitness:
    """One place, looked at.

    Attributes:
        lack: what keeps it from being opened; nothing else is then known of it.
    """

    place: Section
    findings: Sequence[Finding] = ()
    studies: Sequence[StudyFeasibility] = ()
    lack: Lack | None = None

    @property
    def unfit(self) -> bool:
        """Whether measuring there makes wrong figures."""
        return self.lack is not None or any(finding.grade == "unfit" for finding in self.findings)

    def as_json(self) -> dict[str, object]:
        """For `--json`."""
        return {
            "place": self.place.root,
            "fit": not self.unfit,
            **({} if self.lack is None else {"lack": asdict(self.lack)}),
            "findings": [finding.model_dump(mode="json") for finding in self.findings],
            "studies": [study.as_json() for study in self.studies],
        }


def doctor(word: str, *, as_json: bool) -> None:
    """Looks at every place that `word` names and prints what it found.

    Exits with 3 if a study's place cannot be opened, else with 1 if a place is unfit.

    Raises:
        InputError: `word` names no place.
        PlaceError: it cannot be reached; those of a study are gone through to the last.
    """
    named = ready.planned(Path(word)) if places.is_study(word) else places.place(word)
    others = [ready.planned(file) for file in ready.bundled()]
    results = [examined(named, others)] if isinstance(named, Section) else [*_of_study(named, others)]
    if as_json:
        print(json.dumps({"places": [each.as_json() for each in results]}, indent=1, ensure_ascii=False))
    else:
        _print(results)
    if any(each.unfit for each in results):
        sys.exit(FINDING if all(each.lack is None for each in results) else PlaceError.exit_code)


def _of_study(plan: Plan, others: Sequence[Plan]) -> Iterator[PlaceFitness]:
    """Every place of a study, and the machines of those that cannot be opened, which tell what every arm lacks."""
    from fairtrial.places import FreshPlace, place_of
    from fairtrial.run.feasibility.study import Lack

    sections = places.of_plan(plan)
    for section in sections:  # grows
        try:
            yield examined(section, [plan, *others])
        except PlaceError as error:
            yield PlaceFitness(place=section, lack=Lack.of(error))
            place = place_of(section)
            carrier = place.carrier() if isinstance(place, FreshPlace) else None
            machine = None if carrier is None else Section({carrier.name: carrier.parameters.model_dump(mode="json")})
            if machine is not None and machine not in sections:
                sections.append(machine)


def examined(place: Section, plans: Sequence[Plan]) -> PlaceFitness:
    """Opens a place and looks.

    Raises:
        PlaceError: it cannot be reached, or another session holds it.
    """
    from fairtrial.doctor import judged
    from fairtrial.run.feasibility.study import feasibilities

    left = restore_left(place)
    with looked_at(place) as (open_place, observation):
        studies = feasibilities(plans, open_place, observation, at=place)
        return PlaceFitness(place=place, findings=[*left, *judged(observation)], studies=studies)


def restore_left(place: Section) -> list[Finding]:
    """Restores what a session that died has left changed at a place, and says so; what stays is a finding.

    Raises:
        PlaceError: the place cannot be reached.
    """
    from fairtrial.errors import AgentError
    from fairtrial.places import boots_anew, is_fresh, open_place
    from fairtrial.record.models import Finding
    from fairtrial.wire.open_place import OpenPlace
    from fairtrial.wire.stream import TRIED_AGAIN

    if is_fresh(place) or boots_anew(place):
        return []
    with open_place(place.kind, place.parameters, holder=HOLDER, lock=False) as agent:
        state = agent.hello.state_directory
        left_by = (f"{state}/undo.jsonl", f"{state}/machine.lock", MACHINE_LOCK)
        any_left = [word for file in left_by for word in ("-o", "-s", file)][1:]
        if OpenPlace(agent=agent).execute(["test", *any_left]).code != 0:
            return []
    try:
        with open_place(place.kind, place.parameters, holder=HOLDER) as agent:
            left = agent.hello.leftovers
    except AgentError as error:
        if error.code != "busy":
            raise
        return []  # a session that lives will restore it itself
    if left.undone:
        print(f"restored {counted(left.undone, 'setting')} that an earlier run had left changed", file=sys.stderr)
    for file in left.overwritten:
        print(f"restored although it had been changed since an earlier run: {file}", file=sys.stderr)
    for failed in left.failed:  # now, as looking further may fail
        print(f"left by an earlier run and not restorable: {failed}", file=sys.stderr)
    if not left.failed:
        return []
    why = "an earlier run has changed what every trial here would run with, and it could not be restored"
    return [Finding(name="left_changed", value="; ".join(left.failed), grade="unfit", why=why, fix=TRIED_AGAIN)]


@contextlib.contextmanager
def looked_at(place: Section, *, boots: bool = True) -> Iterator[tuple[OpenPlace, PlaceObservation]]:
    """A place that is open while its programs, memory and kernel have been looked at.

    Args:
        place: of a study, or as the command line names it.
        boots: whether a kernel is booted to find out if KVM works, where nobody has yet; it may take a minute.

    Raises:
        PlaceError: it cannot be reached, or another session holds it.
    """
    from fairtrial.doctor import look
    from fairtrial.doctor.programs import PROGRAMS
    from fairtrial.places import is_fresh, open_place
    from fairtrial.places.vm import accelerators
    from fairtrial.run.opening import placed

    # Looking changes nothing and needs no lock; a guest that boots beside a measurement would disturb it.
    with open_place(place.kind, place.parameters, holder=HOLDER, lock=is_fresh(place)) as agent:
        opened = placed(agent)
        if place.kind == LOCAL and boots:
            accelerators.try_out(state=Path(opened.state_directory) / "vm")
        yield opened, look(opened, programs=PROGRAMS.values())


def _print(results: Sequence[PlaceFitness]) -> None:

    from fairtrial.cli.terminal import Console, print_whole

    console = Console(highlight=False)
    for each in results:
        print_whole(console, render(each))


def render(fitness: PlaceFitness) -> RenderableType:
    """A place's findings as a table, what to do about those that are not fine, and its studies."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    from fairtrial.places import place_of

    title = f"place {place_of(fitness.place).title}"
    if fitness.lack is not None:
        said = Text.assemble(f"{fitness.lack.what}\n", (f"– {fitness.lack.fix}", "dim"))
        return Group(Text(f"{title}: cannot be opened", style="bold"), Text(), said, Text())
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column in ("grade", "finding", "value"):
        table.add_column(column, no_wrap=True)
    for finding in fitness.findings:
        graded = Text(finding.grade, style=STYLES[finding.grade])
        table.add_row(graded, Text(finding.name), Text(finding.value))
    studies = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column in ("runs here", "study", "question"):
        studies.add_column(column, no_wrap=True)
    for study in fitness.studies:
        word, style = WORDS[study.can_run]
        studies.add_row(Text(word, style=style), Text(study.study), Text(study.question))
    return Group(
        Text(f"{title}: {_verdict(fitness)}", style="bold"),
        Text(),
        table,
        Text(),
        *_advice(fitness.findings),
        Text(),
        studies,
        *(
            Text.assemble(f"{study.study}: {lack.what}\n", (f"– {lack.fix}", "dim"))
            for study in fitness.studies
            for lack in study.lacks
        ),
        Text(),
    )


def _advice(findings: Sequence[Finding]) -> Iterator[RenderableType]:
    """Why each matters and what to do, worst first."""
    from rich.text import Text

    for grade in ("unfit", "caution", "unknown"):
        for finding in findings:
            if finding.grade == grade:
                said = f" {finding.name}: {finding.why}\n"
                yield Text.assemble((grade, STYLES[grade]), said, (f"– {finding.fix}", "dim"))


def _verdict(fitness: PlaceFitness) -> str:
    counts = {grade: sum(finding.grade == grade for finding in fitness.findings) for grade in STYLES}
    parts = [f"{count} {grade}" for grade, count in counts.items() if count]
    return f"{'unfit to measure on' if fitness.unfit else 'fit to measure on'} ({', '.join(parts)})"
