"""A script's way to the load engine; the engine itself is a fake."""

from __future__ import annotations

import json
import re
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from pydantic import ValidationError
from ruamel.yaml import YAML
from support.driven import driven_of
from support.machines.places import place_in_memory, spawned

from fairtrial import study
from fairtrial.catalogue import catalogue
from fairtrial.errors import InputError
from fairtrial.protocol import generated as wire
from fairtrial.study.tree.nodes import Branch, Tree
from fairtrial.study.tree.problems import Problems
from fairtrial.study.tree.reading import parse
from fairtrial.wire.fake import FakeProgram
from fairtrial.workloads import Drive, DriveOutcome
from fairtrial.workloads.engine.script import Script, ScriptParameters, sha256, sql, task
from fairtrial.workloads.engine.script.checking import check
from fairtrial.workloads.engine.script.file import ScriptFile

ROOT = Path(__file__).parents[4]
OUT = PurePosixPath("/w/out")
ENDPOINT = wire.SqliteEndpoint(path="/w/data/database.sqlite3", busy_timeout_ms=100)
RESULT = driven_of(effective={"synchronous": "0"}, transactions={"order": {"committed": 3}}).model_dump(mode="json")
LOADED = {"content_sha256": "d" * 64, "rows": {"product": 500}}
SHOP: dict[str, Any] = {
    "setup": {
        "create": ["CREATE TABLE product (id INTEGER);"],
        "fill": {"product": {"rows": 500, "columns": {"id": {"type": "sequence"}}}},
    },
    "parameters": {
        "product": {"type": "integer", "low": 1, "high": 500, "distribution": "zipfian", "zipfian_exponent": 1.1},
        "customer": {"type": "integer", "low": 1, "high": 9},
    },
    "transactions": {
        "order": {
            "weight": 3,
            "rollback": "1 %",
            "parameters": {
                "amount": {"type": "decimal", "low": 0.5, "high": "99.99"},
                "state": {"type": "choice", "values": ["paid", 7, None]},
                "note": {"type": "text", "length": 5},
            },
            "statements": [
                {"sql": "SELECT price FROM product WHERE id = :product", "rows": 1, "take": ["price"]},
                "INSERT INTO purchase VALUES (:product, :price, :amount, :state, :note, :product)",
            ],
        },
        "look": {"transaction": "read_only", "statements": ["SELECT 1 WHERE :customer = 1"]},
    },
}


def workload(content: dict[str, Any], **given: Any) -> Script:
    """As a run has it: read from the JSON of a plan."""
    asked = ScriptParameters.model_validate({"duration": "5s", "content": content, **given})
    return Script(ScriptParameters.model_validate(asked.model_dump(mode="json")))


def answer(refused: list[dict[str, Any]]) -> Any:
    def run(spawn: wire.Spawn) -> FakeProgram:
        results = {"script-preflight": {"refused": refused}, "script-load": LOADED, "script-drive": RESULT}
        return FakeProgram(stdout=[json.dumps(results[spawn.argv[1]])])

    return run


def drive(refused: list[dict[str, Any]], **given: Any) -> tuple[DriveOutcome, dict[str, Any]]:
    with place_in_memory(answer(refused)) as (place, fake):
        fake.files[str(OUT / "result.json")] = json.dumps(RESULT).encode()
        driven = workload(SHOP, **given).drive(
            place,
            Drive(
                endpoint=ENDPOINT,
                seed=99,
                directory=OUT,
                work_directory=PurePosixPath("/w/load"),
                environment={},
                processors=None,
                on_progress=lambda _line: None,
            ),
        )
        assert spawned(fake, "script-preflight")
        asked: dict[str, Any] = json.loads(spawned(fake, "script-drive").stdin or "")
    return driven, asked


def test_transactions_reach_the_engine_with_what_they_use_and_no_more() -> None:
    _, asked = drive([], virtual_users=4)
    assert asked["drive"]["virtual_users"] == 4
    assert asked["pipelining"] is False
    assert drive([], pipelining=True)[1]["pipelining"] is True
    order, look = asked["transactions"]
    assert (order["name"], order["weight"], order["scope"], order["rollback_share"]) == ("order", 3, "read_write", 0.01)
    zipfian = {"kind": "zipfian", "exponent": 1.1}
    uniform = {"kind": "uniform"}
    assert {each["name"]: each["draw"] for each in order["parameters"]} == {
        "product": {"kind": "integer", "low": 1, "high": 500, "distribution": zipfian},
        "amount": {"kind": "decimal", "low_units": 50, "high_units": 9999, "scale": 2, "distribution": uniform},
        "state": {
            "kind": "choice",
            "values": [{"kind": "text", "value": "paid"}, {"kind": "integer", "value": 7}, {"kind": "null"}],
            "weights": [1, 1, 1],
        },
        "note": {"kind": "text", "shortest": 5, "longest": 5, "letters": "alphanumeric"},
    }
    assert order["statements"] == [
        {"sql": "SELECT price FROM product WHERE id = ?", "values": ["product"], "rows": 1, "take": ["price"]},
        {
            "sql": "INSERT INTO purchase VALUES (?, ?, ?, ?, ?, ?)",
            "values": ["product", "price", "amount", "state", "note", "product"],
            "rows": None,
            "take": [],
        },
    ]
    assert ([each["name"] for each in look["parameters"]], look["scope"]) == (["customer"], "read_only")


