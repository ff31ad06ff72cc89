"""Templates of the page, and how text that others wrote is put into them."""

from __future__ import annotations

from functools import cache
from typing import Any

import jinja2

from fairtrial.words import printable


def _shown(value: Any) -> Any:
    return printable(value) if type(value) is str else value  # markup is ours


@cache
def environment(root: str = "") -> jinja2.Environment:
    """Every template of the page; whatever is put into one is escaped. `root`: what all addresses begin with."""
    made = jinja2.Environment(
        loader=jinja2.PackageLoader("fairtrial.serve"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_shown,
    )
    made.globals["root"] = root
    return made
