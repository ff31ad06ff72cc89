"""What a tuning's confirmation comes to."""

from __future__ import annotations

import pytest

from fairtrial import imports
from fairtrial.analyse import analyse_table
from fairtrial.imports.reader import ImportSource
from fairtrial.tune.result import Confirmed, confirmed


def of_table(*, tps: str, psi: str) -> Confirmed | None:
    rows = [f"{b},{arm},{tps or v + b % 3},{psi}" for b in range(1, 8) for arm, v in (("default", 100), ("p001", 120))]
    source = ImportSource("x.csv", "\n".join(["block,arm,tps,psi", *rows]).encode(), label="", number=1)
    question = imports.Question(values=("tps", "psi"), arm="arm", block="block", baseline="default")
    analysis = analyse_table(*imports.ask(imports.gather([source]), question))
    return confirmed(1, analysis, metric="tps", rails=["psi"])


def test_a_guardrail_without_values_is_said_to_have_no_outcome() -> None:
    found = of_table(tps="", psi="NA")
    assert found is not None
    assert found.ratio == pytest.approx(1.2, abs=0.01)
    assert found.guardrails == {"psi": "none"}


def test_an_objective_without_values_confirms_nothing() -> None:
    assert of_table(tps="NA", psi="3") is None
