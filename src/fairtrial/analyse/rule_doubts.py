"""A doubt about metrics made of counters that the arms' kernels or policies count by another rule."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from fairtrial.analyse import counter_notes
from fairtrial.analyse.models import Doubt

_VERSION: Final = re.compile(r"(\d+)\.(\d+)")


@dataclass(frozen=True)
class Rule:
    """Metrics by name, and the first kernel that counts them alike; None: none does."""

    metrics: re.Pattern[str]
    text: str
    alike_from: tuple[int, int] | None


RULES: Final = (
    Rule(re.compile(r"refaults(_per_\w+)?"), counter_notes.REFAULTS, alike_from=(6, 5)),
    Rule(re.compile(r"pages_scanned\w*"), counter_notes.SCANS, alike_from=None),
)
PATHS: Final = re.compile(r"lru_gen|kernel")


def about(metrics: Sequence[str], *, paths: Iterable[str], kernels: Iterable[str]) -> Iterator[Doubt]:
    """One for each rule that metrics fall under, if arms differ in what decides it.

    Args:
        metrics: names of all that are compared.
        paths: of the study, at which the levels compared differ.
        kernels: release strings of the trials' kernels; of one that cannot be read, the worst is believed.
    """
    if not any(PATHS.search(path) for path in paths):
        return
    versions = [_version(kernel) for kernel in kernels]
    for rule in RULES:
        named = [name for name in metrics if rule.metrics.fullmatch(name)]
        if named and not (rule.alike_from and versions and min(versions) >= rule.alike_from):
            yield Doubt(
                code="other_rule",
                message=f"{', '.join(named)}: {rule.text}",
                advice="judge what both arms count alike: pages read, swapped in or reclaimed, major faults, misses",
            )


def _version(kernel: str) -> tuple[int, int]:
    found = _VERSION.match(kernel)
    return (int(found[1]), int(found[2])) if found else (0, 0)
