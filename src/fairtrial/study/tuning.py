"""`tune:`, what a study searches instead of comparing levels: options with ranges, a budget, a confirmation.

Owns the section's model, the levels that take a study's factors' place, and the checks that need the base trial.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Final, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from fairtrial.study.assignments import path_of
from fairtrial.study.catalogue import Catalogue
from fairtrial.study.resolving import overlaid, resolve
from fairtrial.study.tree.merging import SECTIONS, merge
from fairtrial.study.tree.nodes import Listing, Node, Path, Position, Scalar, Tree, plain
from fairtrial.study.tree.problems import Problems, listed
from fairtrial.study.workload_place import PLACE

SECTION: Final = "tune"
ARM: Final = "options"
DEFAULT: Final = "default"
PROPOSAL: Final = "proposal"
TUNED: Final = ("system", "workload", "settings")
FEWEST_TRIALS: Final = 12  # a few proposals, and the best of them measured again
MOST_TRIALS: Final = 10_000
FEWEST_CONFIRMING: Final = 6  # fewer blocks claim nothing
SIGNIFICANT_DIGITS: Final = 4  # of a proposed number: more only make it harder to copy

Value = bool | int | float | str
_QUANTITY: Final = re.compile(r"(-?\d+(?:\.\d+)?)\s*([A-Za-zµ%/]*)")
REFUSED: Final[Mapping[str, str]] = {
    "factors": "the options under `tune` are what differs",
    "arm": "the options under `tune` are what differs",
    "also_compare": "the options under `tune` are what differs",
    "expect": "it has no conditions",
}


def _path(text: str) -> str:
    path = path_of(text)
    if path is None or path[0] not in TUNED or len(path) < (2 if path[0] == "settings" else 3) or path[1] == PLACE:
        raise ValueError(
            "expected the path of one value below `system`, `workload` or `settings`, such as "
            "`system.mariadb.options.innodb_io_capacity`"
        )
    return text


class TunedOption(BaseModel):
    """One option of the system, the workload or the settings, and the values that may be proposed for it."""

    model_config = ConfigDict(frozen=True, extra="forbid", serialize_by_alias=True)

    of: Annotated[str, AfterValidator(_path)] | None = Field(
        None,
        description="Path of the value, as with `--set`. Without it, the value replaces `{NAME}` wherever the base "
        "trial's texts name the option so.",
    )
    low: int | float | str | None = Field(
        None,
        alias="from",
        description="Smallest value: a number, with a unit if the option takes one (`32M`, `10ms`). Whole ends give "
        "whole numbers.",
    )
    high: int | float | str | None = Field(None, alias="to", description="Largest value, in the same unit.")
    scale: Literal["linear", "log"] = Field(
        "linear", description="Whether equal differences or equal ratios count the same."
    )
    choices: list[Value] | None = Field(None, min_length=2, description="Values to choose from, in place of a range.")
    default: Value | None = Field(None, description="Value in the default trial, of an option without `of`.")

    @model_validator(mode="after")
    def _range_or_choices(self) -> Self:
        if (self.choices is None) == (self.low is None and self.high is None):
            raise ValueError("expected either `from` and `to`, or `choices`")
        if (self.of is None) == (self.default is None):
            raise ValueError(
                "expected `default`, as there is no `of`"
                if self.of is None
                else "`default` is for options without `of`; write the default into the base trial"
            )
        if self.choices is not None:
            if self.scale != "linear":
                raise ValueError("`scale` has no effect with `choices`; leave it out")
            if len({repr(each) for each in self.choices}) != len(self.choices):
                raise ValueError("expected different `choices`")
        else:
            self._check_range()
        return self

    def _check_range(self) -> None:
        if self.low is None or self.high is None:
            raise ValueError("expected both `from` and `to`")
        (low, unit), (high, other) = _quantity(self.low), _quantity(self.high)
        if unit != other:
            raise ValueError(f"expected `from` and `to` in one unit, found {self.low!r} and {self.high!r}")
        if not low < high:
            raise ValueError(f"expected `from` below `to`, found {self.low!r} and {self.high!r}")
        if self.scale == "log" and low <= 0:
            raise ValueError(f"`scale: log` needs a range above 0, found `from: {self.low}`")

    @property
    def ends(self) -> tuple[float, float]:
        """Both ends of the range, in its unit."""
        assert self.low is not None  # noqa: S101 - checked with the model
        assert self.high is not None  # noqa: S101 - the same
        return _quantity(self.low)[0], _quantity(self.high)[0]

    @property
    def unit(self) -> str:
        """Unit of the range, as written."""
        return "" if self.low is None else _quantity(self.low)[1]

    @property
    def whole(self) -> bool:
        """Whether values are whole numbers."""
        return all(isinstance(end, int) for end in self.ends)

    def value(self, number: float) -> Value:
        """A number of the range as the study says it, rounded as it is proposed."""
        low, high = self.ends
        digits = SIGNIFICANT_DIGITS - 1 - math.floor(math.log10(abs(number))) if number else 0
        rounded: float = round(number) if self.whole else round(number, digits)
        rounded = min(max(rounded, low), high)
        return f"{rounded}{self.unit}" if self.unit else rounded

    def number(self, value: Value) -> float | None:
        """The number of a value within the range; None if it is none of the range's values."""
        try:
            number, unit = _quantity(value)
        except ValueError:
            return None
        low, high = self.ends
        return number if unit == self.unit and low <= number <= high else None


