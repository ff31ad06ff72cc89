"""`fairtrial analyse`: the whole inference on numbers that fairtrial did not measure."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import get_args

from fairtrial import imports as foreign
from fairtrial import report
from fairtrial.analyse import analyse_table
from fairtrial.cli.terminal import Console, print_whole
from fairtrial.errors import InputError, Problem
from fairtrial.report.document import finite
from fairtrial.study.catalogue import Better
from fairtrial.study.designs.numeric_factors import FEWEST_VALUES, CurveModel
from fairtrial.study.tree.problems import did_you_mean, listed
from fairtrial.study.tree.quantities import parse_share

FORMAT_VERSION = 1  # of what --json prints
LOWEST_CONFIDENCE = 0.5  # as in a study: less is no confidence


@dataclass(frozen=True)
class AnalyseOptions:
    """The command's options as they were typed; see `fairtrial.imports.Question`."""

    values: Sequence[str]
    arm: str | None
    by: Sequence[str]
    block: str | None
    cluster: str | None
    time: str | None
    baseline: str | None
    better: Sequence[str]
    margin: str
    confidence: str
    decimal: str
    thousands: str
    curve: str | None = None

    def question(self) -> foreign.Question:
        """What is asked.

        Raises:
            InputError: a share is none, a direction is not `higher` or `lower`, or numbers could be read in two ways.
        """
        better = [(name, direction(way)) for name, _, way in (text.rpartition("=") for text in self.better)]
        return foreign.Question(
            values=tuple(self.values),
            arm=self.arm or "",
            by=tuple(name.strip() for text in self.by for name in text.split(",") if name.strip()),
            block=self.block,
            cluster=self.cluster,
            time=self.time,
            baseline=self.baseline,
            better=tuple(way for name, way in better if not name),
            better_of={name: way for name, way in better if name},
            margin=margin(self.margin),
            confidence=confidence(self.confidence),
            numerals=foreign.Numerals(self.decimal, self.thousands),
            curve=None if self.curve is None else curve(self.curve),
        )


def analyse(
    data: Sequence[str], options: AnalyseOptions, *, names: str | None, format_name: str, as_json: bool
) -> None:
    """Prints the verdicts on a table, or on outputs of a benchmark tool.

    Raises:
        InputError: a file, a column or a cell is not what it should be.
    """
    question = options.question()
    files = foreign.sources(data, names=names, standard_input=sys.stdin.buffer)
    rows = foreign.gather(files, format_name=format_name)
    analysis = analyse_table(*foreign.ask(rows, question))
    if as_json:
        document = {"format_version": FORMAT_VERSION, "analysis": analysis.model_dump(mode="json")}
        print(json.dumps(finite(document), ensure_ascii=False, allow_nan=False))
    else:
        print_whole(Console(), report.terminal(analysis))


def margin(text: str) -> float:
    """`--margin` as a share.

    Raises:
        InputError: it is none, or outside its limits.
    """
    return share("--margin", text, fits=lambda value: 0 < value < 1, limits="above 0 % and below 100 %")


def confidence(text: str) -> float:
    """`--confidence` as a share.

    Raises:
        InputError: it is none, or outside its limits.
    """
    limits = "from 50 % to below 100 %"
    return share("--confidence", text, fits=lambda value: LOWEST_CONFIDENCE <= value < 1, limits=limits)


def share(option: str, text: str, *, fits: Callable[[float], bool], limits: str) -> float:
    """A share as an option gives it.

    Raises:
        InputError: it is none, or outside its limits.
    """
    try:
        value = parse_share(text)
    except ValueError as error:
        raise InputError([Problem(str(error), option)], hint=f"for example {option} 2%") from error
    if not fits(value):
        problem = Problem(f"expected a share {limits}, found {text!r}", option)
        raise InputError([problem], hint="write a percentage with its sign: 2%, not 2")
    return value


def curve(text: str) -> tuple[str, CurveModel]:
    """A column and a model as an option gives them.

    Raises:
        InputError: the model is unknown.
    """
    column, equals, named = text.rpartition("=")
    if not equals:
        return text, "usl"
    for model in FEWEST_VALUES:
        if model == named:
            return column, model
    suggestion = did_you_mean(named, FEWEST_VALUES)
    problem = Problem(f"expected {listed(FEWEST_VALUES)}, found {named!r}", "--curve", suggestion=suggestion)
    raise InputError([problem], hint="for example --curve users=usl")


def direction(text: str) -> Better:
    """A good direction as an option gives it.

    Raises:
        InputError: it is none.
    """
    known: tuple[Better, ...] = get_args(Better)
    for each in known:
        if text == each:
            return each
    problem = Problem(
        f"expected {' or '.join(known)}, found {text!r}", "--better", suggestion=did_you_mean(text, known)
    )
    raise InputError([problem], hint="give the direction in which the metric gets better")
