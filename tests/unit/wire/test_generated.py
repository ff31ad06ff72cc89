"""The Python types of the wire are those of the agent: being stale is a failing test."""

from __future__ import annotations

import subprocess
from pathlib import Path

from fairtrial.wire import find_agent

ROOT = Path(__file__).parents[3]


def test_generated_types_are_those_of_the_agent(tmp_path: Path) -> None:
    subprocess.run([ROOT / "scripts" / "generate-wire", find_agent(), tmp_path], check=True)
    for fresh, committed in [
        (tmp_path / "wire.schema.json", ROOT / "schemas" / "wire.schema.json"),
        (tmp_path / "generated.py", ROOT / "src" / "fairtrial" / "protocol" / "generated.py"),
    ]:
        assert committed.read_text() == fresh.read_text(), f"{committed.name} is stale: run scripts/generate-wire"
