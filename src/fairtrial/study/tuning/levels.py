"""The levels that take the factors' place in a study that tunes, and the checks that need its base trial. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from pydantic import TypeAdapter, ValidationError

from fairtrial.study.assignments import path_of
from fairtrial.study.catalogue import Catalogue
from fairtrial.study.resolving import overlaid, resolve
from fairtrial.study.tree.merging import SECTIONS, merge
from fairtrial.study.tree.nodes import Listing, Node, Path, Position, Scalar, Tree, plain
from fairtrial.study.tree.problems import Problems, listed
from fairtrial.study.tuning import ARM, DEFAULT, PROPOSAL, SECTION, Tuning, Value

REFUSED: Final[Mapping[str, str]] = {
    "factors": "the options under `tune` are what differs",
    "arm": "the options under `tune` are what differs",
    "also_compare": "the options under `tune` are what differs",
    "expect": "it has no conditions",
}
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
    design = trials.entries.get("design")
    if isinstance(design, Scalar) and design.value is not None:
        problems.add("a study searches or screens, not both", design.at, field=("trials", "design"))
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