def test_a_drive_s_record_names_the_script_it_ran() -> None:
    driven, _ = drive([])
    same = ScriptFile.model_validate(SHOP)
    assert driven.effective == {"synchronous": "0", "script_sha256": sha256(same)}
    other = ScriptFile.model_validate(SHOP | {"setup": None})
    assert sha256(other) != sha256(same)


REFUSED = {"transaction": "order", "statement": 2, "code": "1146", "message": "Table 'purchase' doesn't exist"}


def test_a_refused_statement_is_the_user_s_mistake_with_the_system_s_words() -> None:
    with pytest.raises(InputError) as raised:
        drive([REFUSED])
    (problem,) = raised.value.problems
    assert str(problem) == (
        "script: workload.script.content.transactions.order.statements.1.sql: "
        "the system rejects statement 2 of `order`, "
        "`INSERT INTO purchase VALUES (:product, :price, :amount, :state, :note, :product)`: "
        "Table 'purchase' doesn't exist (1146)"
    )


def test_data_are_made_by_setup_and_then_every_statement_is_prepared_on_them() -> None:
    with place_in_memory(answer([])) as (place, fake):
        found = workload(SHOP, data_seed=4).load(place, ENDPOINT, on_progress=lambda _line: None)
        asked = json.loads(spawned(fake, "script-load").stdin or "")
        assert spawned(fake, "script-preflight")
    assert asked["create"] == ["CREATE TABLE product (id INTEGER)"], "without its semicolon"
    assert asked["fill"] == [
        {"table": "product", "rows": 500, "columns": [{"name": "id", "draw": {"kind": "sequence", "first": 1}}]}
    ]
    assert (asked["seed"], asked["threads"]) == (4, 2)
    assert found.rows == {"product": 500}


def test_data_depend_on_setup_and_seed_alone() -> None:
    first = workload(SHOP).data()
    assert first is not None
    busier = SHOP | {"transactions": {"look": SHOP["transactions"]["look"]}}
    assert workload(busier, virtual_users=7, load_threads=9).data() == first
    assert workload(SHOP, data_seed=2).data() != first
    assert workload(SHOP | {"setup": {"create": ["CREATE TABLE t (a INTEGER)"]}}).data() != first
    assert workload(SHOP | {"setup": None}).data() is None


def test_equal_rows_made_by_other_statements_are_other_content() -> None:
    def content(**setup: Any) -> str:
        with place_in_memory(answer([])) as (place, _):
            asked = workload(SHOP | {"setup": SHOP["setup"] | setup})
            return asked.load(place, ENDPOINT, on_progress=lambda _line: None).content_sha256

    assert content() == content()
    assert content() != content(finish=["INSERT INTO product VALUES (501)"])


