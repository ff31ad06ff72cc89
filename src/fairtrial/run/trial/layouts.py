"""Programs of arms at the place: linked in every order before the first trial, put where a trial finds its own."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Final

from fairtrial.errors import PlaceError
from fairtrial.plan.layouts import order_of
from fairtrial.plan.shuffling import shuffled
from fairtrial.record.models import EffectiveSetting, Plan, PlannedTrial
from fairtrial.run.trial import workspace
from fairtrial.study.builds import Builds
from fairtrial.wire.open_place import OpenPlace

FIELD: Final = "builds"
LINK_S: Final = 600.0
KEY_CHARACTERS: Final = 16
ARMS: Final = "arms"
LISTING_BYTES: Final = 64 << 20
# Output comes in lines and is cut, so what may be long goes to the file "$0".
EXPANDED: Final = 'for each in "$@"; do printf "%s\\n" $each; done > "$0"'
FOUND: Final = (
    'for each in "$@"; do [ -f "$each" ] || each=$(command -v -- "$each"); '
    'if [ -f "$each" ]; then printf "%s\\n" "$each"; fi; done > "$0"'
)
SECTIONS: Final = 'readelf --wide --section-headers "$@" | grep -o \'\\.text\\.[^ ]*\' | sort -u > "$0"'
CONTENTS: Final = 'sha256sum -- "$@" > "$0.sums" && sha256sum < "$0.sums"'
KEPT: Final = 'ln -sfn -- "$1" "$2.$$" && mv -fT -- "$2.$$" "$2"'
DIFFERENT: Final = 'sha256sum -- "$0"/order-???? | cut -d " " -f 1 | sort -u | wc -l'
FREE: Final = 'test ! -e "$1" && exit; for each in "$2"/*/order-????; do cmp -s -- "$1" "$each" && exit; done; exit 1'
# A new file for each trial: whoever still runs the last one keeps it.
PUT: Final = 'install -D -m 755 -- "$1" "$2.new" && mv -f -- "$2.new" "$2" && sha256sum -- "$2"'


def link(place: OpenPlace, plan: Plan, *, arm: str) -> None:
    """Links an arm's program in every order, unless that was done before, and puts the first where it is run.

    Raises:
        PlaceError: the place does not stay, objects or the linker are missing, orders make no difference, or the
            program's path is taken.
    """
    builds = plan.builds
    if builds is None:
        return
    if place.carrier is not None:
        raise PlaceError("builds are linked once, and this place does not stay", hint="use a local place, or ssh")
    ours = place.state_directory / "builds"
    workspace.make(place, ours / ARMS)
    if place.execute(["sh", "-c", FREE, "sh", builds.program, str(ours)]).code != 0:
        hint = "name a path that is free, or remove the file"
        raise PlaceError(f"{builds.program} exists, and trials would replace it", hint=hint, field=f"{FIELD}.program")
    directory = _directory(place, plan, arm=arm)
    if place.execute(["test", "-e", str(directory)]).code != 0:
        _link_all(place, builds, directory, arm=arm, seed=plan.design.seed)
    kept = ["sh", "-c", KEPT, "sh", str(directory), str(_linked(place, plan, arm=arm))]
    place.require(kept, hint="check the place's disk")
    _put(place, directory / _name(1), builds.program)


def put(place: OpenPlace, plan: Plan, trial: PlannedTrial) -> tuple[str, list[EffectiveSetting]]:
    """Puts the program of a trial's arm, in the order of its block, where it is run; nothing without builds.

    Returns:
        The layout as the record names it, and what was asked and read back.
    """
    if plan.builds is None:
        return "", []
    name = _name(order_of(plan, trial))
    linked = _linked(place, plan, arm=trial.arm) / name
    asked = place.require(["sha256sum", "--", str(linked)], hint="remove the directory of builds there").split()[0]
    read_back = _put(place, linked, plan.builds.program)
    return name, [EffectiveSetting(name=FIELD, asked=asked, before=None, read_back=read_back)]


def _put(place: OpenPlace, linked: PurePosixPath, program: str) -> str:
    hint = "let builds.program name a path that the agent may write"
    return place.require(["sh", "-c", PUT, "sh", str(linked), program], hint=hint, timeout_s=LINK_S).split()[0]


def _name(order: int) -> str:
    """One width for all, so that no path is longer: a program's environment moves its stack."""
    return f"order-{order:04d}"


def _linked(place: OpenPlace, plan: Plan, *, arm: str) -> PurePosixPath:
    """Where trials find an arm's programs: not by contents, as linking may write files that its command names."""
    builds = _builds(plan)
    return place.state_directory / "builds" / ARMS / _key(builds.objects[arm], builds, plan)


