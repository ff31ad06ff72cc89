"""The stopping rule of a run: what `analyse` decides, told to `run`, which knows nothing of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairtrial.analyse.sequential import SequentialRun
    from fairtrial.record import Record
    from fairtrial.record.models import Plan
    from fairtrial.run import Decision
    from fairtrial.run.conducting import StoppingRule


def stopping_rule(plan: Plan) -> StoppingRule | None:
    """Asked once for each complete round, in order; None for a plan that runs all its blocks.

    It looks at the record only, so a killed run that is resumed gets the same answers; and up to the round after the
    last look only, so that blocks of later rounds, which several hosts bring back in any order, change nothing.
    """
    if plan.design.stop == "fixed":
        return None
    followed: SequentialRun | None = None

    def decide(record: Record) -> Decision:
        from fairtrial.analyse import sequential
        from fairtrial.record.models import LookTaken
        from fairtrial.run import Decision

        nonlocal followed
        looked_at = max((event.round for event in record.events if isinstance(event, LookTaken)), default=0)
        voided = {(event.cell, event.block) for event in record.voided}
        run = sequential.follow_on(followed, record.plan, record.trials, through=looked_at + 1, voided=voided)
        followed = run
        assert run is not None  # noqa: S101 - the design says so
        decided = len(run.stops) == len(record.plan.cells)
        cells = run.looks[-1] if run.looks else ()
        return Decision("stop" if decided else "continue", {"rule": run.rule.kind}, cells=cells)

    return decide
