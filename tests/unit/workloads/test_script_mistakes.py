"""What a person sees who wrote a script with mistakes: all of them at once, each with its line and column."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from fairtrial import study
from fairtrial.catalogue import catalogue
from fairtrial.errors import InputError

Mistakes = Callable[..., list[str]]

STUDY = """\
study: shop
system: {sqlite: {}}
workload: {script: {file: shop.yaml, duration: 1s}}
factors: {users: {one: {}, two: {workload: {script: {virtual_users: 2}}}}}
arm: users
metrics: {primary: throughput_tps}
"""
RIGHT = """\
parameters:
  customer: {type: integer, low: 1, high: 10}
transactions:
  look:
    statements:
      - SELECT name FROM customer WHERE id = :customer
"""


@pytest.fixture
def mistakes(tmp_path: Path) -> Mistakes:
    def found(script: str, study_text: str = STUDY) -> list[str]:
        (tmp_path / "study.yaml").write_text(study_text, encoding="utf-8")
        (tmp_path / "shop.yaml").write_text(textwrap.dedent(script), encoding="utf-8")
        with pytest.raises(InputError) as raised:
            study.load(tmp_path / "study.yaml", catalogue=catalogue())
        assert raised.value.exit_code == 2
        prefix = "workload.script.content."
        return [str(each).replace(f"{tmp_path}/", "").replace(prefix, "") for each in raised.value.problems]

    return found


def test_mistakes_of_every_kind_are_reported_together_with_those_of_the_study(mistakes: Mistakes) -> None:
    script = """\
        transactions:
          look:
            wieght: 3
            statements: [SELECT 1]
          order:
            parameters:
              state: {type: choise, values: [a]}
              size: {type: text, length: -1}
            transaction: readonly
            statements:
              - {sql: SELECT 1, row: 1}
    """
    problems = mistakes(script, STUDY.replace("primary:", "primry:"))
    assert problems == [
        (
            "shop.yaml:3:5: "
            "transactions.look.wieght: unknown key; expected one of `weight`, `transaction`, `rollback`, "
            "`parameters`, `statements` (did you mean `weight`?)"
        ),
        (
            "shop.yaml:7:14: transactions.order.parameters.state: unknown type `choise`; expected one of `integer`, "
            "`decimal`, `text`, `choice`, `sequence` (did you mean `choice`?)"
        ),
        (
            "shop.yaml:8:34: transactions.order.parameters.size.length: expected a value greater than or equal to 0, "
            "found -1"
        ),
        (
            "shop.yaml:9:18: transactions.order.transaction: expected 'read_write', 'read_only' or 'none', found "
            "'readonly' (did you mean `read_only`?)"
        ),
        (
            "shop.yaml:11:25: transactions.order.statements.0.row: unknown key; expected one of `sql`, `rows`, `take` "
            "(did you mean `rows`?)"
        ),
        "study.yaml:6:10: metrics.primary: required but missing",
        (
            "study.yaml:6:11: metrics.primry: unknown key; "
            "expected one of `primary`, `secondary`, `guardrails`, `guardrail_margins`, `covariates`, `adjust` "
            "(did you mean `primary`?)"
        ),
    ]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("= :customer", "= ':customer", "6:46: transactions.look.statements.0: the quote `'` is never closed"),
        ("= :customer", '= ":customer', '6:46: transactions.look.statements.0: the quote `"` is never closed'),
        ("= :customer", "= :customer /* why", "6:56: transactions.look.statements.0: the comment `/*` is never closed"),
        ("= :customer", "= ?", "6:46: transactions.look.statements.0: a question mark is not a parameter here"),
        ("= :customer", "= :custmer", "6:46: transactions.look.statements.0: unknown parameter `custmer`"),
        ("= :customer", "= 7", "2:3: parameters.customer: parameter `customer` is declared but never used"),
        ("= :customer", "= :customer; SELECT 2", "6:55: transactions.look.statements.0: expected one statement"),
        ("= :customer", r"= :customer AND name = 'a\'b'", "6:69: transactions.look.statements.0: a backslash before"),
        ("low: 1,", "low: 11,", "2:13: parameters.customer: `low` is above `high`"),
        ("low: 1,", "", "2:13: parameters.customer.low: required but missing"),
        ("high: 10", "high: ten", "2:43: parameters.customer.high: expected a whole number, found 'ten'"),
        ("high: 10", "high: 10, distribution: normal", "2:61: parameters.customer.distribution: expected 'uniform'"),
        ("look:\n", "look:\n    weight: 0\n", "5:13: transactions.look.weight: expected a value greater than 0"),
        ("look:\n", "look:\n    rollback: 101 %\n", "5:15: transactions.look.rollback: expected a value less than"),
        (
            "look:\n",
            "look:\n    rollback: 1 %\n    transaction: none\n",
            "5:5: transactions.look: statements outside a transaction cannot be rolled back",
        ),
        ("look:", "Look it up:", "4:3: transactions.Look it up: expected text that matches"),
        (
            "look:",
            "all:",
            "4:3: transactions.all: a transaction cannot be named `all`, which stands for all of them",
        ),
        (
            "transactions:",
            "setup: {create: [CREATE TABLE t (a TEXT DEFAULT 'x]}\ntransactions:",
            "3:49: setup.create.0",
        ),
        (
            "transactions:",
            "setup: {finish: ['DELETE FROM t WHERE a = :a']}\ntransactions:",
            "3:43: setup.finish.0: `:a`",
        ),
        (
            "transactions:",
            "setup: {fill: {t: {rows: 0, columns: {a: {type: sequence}}}}}\ntransactions:",
            "3:26: setup.fill.t.rows",
        ),
        ("transactions:", "setup: {fill: {t: {rows: 1, columns: {}}}}\ntransactions:", "3:38: setup.fill.t.columns"),
        (
            "      - SELECT",
            "      - {take: [x], sql: SELECT 1}\n      - SELECT",
            "6:17: transactions.look.statements.0",
        ),
        (
            "      - SELECT",
            "      - ''\n      - SELECT",
            "6:9: transactions.look.statements.0: expected an SQL statement",
        ),
    ],
)
def test_a_mistake_is_named_at_its_line_and_column(mistakes: Mistakes, *, old: str, new: str, expected: str) -> None:
    assert old in RIGHT
    problems = mistakes(RIGHT.replace(old, new))
    assert problems[0].startswith(f"shop.yaml:{expected}"), problems
    assert len(problems) == 1, problems


@pytest.mark.parametrize(
    ("layout", "line", "column"),
    [
        ("      - |\n        SELECT name\n        FROM customer\n        WHERE id = :custmer\n", 9, 20),
        ("      - >-\n        SELECT name\n        FROM customer\n        WHERE id = :custmer\n", 9, 20),
        ("      - SELECT name\n        FROM customer WHERE id = :custmer\n", 7, 34),
        ("      - 'SELECT ''a''\n        FROM customer WHERE id = :custmer'\n", 7, 34),
        ('      - "SELECT \\"a\\", \\\n        1\\tFROM customer WHERE id = :custmer"\n', 7, 37),
        ("      - {rows: 1, sql: SELECT name FROM customer WHERE id = :custmer}\n", 6, 61),
    ],
)
def test_the_place_in_a_statement_is_found_however_yaml_writes_it(
    mistakes: Mistakes, *, layout: str, line: int, column: int
) -> None:
    head = "".join(RIGHT.splitlines(keepends=True)[:-1])
    (problem, *_) = mistakes(head + layout)
    assert problem.startswith(f"shop.yaml:{line}:{column}: "), problem
    assert "unknown parameter `custmer`; expected one of `customer` (did you mean `customer`?)" in problem


def test_a_script_that_is_no_yaml_is_named_by_its_own_line_and_column(mistakes: Mistakes) -> None:
    (problem,) = mistakes("transactions:\n  look: {statements: [SELECT 1\n")
    assert problem.startswith("shop.yaml:3:1: not YAML: ")


def test_values_taken_from_rows_are_used_after_they_are_taken(mistakes: Mistakes) -> None:
    script = """\
        parameters:
          customer: {type: sequence}
        transactions:
          order:
            statements:
              - SELECT :price, :customer
              - {sql: 'SELECT a, b, c FROM t', take: [price, customer, other]}
              - {sql: 'SELECT a FROM t', take: [price]}
    """
    assert mistakes(script) == [
        (
            "shop.yaml:6:16: "
            "transactions.order.statements.0: `:price` has no value yet in statement 1: statement 2 takes it "
            "(use it after that statement)"
        ),
        (
            "shop.yaml:7:54: "
            "transactions.order.statements.1.take.1: `customer` is already a parameter, drawn before the "
            "transaction begins (take the value under a different name)"
        ),
        (
            "shop.yaml:8:41: "
            "transactions.order.statements.2.take.0: `price` is already taken by statement 2 (take the "
            "value under a different name)"
        ),
    ]


def test_a_value_that_is_taken_and_never_used_is_named(mistakes: Mistakes) -> None:
    (problem,) = mistakes("transactions: {order: {statements: [{sql: 'SELECT a', take: [price]}]}}\n")
    assert problem.startswith("shop.yaml:1:62: transactions.order.statements.0.take.0: `price` is taken from a row but")


def test_a_script_that_is_not_there_is_named_where_it_was_asked_for(tmp_path: Path) -> None:
    (tmp_path / "study.yaml").write_text(STUDY, encoding="utf-8")
    with pytest.raises(InputError) as raised:
        study.load(tmp_path / "study.yaml", catalogue=catalogue())
    (problem,) = raised.value.problems
    assert (problem.line, problem.column) == (3, 27)
    assert "cannot read" in problem.message


@pytest.mark.parametrize(
    ("workload", "expected"),
    [
        ("{duration: 1s}", "3:20: workload.script: expected a script: name its `file`"),
        ("{file: shop.yaml, duraton: 1s}", "3:38: workload.script.duraton: unknown key"),
        ("{file: [shop.yaml], duration: 1s}", "3:27: workload.script.file: expected text, found a list"),
        (
            "{file: shop.yaml, duration: 1s, content: {}}",
            "3:52: workload.script.content: `file` and `content` are both present",
        ),
    ],
)
def test_the_study_s_own_mistakes_about_a_script(tmp_path: Path, workload: str, expected: str) -> None:
    text = STUDY.replace("{file: shop.yaml, duration: 1s}", workload)
    (tmp_path / "study.yaml").write_text(text, encoding="utf-8")
    (tmp_path / "shop.yaml").write_text(RIGHT, encoding="utf-8")
    with pytest.raises(InputError) as raised:
        study.load(tmp_path / "study.yaml", catalogue=catalogue())
    found = [str(problem).replace(f"{tmp_path}/", "") for problem in raised.value.problems]
    assert any(problem.startswith(f"study.yaml:{expected}") for problem in found), found
