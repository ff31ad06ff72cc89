"""Templates of the page, and how text that others wrote is put into them."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import jinja2

LAYOUT: Final = "\n\t"  # what may stand in a text though it prints nothing


def printable(text: str) -> str:
    """The same text with what would not be seen, or would turn others' order around, as escape sequences."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() or each in LAYOUT else ascii(each)[1:-1] for each in text)


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
