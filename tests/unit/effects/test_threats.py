"""Every test that the threat model names exists."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "explanation" / "threats.md"
NAMED = re.compile(r"`((?:unit|end_to_end|fuzzing|crates)/[\w./-]+\.(?:py|rs))::(\w+)`")
FEWEST = 50


def _exists(file: str, name: str) -> bool:
    path = ROOT / file if file.startswith("crates/") else ROOT / "tests" / file
    keyword = "fn" if file.endswith(".rs") else "def"
    return path.is_file() and re.search(rf"\b{keyword} {name}\(", path.read_text(encoding="utf-8")) is not None


def test_every_promise_names_tests_that_exist() -> None:
    text = PAGE.read_text(encoding="utf-8")
    named = NAMED.findall(text)
    assert len(named) >= FEWEST
    assert [f"{file}::{name}" for file, name in named if not _exists(file, name)] == []
    rows = [line for line in text.splitlines() if line.startswith("| ") and not line.startswith("| promise")]
    assert [line for line in rows if not NAMED.search(line)] == []
