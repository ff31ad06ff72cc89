"""A doubt about metrics made of counters that the arms' kernels, policies or servers count by another rule."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from fairtrial.analyse.models import Doubt
from fairtrial.analyse.why import counter_notes

_VERSION: Final = re.compile(r"(\d{1,9})\.(\d{1,9})")  # as many digits as `int` takes, whatever a record says


@dataclass(frozen=True)
class CountingRule:
    """Metrics by name, by what they are counted differently, and the first kernel that counts them alike.

    Attributes:
        paths: of a study; arms that differ at one of them may count by another rule.
        alike_from: None if no kernel does, or kernels have nothing to do with it.
    """

    metrics: re.Pattern[str]
    paths: re.Pattern[str]
    text: str
    advice: str
    alike_from: tuple[int, int] | None = None


OF_PAGES: Final = "judge what both arms count by one rule: pages read, swapped in or reclaimed, major faults, misses"
RULES: Final = (
    CountingRule(
        re.compile(r"refaults(_per_\w+)?"), counter_notes.POLICY, counter_notes.REFAULTS, OF_PAGES, alike_from=(6, 5)
    ),
    CountingRule(re.compile(r"pages_scanned\w*"), counter_notes.POLICY, counter_notes.SCANS, OF_PAGES),
    CountingRule(
        re.compile(r"(server_data_written_bytes|log_written_bytes)(_per_\w+)?|disk_written_share"),
        counter_notes.OTHER_SERVER,
        "what InnoDB counts as written includes the redo log in MySQL and in MariaDB up to 10.4, but not in newer "
        "MariaDB; bytes of the log are its growth from MariaDB 10.11 on, and padded blocks in other servers",
        "judge `disk_written_bytes_per_transaction`, which does not depend on a server's own counters",
    ),
)


def about(metrics: Sequence[str], *, paths: Iterable[str], kernels: Iterable[str]) -> Iterator[Doubt]:
    """One for each rule that metrics fall under, where arms differ in what decides it."""
    differing = list(paths)
    versions = [_version(kernel) for kernel in kernels]
    for rule in RULES:
        named = [name for name in metrics if rule.metrics.fullmatch(name)]
        is_alike = rule.alike_from is not None and bool(versions) and min(versions) >= rule.alike_from
        if named and not is_alike and any(rule.paths.search(path) for path in differing):
            yield Doubt(code="other_rule", message=f"{', '.join(named)}: {rule.text}", advice=rule.advice)


def _version(kernel: str) -> tuple[int, int]:
    match = _VERSION.match(kernel)
    return (int(match[1]), int(match[2])) if match else (0, 0)
