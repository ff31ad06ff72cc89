"""A script as the load engine takes it: names joined to values, SQL with question marks."""

from __future__ import annotations

from collections.abc import Mapping

from fairtrial.protocol import generated as wire
from fairtrial.workloads.engine import distributions
from fairtrial.workloads.engine.script import sql
from fairtrial.workloads.engine.script.file import (
    ChoiceDraw,
    Constant,
    DecimalDraw,
    Draw,
    IntegerDraw,
    ScriptFile,
    Setup,
    Statement,
    TextDraw,
    Transaction,
)

Drawn = wire.IntegerDraw | wire.DecimalDraw | wire.TextDraw | wire.ChoiceDraw | wire.SequenceDraw


def transactions(script: ScriptFile) -> list[wire.ScriptTransaction]:
    """What is driven."""
    return [_transaction(name, each, script.parameters) for name, each in script.transactions.items()]


def fills(setup: Setup) -> list[wire.ScriptFill]:
    """The rows that are made."""
    return [
        wire.ScriptFill(table=table, rows=fill.rows, columns=_named(fill.columns)) for table, fill in setup.fill.items()
    ]


def statements(texts: list[str]) -> list[str]:
    """Statements without parameters."""
    return [sql.read(text).sql for text in texts]


def _transaction(name: str, transaction: Transaction, shared: Mapping[str, Draw]) -> wire.ScriptTransaction:
    statements = [_statement(each) for each in transaction.statements]
    used = {value for statement in statements for value in statement.values}
    drawn = {key: draw for key, draw in {**shared, **transaction.parameters}.items() if key in used}
    return wire.ScriptTransaction(
        name=name,
        weight=transaction.weight,
        scope=transaction.transaction,
        rollback_share=transaction.rollback,
        parameters=_named(drawn),
        statements=statements,
    )


def _statement(statement: Statement) -> wire.ScriptStatement:
    read = sql.read(statement.sql)
    return wire.ScriptStatement(sql=read.sql, values=list(read.names), rows=statement.rows, take=statement.take)


def _named(draws: Mapping[str, Draw]) -> list[wire.ScriptParameter]:
    return [wire.ScriptParameter(name=name, draw=_draw(draw)) for name, draw in draws.items()]


def _draw(draw: Draw) -> Drawn:
    if isinstance(draw, IntegerDraw):
        return wire.IntegerDraw(low=draw.low, high=draw.high, distribution=distributions.shape(draw.distribution, draw))
    if isinstance(draw, DecimalDraw):
        return wire.DecimalDraw(
            low_units=draw.units(draw.low),
            high_units=draw.units(draw.high),
            scale=draw.digits,
            distribution=distributions.shape(draw.distribution, draw),
        )
    if isinstance(draw, TextDraw):
        shortest, longest = draw.bounds
        return wire.TextDraw(shortest=shortest, longest=longest, letters=draw.letters)
    if isinstance(draw, ChoiceDraw):
        values = [_constant(value) for value in draw.values]
        return wire.ChoiceDraw(values=values, weights=draw.weights or [1.0] * len(values))
    return wire.SequenceDraw(first=draw.first)


def _constant(value: Constant) -> wire.NullConstant | wire.IntegerConstant | wire.TextConstant:
    if value is None:
        return wire.NullConstant()
    return wire.IntegerConstant(value=value) if isinstance(value, int) else wire.TextConstant(value=value)
