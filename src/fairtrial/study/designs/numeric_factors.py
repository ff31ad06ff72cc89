"""Numeric factors: `values` and the path that each of them sets, in place of levels; and the curve over one of them.

Owns how they become ordinary levels, each an overlay named by its value, and what a curve asks of a study.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from fairtrial.study import workload_place
from fairtrial.study.assignments import path_of
from fairtrial.study.catalogue import MetricDefinition
from fairtrial.study.tree.nodes import Listing, Node, Path, Position, Scalar, Tree
from fairtrial.study.tree.problems import Problems, brief, listed
from fairtrial.study.tree.quantities import parse_bytes, parse_rate, parse_seconds

VALUES: Final = "values"
OF: Final = "of"
CurveModel = Literal["usl", "linear", "loess"]
FEWEST_VALUES: Final[Mapping[CurveModel, int]] = {"usl": 3, "linear": 2, "loess": 4}  # one per parameter, or a window
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_SECTIONS = ("place", "system", "workload", "settings")
_QUANTITIES: tuple[Callable[[object], float], ...] = (parse_bytes, parse_seconds, parse_rate)


class Curve(BaseModel):
    """A curve through the values of a numeric factor, one for each arm."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    over: str = Field(description="Numeric factor; every combination of the other conditions has curves of its own.")
    model: CurveModel = Field(
        description="Shape of the curve. `usl`: the Universal Scalability Law of throughput against concurrency, with "
        "contention, coherency and a peak. `linear`: a straight line on logarithmic axes, that is one factor per "
        "doubling. `loess`: a local regression without parameters."
    )


@dataclass(frozen=True)
class NumericFactor:
    """What stands in a study in place of a factor's levels.

    Attributes:
        numbers: by level name, in base units, in study order.
        values: as they are written.
        of: paths into the trial, each of which every value sets.
    """

    numbers: Mapping[str, float]
    values: tuple[Scalar, ...]
    of: tuple[str, ...]

    def level(self, text: str) -> str | None:
        """The level that a text names, as it is called or as another way to write its number; None if it is none."""
        if text in self.numbers:
            return text
        number = _number_in(text)
        return next((name for name, each in self.numbers.items() if each == number), None)

    def written(self) -> dict[str, object]:
        """As Python values that a study can hold."""
        return {VALUES: [value.value for value in self.values], OF: self.of[0] if len(self.of) == 1 else list(self.of)}


def expanded(tree: Tree, problems: Problems) -> tuple[Tree, dict[str, NumericFactor]]:
    """A merged study with ordinary levels for every numeric factor, and what these were."""
    section, found = tree.tree("factors"), {}
    for name, node in section.entries.items():
        if not isinstance(node, Tree) or not _is_numeric(node):
            continue
        levels, found[name] = _levels(node, ("factors", name), problems)
        section = section.having(name, levels)
    return (tree.having("factors", section) if found else tree), found


def _is_numeric(node: Tree) -> bool:
    """A level that is called `values` or `of` is a mapping; these are none."""
    return any(key in node.entries and not isinstance(node.entries[key], Tree) for key in (VALUES, OF))


def _levels(node: Tree, field: Path, problems: Problems) -> tuple[Tree, NumericFactor]:
    """Its levels, as many as are right: what is wrong is noted."""
    for key in node.entries:
        if key not in (VALUES, OF):
            message = f"a numeric factor has `{VALUES}` and `{OF}` only"
            problems.add(message, node.where(key), field=(*field, key), suggestion="make it a factor with levels")
    values, paths = _values(node, field, problems), _paths(node, field, problems)
    entries = {
        _named(value): workload_place.aside(_overlay(paths, value), Problems()) for value, _ in values if len(paths)
    }
    at = {_named(value): value.at for value, _ in values}
    factor = NumericFactor(
        {_named(value): number for value, number in values}, tuple(value for value, _ in values), tuple(paths)
    )
    return Tree(entries or {"1": Tree({}, node.at)}, node.at, at), factor  # a level at least, or that is wrong as well


def _values(node: Tree, field: Path, problems: Problems) -> list[tuple[Scalar, float]]:
    listing = node.entries.get(VALUES)
    if not isinstance(listing, Listing) or not listing.items:
        at = listing.at if listing is not None else node.at
        suggestion = f"for example `{VALUES}: [1, 2, 4, 8]`"
        problems.add("expected a list of numbers", at, field=(*field, VALUES), suggestion=suggestion)
        return []
    found: dict[float, Scalar] = {}
    for index, item in enumerate(listing.items):
        here = (*field, VALUES, str(index))
        number = _number(item)
        if number is None or not isinstance(item, Scalar):
            shown = item.text if isinstance(item, Scalar) else brief({} if isinstance(item, Tree) else [])
            message = f"expected a number, or a size, time or rate such as 64MiB; found {shown}"
            problems.add(message, item.at, field=here)
        elif not _NAME.fullmatch(_named(item)):
            message = f"`{_named(item)}` cannot name a level: expected letters, digits, dots and dashes"
            short = re.sub(r"\s", "", _named(item))
            suggestion = f"write `{short}`" if _NAME.fullmatch(short) else "make it a factor with levels"
            problems.add(message, item.at, field=here, suggestion=suggestion)
        elif number in found:
            problems.add(f"the same value as `{found[number].text}`", item.at, field=here, suggestion="leave one out")
        else:
            found[number] = item
    return [(item, number) for number, item in found.items()]


def _named(value: Scalar) -> str:
    """What its level is called: a number as Python writes it, but for the plus of an exponent; as in a record."""
    return str(value.value).replace("e+", "e") if isinstance(value.value, float) else str(value.value)


