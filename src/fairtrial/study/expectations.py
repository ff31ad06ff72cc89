"""`expect`: conditions on telemetry that make a cell mean what its name says.

Owns the ranges' text form: `8..12 %`, `10..20`, `>= 3`, `<= 0.1`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from fairtrial.study.designs.numeric_factors import NumericFactor
from fairtrial.study.tree.nodes import Position, Scalar, Tree
from fairtrial.study.tree.problems import Problems, did_you_mean, listed

_NUMBER = r"([-+]?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?)"
_BETWEEN = re.compile(rf"\s*{_NUMBER}\s*(%?)\s*\.\.\s*{_NUMBER}\s*(%?)\s*")
_ONE_SIDED = re.compile(rf"\s*(>=|<=)\s*{_NUMBER}\s*(%?)\s*")
_PERCENT = 100.0


@dataclass(frozen=True)
class Expectation:
    """A metric's mean over the baseline arm's valid trials in each cell with this level must lie in [low, high]."""

    factor: str
    level: str
    metric: str
    low: float | None
    high: float | None
    text: str


def parse_range(text: str) -> tuple[float | None, float | None]:
    """Reads a range; `%` divides by 100 and holds for both ends.

    Raises:
        ValueError: it is no range, or an empty one.
    """
    between = _BETWEEN.fullmatch(text)
    if between:
        scale = _PERCENT if between[2] or between[4] else 1.0
        low, high = _bound(between[1], scale=scale), _bound(between[3], scale=scale)
        if low > high:
            raise ValueError(f"expected a range from low to high, found '{text}'")
        return low, high
    one_sided = _ONE_SIDED.fullmatch(text)
    if one_sided:
        bound = _bound(one_sided[2], scale=_PERCENT if one_sided[3] else 1.0)
        return (bound, None) if one_sided[1] == ">=" else (None, bound)
    raise ValueError(f"expected a range such as '8..12 %', '>= 3' or '<= 0.1', found '{text}'")


def _bound(text: str, *, scale: float) -> float:
    bound = float(text) / scale
    if not math.isfinite(bound):
        raise ValueError(f"expected a range with finite ends, found '{text}'")
    return bound


def read_expectations(
    tree: Tree, levels: dict[str, list[str]], *, numeric: Mapping[str, NumericFactor], arm: str, problems: Problems
) -> list[tuple[Expectation, Position]]:
    """Reads a study's `expect`; each expectation with the place of its metric's name."""
    expectations: list[tuple[Expectation, Position]] = []
    section = tree.tree("expect")
    for name in section.entries:
        target = _target(name, levels, numeric=numeric, at=section.where(name), problems=problems)
        if target is None:
            continue
        if target[0] == arm:
            message = f"`{target[1]}` is an arm; a condition on what the arm itself changes would bias the comparison"
            hint = "name the level of a condition instead"
            problems.add(message, section.where(name), field=("expect", name), suggestion=hint)
            continue
        ranges = section.tree(name)
        for metric, node in ranges.entries.items():
            if not isinstance(node, Scalar) or not isinstance(node.value, str):
                continue  # noted with the file's own shape
            try:
                low, high = parse_range(node.value)
            except ValueError as error:
                problems.add(str(error), node.at, field=("expect", name, metric))
                continue
            expectations.append((Expectation(*target, metric, low, high, node.value), ranges.where(metric)))
    return expectations


def _target(
    name: str, levels: dict[str, list[str]], *, numeric: Mapping[str, NumericFactor], at: Position, problems: Problems
) -> tuple[str, str] | None:
    full = {f"{factor}.{level}": (factor, level) for factor, names in levels.items() for level in names}
    if name in full:
        return full[name]
    matching = {qualified: pair for qualified, pair in full.items() if pair[1] == name}
    matching = matching or {".".join(pair): pair for pair in _by_value(name, numeric)}
    if len(matching) == 1:
        return next(iter(matching.values()))
    field = ("expect", name)
    if matching:
        problems.add(
            f"level `{name}` belongs to more than one factor", at, field=field, suggestion=f"write {listed(matching)}"
        )
    else:
        known = [*(level for names in levels.values() for level in names), *full]
        message = f"unknown level `{name}`; expected one of {listed(full)}"
        problems.add(message, at, field=field, suggestion=did_you_mean(name, known))
    return None


def _by_value(name: str, numeric: Mapping[str, NumericFactor]) -> Iterator[tuple[str, str]]:
    """Factors and levels of this number, however it is written; the factor may stand before it."""
    for factor, numbers in numeric.items():
        level = numbers.level(name.removeprefix(f"{factor}."))
        if level is not None:
            yield factor, level
