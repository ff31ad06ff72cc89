"""k6's `--summary-export` and its lines of `--out json`: one row per run, in the names of k6's own summary.

Of lines, the figures are computed as k6 does, percentiles by interpolation, rates over the time from the first to the
last point. Gauges are left out. Source: the documentation of k6's result outputs.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, Literal

import numpy as np
from pydantic import BaseModel, FiniteFloat, TypeAdapter, ValidationError

from fairtrial.imports.reader import ImportSource, Reader, document, file_table, metric, number, refused, summarised
from fairtrial.imports.rows import FileTable
from fairtrial.study.catalogue import Better, MetricDefinition
from fairtrial.words import first_problem

SOURCE: Final = "k6"
EXPECTED: Final = "the file of `k6 run --summary-export` or `--out json`"
_STATISTIC: Final = re.compile(r"(avg|min|med|max)|p\(([0-9.]+)\)")
_QUANTILES: Final = {"med": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}
_TIMES: Final = ("_duration", "_blocked", "_connecting", "_tls_handshaking", "_sending", "_waiting", "_receiving")
_BUILT_IN: Final = re.compile(r"(http_req|iteration|data_|ws_|grpc_|browser_)|(checks|group_duration)$")
_FAILURES: Final = ("fail", "error", "dropped")
_LINES: Final = ('{"type":"Metric"', '{"type":"Point"', '{"metric":')


class Point(BaseModel, frozen=True):
    """A value at a time."""

    time: datetime
    value: FiniteFloat


class Declared(BaseModel, frozen=True):
    """What a metric is."""

    type: Literal["trend", "counter", "rate", "gauge"]


class Line(BaseModel, frozen=True):
    """A line of `--out json`."""

    type: Literal["Metric", "Point"]
    metric: str
    data: Declared | Point


class Summary(BaseModel, frozen=True):
    """A summary: figures by metric, below `values` where k6's handleSummary wrote it."""

    metrics: dict[str, dict[str, Any]]


_SUMMARY: Final = TypeAdapter(Summary)


def read(source: ImportSource) -> FileTable:
    """One row: the run.

    Raises:
        InputError: the file is cut or has no figure.
    """
    row = _of_lines(source) if source.text.lstrip().startswith(_LINES) else _of_summary(source)
    if not row:
        raise refused(source, f"expected {EXPECTED}, found no figure", hint="let k6 end its run", field="metrics")
    return file_table(source, [row], definition, better=better)


def _of_summary(source: ImportSource) -> dict[str, float]:
    row: dict[str, float] = {}
    for name, entry in document(source, _SUMMARY, expected=EXPECTED).metrics.items():
        nested = entry.get("values", entry)
        if not isinstance(nested, dict):
            raise refused(source, "expected figures by name", hint=f"give {EXPECTED}", field=f"metrics.{name}.values")
        figures = {key: number(value) for key, value in nested.items() if type(value) in (int, float)}
        statistics = {key: found for key in figures if (found := _STATISTIC.fullmatch(key))}
        if statistics and "value" not in figures:  # a gauge has one, and its least and most
            row |= {f"{name}_{found[1] or f'p{found[2]}'}": figures[key] for key, found in statistics.items()}
        elif "count" in figures and "rate" in figures:
            row |= {f"{name}_count": figures["count"], f"{name}_per_s": figures["rate"]}
        elif "passes" in figures and (share := figures.get("value", figures.get("rate"))) is not None:
            row[f"{name}_share"] = share
    return row


def _of_lines(source: ImportSource) -> dict[str, float]:
    types: dict[str, str] = {}
    values: dict[str, list[float]] = defaultdict(list)
    times: list[datetime] = []
    for position, text in enumerate(source.text.splitlines(), start=1):
        try:
            line = Line.model_validate_json(text)
        except ValidationError as error:
            message = f"expected a line of k6's --out json, found {first_problem(error)}"
            raise refused(source, message, hint="let k6 end its run: the line may be cut", line=position) from error
        if isinstance(line.data, Declared):
            types[line.metric] = line.data.type
        elif line.metric not in types:
            message = f"expected the type of {line.metric} in a line before its first point"
            raise refused(source, message, hint=f"give {EXPECTED}, complete", line=position)
        else:
            values[line.metric].append(line.data.value)
            times.append(line.data.time)
    try:
        duration_s = (max(times) - min(times)).total_seconds() if times else 0.0
    except TypeError as error:
        raise refused(source, "expected times with their zones", hint=f"give {EXPECTED}", field="data.time") from error
    return {
        key: value
        for name, each in values.items()
        for key, value in _figures(name, types[name], each, duration_s=duration_s).items()
    }


def _figures(name: str, kind: str, values: Sequence[float], *, duration_s: float) -> Mapping[str, float]:
    """As k6's own summary has them."""
    array = np.array(values)
    if kind == "trend":
        quantiles = {key: float(np.quantile(array, share)) for key, share in _QUANTILES.items()}
        figures = {"avg": float(array.mean()), "min": float(array.min()), "max": float(array.max()), **quantiles}
        return {f"{name}_{key}": value for key, value in figures.items()}
    if kind == "counter" and duration_s > 0:
        return {f"{name}_count": float(array.sum()), f"{name}_per_s": float(array.sum()) / duration_s}
    return {f"{name}_share": float((array != 0).mean())} if kind == "rate" else {}


def _parts(name: str) -> tuple[str, str]:
    """Metric and figure of a column; a submetric is called by its tags as well."""
    of, figure = (name[: -len("_per_s")], "per_s") if name.endswith("_per_s") else name.rsplit("_", 1)
    return of.partition("{")[0], figure


def better(name: str) -> Better | None:
    """By k6's names: times and failures are better low, all else that k6 counts is better high.

    What a script's own metrics mean is not known, unless they are called times or failures.
    """
    of, figure = _parts(name)
    amount = figure in ("share", "per_s", "count")
    if any(word in of for word in _FAILURES) or (of.endswith(_TIMES) and not amount):
        return "lower"
    return ("higher" if amount else "lower") if _BUILT_IN.match(of) else None


def definition(name: str) -> MetricDefinition:
    """Of a column."""
    of, figure = _parts(name)
    units = {"share": "share", "count": "B" if of.startswith("data_") else of}
    units["per_s"] = f"{units['count']}/s"
    unit = units.get(figure, "ms" if of.endswith(_TIMES) else "")
    return metric(name, unit, better(name) or "higher", source=SOURCE)


READER: Final = Reader(
    name=SOURCE,
    expected=EXPECTED,
    recognises=lambda text: (
        text.startswith(_LINES) or (text.startswith("{") and '"metrics"' in text and '"iteration' in text)
    ),
    read=read,
    values=("http_req_duration_avg", "iteration_duration_avg"),
    failures=("http_req_failed_share", "dropped_iterations_count"),
    lost=summarised(
        "each run of k6 is one summary: its ramp-up, stages and stalls are averaged, and percentiles of several "
        "runs do not add up to one"
    ),
)
