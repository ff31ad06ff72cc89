"""What raw_data.r needs to test interactions again: the conditions of cells, and what is tested over which of them."""

from __future__ import annotations

import json
from collections.abc import Iterable

from fairtrial.analyse.designs.interaction_models import Interaction
from fairtrial.analyse.models import Analysis


def lines(analysis: Analysis) -> list[str]:
    """Data for `interactions.r`; nothing where nothing is tested."""
    tested = [each for each in analysis.interactions if each.f is not None]
    if not tested:
        return []
    named = [f"  {_string(cell.cell)} = {_strings(cell.levels.values(), names=cell.levels)}" for cell in analysis.cells]
    return [
        "conditions <- list(",
        ",\n".join(named),
        ")",
        "tests <- list(",
        ",\n".join(_test(analysis, each) for each in tested),
        ")",
        f"untested <- {len(analysis.interactions) - len(tested)}  # tests without a result, which count as p = 1",
    ]


def _test(analysis: Analysis, test: Interaction) -> str:
    used = [cell.levels for cell in analysis.cells if cell.cell in test.cells]
    levels = [
        f"{_string(factor)} = {_strings(dict.fromkeys(each[factor] for each in used))}" for factor in test.factors
    ]
    return (
        f"  list(metric = {_string(test.metric)}, arm = {_string(test.arm)}, baseline = {_string(analysis.levels[0])},"
        f" paired = {_flag(analysis.paired)}, in_step = {_flag(test.in_step)},\n"
        f"    cells = {_strings(test.cells)}, levels = list({', '.join(levels)}))"
    )


def _strings(texts: Iterable[str], *, names: Iterable[str] = ()) -> str:
    """A vector of strings, with names if there are any."""
    quoted = list(map(_string, texts))
    named = [f"{_string(name)} = {text}" for name, text in zip(names, quoted, strict=bool(names))]
    return f"c({', '.join(named or quoted)})"


def _flag(value: object) -> str:
    return "TRUE" if value else "FALSE"


def _string(text: str) -> str:
    """An R string: R reads JSON's escapes."""
    return json.dumps(text, ensure_ascii=False)
