"""A study, loaded: frozen, merged, checked; and back to YAML.

Owns the order of merging (include, study, size, `--set`, levels) and the public calls of the package.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter
from ruamel.yaml import YAML

from fairtrial.errors import InputError, Problem
from fairtrial.study import assignments, tuning
from fairtrial.study.catalogue import Catalogue, MetricDefinition
from fairtrial.study.checking import StudyDefinitions, check, factors_of
from fairtrial.study.designs.numeric_factors import NumericFactor, check_curve, expanded
from fairtrial.study.expectations import Expectation
from fairtrial.study.file_model import NOT_IN_SIZES, TEXTS_AS_WRITTEN, StudyFile, Trials
from fairtrial.study.resolved import ResolvedTrial
from fairtrial.study.resolving import overlaid, resolve
from fairtrial.study.tree.embedding import embed
from fairtrial.study.tree.merging import SECTIONS, merge
from fairtrial.study.tree.nodes import Listing, Node, Position, Scalar, Tree, dotted, from_plain, plain
from fairtrial.study.tree.nodes import Path as Keys
from fairtrial.study.tree.problems import Problems, did_you_mean, keys_at, listed, validate
from fairtrial.study.tree.quantities import WITH_UNITS
from fairtrial.study.tree.reading import read_documents
from fairtrial.study.tuning import levels
from fairtrial.study.workload_place import NETWORK, aside, back_everywhere
from fairtrial.study.workload_place import SECTION as WORKLOAD_PLACE

# This machine, and no server: a command compared with a command needs neither.
DEFAULTS: Mapping[str, Mapping[str, Any]] = {"place": {"local": {}}, "system": {"command": {}}}
_FILE = TypeAdapter(StudyFile)
_BESIDE_WORKLOAD = (WORKLOAD_PLACE, NETWORK)
_IN_SIZES = dict.fromkeys([*(key for key in StudyFile.model_fields if key not in NOT_IN_SIZES), *_BESIDE_WORKLOAD])
_ONLY_IN_FILES = {"include", "sizes"}  # both are done with when `--set` is merged
_NAMED = {("factors", 2): "factor", ("factors", 3): "level", ("expect", 2): "condition", ("expect", 3): "metric"}
_LINE_WIDTH = 4096  # a folded line would be harder to compare


@dataclass(frozen=True)
class Factor:
    """A named dimension of the design; each level is an overlay, the first is the baseline.

    `numeric`: what was written in place of levels; None where levels were.
    """

    name: str
    levels: tuple[tuple[str, Tree], ...]
    numeric: NumericFactor | None = None

    @property
    def level_names(self) -> tuple[str, ...]:
        """Level names, baseline first."""
        return tuple(name for name, _ in self.levels)

    def level(self, text: str) -> str | None:
        """The level that a text names, of a numeric factor by its number, too; None if it is none of them."""
        if self.numeric is not None:
            return self.numeric.level(text)
        return text if text in self.level_names else None

    def written(self) -> dict[str, Any]:
        """As Python values that a study can hold."""
        return {name: plain(tree) for name, tree in self.levels} if self.numeric is None else self.numeric.written()


@dataclass(frozen=True)
class Study:
    """One question with its design and procedure, merged and checked.

    Attributes:
        file: the validated file, sizes and includes merged away.
        base: the base trial: place, system, workload, settings.
        factors: in study order.
        expectations: conditions on telemetry.
        definitions: of every metric the study names.
        catalogue: the kinds it was checked against; no part of equality.
        size: the size that was merged; no part of equality, as the values it set are.
        written: the merged study with its positions; no part of equality, as `file` and `base` are.
    """

    file: StudyFile
    base: Tree
    factors: tuple[Factor, ...]
    expectations: tuple[Expectation, ...]
    definitions: Mapping[str, MetricDefinition]
    catalogue: Catalogue = field(compare=False, repr=False)
    size: str | None = field(default=None, compare=False)
    written: Tree = field(default=Tree({}, Position("")), compare=False, repr=False)

    @property
    def name(self) -> str:
        """The study's name."""
        return self.file.study

    @property
    def arm(self) -> Factor:
        """The factor under test."""
        return next(factor for factor in self.factors if factor.name == self.file.arm)

    @property
    def conditions(self) -> tuple[Factor, ...]:
        """Every factor but the arm."""
        return tuple(factor for factor in self.factors if factor.name != self.file.arm)

    @property
    def trials(self) -> Trials:
        """Number, order and judgement of trials."""
        return self.file.trials

    def merged(self, levels: Mapping[str, str]) -> Tree:
        """The base trial with one level of every factor merged over it, as written.

        Raises:
            InputError: a factor without a level, or a level that is none of the factor's.
        """
        chosen = []
        for factor in self.factors:
            overlay = dict(factor.levels).get(levels.get(factor.name, ""))
            if overlay is None:
                message = f"factor `{factor.name}` has no level {levels.get(factor.name)!r}"
                raise InputError([Problem(message, self.name)], hint=f"it has {', '.join(factor.level_names)}")
            chosen.append(overlay)
        return overlaid(self.base, chosen)

    def resolve(self, levels: Mapping[str, str]) -> ResolvedTrial:
        """The trial at one level of every factor.

        Raises:
            InputError: a factor without a level, or a level that is none of the factor's.
        """
        problems = Problems()
        resolution = resolve(self.merged(levels), catalogue=self.catalogue, problems=problems)
        problems.raise_if_any()
        assert resolution.trial is not None  # noqa: S101 - nothing was noted
        return resolution.trial


