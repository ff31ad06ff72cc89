"""`fairtrial schema` as installed: every study that is shipped or shown fits, and mistakes do not."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from ruamel.yaml import YAML
from support.command_line import desk

ROOT = Path(__file__).parents[3]
SHIPPED = sorted((ROOT / "src" / "fairtrial" / "studies").glob("*.yaml"))
SHOWN = [
    text
    for text in re.findall(r"(?ms)^```yaml\n(.*?)^```", (ROOT / "README.md").read_text(encoding="utf-8"))
    if text.lstrip().startswith("study:")
]


@pytest.fixture(scope="module")
def printed() -> Any:
    with desk() as here:
        return json.loads(here.fairtrial("schema").stdout)


def read(text: str) -> Any:
    return YAML(typ="safe", pure=True).load(text)


def test_it_is_a_schema(printed: Any) -> None:
    jsonschema.Draft202012Validator.check_schema(printed)
    assert SHIPPED
    assert SHOWN


@pytest.mark.parametrize("text", [*(path.read_text(encoding="utf-8") for path in SHIPPED), *SHOWN])
def test_shipped_and_shown_studies_fit(printed: Any, text: str) -> None:
    jsonschema.Draft202012Validator(printed).validate(read(text))


@pytest.mark.parametrize(
    ("old", "new"), [("\narm:", "\narms:"), ("\nworkload:", "\nworklod:"), ("\nmetrics:", "\nmetric:")]
)
def test_a_misspelt_key_does_not_fit(printed: Any, old: str, new: str) -> None:
    broken = SHIPPED[0].read_text(encoding="utf-8").replace(old, new, 1)
    assert new in broken
    assert not jsonschema.Draft202012Validator(printed).is_valid(read(broken))
