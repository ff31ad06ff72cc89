"""A column of numbers over which curves are fitted, and the table without a column of arms: one curve."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import polars as pl

from fairtrial.analyse.tidy import CurveRequest
from fairtrial.errors import InputError, Problem
from fairtrial.imports.numerals import Numerals
from fairtrial.imports.rows import Rows
from fairtrial.study.catalogue import MetricDefinition
from fairtrial.study.designs.numeric_factors import FEWEST_VALUES, CurveModel
from fairtrial.study.tree.problems import listed
from fairtrial.words import counted

OPTION = "--curve"
ONE_ARM = "curve"  # the column of arms of a table that has none
ONLY_LEVEL = "all"


def with_an_arm(rows: Rows) -> Rows:
    """The rows with one arm, of which there is one curve, in a column of a name that is not theirs."""
    arm = ONE_ARM
    while arm in rows.frame.columns:
        arm += "_"
    return replace(rows, frame=rows.frame.with_columns(pl.lit(ONLY_LEVEL).alias(arm)), arm=arm)


def request(
    rows: Rows,
    levels: Mapping[str, None],
    *,
    curve: tuple[str, CurveModel],
    numerals: Numerals,
    primary: MetricDefinition,
) -> CurveRequest:
    """What is fitted over a column's levels.

    Raises:
        InputError: a level is not a number above 0, there are too few, or the model is of throughput only.
    """
    over, model = curve
    numbers = numerals.floats(pl.Series(list(levels), dtype=pl.String))
    problems = [
        Problem(f"expected a number above 0, found {level!r}", rows.name, field=over)
        for level, number in zip(levels, numbers, strict=True)
        if number is None or number <= 0
    ]
    if len(levels) < FEWEST_VALUES[model]:
        message = f"`{model}` needs at least {FEWEST_VALUES[model]} values, found {len(levels)}"
        problems.append(Problem(message, rows.name, field=over))
    if model == "usl" and primary.better != "higher":
        message = f"`usl` is a law of throughput, and lower values of `{primary.name}` are better"
        problems.append(Problem(message, rows.name, field=OPTION))
    if problems:
        fitting = [
            name
            for name, few in FEWEST_VALUES.items()
            if few <= len(levels) and (name != "usl" or primary.better == "higher")
        ]
        models = f"of {counted(len(levels), 'value')}: {listed(fitting)}"
        raise InputError(problems, hint=f"name a column of numbers, and a model that fits it; {models}")
    return CurveRequest(over, model, dict(zip(levels, numbers.to_list(), strict=True)))
