"""What a service's data are made with and no trial sets: a slip of the pen, by which all trials share one set. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from fairtrial.study.resolved import ResolvedTrial
from fairtrial.study.tree.problems import did_you_mean

FIELD: Final = "system.service.data.options"


def warnings(resolved: Mapping[str, Mapping[str, ResolvedTrial]]) -> list[str]:
    """One for each name in a service's `data.options` that is no option of any trial."""
    trials = [trial for cell in resolved.values() for trial in cell.values()]
    services = [trial.system.parameters for trial in trials if trial.system.kind == "service"]
    options = {str(name) for service in services for name in _entry(service, "options")}
    named = dict.fromkeys(name for service in services for name in _named(service) if name not in options)
    return [f"{FIELD}: `{name}` is not an option of any trial {_perhaps(name, options)}".rstrip() for name in named]


def _perhaps(name: str, options: set[str]) -> str:
    suggestion = did_you_mean(name, sorted(options))
    return f"({suggestion})" if suggestion else ""


def _named(service: object) -> Iterator[str]:
    names = _entry(_entry(service, "data"), "options")
    yield from (str(name) for name in names)


def _entry(node: object, key: str) -> Mapping[str, object] | list[object]:
    entry = node.get(key) if isinstance(node, Mapping) else None
    return entry if isinstance(entry, Mapping | list) else {}
