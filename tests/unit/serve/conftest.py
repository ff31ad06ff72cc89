"""Records as a reader of the page has them, written by the record's own writer."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from support.records import planned, tiny_plan, trial_record

from fairtrial import record, report
from fairtrial.caching import CACHE_VARIABLE
from fairtrial.record.events import Event, RunFinished
from fairtrial.record.models import Plan
from fairtrial.report.analysing import analysed

BLOCKS = 8
Write = Callable[..., Path]
State = Literal["unfinished", "finished", "reported"]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    directory = tmp_path / "cache"
    monkeypatch.setenv(CACHE_VARIABLE, str(directory))
    return directory


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    directory = tmp_path / "runs"
    directory.mkdir()
    return directory


@pytest.fixture
def write(runs: Path) -> Write:
    """Writes a run of the tiny study: times of arm a around `level`, those of arm b `ratio` times as long."""

    def written(
        name: str,
        *,
        ratio: float = 1.0,
        level: float = 1.0,
        state: State = "reported",
        events: Sequence[Event] = (),
        **changes: object,
    ) -> Path:
        plan = _plan(changes)
        writer = record.create(runs / name, plan=plan, sources={"study.yaml": f"study: {plan.study}\n"})
        for event in events:
            writer.append(event)
        generator = np.random.default_rng(sum(name.encode()))
        for trial in plan.trials[:3] if state == "unfinished" else plan.trials:
            value = level * (ratio if trial.arm == "b" else 1.0) * math.exp(0.01 * generator.standard_normal())
            done = trial_record(trial).model_copy(
                update={"scalars": {"elapsed_s": value}, "system_facts": {"version": "tool 4.2.1 (Debian)"}}
            )
            writer.begin(trial.id)
            writer.commit(done)
        if state != "unfinished":
            writer.append(RunFinished())
        writer.close()
        if state == "reported":
            found = record.read(runs / name)
            report.write(found, analysed(found), runs / name / "report", drawn=False)
        return runs / name

    return written


def _plan(changes: dict[str, object]) -> Plan:
    plan = tiny_plan()
    design = plan.design.model_copy(update={"blocks": BLOCKS})
    trials = [planned(block, arm) for block in range(1, BLOCKS + 1) for arm in "ab"]
    return plan.model_copy(update={"design": design, "trials": trials, **changes})
