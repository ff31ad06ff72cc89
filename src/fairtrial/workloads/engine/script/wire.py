"""A script as the load engine takes it: names joined to values, SQL with question marks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fairtrial.workloads.engine import distributions
from fairtrial.workloads.engine.script import sql
from fairtrial.workloads.engine.script.file import (
    ChoiceDraw,
    Constant,
    DecimalDraw,
    Draw,
    IntegerDraw,
    ScriptFile,
    Statement,
    TextDraw,
    Transaction,
)


def transactions(script: ScriptFile) -> list[dict[str, Any]]:
    """The transactions, as `ScriptTransaction` (crates/protocol/src/script.rs)."""
    return [_transaction(name, each, script.parameters) for name, each in script.transactions.items()]


def setup(script: ScriptFile) -> dict[str, Any]:
    """What makes the data, as the part of `ScriptLoad` that the script determines."""
    if script.setup is None:
        return {"create": [], "fill": [], "finish": []}
    return {
        "create": [sql.read(text).sql for text in script.setup.create],
        "fill": [
            {"table": table, "rows": fill.rows, "columns": _named(fill.columns)}
            for table, fill in script.setup.fill.items()
        ],
        "finish": [sql.read(text).sql for text in script.setup.finish],
    }


def _transaction(name: str, given: Transaction, shared: Mapping[str, Draw]) -> dict[str, Any]:
    statements = [_statement(each) for each in given.statements]
    used = {value for statement in statements for value in statement["values"]}
    drawn = {key: draw for key, draw in {**shared, **given.parameters}.items() if key in used}
    return {
        "name": name,
        "weight": given.weight,
        "scope": given.transaction,
        "rollback_share": given.rollback,
        "parameters": _named(drawn),
        "statements": statements,
    }


def _statement(given: Statement) -> dict[str, Any]:
    read = sql.read(given.sql)
    return {"sql": read.sql, "values": list(read.names), "rows": given.rows, "take": list(given.take)}


def _named(draws: Mapping[str, Draw]) -> list[dict[str, Any]]:
    return [{"name": name, "draw": _draw(draw)} for name, draw in draws.items()]


def _draw(draw: Draw) -> dict[str, Any]:
    if isinstance(draw, IntegerDraw):
        ends = {"low": draw.low, "high": draw.high}
        return {"kind": "integer", **ends, "distribution": distributions.wire(draw.distribution, draw)}
    if isinstance(draw, DecimalDraw):
        ends = {"low_units": draw.units(draw.low), "high_units": draw.units(draw.high), "scale": draw.digits}
        return {"kind": "decimal", **ends, "distribution": distributions.wire(draw.distribution, draw)}
    if isinstance(draw, TextDraw):
        shortest, longest = draw.bounds
        return {"kind": "text", "shortest": shortest, "longest": longest, "letters": draw.letters}
    if isinstance(draw, ChoiceDraw):
        values = [_constant(value) for value in draw.values]
        return {"kind": "choice", "values": values, "weights": draw.weights or [1.0] * len(values)}
    return {"kind": "sequence", "first": draw.first}


def _constant(value: Constant) -> dict[str, Any]:
    if value is None:
        return {"kind": "null"}
    return {"kind": "integer" if isinstance(value, int) else "text", "value": value}
