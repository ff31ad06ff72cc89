"""The lines of tune.jsonl: what was proposed, what each proposal's block said, and what was decided from it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from fairtrial.record.events import Line
from fairtrial.record.models import RecordModel
from fairtrial.study.tuning import FEWEST_CONFIRMING, Value

State = Literal["measured", "infeasible", "failed"]


class Stages(RecordModel):
    """How a budget of trials is spent: a block of two trials per proposal, then fresh blocks of the best few.

    Attributes:
        proposals: of the search.
        best: how many of them are measured again.
        blocks: fresh blocks of each; the default has a trial in every block, too.
    """

    proposals: int
    best: int
    blocks: int

    @property
    def trials(self) -> int:
        """Of both stages."""
        return 2 * self.proposals + (self.best + 1) * self.blocks


class TuningStarted(RecordModel):
    """First line: what the search depends on beside the study."""

    event: Literal["tuning_started"] = "tuning_started"
    fairtrial_version: str
    optuna_version: str
    seed: int
    budget: int
    stages: Stages


class Proposed(RecordModel):
    """The next block's values, by option; written before anything of it runs."""

    event: Literal["proposed"] = "proposed"
    number: int
    values: dict[str, Value]


class Told(RecordModel):
    """What a proposal's block said, as the search was told.

    Attributes:
        gain: log ratio to the default of the same block, above 0 if better; null if it failed.
        excess: by guardrail: how much worse than its margin allows, as a log ratio; above 0 is a breach.
        reason: why it failed, or which guardrails it breached.
    """

    event: Literal["told"] = "told"
    number: int
    state: State
    gain: float | None
    excess: dict[str, float] = Field(default_factory=dict)
    reason: str = ""


class Shortlisted(RecordModel):
    """The search is over; these proposals, best first, are measured again in fresh blocks."""

    event: Literal["shortlisted"] = "shortlisted"
    numbers: list[int]
    blocks: int


class ConfirmationPlanned(RecordModel):
    """The best of what was measured again, and the blocks that its comparison with the default gets.

    Attributes:
        number: of the proposal; null if none is worth confirming.
        fewest: blocks that can claim at the study's confidence; journals without it were planned as if 6 always could.
        gain: of the fresh blocks.
        sd: of one block's log ratio, over all that were measured again, and its upper bound.
        reason: why no proposal is, or that fewer blocks are planned than the gain needs.
    """

    event: Literal["confirmation_planned"] = "confirmation_planned"
    number: int | None
    blocks: int = 0
    fewest: int = FEWEST_CONFIRMING
    gain: float | None = None
    sd: float | None = None
    sd_upper: float | None = None
    reason: str = ""


class TuningFinished(RecordModel):
    """Nothing is left to run."""

    event: Literal["tuning_finished"] = "tuning_finished"


TuneEvent = TuningStarted | Proposed | Told | Shortlisted | ConfirmationPlanned | TuningFinished


class TuneLine(Line):
    """One line of tune.jsonl."""

    entry: Annotated[TuneEvent, Field(discriminator="event")]
