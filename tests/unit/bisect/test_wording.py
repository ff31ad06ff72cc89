from __future__ import annotations

from typing import Any

from fairtrial.bisect.models import Bisection, BisectResult, Confirmed, FoundChange, Version, VersionResult
from fairtrial.bisect.wording import answer, render


def test_ends_that_may_differ_by_less_than_the_margin_are_not_said_to_be_alike() -> None:
    versions = [Version.model_construct(name=name) for name in ("v1", "v2")]
    asked: dict[str, Any] = {"versions": versions, "margin": 0.02, "metric": "tpm"}
    answered: dict[str, Any] = {"outcome": "undecided", "changes": [], "blocks": 12, "two_steps": None}
    for resolution, remedy in (
        (0.0, "raise --blocks, or reduce the noise"),
        (1 / 128, "raise --blocks, or reduce the noise"),
        (1 / 64, "tpm has classes of 1.56 %: set trials.margin to more, or choose another metric"),
        (1 / 32, "tpm has classes of 3.12 %: set trials.margin to more, or choose another metric"),
    ):
        question = Bisection.model_construct(**asked, resolution=resolution)
        assert answer(BisectResult.model_construct(bisection=question, **answered)) == (
            "undecided after 12 blocks: the ends are neither shown to differ by more than 2 % nor to be within it; "
            + remedy
        )


Ends = tuple[float | None, float | None]


def said(*, part: Ends, whole: Ends, **of_confirmation: Any) -> str:
    """The text of a bisection that found one change of 2 %, within a whole change of 5 %."""
    question = Bisection(
        fairtrial_version="0",
        study="counts",
        over="version",
        versions=[Version(name=f"v{number}") for number in range(4)],
        metric="faults",
        better="lower",
        seed=1,
        margin=0.02,
        blocks=400,
    )
    at: dict[str, Any] = {"number": 1, "after": 1, "at": 2, "n": 9}
    found = Confirmed(**at, verdict="slower", ratio=1.02, low=part[0], high=part[1], agrees=True, **of_confirmation)
    versions = [VersionResult(name=f"v{number}", blocks=9) for number in range(3)]
    last = VersionResult(name="v3", blocks=9, ratio=1.05, low=whole[0], high=whole[1])
    return render(
        BisectResult(
            bisection=question,
            outcome="one_change",
            changes=[FoundChange(after=1, at=2, probability=0.98, ratio=1.02)],
            confirmations=[found],
            versions=[*versions, last],
            two_steps=0.0,
            none=0.0,
            blocks=18,
            ends_blocks=9,
            seconds=9.0,
        )
    )


def test_what_has_no_interval_is_no_part_of_the_whole_change() -> None:
    assert "that is 41 % of the whole change" in said(part=(1.015, 1.025), whole=(1.04, 1.06))
    assert "of the whole change" not in said(part=(None, None), whole=(1.04, 1.06))
    assert "of the whole change" not in said(part=(1.015, 1.025), whole=(None, None))


def test_a_confirmations_interval_names_its_confidence_where_the_tables_is_another() -> None:
    assert "ratio 1.020 (1.015 – 1.025), slower" in said(part=(1.015, 1.025), whole=(1.04, 1.06))
    strict = said(part=(1.015, 1.025), whole=(1.04, 1.06), confidence=0.99)
    assert "ratio 1.020 (1.015 – 1.025 at 99 %), slower" in strict
