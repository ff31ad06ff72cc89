"""Anybody's text in Markdown: shown, never interpreted."""

from __future__ import annotations

import re
from typing import Final

_RUN: Final = re.compile(r"`+")
_BREAK: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def code(text: str) -> str:
    """A text as a code span: no markup, link, mention or new line of it survives, in a table or outside."""
    shown = _BREAK.sub(" ", text).strip() or " "
    fence = "`" * (max((len(run) for run in _RUN.findall(shown)), default=0) + 1)
    padding = " " if "`" in (shown[0], shown[-1]) else ""
    return f"{fence}{padding}{shown}{padding}{fence}"


def cell(text: str) -> str:
    """The same in a cell of a table, which a bar would end."""
    return code(text).replace("|", "\\|")
