"""The stopping rule of a run: what `analyse` decides, told to `run`, which knows nothing of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairtrial.record import Record
    from fairtrial.record.models import Plan
    from fairtrial.run import Decision
    from fairtrial.run.loop import StoppingRule


def stopping_rule(plan: Plan) -> StoppingRule | None:
    """Asked after every complete round; None for a plan that runs all its blocks.

    It looks at the record only, so a killed run that is resumed gets the same answers.
    """
    if plan.design.stop == "fixed":
        return None

    def decide(record: Record) -> Decision:
        from fairtrial.analyse import sequential
        from fairtrial.run import Decision

        run = sequential.follow(record.plan, record.trials)
        assert run is not None  # noqa: S101 - the design says so
        decided = len(run.stops) == len(record.plan.cells)
        cells = run.looks[-1] if run.looks else ()
        return Decision("stop" if decided else "continue", {"rule": run.rule.kind}, cells=cells)

    return decide
