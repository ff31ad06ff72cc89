"""The stopping rule of a run: what `analyse` decides, told to `run`, which knows nothing of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairtrial.analyse.sequential import Following
    from fairtrial.record.models import Plan
    from fairtrial.record.writer import Changes
    from fairtrial.run import Decision
    from fairtrial.run.conducting import StoppingRule


def stopping_rule(plan: Plan) -> StoppingRule | None:
    """Asked once for each complete round, in order; None for a plan that runs all its blocks.

    It looks at the record only, so a killed run that is resumed gets the same answers; and up to the round after the
    last look only, so that blocks of later rounds, which several hosts bring back in any order, change nothing. What it
    was told it keeps: it is told again by nobody.
    """
    if plan.design.stop == "fixed":
        return None
    following: Following | None = None
    looked_at = 0

    def decide(changes: Changes) -> Decision:
        from fairtrial.analyse import sequential
        from fairtrial.record.models import BlockVoided, LookTaken
        from fairtrial.run import Decision

        nonlocal following, looked_at
        looked_at = max((event.round for event in changes.events if isinstance(event, LookTaken)), default=looked_at)
        voided = [(event.cell, event.block) for event in changes.events if isinstance(event, BlockVoided)]
        following = following or sequential.Following(changes.plan)
        following.take(changes.plan, changes.trials, voided=voided)
        cells = following.look(looked_at + 1)
        decided = len(following.stops) == len(plan.cells)
        return Decision("stop" if decided else "continue", {"rule": following.rule.kind}, cells=cells)

    return decide
