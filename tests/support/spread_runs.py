"""A study whose blocks hosts of a farm run, and what its record must be whatever happened to them."""

from __future__ import annotations

from collections import defaultdict

from fairtrial.record import Record
from fairtrial.record.models import TrialFinished

STUDY = """\
study: spread
place: {{local: {{}}}}
workload: {{command: {{run: {program}}}}}
settings: {settings}
factors: {{arm: {{a: {{}}, b: {{workload: {{command: {{run: {other}}}}}}}}}}}
arm: arm
trials: {{blocks: {blocks}, seed: 4}}
metrics: {{primary: elapsed_s}}
telemetry: {{interval: 50ms}}
"""


def study_of(program: str, *, blocks: int, other: str = "", settings: str = "{}") -> str:
    """The study's text; `other`: what the second arm runs instead."""
    return STUDY.format(program=program, other=other or f"{program} b", blocks=blocks, settings=settings)


def whole(found: Record, *, blocks: int) -> dict[str, list[tuple[str, int]]]:
    """Checks that nothing is lost or doubled; blocks by the host that ran them."""
    assert found.finished
    names = [event.trial for event in found.events if isinstance(event, TrialFinished)]
    assert len(names) == len(set(names))
    ran: dict[str, list[tuple[str, int]]] = defaultdict(list)
    by_block = defaultdict(set)
    voided = {(event.cell, event.block) for event in found.voided}
    for trial in found.trials:
        if (trial.trial.cell, trial.trial.block) not in voided:
            by_block[trial.trial.cell, trial.trial.block].add((trial.trial.arm, trial.host))
    assert len(by_block) == blocks
    for block, arms in by_block.items():
        assert {arm for arm, _host in arms} == {"a", "b"}
        ((host),) = {host for _arm, host in arms}
        ran[host].append(block)
    return ran
