from __future__ import annotations

from typing import Any

from fairtrial.bisect.models import Bisection, BisectResult, Version
from fairtrial.bisect.wording import answer


def test_ends_that_may_differ_by_less_than_the_margin_are_not_said_to_be_alike() -> None:
    versions = [Version.model_construct(name=name) for name in ("v1", "v2")]
    asked: dict[str, Any] = {"versions": versions, "margin": 0.02, "metric": "tpm"}
    answered: dict[str, Any] = {"outcome": "undecided", "changes": [], "blocks": 12, "two_steps": None}
    found = BisectResult.model_construct(bisection=Bisection.model_construct(**asked), **answered)
    assert answer(found) == (
        "undecided after 12 blocks: the ends are neither shown to differ by more than 2 % nor to be within it; "
        "raise --blocks, or reduce the noise"
    )
