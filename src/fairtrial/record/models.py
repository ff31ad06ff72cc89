"""The record's JSON files as models: the only contract between running and analysing.

Owns plan.json, places.json, trial.json and the lines of journal.jsonl. It must not know how any of them came about.
All times named `time_ns`, `start_ns` or `end_ns` are CLOCK_MONOTONIC of the place.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from fairtrial.study.catalogue import MetricDefinition
from fairtrial.study.resolved import ResolvedTrial

FORMAT_VERSION = 1


class RecordModel(BaseModel):
    """Frozen, and refuses keys it does not know: a record from a newer fairtrial is refused, not misread."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Cell(RecordModel):
    """One combination of conditions: levels of every factor but the arm. `name` is `all` if there are none."""

    name: str
    levels: dict[str, str]


class PlannedTrial(RecordModel):
    """One trial as planned. `position` is its slot in the whole run, from 0."""

    id: str
    cell: str
    arm: str
    block: int
    round: int
    position: int
    seed: int


class RangeExpectation(RecordModel):
    """A metric's mean over a cell's valid trials must lie in [low, high] for the cell to get a verdict."""

    factor: str
    level: str
    metric: str
    low: float | None
    high: float | None
    text: str


class PlannedMetrics(RecordModel):
    """Roles by metric name, and the definition of every metric named."""

    primary: list[str]
    secondary: list[str] = []
    guardrails: list[str] = []
    definitions: dict[str, MetricDefinition]


class Design(RecordModel):
    """How trials are ordered, stopped and judged.

    Attributes:
        blocks: blocks per cell.
        order: `randomised_blocks`, `abba` or `sequential`.
        stop: `fixed` runs all blocks.
        margin: equivalence margin as a share of the baseline (0.02 is 2 %).
        confidence: of every interval, before multiplicity.
        voided_limit: how many blocks a cell may lose to invalid trials and have replaced.
    """

    blocks: int
    order: Literal["randomised_blocks", "abba", "sequential"]
    seed: int
    stop: Literal["fixed"]
    margin: float
    confidence: float = 0.95
    voided_limit: int


class Difference(RecordModel):
    """One path at which arms differ, with each arm's value (absent where an arm does not set it)."""

    path: str
    values: dict[str, Any]


class Plan(RecordModel):
    """plan.json: the study, fully resolved. Analysis reads this and never study.yaml.

    Attributes:
        factors: level names by factor, baseline first, in study order.
        arm: the factor under test.
        resolved: by cell name, then arm name.
        differences: what differs between the arms, whatever the cell.
        trials: every trial of every planned round, in order.
        duration_s: expected, all trials and set-up.
        disk_bytes: expected need at the place.
    """

    format_version: int = FORMAT_VERSION
    fairtrial_version: str
    study: str
    question: str
    size: str | None
    factors: dict[str, list[str]]
    arm: str
    also_compare: list[str]
    cells: list[Cell]
    resolved: dict[str, dict[str, ResolvedTrial]]
    differences: list[Difference]
    expectations: list[RangeExpectation]
    metrics: PlannedMetrics
    design: Design
    telemetry_interval_ms: int
    telemetry_lock_waits: bool = False
    trials: list[PlannedTrial]
    duration_s: float
    disk_bytes: int
    warnings: list[str] = []


class Clock(RecordModel):
    """One simultaneous look at a place's clocks."""

    monotonic_ns: int
    realtime_ns: int


class Window(RecordModel):
    """The measured window on the place's monotonic clock."""

    start_ns: int
    end_ns: int


class EffectiveSetting(RecordModel):
    """What was asked of one setting, what it was before, and what was read back."""

    name: str
    asked: str
    before: str | None
    read_back: str | None


class Check(RecordModel):
    """One consistency condition checked after the trial. `violations` of 0 is a pass."""

    name: str
    statement: str
    violations: int
    examples: list[str] = []


