"""The attacks, a minute of them by one seed; and that a broken product would not survive them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import attack_tables
import numpy as np
import pytest
from attack import COVERED, LIMIT_OF_BOUND, attack, missed
from attack_imports import Ended, hostile, wrong
from attack_tables import Attacked, draw
from calibrated_paths import Rate, Setup
from support.skips import require

from fairtrial.analyse.doubts import runs as run_doubts
from fairtrial.analyse.inference import comparing, t_tests
from fairtrial.analyse.models import Doubt
from fairtrial.imports import asking

SEED = 17


def attacked(part: str, *, runs: int) -> list[Attacked]:
    return list(attack(part, seed=SEED, runs=runs))


def violations(part: str, *, runs: int) -> str:
    return "\n".join(told for each in attacked(part, runs=runs) for told in each.violations)


def test_no_noise_makes_a_path_claim_too_often() -> None:
    found = attacked("noises", runs=60)
    assert {each.violations for each in found} == {()}
    assert all(each.count for each in found)


def test_what_must_not_matter_does_not() -> None:
    found = attacked("properties", runs=40)
    assert {each.violations for each in found} == {()}
    assert all(each.count > 10 for each in found)


@pytest.mark.servers
def test_r_computes_the_same_from_every_file() -> None:
    require("Rscript")
    (found,) = attacked("r", runs=40)
    assert found.violations == ()
    assert found.count > 60


def test_a_hostile_table_is_refused_with_reasons_or_wholly_used() -> None:
    for found in attacked("imports", runs=60):
        assert found.violations == ()
        analysed = int(found.name.split()[3])
        assert 10 < analysed < 50


def test_a_seed_draws_the_same_tables_and_another_one_others() -> None:
    first, again, other = (draw(np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert first.csv == again.csv != other.csv
    assert hostile(np.random.default_rng(1)) == hostile(np.random.default_rng(1))


@pytest.mark.parametrize(("figure", "allowed"), [("false", LIMIT_OF_BOUND), ("covers", COVERED)])
def test_a_rate_is_missed_where_chance_does_not_explain_it(figure: Any, allowed: float) -> None:
    worse = 1 if figure == "false" else -1
    rate = Rate(
        path="", noise="", n=6, figure=figure, default=True, runs=1000, total=round(1000 * allowed), squares=0.0
    )
    assert not missed(rate)
    assert not missed(replace(rate, total=rate.total + worse * 20))
    assert missed(replace(rate, total=rate.total + worse * 35))
    assert not missed(replace(rate, total=rate.total + worse * 35, default=False))


def test_a_claim_by_half_of_its_p_is_caught_by_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    true = Setup.p
    monkeypatch.setattr(Setup, "p", lambda *values, size=1: true(*values, size=size) / 2)
    assert "paired t, blocks" in violations("noises", runs=60)


def test_a_broken_p_is_caught_by_its_mirror_image(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one side, where two are meant."""
    monkeypatch.setattr(t_tests, "two_sided_p", lambda t, df: float(t_tests.special.stdtr(df, t)))
    assert "t's p" in violations("properties", runs=5)


def test_pairs_taken_by_their_order_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def careless(baseline: Any, arm: Any, *, paired: bool) -> comparing.ArmPair:
        n = min(len(baseline.values), len(arm.values)) if paired else None
        return comparing.ArmPair(baseline=baseline.values[:n], arm=arm.values[:n])

    monkeypatch.setattr(comparing, "arm_pair", careless)
    found = {each.name: each.violations for each in attacked("properties", runs=5)}
    assert found["properties: rows in another order"]
    assert not found["properties: better turned"]


@pytest.mark.servers
def test_a_p_that_is_off_by_a_millionth_is_caught_by_r(monkeypatch: pytest.MonkeyPatch) -> None:
    require("Rscript")
    true = t_tests.two_sided_p
    monkeypatch.setattr(t_tests, "two_sided_p", lambda t, df: true(t, df) * (1 + 1e-6))
    assert "t's p is" in violations("r", runs=3)


def test_a_figure_that_r_does_not_give_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attack_tables, "_r", lambda _files: {})
    assert "R has nan" in violations("r", runs=1)


def lose_the_last(true: Callable[..., Any]) -> Callable[..., Any]:
    def lossy(*arguments: Any, **named: Any) -> Any:
        found = true(*arguments, **named)
        return replace(found, values=found.values[:-1], blocks=found.blocks[:-1], positions=found.positions[:-1])

    return lossy


def say_nothing(_true: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *_arguments, **_named: iter(())


def overflow(_true: Callable[..., Any]) -> Callable[..., Any]:
    def warns(*_arguments: Any, **_named: Any) -> list[Doubt]:
        np.float64(1e300) * np.float64(1e300)
        return []

    return warns


def divide(_true: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *_arguments, **_named: [1 / 0]


@pytest.mark.parametrize(
    ("module", "name", "broken", "told"),
    [
        (asking, "_measured", lose_the_last, "lost"),
        (run_doubts, "not_compared", say_nothing, "0 are said to be"),
        (run_doubts, "drift", overflow, "warned: overflow"),
        (run_doubts, "drift", divide, "ended with 4: "),
    ],
)
def test_a_broken_import_is_caught(
    *, monkeypatch: pytest.MonkeyPatch, module: Any, name: str, broken: Callable[..., Any], told: str
) -> None:
    monkeypatch.setattr(module, name, broken(getattr(module, name)))
    assert told in violations("imports", runs=12)


def test_a_refusal_without_a_hint_is_caught() -> None:
    table = hostile(np.random.default_rng(1))
    silent = Ended(code=2, out="", err="error: no\n", warned=())
    assert any("without a reason or a hint" in each for each in wrong(table, (silent, silent)))
    assert any("as JSON with 0" in each for each in wrong(replace(table, rows=-1), (silent, replace(silent, code=0))))
