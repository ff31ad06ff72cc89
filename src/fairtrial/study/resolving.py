"""From merged trees to a resolved trial: every kind's own model validates its part.

Owns the look-up of kinds in the catalogue. It must not know factors or their combinations.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue, TypeAdapter

from fairtrial.study.catalogue import Catalogue, Kind, MetricDefinition
from fairtrial.study.resolved import Network, ResolvedTrial, Section
from fairtrial.study.tree.merging import KIND_SECTIONS, SECTIONS, merge
from fairtrial.study.tree.nodes import Branch, Listing, Node, Path, Tree, plain
from fairtrial.study.tree.problems import Problems, brief, listed, validate
from fairtrial.study.workload_place import NETWORK, WORKLOAD
from fairtrial.study.workload_place import SECTION as WORKLOAD_PLACE

_NETWORK = TypeAdapter(Network)
_MOST_CLIENTS = 64  # each has a connection of its own, and all are asked for their clocks before every measurement


@dataclass(frozen=True)
class Resolution:
    """What a merged trial resolves to.

    Attributes:
        trial: in base units; None if any part is wrong.
        metrics: what it can measure, the workload's own and telemetry; None if the workload is wrong.
        absent: those of them that it cannot, as its system has no server of its own.
    """

    trial: ResolvedTrial | None
    metrics: Mapping[str, MetricDefinition] | None
    absent: frozenset[str] = frozenset()


def kinds(catalogue: Catalogue) -> dict[str, Mapping[str, Kind]]:
    """The catalogue's kinds by section of a study."""
    return {
        "place": catalogue.places,
        "system": catalogue.systems,
        "workload": catalogue.workloads,
        "settings": catalogue.settings,
    }


def known_in(section: str, catalogue: Catalogue) -> Mapping[str, Kind]:
    """The kinds that one section may name, a workload's own place among them."""
    return kinds(catalogue)["place" if section == WORKLOAD_PLACE else section]


def overlaid(base: Tree, overlays: Iterable[Tree]) -> Tree:
    """The base trial with levels merged over it, in order."""
    trial = base
    for overlay in overlays:
        trial = merge(trial, overlay)
    return trial


def resolve(trial: Tree, *, catalogue: Catalogue, problems: Problems) -> Resolution:
    """Validates a merged trial.

    What is wrong is noted at the line that set it, but for sections that are no mapping at all: the file's own shape
    reports those.
    """
    sections: dict[str, dict[str, JsonValue]] = {}
    metrics = dict(catalogue.telemetry_metrics)
    places = _client_places(trial, catalogue=catalogue, problems=problems)
    network = _network(trial, problems)
    complete = places is not None and network is not None
    served = True
    for section in SECTIONS:
        if section in (WORKLOAD_PLACE, NETWORK):
            continue
        values = _section(trial, section, catalogue=catalogue, problems=problems)
        if values is None:
            complete = False
            continue
        sections[section] = {}
        for kind, value in values:
            resolved = sections[section][kind.name] = kind.parameters.dump_python(value, mode="json")
            metrics |= kind.metrics(value)
            served = served and kind.has_server(resolved)
    if "settings" in sections:
        before = len(problems)
        catalogue.check_settings(sections["settings"], Branch(trial.tree("settings"), ("settings",)), problems)
        complete = complete and len(problems) == before
    return Resolution(
        trial=_trial(sections, places or [], network or Network()) if complete else None,
        metrics=metrics if "workload" in sections else None,
        absent=frozenset()
        if served
        else frozenset(name for name, each in metrics.items() if catalogue.is_of_servers(each)),
    )


