"""A target fuzzed for some time, by seed: what was found, each fault once."""

from __future__ import annotations

import gzip
import hashlib
import itertools
import time
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import hypothesis
from hypothesis import HealthCheck, Phase, given, settings

from support.fuzzing.child import Child
from support.fuzzing.judging import Target, Verdict
from support.fuzzing.mutating import mutations

AT_ONCE: Final = 200  # examples of one seed
DIGITS: Final = 12


@dataclass
class Campaign:
    """What came of fuzzing one target.

    Attributes:
        finds: an input of each fault.
    """

    target: str
    examples: int = 0
    seconds: float = 0.0
    slowest_s: float = 0.0
    finds: dict[tuple[str, str], tuple[bytes, Verdict]] = field(default_factory=dict)

    def keep(self, directory: Path) -> list[Path]:
        """Writes each find to a file of its own, packed: most are long and hold one thing again and again."""
        kept = []
        for content, verdict in self.finds.values():
            name = f"{verdict.fault}-{hashlib.sha256(content).hexdigest()[:DIGITS]}.gz"
            path = directory / self.target / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(gzip.compress(content, mtime=0))
            kept.append(path)
        return kept


class _FaultError(Exception):
    """An input that a reader does not stand."""


def fuzz(target: Target, *, seconds: float, seed: int) -> Campaign:
    """Fuzzes a target for so long; the same seed draws the same inputs."""
    campaign = Campaign(target.name)
    began = time.monotonic()
    inputs = mutations(target.kind, target.seeds())
    with Child() as child:
        for number in itertools.count():
            if time.monotonic() - began > seconds:
                break
            _some(campaign, inputs, child=child, seed=1000 * seed + number, until=began + seconds)
    campaign.seconds = time.monotonic() - began
    return campaign


def _some(
    campaign: Campaign, inputs: hypothesis.strategies.SearchStrategy[bytes], *, child: Child, seed: int, until: float
) -> None:
    """Some examples, up to the first fault that is not known yet."""
    seen: dict[bytes, Verdict] = {}
    new: list[tuple[bytes, Verdict]] = []

    @hypothesis.seed(seed)
    @settings(
        max_examples=AT_ONCE,
        deadline=None,
        database=None,
        phases=(Phase.generate,),  # an input is a real one with few changes as it is
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
    )
    @given(inputs)
    def examine(content: bytes) -> None:
        if content not in seen:
            if time.monotonic() > until and not new:
                return
            seen[content] = child.judge(campaign.target, content)
            campaign.examples += 1
            campaign.slowest_s = max(campaign.slowest_s, seen[content].seconds)
        verdict = seen[content]
        if verdict.fault and verdict.key not in campaign.finds:
            new.append((content, verdict))
            raise _FaultError(verdict.what)

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", hypothesis.errors.HypothesisWarning)  # long inputs are what is meant
            examine()
    except _FaultError:
        content, verdict = new[0]
        campaign.finds[verdict.key] = content, verdict
