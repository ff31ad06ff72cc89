"""The stopping rule of a run: asked about one round after the other, whatever has come back of later ones."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from support.records import planned, tiny_plan, trial_record

from fairtrial.analyse.sequential import follow
from fairtrial.cli.running.stopping import stopping_rule
from fairtrial.record import create
from fairtrial.record.models import LookTaken


def test_each_look_is_at_the_round_after_the_last_one(tmp_path: Path) -> None:
    base = tiny_plan()
    design = base.design.model_copy(update={"blocks": 8, "stop": "sequential", "min_blocks": 3})
    trials = [planned(block, arm) for block in range(1, 9) for arm in "ab"]
    plan = base.model_copy(update={"design": design, "trials": trials})
    rule = stopping_rule(plan)
    assert rule is not None
    with closing(create(tmp_path / "run", plan=plan, sources={"study.yaml": "study: tiny\n"})) as writer:
        for trial in trials[:10]:  # five rounds came back before anybody asked
            writer.begin(trial.id)
            elapsed_s = trial.block / 1000 + (1 if trial.arm == "a" else 2)
            writer.commit(trial_record(trial).model_copy(update={"scalars": {"elapsed_s": elapsed_s}, "host": "x"}))
        for round_ in (1, 2, 3):
            said = rule(writer.changes())
            run = follow(plan, writer.record().trials, through=round_)
            assert run is not None
            assert said.cells == run.looks[-1]
            assert said.cells[0].blocks == round_
            assert said.decision == ("stop" if round_ == 3 else "continue")
            writer.append(LookTaken(round=round_, decision=said.decision, cells=list(said.cells)))


def test_a_plan_that_runs_all_its_blocks_has_no_rule() -> None:
    assert stopping_rule(tiny_plan()) is None
