"""Metrics in what a program printed or wrote."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from fairtrial.workloads.command import matching
from fairtrial.workloads.command.parameters import CommandMetric


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
        return _followed(_last_json(output), metric.json_path)
    try:
        content = file.read_bytes()
    except FileNotFoundError:
        raise ValueError("the program wrote no metrics file") from None
    return _followed(from_json(content), metric.file_key or "")


def _last_json(text: str) -> Any:
    """The last JSON object in the text, whatever stands around it."""
    decoder = json.JSONDecoder()
    document = None
    position = text.find("{")
    while position != -1:
        try:
            document, end = decoder.raw_decode(text, position)
        except json.JSONDecodeError:
            end = position + 1
        except RecursionError:
            raise ValueError("a JSON object in the output is nested too deeply") from None
        position = text.find("{", end)
    if document is None:
        raise ValueError("no JSON object in the output")
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