def load(
    path: Path,
    *,
    catalogue: Catalogue,
    size: str | None = None,
    overrides: Iterable[str] = (),
    recorded: bool = False,
) -> Study:
    """Reads, merges and checks a study file.

    Args:
        path: the study file.
        catalogue: the kinds it may name.
        size: one of its `sizes`.
        overrides: `path=value` texts, merged last.
        recorded: a record's own copy, which ran: metrics that it turned out to lack are no mistakes.

    Raises:
        InputError: with every mistake found, each with its line; those of other sizes, too, if nothing is overridden.
    """
    problems, unread = Problems(), Problems()
    missed = partial(_missed, problems=problems)
    merged: Tree | None = None
    for document in read_documents(path, problems):
        merged = merge(merged, aside(embed(document, catalogue=catalogue, problems=unread), problems), missed=missed)
    assert merged is not None  # noqa: S101 - a file gives at least itself
    _check_sizes(merged, problems)
    every_size = merged
    if size is not None:
        merged = merge(merged, _size(merged, size, problems), missed=missed)
    overrides = tuple(overrides)
    for overlay in assignments.overlays(overrides, problems):
        for key in _ONLY_IN_FILES & overlay.entries.keys():
            problems.add(
                "it is available in a file only", assignments.AT, field=(key,), suggestion="write it in the study"
            )
        merged = merge(merged, aside(embed(overlay, catalogue=catalogue, problems=unread), problems), missed=missed)
    _give_up_without(unread, problems)
    tree, numeric, file, checked = _checked(merged, catalogue, problems, recorded=recorded)
    if not overrides:  # which another size may need, or not bear
        _check_other_sizes(every_size, size, catalogue=catalogue, problems=problems)
    problems.raise_if_any()
    assert file is not None  # noqa: S101 - nothing was noted
    return Study(
        file=file,
        base=Tree({key: node for key, node in tree.entries.items() if key in SECTIONS}, tree.at, tree.key_at),
        factors=tuple(
            Factor(name, tuple(levels.items()), numeric.get(name)) for name, levels in factors_of(tree).items()
        ),
        expectations=checked.expectations,
        definitions=checked.definitions,
        size=size,
        catalogue=catalogue,
        written=tree,
    )


def _checked(
    merged: Tree, catalogue: Catalogue, problems: Problems, *, recorded: bool = False
) -> tuple[Tree, Mapping[str, NumericFactor], StudyFile | None, StudyDefinitions]:
    """A merged study, complete and with levels, and what checking it found out; None for a file that is wrong."""
    tree, numeric = expanded(_completed(merged.without("sizes"), catalogue), problems)
    if tunes := tuning.SECTION in tree.entries:
        tree = levels.with_levels(tree, catalogue=catalogue, problems=problems)
    file = validate(_FILE, _named(tree), node=tree, prefix=(), problems=problems)
    if tunes and len(problems):  # levels of options that are wrong would be reported as mistakes of their own
        return tree, numeric, None, StudyDefinitions((), {})
    checked = check(tree, numeric=numeric, catalogue=catalogue, problems=problems, recorded=recorded)
    check_curve(tree, numeric, definitions=checked.definitions, problems=problems)
    return tree, numeric, file, checked


