"""raw_data.r of a screening: the matrix and every trial, with base R that fits the effects from them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from importlib import resources
from typing import Final

from fairtrial.analyse.designs.screening_models import ScreenedMetric, ScreeningResult
from fairtrial.record.screening import Screening
from fairtrial.report.scene import ContrastTrial, Scene
from fairtrial.words import printable

TEMPLATE: Final = "screening.r"
PLAIN: Final = re.compile(r"[A-Za-z][A-Za-z0-9._]*")


def render(scene: Scene, of: Screening, result: ScreeningResult) -> str:
    """The script. `Rscript raw_data.r` prints one tab-separated row per metric and option, and of its curvature."""
    analysis = scene.analysis
    used = [each for each in scene.trials if each.used]
    judged_by = {each.metric: "none" if each.standard_error is None else each.error for each in result.metrics}
    sources = ", ".join(f"{json.dumps(metric)} = {json.dumps(error)}" for metric, error in judged_by.items())
    lines = [
        f"# {_comment(analysis.study)}: {_comment(analysis.question)}",
        "# a screening: effects, high over low level, averaged over all other options; it claims nothing",
        f"confidence <- {analysis.confidence!r}",
        "codes <- rbind(",
        ",\n".join(f"  {_name(row)} = c({', '.join(map(str, codes))})" for row, codes in of.rows.items()),
        ")",
        f"colnames(codes) <- c({', '.join(json.dumps(option, ensure_ascii=False) for option in of.options)})",
        "trials <- rbind(",
        ",\n".join(line for each in result.metrics for line in _trials(each, used)),
        ")",
        f"judged_by <- c({sources})",
        f"curved <- c({', '.join(json.dumps(each.metric) for each in result.metrics if each.curvature)})",
    ]
    template = resources.files("fairtrial.report") / "page" / "templates" / TEMPLATE
    return "\n".join(lines) + "\n" + template.read_text(encoding="utf-8")


def _trials(of: ScreenedMetric, used: list[ContrastTrial]) -> Iterator[str]:
    for each in used:
        if of.metric in each.trial.scalars:
            trial, value = each.trial.trial, each.trial.scalars[of.metric]
            yield (
                f"  data.frame(metric = {json.dumps(of.metric)}, row = {json.dumps(each.arm)}, "
                f"replicate = {trial.round}, value = {value!r})"
            )


def _comment(text: str) -> str:
    """Text that stays on its comment's line."""
    return printable(" ".join(text.split()))


def _name(text: str) -> str:
    """The name of an argument: as it is, or as a string, in which R finds no code."""
    return text if PLAIN.fullmatch(text) else json.dumps(text, ensure_ascii=False)
