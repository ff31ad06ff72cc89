"""What a study must be for `trials.design`: many options of two or three levels, none of which is the arm.

Owns the refusals that the study alone decides, and which combinations are resolved to check it: a screening runs some
of them only, and all would be thousands.
"""

from __future__ import annotations

from typing import Final

from fairtrial.study.confounding import Factors
from fairtrial.study.tree.nodes import Scalar, Tree, plain
from fairtrial.study.tree.problems import Problems

FEWEST_OPTIONS: Final = {"plackett_burman": 2, "fractional": 3, "definitive": 3}
MOST_OPTIONS: Final = 63  # 64 rows; who has more candidates screens them in groups
LEVELS: Final = {"plackett_burman": 2, "fractional": 2, "definitive": 3}
_IN_WORDS: Final = {2: "two levels (low, high)", 3: "three levels (low, middle, high)"}


def design_of(tree: Tree) -> str:
    """The study's design of a screening; empty if it has none."""
    node = tree.tree("trials").entries.get("design")
    return node.text if isinstance(node, Scalar) and node.text in LEVELS else ""


def one_at_a_time(factors: Factors) -> list[tuple[str, ...]]:
    """All options at their first levels, then each option alone at each other level."""
    first = tuple(next(iter(levels), "") for levels in factors.values())
    return [first] + [
        (*first[:index], level, *first[index + 1 :])
        for index, levels in enumerate(factors.values())
        for level in list(levels)[1:]
    ]


def check_screening(tree: Tree, factors: Factors, *, design: str, problems: Problems) -> None:
    """Notes everything that a screening cannot have, or lacks."""
    _check_absent(tree, design, problems)
    fewest, wanted = FEWEST_OPTIONS[design], LEVELS[design]
    if not fewest <= len(factors) <= MOST_OPTIONS:
        problems.add(
            f"`design: {design}` screens {fewest} to {MOST_OPTIONS} factors, found {len(factors)}",
            tree.where("factors"),
            field=("factors",),
            suggestion="compare fewer with `arm`, or screen more in groups",
        )
    for name, levels in factors.items():
        if len(levels) != wanted:
            problems.add(
                f"`design: {design}` needs {_IN_WORDS[wanted]} of every factor, and `{name}` has {len(levels)}",
                tree.tree("factors").where(name),
                field=("factors", name),
                suggestion=f"leave {wanted} levels; the first is the baseline",
            )


def _check_absent(tree: Tree, design: str, problems: Problems) -> None:
    trials = tree.tree("trials")
    for key, fix in {
        "arm": "leave `arm` out; `fairtrial screen RUN --confirm 3` compares the strongest",
        "also_compare": "leave it out",
        "expect": "leave it out; expect conditions of the study that confirms",
        "curve": "leave it out; a study with an arm fits curves",
    }.items():
        if (node := tree.entries.get(key)) is not None and plain(node):
            problems.add(
                f"`trials.design: {design}` screens all factors at once: there is no `{key}`",
                tree.where(key),
                field=(key,),
                suggestion=fix,
            )
    for key, only in {"order": "randomised_blocks", "stop": "fixed"}.items():
        written = trials.entries.get(key)
        if isinstance(written, Scalar) and written.text != only:
            problems.add(
                f"`{key}: {written.text}` does not go with `design: {design}`, whose rows belong together",
                written.at,
                field=("trials", key),
                suggestion=f"write `{key}: {only}`, or leave it out",
            )
    for section, key, what in (
        ("telemetry", "probes", "probes explain arms"),
        ("metrics", "covariates", "covariates compare the arms of a block"),
    ):
        if (given := tree.tree(section).entries.get(key)) is not None and plain(given):
            problems.add(
                f"{what}, and a screening has none",
                tree.tree(section).where(key),
                field=(section, key),
                suggestion="leave them out; use them in the study that confirms",
            )