def _directory(place: OpenPlace, plan: Plan, *, arm: str) -> PurePosixPath:
    """Where an arm's programs are: by everything that decides them."""
    builds = _builds(plan)
    read = _objects(place, builds.objects[arm])
    read += _listed(place, FOUND, _named(builds.link), hint="check builds.link")
    argv = ["sh", "-c", CONTENTS, str(place.state_directory / "builds" / "listing"), *read]
    contents = place.require(argv, hint="what is linked must be readable", timeout_s=LINK_S)
    return place.state_directory / "builds" / _key(contents, builds, plan)


def _key(objects: str | Sequence[str], builds: Builds, plan: Plan) -> str:
    decided_by = [objects, builds.link, builds.link_orders, plan.design.seed]
    return hashlib.sha256(json.dumps(decided_by).encode()).hexdigest()[:KEY_CHARACTERS]


def _builds(plan: Plan) -> Builds:
    if plan.builds is None:
        raise AssertionError("asked for programs of a plan without builds")
    return plan.builds


def _named(link: str) -> list[str]:
    """What linking may read beside the objects: the linker, and libraries and scripts that its command names."""
    words = shlex.split(link)
    parts = [part for word in words for part in re.split("[,=]", word.removeprefix("-T"))]
    directories, libraries = (re.findall(rf"(?:^|\s)-{option}\s*(\S+)", " ".join(parts)) for option in "Ll")
    linkers = ["ld", *(f"ld.{word.removeprefix('-fuse-ld=')}" for word in words if word.startswith("-fuse-ld="))]
    kinds = [f"{directory}/lib{name}.{end}" for directory in directories for name in libraries for end in ("a", "so")]
    return [*linkers, *parts, *kinds]


def _objects(place: OpenPlace, patterns: Sequence[str]) -> list[str]:
    found = _listed(place, EXPANDED, patterns, hint="check builds.objects")
    if missing := [path for path in found if "*" in path]:
        hint = "compile the arms at the place before the run"
        raise PlaceError(f"no object file is called {missing[0]}", hint=hint, field=f"{FIELD}.objects")
    return sorted(set(found))


def _listed(place: OpenPlace, script: str, arguments: Sequence[str], *, hint: str) -> list[str]:
    listing = str(place.state_directory / "builds" / "listing")
    place.require(["sh", "-c", script, listing, *arguments], hint=hint, timeout_s=LINK_S)
    return place.agent.get(listing, most_bytes=LISTING_BYTES).decode().splitlines()


def _link_all(place: OpenPlace, builds: Builds, directory: PurePosixPath, *, arm: str, seed: int) -> None:
    """Into a directory that gets its name once all are there."""
    building = directory.with_name(f"{directory.name}.new")
    workspace.remove(place, building)
    workspace.make(place, building)
    objects = _objects(place, builds.objects[arm])
    asks = "{sections}" in builds.link
    listed = _listed(place, SECTIONS, objects, hint="compile with -ffunction-sections") if asks else []
    for number in range(1, 1 + builds.link_orders):
        ordering = building / f"{_name(number)}.sections"
        names = shuffled(listed, "sections", seed, number)
        place.agent.put(str(ordering), "".join(f"{name}\n" for name in names).encode(), mode=0o644)
        filled = {"{output}": str(building / _name(number)), "{sections}": str(ordering)}
        argv = _argv(builds.link, _shuffled(objects, seed, number), filled)
        place.require(argv, hint="fix builds.link", timeout_s=LINK_S)
    different = int(
        place.require(["sh", "-c", DIFFERENT, str(building)], hint="check the place's disk", timeout_s=LINK_S)
    )
    if different < builds.link_orders:
        said = f"{builds.link_orders} orders of linking {arm} give {different} different programs"
        hint = "lower link_orders, or compile into more objects: one per source file, or -ffunction-sections"
        raise PlaceError(said, hint=hint, field=f"{FIELD}.link_orders")
    place.require(["sync", "-f", str(building)], hint="check the place's disk", timeout_s=LINK_S)
    place.require(["mv", "-T", "--", str(building), str(directory)], hint="check the place's disk")


def _shuffled(objects: Sequence[str], seed: int, number: int) -> list[str]:
    """By their names without directories: arms that have the same have them in the same order."""
    names = {PurePosixPath(path).name: path for path in objects}
    if len(names) < len(objects):
        return shuffled(objects, "objects", seed, number)
    return [names[name] for name in shuffled(names, "objects", seed, number)]


def _argv(link: str, objects: Sequence[str], filled: dict[str, str]) -> list[str]:
    argv: list[str] = []
    for word in shlex.split(link):
        if word == "{objects}":
            argv += objects
            continue
        for name, value in filled.items():
            word = word.replace(name, value)  # noqa: PLW2901 - filled step by step
        argv.append(word)
    return argv
