"""docs/reference/server-counters.md: what a server's own counters are called, from the sampler's own list."""

from __future__ import annotations

import json
from pathlib import Path

from reference.markdown import render, table

SOURCE = Path(__file__).parents[2] / "crates" / "sample" / "src" / "server" / "counters.json"


def page() -> str:
    """The page as Markdown."""
    counters = json.loads(SOURCE.read_text(encoding="utf-8"))
    rows = (
        (f"`{each['column']}`", each["kind"], each["meaning"], _names(each["mysql"]), _names(each["postgres"]))
        for each in counters
    )
    return render(
        "server-counters.md",
        counters=table(("column", "kind", "meaning", "MariaDB, MySQL", "PostgreSQL"), rows),
    )


def _names(candidates: list[str]) -> str:
    """The names in their order of preference; a dash where a family has no such counter."""
    return "<br>".join(f"`{name}`" for name in candidates) or "–"