def _client_places(trial: Tree, *, catalogue: Catalogue, problems: Problems) -> list[Section] | None:
    """Where the workload runs, nothing if beside its system; None if anything in it is wrong."""
    node, path = trial.entries.get(WORKLOAD_PLACE), tuple(WORKLOAD_PLACE.split("."))
    known = known_in(WORKLOAD_PLACE, catalogue)
    if not isinstance(node, Listing):
        if node is None or (isinstance(node, Tree) and not node.entries):
            return []
        place = _place(node, path, known=known, problems=problems)
        return None if place is None else [place]
    if not 1 < len(node.items) <= _MOST_CLIENTS:
        message = f"expected one place, or a list of 2 to {_MOST_CLIENTS}; found a list of {len(node.items)}"
        problems.add(message, node.at, field=path)
        return None
    before = len(problems)
    places: list[Section] = []
    for number, item in enumerate(node.items):
        here = (*path, str(number))
        place = _place(item, here, known=known, problems=problems)
        if place in places:
            message = f"clients {places.index(place) + 1} and {number + 1} have the same place"
            suggestion = "give each a place of its own: at one host by a `state_directory` each"
            problems.add(message, item.at, field=here, suggestion=suggestion)
        places += [] if place is None else [place]
    return places if len(problems) == before else None


def _place(node: Node, path: Path, *, known: Mapping[str, Kind], problems: Problems) -> Section | None:
    if not isinstance(node, Tree):
        message = f"found {brief(plain(node))}; expected exactly one kind of {listed(known)}"
        problems.add(message, node.at, field=path, suggestion="for example `{ssh: {host: …}}`")
        return None
    values = _values(node, path, noun="kind of place", known=known, problems=problems)
    if not values:
        return None
    ((kind, value),) = values
    return Section({kind.name: kind.parameters.dump_python(value, mode="json")})


def _network(trial: Tree, problems: Problems) -> Network | None:
    """How clients reach the system; None if anything in it is wrong."""
    before = len(problems)
    tree = trial.tree(NETWORK)
    value = validate(_NETWORK, plain(tree), node=tree, prefix=(WORKLOAD,), problems=problems)
    return value if len(problems) == before else None


def _trial(sections: Mapping[str, dict[str, JsonValue]], places: Sequence[Section], network: Network) -> ResolvedTrial:
    return ResolvedTrial(
        place=Section(sections["place"]),
        system=Section(sections["system"]),
        workload=Section(sections["workload"]),
        settings=sections["settings"],
        workload_place=places[0] if places else None,
        further_places=tuple(places[1:]),
        network=network,
    )


def _section(trial: Tree, section: str, *, catalogue: Catalogue, problems: Problems) -> list[tuple[Kind, Any]] | None:
    if not isinstance(trial.entries.get(section, trial), Tree):
        return None  # noted with the file's own shape
    noun = "setting" if section == "settings" else f"kind of {section}"
    tree = trial.tree(section)
    at = tree if tree.entries else Tree({}, trial.where(section), tree.key_at)
    return _values(at, (section,), noun=noun, known=known_in(section, catalogue), problems=problems)


def _values(
    tree: Tree, section: Path, *, noun: str, known: Mapping[str, Kind], problems: Problems
) -> list[tuple[Kind, Any]] | None:
    """What the mapping at a path names, each with its validated value: any number of settings, else one kind."""
    if section[0] in KIND_SECTIONS and len(tree.entries) != 1:
        what = f"found {listed(tree.entries)}; expected exactly one kind of {listed(known)}"
        removed = next((name for name in tree.key_at if name in known), None)
        at, suggestion = tree.at, ""
        if not tree.entries and removed is not None:
            at = tree.where(removed)
            suggestion = f"to use all defaults, write `{removed}: {{}}`: null removes"
        problems.add(what, at, field=section, suggestion=suggestion)
        return None
    values: list[tuple[Kind, Any]] = []
    complete = True
    for name, node in tree.entries.items():
        path = (*section, name)
        if name not in known:
            problems.unknown(noun, name, known, at=tree.where(name), field=path)
            complete = False
            continue
        before = len(problems)
        value = validate(known[name].parameters, plain(node), node=node, prefix=path, problems=problems)
        if len(problems) == before and isinstance(node, Tree):
            known[name].check(value, Branch(node, path), problems)
        if len(problems) > before:
            complete = False
        else:
            values.append((known[name], value))
    return values if complete else None
