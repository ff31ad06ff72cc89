"""What the control plane knows of native subcommands is what the agent's binary says of them."""

from __future__ import annotations

import re
import subprocess
from types import NoneType
from typing import Any

import pytest

from fairtrial.protocol import subcommands
from fairtrial.protocol.subcommands import Failure, Subcommand, failure
from fairtrial.wire import find_agent

KNOWN: list[Subcommand[Any, Any]] = [each for each in vars(subcommands).values() if isinstance(each, Subcommand)]


def test_each_takes_and_gives_what_the_agent_says_that_it_does() -> None:
    shown = subprocess.run([find_agent(), "--help"], check=True, capture_output=True, text=True).stdout
    said = {words.split()[0]: words for words in re.split(r"\n  (?=\w)", shown.partition("Commands:")[2])[1:]}
    assert len(KNOWN) == 23
    for each in KNOWN:
        named = [kind.__name__ for kind in (each.takes, each.gives) if kind is not NoneType]
        assert all(f"`{name}`" in said[each.name] for name in named), each.name


@pytest.mark.parametrize("lines", [[], ["[]", "7", "thread panicked", '{"rows": {}}']])
def test_lines_that_tell_no_error_are_none(lines: list[str]) -> None:
    assert failure(lines) is None


def test_the_last_error_counts_and_may_come_without_advice() -> None:
    lines = ['{"error": "first", "hint": "a"}', '{"error": "last"}', "noise"]
    assert failure(lines) == Failure(error="last", hint="see the message above")
