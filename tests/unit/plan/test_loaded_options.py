"""A name in a service's `data.options` that no trial has is a warning of the plan; one that some arm has is not."""

from __future__ import annotations

from typing import Any

import pytest
from support.records import RESOLVED

from fairtrial.plan.loaded_options import warnings
from fairtrial.study.resolved import ResolvedTrial, Section


def serving(*names: str, **options: Any) -> ResolvedTrial:
    service = {"run": "stored", "options": options, "data": {"options": list(names)}}
    return RESOLVED.model_copy(update={"system": Section.model_validate({"service": service})})


@pytest.mark.parametrize(
    ("named", "said"),
    [
        (["page"], []),
        (["page", "layout"], []),
        (["pgae"], ["system.service.data.options: `pgae` is not an option of any trial (did you mean `page`?)"]),
        (["zzz", "page"], ["system.service.data.options: `zzz` is not an option of any trial"]),
    ],
)
def test_only_names_that_no_trial_has_are_warned_of(named: list[str], said: list[str]) -> None:
    arms = {"a": serving(*named, page="4k"), "b": serving(*named, page="4k", layout="row"), "other": RESOLVED}
    assert warnings({"one": arms, "two": arms}) == said
    assert warnings({"one": {"a": RESOLVED}}) == []
