"""The lines of journal.jsonl: every kind of entry, each a model of its own, and what a person made a run do."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field

from fairtrial.record.models import (
    BlockAdded,
    BlockVoided,
    Extended,
    LookTaken,
    PlaceOpened,
    RecordModel,
    TrialFinished,
    TrialStarted,
)

# Names variables, separated by commas, that an agent's processes get beside the few of a clean environment; `*`: all.
KEPT_VARIABLE: Final = "FAIRTRIAL_ENVIRONMENT"
Act = Literal["stop_after_trial", "stop_now", "pause", "resume", "extend"]


class RunStarted(RecordModel):
    """First line of a journal. `merged_sha256`: of `study.merged.yaml`; older versions left it out.

    `environment`: `FAIRTRIAL_ENVIRONMENT`, which decides what a trial's programs see; left out where it was not set.
    """

    event: Literal["run_started"] = "run_started"
    study_sha256: str
    plan_sha256: str
    merged_sha256: Annotated[str, Field(exclude_if=lambda sha256: not sha256)] = ""
    environment: Annotated[str, Field(exclude_if=lambda names: not names)] = ""
    host: str
    process: int


class RunResumed(RecordModel):
    """A later process took the run up again."""

    event: Literal["run_resumed"] = "run_resumed"
    host: str
    process: int


class RunInterrupted(RecordModel):
    """The run stopped before its end, in order (Ctrl-C, a place that failed, the limit of voided blocks).

    `exit_code` is what `fairtrial` then ends with; 0 in records of versions that did not say.
    """

    event: Literal["run_interrupted"] = "run_interrupted"
    reason: str
    exit_code: int = 0


class RunFinished(RecordModel):
    """The run reached its planned end."""

    event: Literal["run_finished"] = "run_finished"


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


class Line(RecordModel):
    """One line of a journal. `sequence` counts from 0 without gaps."""

    sequence: int
    time: str
    entry: RecordModel


class JournalLine(Line):
    """One line of journal.jsonl. `sequence` counts from 0 without gaps."""

    entry: Annotated[Event, Field(discriminator="event")]
