"""Metrics in what a program printed or wrote."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final

from pydantic_core import from_json

from fairtrial.workloads.command import matching
from fairtrial.workloads.command.parameters import CommandMetric

BEGIN_OBJECT: Final = re.compile(r"\{")
BEGIN_LIST: Final = re.compile(r"[{\[]")  # a list within an object is not a document


def read(metric: CommandMetric, output: str, *, file: Path) -> float:
    """A metric's value.

    Args:
        metric: where it stands.
        output: of the program.
        file: that the program writes metrics to.

    Raises:
        ValueError: it is not there or is no number, in words.
    """
    if metric.regex is not None:
        try:
            return float(matching.last(metric.regex, output))
        except IndexError:
            raise ValueError(f"nothing matches `{metric.regex}`") from None
    if metric.json_path is not None:
        return _followed(_last_json(output, is_list=metric.json_path.startswith("[")), metric.json_path)
    try:
        content = file.read_bytes()
    except FileNotFoundError:
        raise ValueError("the program wrote no metrics file") from None
    return _followed(from_json(content), metric.file_key or "")


def _last_json(text: str, *, is_list: bool) -> Any:
    """The last JSON object in the text, or list if the path begins in one, whatever stands around it."""
    decoder = json.JSONDecoder()
    begin = BEGIN_LIST if is_list else BEGIN_OBJECT
    document = None
    found = begin.search(text)
    while found is not None:
        try:
            value, end = decoder.raw_decode(text, found.start())
            document = value if isinstance(value, list) == is_list else document
        except json.JSONDecodeError:
            end = found.end()
        except RecursionError:
            raise ValueError("a JSON document in the output is nested too deeply") from None
        found = begin.search(text, end)
    if document is None:
        raise ValueError(f"no JSON {'list' if is_list else 'object'} in the output")
    return document


def _followed(value: Any, path: str) -> float:
    for part in re.findall(r"[^.\[\]]+", path):
        try:
            value = value[int(part)] if isinstance(value, list) else value[part]
        except (KeyError, IndexError, TypeError, ValueError):
            raise ValueError(f"nothing is at `{path}`: no `{part}`") from None
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ValueError(f"no number is at `{path}`") from None
    except OverflowError:
        raise ValueError(f"the number at `{path}` is too large") from None
