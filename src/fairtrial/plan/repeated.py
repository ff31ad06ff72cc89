"""Which cells of a plan are the same trials under several names. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from fairtrial.study.resolved import ResolvedTrial


def warnings(resolved: Mapping[str, Mapping[str, ResolvedTrial]]) -> list[str]:
    """One for each set of equal cells, in the order of the trials.

    Nothing is wrong with their results, so the study is not refused; but each costs as much as a cell of its own.
    """
    alike: dict[str, list[str]] = {}
    for cell, arms in resolved.items():
        alike.setdefault("\n".join(trial.model_dump_json() for trial in arms.values()), []).append(cell)
    return [
        f"cells {', '.join(cells)} resolve to equal trials: their levels differ in nothing but their names, and each "
        "cell is run in full"
        for cells in alike.values()
        if len(cells) > 1
    ]