class TrialRecord(RecordModel):
    """trial.json: one trial, whole.

    Attributes:
        levels: level of every factor, arm included.
        valid: whether estimates may use it. An invalid trial voids its block.
        invalid_reason: why not, empty if valid.
        scalars: metric name → value; recomputable from the trial's other files.
        effective: settings as read back.
        options: system options as read back, name → value.
        system_facts: binary, version, build hash.
        subject: what ran the trial beyond the system: the agent's hash, the kernel's build. Equal within a run.
        data: key, content hash and restore method of the prepared data.
        checks: consistency conditions, empty if none were run after this trial.
        phases_s: seconds spent in each phase: `prepare`, `restore`, `settle`, `start`, `drive` (ramp-up and window),
            `check`, `stop`, `undo`, `collect`.
        telemetry: sampler sources that have a file.
    """

    format_version: int = FORMAT_VERSION
    trial: PlannedTrial
    levels: dict[str, str]
    resolved: ResolvedTrial
    valid: bool
    invalid_reason: str = ""
    started: str
    finished: str
    clock: Clock
    window: Window | None
    scalars: dict[str, float]
    effective: list[EffectiveSetting] = []
    options: dict[str, str] = {}
    system_facts: dict[str, Any] = {}
    subject: dict[str, str] = {}
    data: dict[str, Any] = {}
    checks: list[Check] = []
    phases_s: dict[str, float] = {}
    telemetry: list[str] = []


class RunStarted(RecordModel):
    """First line of a journal."""

    event: Literal["run_started"] = "run_started"
    study_sha256: str
    plan_sha256: str
    host: str
    process: int


class RunResumed(RecordModel):
    """A later process took the run up again."""

    event: Literal["run_resumed"] = "run_resumed"
    host: str
    process: int


class PlaceOpened(RecordModel):
    """A place was opened, at the start, after a lost stream or by a resumption.

    Attributes:
        place: its kind and parameters.
        facts: of the machine, as the agent found them.
        agent_sha256: the agent's binary.
        clock: both clocks of the place at that moment.
        server_user: user that servers run as; null if the agent's own.
    """

    event: Literal["place_opened"] = "place_opened"
    place: dict[str, Any]
    facts: dict[str, Any]
    agent_sha256: str
    clock: Clock
    server_user: str | None


class TrialStarted(RecordModel):
    """A trial began; without a `trial_finished` after it, it left nothing that counts."""

    event: Literal["trial_started"] = "trial_started"
    trial: PlannedTrial


class TrialFinished(RecordModel):
    """A trial's directory was committed. `files`: path relative to the trial's directory → SHA-256."""

    event: Literal["trial_finished"] = "trial_finished"
    trial: str
    valid: bool
    invalid_reason: str = ""
    files: dict[str, str]


class BlockVoided(RecordModel):
    """A block lost a trial; its other trials are kept and left out of estimates."""

    event: Literal["block_voided"] = "block_voided"
    cell: str
    block: int
    reason: str


class BlockAdded(RecordModel):
    """A replacement joined a later round."""

    event: Literal["block_added"] = "block_added"
    cell: str
    block: int
    round: int
    replaces: int
    trials: list[PlannedTrial]


class Looked(RecordModel):
    """A stopping rule looked at complete rounds."""

    event: Literal["looked"] = "looked"
    round: int
    decision: Literal["continue", "stop"]
    details: dict[str, Any] = {}


class RunInterrupted(RecordModel):
    """The run stopped before its end, in order (Ctrl-C, a place that failed, the limit of voided blocks)."""

    event: Literal["run_interrupted"] = "run_interrupted"
    reason: str


class RunFinished(RecordModel):
    """The run reached its planned end."""

    event: Literal["run_finished"] = "run_finished"


Event = (
    RunStarted
    | RunResumed
    | PlaceOpened
    | TrialStarted
    | TrialFinished
    | BlockVoided
    | BlockAdded
    | Looked
    | RunInterrupted
    | RunFinished
)


class JournalLine(RecordModel):
    """One line of journal.jsonl. `sequence` counts from 0 without gaps."""

    sequence: int
    time: str
    entry: Annotated[Event, Field(discriminator="event")]
