"""What differs between arms: every path of the resolved trials at which they do not agree.

Owns the comparison after merging and validation, so defaults that a kind fills in are compared as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pydantic import JsonValue

from fairtrial.record.models import Difference
from fairtrial.study import ResolvedTrial
from fairtrial.study.tree.nodes import Path, dotted


def differences(resolved: Mapping[str, Mapping[str, ResolvedTrial]]) -> list[Difference]:
    """Paths that differ between arms, in the trial's order.

    Args:
        resolved: by cell, then arm.

    Returns:
        One entry per path where every cell gives the same values; otherwise one per cell, its path marked with the
        cell as `path [cell]`.
    """
    by_path: dict[Path, dict[str, dict[str, JsonValue]]] = {}
    for cell, arms in resolved.items():
        flat = _without_empty({arm: dict(_flat(trial.model_dump(mode="json"), ())) for arm, trial in arms.items()})
        for path in dict.fromkeys(path for values in flat.values() for path in values):
            values = {arm: result[path] for arm, result in flat.items() if path in result}
            if len(values) < len(flat) or any(value != next(iter(values.values())) for value in values.values()):
                by_path.setdefault(path, {})[cell] = values
    result: list[Difference] = []
    for path, cells in by_path.items():
        name = dotted(path)
        first = next(iter(cells.values()))
        if len(cells) == len(resolved) and all(values == first for values in cells.values()):
            result.append(Difference(path=name, values=first))
        else:
            result += [Difference(path=f"{name} [{cell}]", values=values) for cell, values in cells.items()]
    return result


def _without_empty(flat: Mapping[str, Mapping[Path, JsonValue]]) -> dict[str, dict[Path, JsonValue]]:
    """By arm, without empty mappings where another arm has something below: that is a difference, and says it all."""
    above = {path[:length] for values in flat.values() for path in values for length in range(len(path))}
    return {
        arm: {path: value for path, value in values.items() if value != {} or path not in above}
        for arm, values in flat.items()
    }


def _flat(value: JsonValue, path: Path) -> Iterator[tuple[Path, JsonValue]]:
    if isinstance(value, dict) and value:
        for key, below in value.items():
            yield from _flat(below, (*path, key))
    elif path:
        yield path, value