def test_a_check_is_its_query_with_a_row_for_each_violation() -> None:
    checked = SHOP | {"checks": {"stock": "SELECT id, stock FROM product WHERE stock < 0; -- sold twice"}}
    answered = {"columns": ["id", "stock"], "rows": [["7", "-1"], ["9", None]]}
    with place_in_memory(lambda _spawn: FakeProgram(stdout=[json.dumps(answered)])) as (place, fake):
        (found,) = workload(checked).check_data(place, ENDPOINT)
        (asked,) = json.loads(spawned(fake, "sql").stdin or "")["statements"]
    assert asked == (
        "SELECT * FROM (SELECT id, stock FROM product WHERE stock < 0 -- sold twice\n) AS violations LIMIT 1000"
    )
    assert (found.name, found.violations, found.examples) == ("stock", 2, ["id=7, stock=-1", "id=9, stock=None"])
    assert workload(checked).checks_after() == "every_trial"
    assert workload(SHOP).checks_after() == "never"


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        ({"type": "decimal", "low": 0.001, "high": 1}, "more than 2 decimal places"),
        ({"type": "decimal", "low": 2, "high": 1}, "`low` is above `high`"),
        ({"type": "decimal", "low": 1, "high": "1e999999"}, "exceeds 64 bits"),
        ({"type": "integer", "low": -(2**63), "high": 2**63}, "wider than 2"),
        ({"type": "text"}, "either `length`"),
        ({"type": "text", "length": 3, "longest": 4}, "either `length`"),
        ({"type": "text", "shortest": 4, "longest": 3}, "`shortest` is above"),
        ({"type": "choice", "values": []}, "at least 1"),
        ({"type": "choice", "values": [1, 2], "weights": [1]}, "2 `values` and 1 `weights`"),
        ({"type": "choice", "values": [1.5]}, "values"),
        ({"type": "choice", "values": [2**63]}, "64-bit"),
        ({"type": "uuid"}, "uuid"),
    ],
)
def test_draws_that_mean_nothing_are_refused(draw: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        ScriptFile.model_validate({"parameters": {"p": draw}, "transactions": {"t": {"statements": ["SELECT :p"]}}})


@pytest.mark.parametrize(
    ("text", "translated", "names"),
    [
        ("SELECT :a, :b, :a;", "SELECT ?, ?, ?", ("a", "b", "a")),
        ("SELECT ':a', \":a\", `:a` -- :a", "SELECT ':a', \":a\", `:a` -- :a", ()),
        ("SELECT /* :a ' */ :b", "SELECT /* :a ' */ ?", ("b",)),
        ("SELECT 'it''s :a' || :b", "SELECT 'it''s :a' || ?", ("b",)),
        ("SELECT $$ ':a $$, $x$ :a $$ $x$, :b", "SELECT $$ ':a $$, $x$ :a $$ $x$, ?", ("b",)),
        ("SELECT :a::int, '1'::int, x[1:n]", "SELECT ?::int, '1'::int, x[1:n]", ("a",)),
        ("SET @x := :a", "SET @x := ?", ("a",)),
        ("SELECT 1; -- the end", "SELECT 1 -- the end", ()),
        ("SELECT ';', :a /* ; */ ;", "SELECT ';', ? /* ; */", ("a",)),
    ],
)
def test_parameters_are_found_where_sql_has_no_other_use_for_a_colon(
    text: str, translated: str, names: tuple[str, ...]
) -> None:
    found = sql.read(text)
    assert (found.sql, found.names, found.faults) == (translated, names, ())


def test_a_level_overlays_a_script_and_another_file_replaces_it(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(
        "transactions: {look: {statements: [SELECT 1]}, order: {statements: [SELECT 2]}}\n", encoding="utf-8"
    )
    (tmp_path / "b.yaml").write_text("transactions: {pay: {statements: [SELECT 3]}}\n", encoding="utf-8")
    (tmp_path / "study.yaml").write_text(
        "study: s\nsystem: {sqlite: {}}\nworkload: {script: {file: a.yaml, duration: 1s}}\narm: what\n"
        "factors: {what: {same: {}, weight: {workload: {script: {content: {transactions: {order: {weight: 5}}}}}},\n"
        "  other: {workload: {script: {file: b.yaml}}}}}\nmetrics: {primary: throughput_tps}\n",
        encoding="utf-8",
    )
    loaded = study.load(tmp_path / "study.yaml", catalogue=catalogue())

    def transactions(level: str) -> dict[str, float]:
        content = loaded.resolve({"what": level}).workload.root["script"]["content"]
        return {name: each["weight"] for name, each in content["transactions"].items()}

    assert transactions("same") == {"look": 1, "order": 1}
    assert transactions("weight") == {"look": 1, "order": 5}
    assert transactions("other") == {"pay": 1}, "nothing of the other file is left"
    (tmp_path / "again.yaml").write_text(study.dump(loaded), encoding="utf-8")
    (tmp_path / "a.yaml").unlink()
    again = study.load(tmp_path / "again.yaml", catalogue=catalogue())
    assert again.resolve({"what": "weight"}) == loaded.resolve({"what": "weight"})


def test_the_page_s_script_is_one() -> None:
    page = (ROOT / "docs" / "guides" / "workloads.md").read_text(encoding="utf-8")
    (text,) = re.findall(r"^```yaml\n(setup:.*?)^```", page, re.MULTILINE | re.DOTALL)
    found = ScriptFile.model_validate(YAML(typ="safe", pure=True).load(text))
    node, problems = parse(text, file="page", problems=Problems()), Problems()
    assert isinstance(node, Tree)
    check(found, Branch(node, ()), problems)
    assert list(problems) == []
    assert {each.name: each.weight for each in task.transactions(found)} == {"look": 3, "order": 1}
