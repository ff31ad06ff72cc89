"""Covariates as a study names them: in its plan, and refused where they would do nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fairtrial import study

Load = Callable[..., study.Study]
Mistakes = Callable[..., list[str]]


@pytest.fixture
def with_metrics(small: Any) -> Callable[[str], str]:
    def text(more: str) -> str:
        assert "metrics: {primary: " in small.MGLRU
        return small.MGLRU.replace("metrics: {primary: ", f"metrics: {{{more}, primary: ")

    return text


def test_one_or_a_list(load: Load, with_metrics: Callable[[str], str]) -> None:
    one = load(with_metrics("covariates: calibration_loop_ns")).file.metrics
    assert (one.covariates, one.adjust) == (["calibration_loop_ns"], False)
    two = load(with_metrics("covariates: [time_since_boot_s, memory_fragmentation], adjust: true")).file.metrics
    assert (two.covariates, two.adjust) == (["time_since_boot_s", "memory_fragmentation"], True)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("covariates: [calibration_loop_ns, calibration_loop_ns]", "expected each covariate once"),
        ("adjust: true", "`adjust` has no effect without `covariates`"),
        ("covariates: temperature", "expected 'calibration_loop_ns'"),
    ],
)
def test_what_would_do_nothing_is_refused(
    mistakes: Mistakes, with_metrics: Callable[[str], str], *, text: str, said: str
) -> None:
    (mistake,) = mistakes(with_metrics(text))
    assert said in mistake
    assert ": metrics" in mistake


@pytest.mark.parametrize(
    ("trials", "said"),
    [
        ("order: sequential", "`order: sequential` has no blocks"),
        ("stop: sequential", "a rule that stops early looks at plain estimates"),
    ],
)
def test_blocks_of_a_fixed_number_are_needed(
    mistakes: Mistakes, with_metrics: Callable[[str], str], *, trials: str, said: str
) -> None:
    text = with_metrics("covariates: calibration_loop_ns, adjust: true")
    kept = "\n".join(line for line in text.splitlines() if not line.startswith("trials:"))
    (mistake,) = mistakes(f"{kept}\ntrials: {{{trials}, blocks: 10}}\n")
    assert said in mistake