def _number(item: Node) -> float | None:
    """In base units; None if it is none."""
    value = item.value if isinstance(item, Scalar) else None
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        return float(value) if math.isfinite(value) else None
    return _quantity_in(value)


def _number_in(text: str) -> float | None:
    """The same of a text that may be a number as YAML has it, `0x10` among them."""
    for parse in (float, partial(int, base=0)):
        try:
            return float(parse(text))
        except (ValueError, OverflowError):
            continue
    return _quantity_in(text)


def _quantity_in(value: object) -> float | None:
    for parse in _QUANTITIES:
        try:
            return float(parse(value))
        except ValueError:
            continue
    return None


def _paths(node: Tree, field: Path, problems: Problems) -> list[str]:
    of = node.entries.get(OF)
    items = of.items if isinstance(of, Listing) else () if of is None else (of,)
    if not items:
        message = f"expected `{OF}`: the path that each value sets"
        suggestion = f"for example `{OF}: workload.tpcc.virtual_users`"
        problems.add(message, of.at if of is not None else node.at, field=(*field, OF), suggestion=suggestion)
    paths = []
    for item in items:
        path = path_of(item.text) if isinstance(item, Scalar) and isinstance(item.value, str) else None
        if path is None or len(path) < 2 or path[0] not in _SECTIONS:  # noqa: PLR2004 - a section alone is no value
            shown = item.text if isinstance(item, Scalar) else "something else"
            message = f"expected a path that begins with {listed(_SECTIONS)}; found {shown}"
            suggestion = 'for example workload.tpcc.virtual_users, or settings.sysctl."vm.swappiness"'
            problems.add(message, item.at, field=(*field, OF), suggestion=suggestion)
        elif isinstance(item, Scalar):
            paths.append(item.text)
    return paths


def _overlay(paths: list[str], value: Scalar) -> Tree:
    """The level: the value at every path, all of it written where the value is."""
    overlay = Tree({}, value.at)
    for path in paths:
        overlay = _with(overlay, path_of(path) or (), value)
    return overlay


def _with(tree: Tree, path: Path, value: Scalar) -> Tree:
    first, *rest = path
    node: Node = value
    if rest:
        node = _with(tree.tree(first) if first in tree.entries else Tree({}, value.at), tuple(rest), value)
    return Tree({**tree.entries, first: node}, tree.at, {**tree.key_at, first: value.at})


def check_curve(
    tree: Tree,
    numeric: Mapping[str, NumericFactor],
    *,
    definitions: Mapping[str, MetricDefinition],
    problems: Problems,
) -> None:
    """Notes what keeps a study's curve from being fitted; its shape is the file model's."""
    section = tree.tree("curve")
    over, model = section.entries.get("over"), section.entries.get("model")
    if not isinstance(over, Scalar) or not isinstance(model, Scalar):
        return
    if not _check_over(tree, numeric, over, problems=problems):
        return
    chosen: CurveModel | None = next((each for each in FEWEST_VALUES if each == model.value), None)
    if chosen is not None:
        _check_values(numeric[over.text], chosen, over, problems=problems)
        _check_metrics(tree, chosen, model.at, definitions=definitions, problems=problems)
    stop = tree.tree("trials").entries.get("stop")
    if isinstance(stop, Scalar) and stop.value != "fixed":
        message = f"a curve needs equally many blocks at every value, which `stop: {stop.text}` does not give"
        problems.add(message, stop.at, field=("trials", "stop"), suggestion="write `stop: fixed`")


def _check_over(tree: Tree, numeric: Mapping[str, NumericFactor], over: Scalar, *, problems: Problems) -> bool:
    field, arm = ("curve", "over"), tree.entries.get("arm")
    factors = tree.tree("factors").entries
    if over.text not in factors:
        problems.unknown("factor", over.text, numeric or factors, at=over.at, field=field)
    elif over.text not in numeric:
        message = f"factor `{over.text}` is not numeric"
        suggestion = f"write its levels as `{over.text}: {{{VALUES}: [1, 2, 4], {OF}: workload.tpcc.virtual_users}}`"
        problems.add(message, over.at, field=field, suggestion=suggestion)
    elif isinstance(arm, Scalar) and arm.text == over.text:
        message = f"`{over.text}` is the arm: a curve is fitted for each arm, over a different factor"
        problems.add(message, over.at, field=field, suggestion="make another factor the arm")
    else:
        return True
    return False


def _check_values(factor: NumericFactor, model: CurveModel, over: Scalar, *, problems: Problems) -> None:
    few, field = FEWEST_VALUES[model], ("factors", over.text, VALUES)
    if not factor.values:
        return
    where: Position = factor.values[0].at
    if len(factor.values) < few:
        message = f"`model: {model}` needs at least {few} values, found {len(factor.values)}"
        suggestion = "add values; one more than needed shows whether the model fits"
        problems.add(message, where, field=field, suggestion=suggestion)
    for value in factor.values:
        if factor.numbers[_named(value)] <= 0:
            message = f"a curve needs values above 0, found {value.text}"
            problems.add(message, value.at, field=field, suggestion="leave it out, or leave out `curve`")


def _check_metrics(
    tree: Tree, model: CurveModel, at: Position, *, definitions: Mapping[str, MetricDefinition], problems: Problems
) -> None:
    if model != "usl":
        return
    named = tree.tree("metrics").entries.get("primary", Listing((), at))
    items = named.items if isinstance(named, Listing) else (named,)
    for item in items:
        metric = definitions.get(item.text) if isinstance(item, Scalar) else None
        if metric is not None and metric.better != "higher":
            message = f"`usl` is a law of throughput, and lower values of `{metric.name}` are better"
            suggestion = "use `linear` or `loess`, or make a throughput the primary metric"
            problems.add(message, at, field=("curve", "model"), suggestion=suggestion)
