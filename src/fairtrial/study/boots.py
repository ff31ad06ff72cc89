"""What a study must be for `reboot: between_blocks`: a place that boots, which the arm alone changes.

Owns the refusals that the study alone decides; whether a host can boot is seen there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fairtrial.study.confounding import Factors
from fairtrial.study.resolved import ResolvedTrial, Section
from fairtrial.study.tree.nodes import Scalar, Tree
from fairtrial.study.tree.problems import Problems

BETWEEN_BLOCKS: Final = "between_blocks"
OTHERWISE: Final = "or leave `reboot` out"


def check_reboot(
    tree: Tree, factors: Factors, *, arm: str, trials: Mapping[tuple[str, ...], ResolvedTrial], problems: Problems
) -> None:
    """Notes, for a study whose arms boot once in a round, everything that keeps its cells from sharing a boot.

    `trials` are by the levels of all factors, in study order.
    """
    reboot = tree.tree("trials").entries.get("reboot")
    if not isinstance(reboot, Scalar) or reboot.text != BETWEEN_BLOCKS:
        return
    if "design" in tree.tree("trials").entries:
        problems.add(
            "a screening has no arms that boot",
            reboot.at,
            field=("trials", "reboot"),
            suggestion="leave `reboot` out",
        )
        return
    kinds = sorted({trial.place.kind for trial in trials.values() if not _boots(trial.place)})
    if kinds:
        problems.add(
            "`reboot: between_blocks` needs a host that boots for every trial: expected `ssh` with `boot`, found "
            + ", ".join(f"`{kind}`" for kind in kinds),
            reboot.at,
            field=("trials", "reboot"),
            suggestion=f"write `place: {{ssh: {{host: …, boot: …}}}}`, {OTHERWISE}",
        )
        return
    names = list(factors)
    for index, name in enumerate(names):
        if name != arm and _changes_place(trials, index):
            problems.add(
                f"cells of a round share each arm's boot, and the levels of `{name}` are at different places",
                tree.tree("factors").where(name),
                field=("factors", name),
                suggestion=f"make `{name}` the arm, {OTHERWISE}",
            )


def _boots(place: Section) -> bool:
    return place.kind == "ssh" and isinstance(place.parameters, dict) and place.parameters.get("boot") is not None


def _changes_place(trials: Mapping[tuple[str, ...], ResolvedTrial], index: int) -> bool:
    """Whether trials that differ in one factor only are at different places."""
    places: dict[tuple[str, ...], Section] = {}
    for levels, trial in trials.items():
        others = (*levels[:index], *levels[index + 1 :])
        if places.setdefault(others, trial.place) != trial.place:
            return True
    return False
