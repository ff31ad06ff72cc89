from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from fairtrial.errors import InputError, Problem
from fairtrial.study.tree.nodes import Position, from_plain
from fairtrial.study.tree.problems import Problems, brief, did_you_mean, listed, validate
from fairtrial.study.tree.quantities import Bytes, Rate


class Inner(BaseModel):
    model_config = ConfigDict(extra="forbid")

    width: int = Field(1, ge=1)
    colour: Literal["red", "green"] = "red"


class Outer(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str = "x"
    inner: Inner = Inner()
    by_name: dict[Annotated[str, Field(pattern="^[a-z]+$")], Inner] = {}
    listed: list[Inner] = []
    either: int | bool | None = None
    maybe: Inner | None = None
    share: float | str | None = None
    codes: list[int] = []
    few: list[int] = Field([1], min_length=1, max_length=2)
    ends: tuple[int, int] = (0, 1)
    letters: str = Field("x", min_length=1)
    size: Bytes = Field(4096, ge=2048)
    pace: Rate = Field(2.0, gt=1)


def wrong(value: dict[str, Any]) -> list[str]:
    problems = Problems()
    adapter = TypeAdapter(Outer)
    node = from_plain(value, Position("f.yaml"))
    assert validate(adapter, value, node=node, prefix=("workload", "outer"), problems=problems) is None
    return [f"{problem.field}: {problem.message} {problem.suggestion}".strip() for problem in problems]


UNKNOWN = "unknown key; expected one of `width`, `colour` did you mean `width`?"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"inner": {"widthh": 1}}, f"workload.outer.inner.widthh: {UNKNOWN}"),
        ({"by_name": {"a": {"widthh": 1}}}, f"workload.outer.by_name.a.widthh: {UNKNOWN}"),
        ({"listed": [{}, {"widthh": 1}]}, f"workload.outer.listed.1.widthh: {UNKNOWN}"),
        ({"maybe": {"widthh": 1}}, f"workload.outer.maybe.widthh: {UNKNOWN}"),
        ({"inner": {"width": 0}}, "workload.outer.inner.width: expected a value greater than or equal to 1, found 0"),
        ({"inner": {"width": "x"}}, "workload.outer.inner.width: expected a whole number, found 'x'"),
        ({"inner": 5}, "workload.outer.inner: expected a mapping, found 5"),
        ({"inner": None}, "workload.outer.inner: expected a mapping, found nothing (null)"),
        ({"inner": {"width": True}}, "workload.outer.inner.width: expected a whole number, found true"),
        ({"by_name": {"a": {"width": True}}}, "workload.outer.by_name.a.width: expected a whole number, found true"),
        ({"share": False}, "workload.outer.share: expected a number or text, found false"),
        ({"codes": [1, True]}, "workload.outer.codes.1: expected a whole number, found true"),
        ({"few": []}, "workload.outer.few: expected at least 1 item, found an empty list"),
        ({"few": [1, 2, 3]}, "workload.outer.few: expected at most 2 items, found 3"),
        ({"ends": [1]}, "workload.outer.ends.1: required but missing"),
        ({"letters": ""}, "workload.outer.letters: expected at least 1 character, found ''"),
        ({"size": "1KiB"}, "workload.outer.size: expected a value greater than or equal to 2KiB, found '1KiB'"),
        ({"pace": "9 /min"}, "workload.outer.pace: expected a value greater than 1/s, found '9 /min'"),
        ({"inner": "http://me:secret@host/x"}, "workload.outer.inner: expected a mapping, found 'http://…@host/x'"),
        ({"inner": "me:secret@host/x"}, "workload.outer.inner: expected a mapping, found 'me:…@host/x'"),
        ({"listed": {}}, "workload.outer.listed: expected a list, found an empty mapping"),
        ({"name": 5}, "workload.outer.name: expected text, found 5"),
        ({"either": [1]}, "workload.outer.either: expected a whole number or true or false, found a list"),
        ({"by_name": {"A": {}}}, "workload.outer.by_name.A: expected text that matches ^[a-z]+$, found 'A'"),
        (
            {"inner": {"colour": "gren"}},
            "workload.outer.inner.colour: expected 'red' or 'green', found 'gren' did you mean `green`?",
        ),
    ],
)
def test_what_pydantic_finds_is_said_in_the_words_of_a_study(value: dict[str, Any], expected: str) -> None:
    assert wrong(value) == [expected]


def test_several_mistakes_in_one_value_are_all_found() -> None:
    assert len(wrong({"inner": {"width": "x", "colour": 1}, "name": 1, "naym": 2})) == 4


def test_true_is_a_mistake_once_and_beside_others_and_no_mistake_where_it_is_allowed() -> None:
    once, other = wrong({"inner": {"width": False}, "codes": [True], "either": True})
    assert once == "workload.outer.inner.width: expected a value greater than or equal to 1, found false"
    assert other == "workload.outer.codes.0: expected a whole number, found true"


def test_a_valid_value_is_returned_and_nothing_noted() -> None:
    problems = Problems()
    value = validate(TypeAdapter(int), "5", node=from_plain("5", Position("f")), prefix=(), problems=problems)
    assert value == 5
    assert len(problems) == 0
    problems.raise_if_any()


def test_a_problem_is_noted_once_and_all_are_raised_in_the_order_of_the_file() -> None:
    problems = Problems()
    for line in (3, 1, 3, 2):
        problems.add("wrong", Position("f.yaml", line, 1), field=("a",))
    with pytest.raises(InputError) as raised:
        problems.raise_if_any()
    assert [problem.line for problem in raised.value.problems] == [1, 2, 3]
    assert str(raised.value).splitlines()[0] == "f.yaml:1:1: a: wrong"


def test_what_is_noted_alone_is_all_that_is_told_of_its_place() -> None:
    problems = Problems()
    problems.add("follows", Position("f.yaml", 1, 1), field=("a",))
    problems.note(Problem("is wrong", "f.yaml", 1, 1), alone=True)
    problems.add("wrong as well", Position("f.yaml", 1, 2))
    with pytest.raises(InputError) as raised:
        problems.raise_if_any()
    assert [problem.message for problem in raised.value.problems] == ["is wrong", "wrong as well"]


def test_suggestions_forgive_letter_case_and_stay_silent_when_nothing_is_near() -> None:
    assert did_you_mean("INNODB_buffer", ["innodb_buffer", "x"]) == "did you mean `innodb_buffer`?"
    assert did_you_mean("zzz", ["innodb_buffer"]) == ""
    assert did_you_mean("a", []) == ""


def test_long_lists_and_values_are_cut() -> None:
    assert listed([]) == "nothing"
    assert listed(["a", "b"]) == "`a`, `b`"
    assert listed([str(number) for number in range(20)]).endswith("`11` and 8 more")
    assert len(brief("x" * 1000)) < 100


def test_problems_are_plain_values() -> None:
    assert Problem("m", "f", 1, 2, "a.b", "s") == Problem("m", "f", 1, 2, "a.b", "s")
