from __future__ import annotations

import sys

import pytest

from fairtrial.errors import PlaceError
from fairtrial.study.tuning import TunedOption
from fairtrial.tune.proposing import Observation, Proposer, require

OPTIONS = {
    "x": TunedOption.model_validate({"of": "system.s.x", "from": "1M", "to": "64M", "scale": "log"}),
    "mode": TunedOption.model_validate({"of": "system.s.mode", "choices": ["a", "b"]}),
}


def proposer(seed: int = 1, **default: str) -> Proposer:
    require()
    return Proposer(options=OPTIONS, default=default, seed=seed, proposals=20)


def test_a_proposal_follows_from_what_was_told_and_the_seed_alone() -> None:
    seen: list[Observation] = []
    for number in range(8):
        seen.append(Observation(proposer().propose(seen), gain=0.01 * number, excess={"p95": number - 4.0}))
    assert proposer().propose(seen) == proposer().propose(seen)
    assert proposer().propose(seen[:3]) == seen[3].values
    assert len({str(proposer(seed).propose(seen[:2])) for seed in range(4)}) > 1
    assert len({str(each.values) for each in seen}) > 4
    for each in seen:
        assert OPTIONS["x"].number(each.values["x"]) is not None
        assert each.values["mode"] in ("a", "b")


def test_it_goes_where_gains_were_and_guardrails_were_kept() -> None:
    told = [
        Observation({"x": f"{size}M", "mode": mode}, gain=0.2 if size > 30 else 0.0, excess={"p95": excess})
        for size in (2, 3, 5, 8, 12, 20, 32, 40, 50, 60)
        for mode, excess in (("a", -0.1), ("b", 0.5))
    ]
    found = [proposer(seed).propose(told) for seed in range(20)]
    assert sum(OPTIONS["x"].number(each["x"]) > 25 for each in found) >= 14  # type: ignore[operator]
    assert sum(each["mode"] == "a" for each in found) >= 14


def test_failures_and_a_known_default_are_told_and_the_default_is_never_proposed() -> None:
    two = {"mode": OPTIONS["mode"]}
    known = Proposer(options=two, default={"mode": "a"}, seed=1, proposals=20)
    assert {str(known.propose([Observation({"mode": "b"}, gain=None)] * n)) for n in range(9)} == {"{'mode': 'b'}"}


def test_without_optuna_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(PlaceError, match="tuning needs the package optuna") as raised:
        require()
    assert raised.value.hint == "install it with: pip install 'fairtrial[tune]'"
