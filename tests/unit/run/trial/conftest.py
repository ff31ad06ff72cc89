"""A trial whose system and workload are a test's, at a real place."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.facts import facts_of
from support.machines.places import place_here
from support.machines.stage import Stage, Staged
from support.progress import Told
from support.records import tiny_plan

from fairtrial import record
from fairtrial.run.trial import runner
from fairtrial.study.probes import Probe


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    staged, progress = Staged(), Told()
    monkeypatch.setattr(runner, "parts_of", lambda _resolved: staged.parts)
    plan = tiny_plan().model_copy(update={"telemetry_interval_ms": 1000, "probes": [Probe(command="sleep 600")]})
    writer = record.create(tmp_path / "run", plan=plan, sources={"study.yaml": "study: tiny\n"})
    with place_here(tmp_path) as place:
        place.facts = facts_of(processors=[0, 1, 2])  # and not root: nobody's caches are dropped
        own = runner.TrialRunner(place, writer, progress, runner.ExistingServers(place, "a test"))
        yield Stage(staged, own, writer, progress, monkeypatch, tmp_path)
    writer.close()
