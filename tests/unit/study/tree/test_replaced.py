"""What every level replaces is no part of any trial, and its mistakes are mistakes all the same."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Annotated, Any, Self

import pytest
from pydantic import BaseModel, Field, TypeAdapter, model_validator

from fairtrial.errors import InputError
from fairtrial.study.tree.nodes import Position, from_plain
from fairtrial.study.tree.problems import Problems, note_in_part

Load = Callable[..., Any]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "options: {innodb_flush_method: O_DIRECT_NO_FSYNC}",
            "options: [innodb_flush_method=O_DIRECT]",
            "system.mariadb.options: expected a mapping, found a list",
        ),
        (
            "warehouses: 16,",
            "warehouses: 16, virtual_users: many,",
            "workload.tpcc.virtual_users: expected a whole number, found 'many'",
        ),
        ("arm: kernel", "settings: {lru_gen: always}\narm: kernel", "settings.lru_gen: expected 'on' or 'off'"),
    ],
)
def test_a_wrong_value_of_the_base_trial_is_noted_though_no_trial_has_it(
    load: Load, small: ModuleType, *, old: str, new: str, said: str
) -> None:
    text = small.MGLRU.replace("options: {innodb_buffer", "options: {innodb_flush_method: fsync, innodb_buffer")
    with pytest.raises(InputError) as raised:
        load(text.replace(old, new))
    (problem,) = raised.value.problems
    assert said in str(problem)


def test_what_levels_complete_is_no_mistake(load: Load, small: ModuleType) -> None:
    text = small.MGLRU.replace("{kernel: debian-6.1, memory: 1GiB, swap: 512MiB}", "{memory: 1GiB}")
    for level in ("{settings: {lru_gen: off}}", "{settings: {lru_gen: on}}"):
        text = text.replace(level, level[:-1] + ", place: {vm: {kernel: debian-6.1}}}")
    load(text)


class Pinned(BaseModel, extra="forbid"):
    processors: str
    memory: int


class Both(BaseModel, extra="forbid"):
    pinned: int | Pinned = 0
    size: Annotated[int, Field(ge=1)] = 1
    least: int = 0

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.least > self.size:
            raise ValueError("least above size")
        return self


def part(value: dict[str, Any]) -> list[str]:
    problems = Problems()
    note_in_part(TypeAdapter(Both), from_plain(value, Position("a.yaml")), prefix=("both",), problems=problems)
    return [f"{each.field}: {each.message}" for each in problems]


def test_of_a_part_only_what_no_other_value_could_mend_is_wrong() -> None:
    assert part({"pinned": {"processors": "1"}}) == []  # half of an alternative
    assert part({"size": 1, "least": 2}) == []  # values that do not go together
    assert part({"pinned": []}) == ["both.pinned: expected a whole number or a mapping, found an empty list"]
    assert part({"size": 0, "leasts": {"a": 1}}) == [
        "both.size: expected a value greater than or equal to 1, found 0",
        "both.leasts: unknown key; expected one of `pinned`, `size`, `least`",
    ]


@pytest.mark.parametrize(
    ("override", "is_used"),
    [
        ("workload.tpcc.virtual_users=9", False),
        ("settings.lru_gen=on", False),
        ("workload.tpcc.warehouses=9", True),
        ("factors.users.low.workload.tpcc.virtual_users=9", True),
    ],
)
def test_a_value_of_the_command_line_that_every_level_replaces_is_refused(
    load: Load, small: ModuleType, *, override: str, is_used: bool
) -> None:
    if is_used:
        load(small.MGLRU, overrides=[override])
        return
    with pytest.raises(InputError) as refused:
        load(small.MGLRU, overrides=[override])
    (problem,) = refused.value.problems
    assert (problem.file, problem.field) == ("--set", override.partition("=")[0])
    assert problem.message.startswith("it has no effect")
    assert problem.suggestion == f"set it in a level, as factors.FACTOR.LEVEL.{problem.field}"
