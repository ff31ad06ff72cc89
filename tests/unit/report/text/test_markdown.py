"""Anybody's text in Markdown is shown as it is: nothing in it ends its code span."""

import re

import pytest

from fairtrial.report import markdown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "`plain`"),
        ("a `b` c", "``a `b` c``"),
        ("``x", "``` ``x ```"),
        ("<b>@team #1 [x](http://y)", "`<b>@team #1 [x](http://y)`"),
        ("one\n\n# two\r\u2028three", "`one  # two  three`"),
        ("", "` `"),
        ("\x1b[31m", "`[31m`"),
    ],
)
def test_a_text_is_one_code_span_of_one_line(text: str, shown: str) -> None:
    assert markdown.code(text) == shown
    fence = re.match("`+", shown)
    assert fence is not None
    runs = re.findall("`+", shown)
    assert runs.count(fence[0]) == 2


def test_a_bar_does_not_end_a_cell() -> None:
    assert markdown.cell("a|b") == "`a\\|b`"
