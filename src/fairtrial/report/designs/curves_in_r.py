"""What raw_data.r has to know of curves, in R; `templates/curves.r` fits them."""

from __future__ import annotations

import json
from collections.abc import Iterable

from fairtrial.analyse.models import Analysis


def lines(analysis: Analysis) -> list[str]:
    """The curves whose errors come from blocks and whose model has parameters; nothing without any."""
    known = [each for each in analysis.curves if each.arms and each.spread == "blocks" and each.model != "loess"]
    if not known:
        return []
    size = max((one.family_size for each in known for pair in each.pairs for one in pair.parameters), default=1)
    calls = [
        f"  list({_text(each.metric)}, {_text(each.model)}, c({', '.join(map(repr, each.values))}), "
        f"{_texts(each.cells)}, {_texts(analysis.levels)}, {_text(each.cell)})"
        for each in known
    ]
    return [f"curve_family <- {size}", "curves <- list(", ",\n".join(calls), ")"]


def _text(text: str) -> str:
    """An R string: R reads JSON's escapes."""
    return json.dumps(text, ensure_ascii=False)


def _texts(texts: Iterable[str]) -> str:
    return f"c({', '.join(map(_text, texts))})"