def _check_other_sizes(tree: Tree, chosen: str | None, *, catalogue: Catalogue, problems: Problems) -> None:
    """Notes what is wrong with each size that is not chosen, but for what is wrong without it as well."""
    noted = {(each.file, each.line, each.column, each.field) for each in problems}
    for name, node in tree.tree("sizes").entries.items():
        if name == chosen or not isinstance(node, Tree):
            continue
        here = Problems()
        _checked(merge(tree, _size(tree, name, here), missed=partial(_missed, problems=here)), catalogue, here)
        for each in here:
            if (each.file, each.line, each.column, each.field) not in noted:
                problems.note(replace(each, field=f"{dotted(('sizes', name))}.{each.field}"))


def _missed(path: Keys, at: Position, over: Tree | None, *, problems: Problems) -> None:
    """Notes a `null` over nothing whose name is misspelt, as neither the study nor its language has it.

    One of the language's own keys says that it is not set, and a name may be removed twice.
    """
    name, noun = path[-1], _NAMED.get((path[0], len(path)), "key")
    known = keys_at(_FILE, path[:-1]) if noun == "key" else list(over.entries) if over is not None else []
    if known and name not in (*known, *_BESIDE_WORKLOAD) and (over is None or name not in over.key_at):
        message = f"there is no {noun} `{name}` to remove; expected one of {listed(known)}"
        suggestion = f"write `{name}: {{}}` for an empty level" if noun == "level" else ""
        problems.add(message, at, field=path, suggestion=did_you_mean(name, known) or suggestion)


def _give_up_without(unread: Problems, problems: Problems) -> None:
    """Files that could not be read: what is missing without them would be reported as mistakes of its own."""
    for problem in unread:
        problems.note(problem)
    if len(unread):
        problems.raise_if_any()


def _completed(tree: Tree, catalogue: Catalogue) -> Tree:
    """Every section of the base trial present, so that equal studies have equal trees."""
    entries: dict[str, Node] = dict(tree.entries)
    for section in SECTIONS:
        if section in _BESIDE_WORKLOAD:
            continue  # without them the workload runs beside its system
        known = catalogue.places if section == "place" else catalogue.systems
        default = {kind: value for kind, value in DEFAULTS.get(section, {}).items() if kind in known}
        entries.setdefault(section, from_plain(default, tree.at))
    return Tree(entries, tree.at, tree.key_at)


def _named(tree: Tree) -> dict[str, Any]:
    """The study as Python values, with names as they were written."""
    values: dict[str, Any] = plain(tree)
    for key in TEXTS_AS_WRITTEN:
        node = tree.entries.get(key)
        if isinstance(node, Scalar) and node.value is not None:
            values[key] = node.text
    also = tree.entries.get("also_compare")
    if isinstance(also, Scalar) and also.value is not None:
        values["also_compare"] = also.text
    elif isinstance(also, Listing):
        values["also_compare"] = [item.text if isinstance(item, Scalar) else plain(item) for item in also.items]
    return back_everywhere(values)


def _check_sizes(tree: Tree, problems: Problems) -> None:
    """Every size's shape and keys, chosen or not."""
    sizes = tree.tree("sizes")
    if not isinstance(tree.entries.get("sizes", sizes), Tree):
        problems.add("expected a mapping", sizes.at, field=("sizes",))
    for name, node in sizes.entries.items():
        if not isinstance(node, Tree):
            problems.add("expected a partial study", node.at, field=("sizes", name))
            continue
        for key in node.entries:
            if key not in _IN_SIZES:
                problems.unknown("key", key, _IN_SIZES, at=node.where(key), field=("sizes", name, key))


def _size(tree: Tree, size: str, problems: Problems) -> Tree:
    sizes = tree.tree("sizes")
    if size not in sizes.entries:
        at = sizes.at if "sizes" in tree.entries else Position("--size")
        problems.unknown("size", size, sizes.entries, at=at, field=("sizes",))
    overlay = sizes.tree(size)
    return overlay.without(*(overlay.entries.keys() - _IN_SIZES.keys()))  # noted with every size's


def dump(study: Study) -> str:
    """The study as YAML, complete in one file with every default of its own keys written out.

    Loading it gives an equal study.
    """
    file = study.file.model_dump(mode="json", context=dict(WITH_UNITS), exclude_none=True, exclude={"include", "sizes"})
    file |= {section: plain(node) for section, node in study.base.entries.items()}
    if study.file.tune is None:
        file["factors"] = {factor.name: factor.written() for factor in study.factors}
    else:
        file = {key: value for key, value in file.items() if key not in levels.REFUSED}
        file["trials"].pop("blocks")
    file = back_everywhere(file)
    yaml = YAML()
    yaml.width = _LINE_WIDTH
    yaml.default_flow_style = False
    stream = io.StringIO()
    yaml.dump(file, stream)
    return stream.getvalue()