def _quantity(value: Value) -> tuple[float, str]:
    """A number and its unit; whole numbers stay whole."""
    match = _QUANTITY.fullmatch(str(value).strip())
    if match is None or isinstance(value, bool):
        raise ValueError(f"expected a number, with or without a unit, found {value!r}")
    return (float(match[1]) if "." in match[1] else int(match[1])), match[2]


class Again(BaseModel):
    """How the best proposals of the search are measured once more."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    best: int | None = Field(None, ge=1, le=20, description="Number of proposals (default: by the budget).")
    blocks: int | None = Field(None, ge=2, le=100, description="Fresh blocks of each (default: by the budget).")


class Confirm(BaseModel):
    """How the best proposal is compared with the default."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    blocks: int | None = Field(
        None,
        ge=FEWEST_CONFIRMING,
        le=MOST_TRIALS,
        description="Blocks (default: as many as the gain and the noise seen need, from 6 to `most`).",
    )
    most: int = Field(30, ge=FEWEST_CONFIRMING, le=MOST_TRIALS, description="Largest number of blocks planned.")


class Tuning(BaseModel):
    """A search for better values of options, and its confirmation (`fairtrial tune`)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    options: dict[Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]*$", max_length=80)], TunedOption] = Field(
        min_length=1, max_length=100, description="Options, by name."
    )
    budget: int = Field(
        60,
        ge=FEWEST_TRIALS,
        le=MOST_TRIALS,
        description="Trials of the search, those of the default and of measuring again included. The confirmation "
        "comes on top.",
    )
    again: Again = Field(Again(), description="How the best proposals are measured once more.")
    confirm: Confirm = Field(Confirm(), description="How the best is compared with the default.")

    @model_validator(mode="after")
    def _one_option_per_path(self) -> Self:
        paths: dict[str, str] = {}
        for name, option in self.options.items():
            if option.of is not None and (other := paths.setdefault(option.of, name)) != name:
                raise ValueError(f"options `{other}` and `{name}` have the same path")
        return self


_TUNING: Final = TypeAdapter(Tuning)


def overlay(tuning: Tuning, base: Tree, values: Mapping[str, Value]) -> Tree:
    """The level at which options have these values, as changes to the base trial."""
    level = Tree({}, base.at)
    for name, value in values.items():
        if (of := tuning.options[name].of) is not None:
            level = merge(level, _nested(path_of(of) or (), Scalar(value, str(value), base.at)))
    named = {name: value for name, value in values.items() if tuning.options[name].of is None}
    if not named:
        return level
    for section in SECTIONS:
        node = base.entries.get(section)
        filled = None if node is None else _filled(node, named)
        if filled is not None:
            level = merge(Tree({section: filled}, base.at), level)
    return level


def named_defaults(tuning: Tuning) -> dict[str, Value]:
    """Of the options that the base trial's texts name: what they are in the default trial."""
    return {name: option.default for name, option in tuning.options.items() if option.default is not None}


def defaults(tuning: Tuning, base: Tree) -> dict[str, Value]:
    """What the base trial says of each option; those it leaves to the system are not in it."""
    known: dict[str, Value] = {}
    for name, option in tuning.options.items():
        value = option.default if option.of is None else _at(base, path_of(option.of) or ())
        if value is not None:
            known[name] = value
    return known


def with_levels(tree: Tree, *, catalogue: Catalogue, problems: Problems) -> Tree:
    """A study that tunes, with the levels that a block of its search compares: the default, and one proposal.

    What is wrong with the section beyond its shape is noted here, at the line that says it.
    """
    section = tree.tree(SECTION)
    for key, reason in REFUSED.items():
        if key in tree.entries:
            problems.add(f"a study that tunes has no `{key}`: {reason}", tree.where(key), field=(key,))
    _check_trials(tree, problems)
    base = Tree({key: node for key, node in tree.entries.items() if key in SECTIONS}, tree.at, tree.key_at)
    nothing = Tree({}, section.at)
    try:
        tuning = _TUNING.validate_python(plain(section))
    except ValidationError:  # noted with the file's own shape
        return _completed(tree, nothing, nothing)
    if not _check_paths(tuning, section, base, problems=problems):
        return _completed(tree, nothing, nothing)
    usual = overlay(tuning, base, named_defaults(tuning))
    ends = [_end(tuning, section, base, last=last) for last in (True, False)]
    resolve(overlaid(base, [usual]), catalogue=catalogue, problems=(of_base := Problems()))
    for end in ends if not len(of_base) else ():
        resolve(overlaid(base, [end]), catalogue=catalogue, problems=problems)
    differing = [end for end in ends if overlaid(base, [end]) != overlaid(base, [usual])]
    return _completed(tree, usual, differing[0])


