"""What a study must be whose places boot: all trials at a host boot it, and those that share a boot share the place.

Owns the refusals that the study alone decides; whether a host can boot is seen there.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
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
                f"cells of a round share each arm's boot, and the levels of `{name}` are at different places, or their "
                "loads are",
                tree.tree("factors").where(name),
                field=("factors", name),
                suggestion=f"make `{name}` the arm, {OTHERWISE}",
            )


def check_hosts(
    tree: Tree,
    factors: Factors,
    *,
    compared: Collection[str],
    trials: Mapping[tuple[str, ...], ResolvedTrial],
    problems: Problems,
) -> None:
    """Notes a host that boots for some of the levels that are compared and not for others.

    What has just booted differs from what has run for hours, whatever else the levels change.
    """
    firsts: dict[tuple[str, int, tuple[str, ...]], tuple[tuple[str, ...], bool]] = {}
    named: set[str] = set()
    for levels, trial in trials.items():
        cell = tuple(level for name, level in zip(factors, levels, strict=True) if name not in compared)
        for role, section in enumerate((trial.place, *trial.clients)):
            if section.kind != "ssh" or not isinstance(section.parameters, dict):
                continue
            host = f"{section.parameters['host']}:{section.parameters.get('port') or ''}".rstrip(":")
            before, boots = firsts.setdefault((host, role, cell), (levels, _boots(section)))
            name = next((name for name, *pair in zip(factors, before, levels, strict=True) if len({*pair}) > 1), None)
            if boots != _boots(section) and name is not None and host not in named:
                named.add(host)
                problems.add(
                    f"expected `boot` in all trials at {host}, or in none: levels of `{name}` would also differ in "
                    "whether the host has just booted",
                    tree.tree("factors").where(name),
                    field=("factors", name),
                    suggestion="write `boot: {by: …}` in the study's own `place`, and what differs in the levels",
                )


def _boots(place: Section) -> bool:
    return place.kind == "ssh" and isinstance(place.parameters, dict) and place.parameters.get("boot") is not None


def _changes_place(trials: Mapping[tuple[str, ...], ResolvedTrial], index: int) -> bool:
    """Whether trials that differ in one factor only are at different places, or are driven from different ones."""
    places: dict[tuple[str, ...], tuple[Section, ...]] = {}
    for levels, trial in trials.items():
        others = (*levels[:index], *levels[index + 1 :])
        here = (trial.place, *(trial.clients or (trial.place,)))
        if places.setdefault(others, here) != here:
            return True
    return False
