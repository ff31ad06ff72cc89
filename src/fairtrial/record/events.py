"""The lines of journal.jsonl: every kind of entry, each a model of its own, and what a person made a run do."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from fairtrial.record.models import (
    BlockAdded,
    BlockVoided,
    Extended,
    LookTaken,
    PlaceOpened,
    RecordModel,
    RunFinished,
    RunInterrupted,
    RunResumed,
    RunStarted,
    TrialFinished,
    TrialStarted,
)

Act = Literal["stop_after_trial", "stop_now", "pause", "resume", "extend"]


class Steered(RecordModel):
    """Somebody asked the run for something while it went on. `reason`: why it was refused; empty if it was done.

    `blocks`: how many more, of `extend`.
    """

    event: Literal["steered"] = "steered"
    act: Act
    blocks: int = 0
    obeyed: bool
    reason: str = ""


class PageServed(RecordModel):
    """What the page of `fairtrial run --page` used, user and system, while one process of the run went on.

    `shared`: whether trials could use the same processors.
    """

    event: Literal["page_served"] = "page_served"
    processor_s: float
    elapsed_s: float
    shared: bool


class FarmServed(RecordModel):
    """What the processes of a farm's back end used on a host, beside its trials, while blocks ran there."""

    event: Literal["farm_served"] = "farm_served"
    host: str
    processor_s: float
    elapsed_s: float


class BlockLeased(RecordModel):
    """A host of a farm was given a block; without `trial_finished` for its trials, it left nothing that counts.

    `host`: empty where the farm chooses it.
    """

    event: Literal["block_leased"] = "block_leased"
    cell: str
    block: int
    host: str
    trials: list[str]


class HostLeft(RecordModel):
    """A host of a farm gets no more blocks of this run."""

    event: Literal["host_left"] = "host_left"
    host: str
    reason: str


Event = (
    RunStarted
    | RunResumed
    | PlaceOpened
    | TrialStarted
    | BlockLeased
    | HostLeft
    | FarmServed
    | TrialFinished
    | BlockVoided
    | BlockAdded
    | Extended
    | LookTaken
    | Steered
    | PageServed
    | RunInterrupted
    | RunFinished
)


class JournalLine(RecordModel):
    """One line of journal.jsonl. `sequence` counts from 0 without gaps."""

    sequence: int
    time: str
    entry: Annotated[Event, Field(discriminator="event")]
