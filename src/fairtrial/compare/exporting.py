"""A comparison as a file: every trial as CSV, the whole analysis as JSON, the table as Markdown. Pure."""

from __future__ import annotations

import csv
import io
import json
from pathlib import PurePath
from typing import Final

from fairtrial.analyse.models import Analysis
from fairtrial.compare.compiling import CompareOptions
from fairtrial.compare.showing import scale_of, sentences, summaries, worth_saying
from fairtrial.compare.trying import Calibration
from fairtrial.errors import InputError, Problem
from fairtrial.imports import STOPPED_BY
from fairtrial.report import markdown as marked
from fairtrial.report import numbers
from fairtrial.report.concerns import Concern, concerns
from fairtrial.report.document import finite
from fairtrial.report.tables import change, metric_tables, procedure, verdict
from fairtrial.report.text.summary import estimands
from fairtrial.words import csv_cell

FORMAT_VERSION: Final = 1
SUFFIXES: Final = (".csv", ".json", ".md")


def check(name: str) -> None:
    """Raises what is wrong with a file's name, before anything runs.

    Raises:
        InputError: its end names no format, or its folder is not there.
    """
    if PurePath(name).suffix not in SUFFIXES:
        problem = Problem(f"expected a name that ends in {', '.join(SUFFIXES)}, found `{name}`", "--export")
        raise InputError([problem], hint="give the file the suffix of its format")


def render(name: str, analysis: Analysis, *, options: CompareOptions, calibration: Calibration) -> str:
    """The file's content, by the end of its name."""
    suffix = PurePath(name).suffix
    if suffix == ".csv":
        return _csv(analysis, options)
    return _json(analysis, options, calibration) if suffix == ".json" else _markdown(analysis, options)


def _csv(analysis: Analysis, options: CompareOptions) -> str:
    """A row per trial, in the order in which they ran, as `fairtrial analyse` reads it: --arm name --block block.

    What stopped them early is a column.
    """
    commands = options.by_label
    values: dict[tuple[int, int, str], dict[str, float]] = {}
    for metric in analysis.metrics:
        for arm, each in summaries(analysis, metric).items():
            for position, block, value in zip(each.positions, each.blocks, each.values, strict=True):
                values.setdefault((position, block, arm), {})[metric] = value
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    stopped = {} if analysis.stopping is None else {STOPPED_BY: analysis.stopping.rule}
    writer.writerow(["name", "command", "block", *stopped, *map(csv_cell, analysis.metrics)])
    for (_, block, arm), row in sorted(values.items()):
        figures = (repr(row[m]) if m in row else "" for m in analysis.metrics)
        writer.writerow([csv_cell(arm), csv_cell(commands[arm]), block, *stopped.values(), *figures])
    return stream.getvalue()


def _json(analysis: Analysis, options: CompareOptions, calibration: Calibration) -> str:
    floor = calibration.floor
    document = {
        "format_version": FORMAT_VERSION,
        "commands": options.by_label,
        "runs_per_trial": calibration.runs,
        "floor": {**vars(floor)},
        "analysis": analysis.model_dump(mode="json"),
    }
    return json.dumps(finite(document), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _markdown(analysis: Analysis, options: CompareOptions) -> str:
    table = metric_tables(analysis)[0]
    by_label = summaries(analysis, table.definition.name)
    scale = scale_of(table.definition.unit, [each.mean for each in by_label.values()])
    unit = f" [{scale.unit}]" if scale.unit else ""
    interval = f"{numbers.percent(analysis.confidence)} interval"
    lines = [
        f"| | command | {table.definition.label}{unit} | min … max | ratio | {interval} | verdict |",
        "|---|---|---:|---:|---:|---:|---|",
    ]
    compared = {row.arm.arm: row.comparison for row in table.rows}
    for label, command in options.by_label.items():
        if label not in by_label:
            continue
        each, other = by_label[label], compared.get(label)
        shown = ["1", "", "baseline"]
        if other is not None:
            shown = [*change(other, scale), verdict(other, table.definition, margin=analysis.margin)]
        cells = [
            label,
            marked.cell(command),
            f"{scale.value(each.mean)} ± {scale.value(each.sd)}",
        ]
        cells += [f"{scale.value(min(each.values))} … {scale.value(max(each.values))}", *shown]
        lines.append(f"| {' | '.join(cells)} |")
    lines += ["", f"{'; '.join([procedure(analysis, table), *sentences(table)])}"]
    for sentence in estimands(analysis):
        lines += ["", sentence]
    found_doubts = concerns(worth_saying(analysis))
    lines += [""] * bool(found_doubts) + [_doubt(concern) for concern in found_doubts]
    return "\n".join(lines) + "\n"


def _doubt(concern: Concern) -> str:
    where = f" {concern.where}" if concern.where else ""
    return f"- doubt{where}: {concern.message} – {concern.advice}"
