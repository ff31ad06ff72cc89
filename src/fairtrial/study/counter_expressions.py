"""What a metric of a study says of counters that others tell: `rate(http_requests_total{code="200"})`.

Owns the notation, a small part of PromQL's. It must not know how a value is computed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal, get_args

CounterFunction = Literal["rate", "delta", "mean", "max"]
Comparison = Literal["=", "!=", "=~", "!~"]
LabelMatch = tuple[str, Comparison, str]

_NAME: Final = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
_EXPRESSION: Final = re.compile(rf"\s*([a-z]+)\s*\(\s*({_NAME})\s*(?:\{{(.*)\}})?\s*\)\s*")
_LABEL: Final = re.compile(r'\s*([a-zA-Z_][a-zA-Z0-9_]*)\s*(=~|!~|!=|=)\s*"((?:[^"\\]|\\.)*)"\s*(,|$)')
_ESCAPE: Final = re.compile(r"\\(.)")


@dataclass(frozen=True)
class CounterExpression:
    """A function over the measured window of every series of one metric whose labels match, summed.

    Attributes:
        labels: name, comparison and value of each condition; a missing label is an empty one.
    """

    function: CounterFunction
    metric: str
    labels: tuple[LabelMatch, ...] = ()

    def selects(self, labels: dict[str, str]) -> bool:
        """Whether a series of the metric has such labels."""
        return all(_holds(labels.get(name, ""), comparison, value) for name, comparison, value in self.labels)


def _holds(label: str, comparison: Comparison, value: str) -> bool:
    equal = re.fullmatch(value, label) is not None if comparison.endswith("~") else label == value
    return equal != comparison.startswith("!")


def parse(text: str) -> CounterExpression:
    """The expression that a text holds.

    Raises:
        ValueError: it is not one.
    """
    match = _EXPRESSION.fullmatch(text)
    if match is None or match[1] not in get_args(CounterFunction):
        functions = ", ".join(get_args(CounterFunction))
        raise ValueError(
            f'expected one of {functions} of one metric, such as `rate(requests_total{{code="200"}})`, found {text!r}'
        )
    function: CounterFunction = next(each for each in get_args(CounterFunction) if each == match[1])
    return CounterExpression(function, match[2], tuple(_labels(match[3] or "", text)))


def labels_of(series: str) -> dict[str, str]:
    """The labels of a series as a sampler names it: `name{code="200",method="get"}`."""
    inside = series.partition("{")[2].removesuffix("}")
    return {name: value for name, _, value in _labels(inside, series)}


def _labels(inside: str, text: str) -> list[LabelMatch]:
    labels: list[LabelMatch] = []
    at = 0
    while at < len(inside) and inside[at:].strip():
        match = _LABEL.match(inside, at)
        if match is None:
            raise ValueError(f'expected labels such as `code="200",method!~"get|head"`, found {inside!r} in {text!r}')
        name, value = match[1], _ESCAPE.sub(lambda escape: "\n" if escape[1] == "n" else escape[1], match[3])
        comparison: Comparison = next(each for each in get_args(Comparison) if each == match[2])
        if comparison.endswith("~"):
            try:
                re.compile(value)
            except re.error as error:
                raise ValueError(f"{name}: not a regular expression: {error}") from error
        labels.append((name, comparison, value))
        at = match.end()
    return labels