def _completed(tree: Tree, usual: Tree, proposal: Tree) -> Tree:
    at = tree.where(SECTION)
    levels = Tree({DEFAULT: usual, PROPOSAL: proposal}, at, dict.fromkeys((DEFAULT, PROPOSAL), at))
    with_factors = tree.without(*REFUSED).having("factors", Tree({ARM: levels}, at, {ARM: at}))
    return with_factors.having("arm", Scalar(ARM, ARM, at))


def _end(tuning: Tuning, section: Tree, base: Tree, *, last: bool) -> Tree:
    """The level with every option at its first or last value, each where the study says it."""
    values: dict[str, Value] = {}
    at: dict[str, Position] = {}
    for name, option in tuning.options.items():
        written = section.tree("options").tree(name)
        if option.choices is not None:
            values[name] = option.choices[-1 if last else 0]
            at[name] = written.where("choices")
        else:
            values[name] = option.value(option.ends[1 if last else 0])
            at[name] = written.entries["to" if last else "from"].at
    level = overlay(tuning, base, values)
    for name, option in tuning.options.items():
        if option.of is not None:
            node = Scalar(values[name], str(values[name]), at[name])
            level = merge(level, _nested(path_of(option.of) or (), node))
    return level


def _check_trials(tree: Tree, problems: Problems) -> None:
    trials, metrics, telemetry = tree.tree("trials"), tree.tree("metrics"), tree.tree("telemetry")
    for key, only in (("stop", "fixed"), ("order", "randomised_blocks")):
        node = trials.entries.get(key)
        if isinstance(node, Scalar) and node.text != only:
            problems.add(f"a study that tunes has `{key}: {only}`, found `{node.text}`", node.at, field=("trials", key))
    if "blocks" in trials.entries:
        problems.add(
            "`tune` says how many trials there are",
            trials.where("blocks"),
            field=("trials", "blocks"),
            suggestion="write `tune: {budget: …, confirm: {blocks: …}}`",
        )
    primary = metrics.entries.get("primary")
    if isinstance(primary, Listing) and len(primary.items) != 1:
        message = f"a search has one objective, found {len(primary.items)} primary metrics"
        problems.add(message, primary.at, field=("metrics", "primary"), suggestion="make the others guardrails")
    probes = telemetry.entries.get("probes")
    if isinstance(probes, Listing) and probes.items:
        message = "a search has no diagnostic trials"
        suggestion = "run the confirmation's own study with probes"
        problems.add(message, probes.at, field=("telemetry", "probes"), suggestion=suggestion)


def _check_paths(tuning: Tuning, section: Tree, base: Tree, *, problems: Problems) -> bool:
    """Whether every option is one of the base trial: its kind is there, or its name in braces is."""
    before = len(problems)
    texts = list(_texts(base))
    for name, option in tuning.options.items():
        written = section.tree("options").tree(name)
        field = (SECTION, "options", name)
        if option.of is None:
            if not any(f"{{{name}}}" in text for text in texts):
                message = f"nothing in the base trial names `{{{name}}}`"
                suggestion = "write it where the value belongs, or add `of`"
                problems.add(message, section.tree("options").where(name), field=field, suggestion=suggestion)
            continue
        first, kind, *_ = path_of(option.of) or ("", "")
        kinds = base.tree(first).entries
        if first != "settings" and kind not in kinds:
            message = f"the base trial's {first} is {listed(kinds)}, not `{kind}`"
            problems.add(message, written.entries["of"].at, field=(*field, "of"))
    return len(problems) == before


def _texts(node: Node) -> Iterator[str]:
    if isinstance(node, Tree):
        for each in node.entries.values():
            yield from _texts(each)
    elif isinstance(node, Listing):
        for each in node.items:
            yield from _texts(each)
    elif isinstance(node.value, str):
        yield node.value


def _filled(node: Node, values: Mapping[str, Value]) -> Node | None:
    """What of a node names an option in braces, with the values in their places; None if nothing does."""
    if isinstance(node, Tree):
        filled = {key: _filled(each, values) for key, each in node.entries.items()}
        kept = {key: each for key, each in filled.items() if each is not None}
        return Tree(kept, node.at, node.key_at) if kept else None
    if isinstance(node, Listing):
        items = [_filled(each, values) for each in node.items]
        if all(item is None for item in items):
            return None
        return Listing(tuple(new or old for new, old in zip(items, node.items, strict=True)), node.at)
    if not isinstance(node.value, str) or not any(f"{{{name}}}" in node.value for name in values):
        return None
    text = node.value
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", str(value))
    return Scalar(text, text, node.at)


def _nested(path: Path, value: Node) -> Tree:
    first, *rest = path
    return Tree({first: _nested(tuple(rest), value) if rest else value}, value.at, {first: value.at})


def _at(tree: Tree, path: Path) -> Value | None:
    node: Node | None = tree
    for part in path:
        node = node.entries.get(part) if isinstance(node, Tree) else None
    return node.value if isinstance(node, Scalar) else None
