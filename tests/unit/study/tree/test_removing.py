"""`null` removes what is there; where nothing is there a misspelt name is a mistake, not a level of its own."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from fairtrial.errors import InputError

Load = Callable[..., Any]


def refusal(load: Load, text: str, **options: Any) -> list[tuple[str, str, str]]:
    with pytest.raises(InputError) as raised:
        load(text, **options)
    return [(each.field, each.message, each.suggestion) for each in raised.value.problems]


@pytest.mark.parametrize(
    ("override", "message", "suggestion"),
    [
        ("factors.users.highs=", "there is no level `highs` to remove; expected one of `low`, `high`", "high"),
        ("factors.kernels=", "there is no factor `kernels` to remove; expected one of `kernel`, `memory`", "kernel"),
        ("expect.overcomitting=", "there is no condition `overcomitting` to remove", "overcommitting"),
        ("trials.blocks_x=", "there is no key `blocks_x` to remove; expected one of `blocks`", "blocks"),
        ("telemetryx=", "there is no key `telemetryx` to remove", "telemetry"),
    ],
)
def test_a_misspelt_name_is_refused_with_the_nearest(
    load: Load, small: ModuleType, *, override: str, message: str, suggestion: str
) -> None:
    ((field, said, suggested),) = refusal(load, small.MGLRU, overrides=[override])
    assert field == override.removesuffix("=")
    assert said.startswith(message)
    assert suggested == f"did you mean `{suggestion}`?"


@pytest.mark.parametrize("size", [None, "tiny"])
def test_a_size_removes_no_level_that_is_not_there(load: Load, small: ModuleType, size: str | None) -> None:
    text = small.MGLRU.replace("sizes: {", "sizes: {tiny: {factors: {users: {lwo: null}}}, ")
    ((field, said, _),) = refusal(load, text, size=size)
    assert field == ("factors.users.lwo" if size else "sizes.tiny.factors.users.lwo")
    assert said.startswith("there is no level `lwo` to remove")


def test_an_including_file_writes_an_empty_level_as_a_mapping(load: Load, small: ModuleType) -> None:
    files = {"below.yaml": small.MGLRU}
    text = "include: below.yaml\nfactors: {users: {middle: EMPTY}}\n"
    ((field, _, suggestion),) = refusal(load, text.replace("EMPTY", ""), files=files)
    assert (field, suggestion) == ("factors.users.middle", "write `middle: {}` for an empty level")
    assert load(text.replace("EMPTY", "{}"), files=files).factors[2].level_names == ("low", "high", "middle")


@pytest.mark.parametrize(
    "overrides",
    [
        ["trials.voided_limit="],  # the language's own, which nothing sets
        ["workload.place=", "workload.tls="],
        ["workload.tpcc.duration="],
        ["also_compare=", "expect=", "factors.memory=", "factors.memory="],  # twice
    ],
)
def test_what_is_not_set_may_be_said_to_be_so(load: Load, small: ModuleType, overrides: list[str]) -> None:
    load(small.MGLRU, size="ci", overrides=overrides)


@pytest.mark.parametrize("empty", ["", "{}", "null"])
def test_a_size_with_nothing_after_its_colon_is_empty(load: Load, small: ModuleType, empty: str) -> None:
    text = small.MGLRU.replace("sizes: {", f"sizes: {{laptop: {empty}, ")
    assert load(text, size="laptop") == load(text)
