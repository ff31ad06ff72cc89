"""From merged trees to a resolved trial: every kind's own model validates its part.

Owns the look-up of kinds in the catalogue. It must not know factors or their combinations.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue

from fairtrial.study.catalogue import Catalogue, Kind, MetricDefinition
from fairtrial.study.resolved import ResolvedTrial, Section
from fairtrial.study.tree.merging import KIND_SECTIONS, SECTIONS, merge
from fairtrial.study.tree.nodes import Branch, Tree, plain
from fairtrial.study.tree.problems import Problems, listed, validate
from fairtrial.study.workload_place import SECTION as WORKLOAD_PLACE


@dataclass(frozen=True)
class Resolution:
    """What a merged trial resolves to.

    Attributes:
        trial: in base units; None if any part is wrong.
        metrics: what it can measure, the workload's own and telemetry; None if the workload is wrong.
    """

    trial: ResolvedTrial | None
    metrics: Mapping[str, MetricDefinition] | None


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
    complete = True
    for section in SECTIONS:
        if section == WORKLOAD_PLACE and not trial.tree(section).entries:
            continue  # beside its system
        values = _section(trial, section, catalogue=catalogue, problems=problems)
        if values is None:
            complete = False
            continue
        sections[section] = {}
        for kind, value in values:
            sections[section][kind.name] = kind.parameters.dump_python(value, mode="json")
            metrics |= kind.metrics(value)
    return Resolution(
        trial=_trial(sections) if complete else None,
        metrics=metrics if "workload" in sections else None,
    )


def _trial(sections: Mapping[str, dict[str, JsonValue]]) -> ResolvedTrial:
    return ResolvedTrial(
        place=Section(sections["place"]),
        system=Section(sections["system"]),
        workload=Section(sections["workload"]),
        settings=sections["settings"],
        workload_place=Section(sections[WORKLOAD_PLACE]) if WORKLOAD_PLACE in sections else None,
    )


def _section(trial: Tree, section: str, *, catalogue: Catalogue, problems: Problems) -> list[tuple[Kind, Any]] | None:
    known = known_in(section, catalogue)
    if not isinstance(trial.entries.get(section, trial), Tree):
        return None  # noted with the file's own shape
    tree = trial.tree(section)
    if section in KIND_SECTIONS and len(tree.entries) != 1:
        what = f"found {listed(tree.entries)}; expected exactly one kind of {listed(known)}"
        at = tree.at if tree.entries else trial.where(section)
        suggestion = (
            "" if tree.entries else f"to use all defaults, write `{next(iter(known), 'kind')}: {{}}`: null removes"
        )
        problems.add(what, at, field=section.split("."), suggestion=suggestion)
        return None
    values: list[tuple[Kind, Any]] = []
    complete = True
    for name, node in tree.entries.items():
        path = (*section.split("."), name)
        if name not in known:
            what = "setting" if section == "settings" else f"kind of {section.rpartition('.')[2]}"
            problems.unknown(what, name, known, at=tree.where(name), field=path)
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
