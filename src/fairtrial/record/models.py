"""The record's JSON files as models: the only contract between running and analysing.

Owns plan.json, places.json, trial.json and most entries of journal.jsonl. It must not know how any of them came about.
All times named `time_ns`, `start_ns` or `end_ns` are CLOCK_MONOTONIC of the place.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import (
    AfterValidator,
    AllowInfNan,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    SerializerFunctionWrapHandler,
    model_serializer,
)

from fairtrial.protocol import generated
from fairtrial.record.screening import Screening
from fairtrial.study.builds import Builds
from fairtrial.study.catalogue import MetricDefinition
from fairtrial.study.designs.numeric_factors import Curve
from fairtrial.study.probes import Probe
from fairtrial.study.resolved import ResolvedTrial, Section
from fairtrial.study.service_counters import CounterCommand, CounterMetric, Exporter

FORMAT_VERSION = 1
COMPONENT_BYTES = 255  # limits.h, NAME_MAX


def _known_version(version: int) -> int:
    if version != FORMAT_VERSION:
        raise ValueError(f"expected format version {FORMAT_VERSION}, found {version}")
    return version


def _one_component(name: str) -> str:
    if name in ("", ".", "..") or not name.isprintable() or "/" in name or len(name.encode()) > COMPONENT_BYTES:
        raise ValueError(f"expected a valid file name, found {name!r}")
    return name


def _below(name: str) -> str:
    for part in name.split("/"):
        _one_component(part)
    return name


FormatVersion = Annotated[int, AfterValidator(_known_version)]
FileName = Annotated[str, AfterValidator(_one_component)]  # becomes a file or directory of the record
RelativePath = Annotated[str, AfterValidator(_below)]
Reboot = Literal["every_trial", "between_blocks"]
StopReason = Literal["", "difference", "equivalence", "decided", "futility", "precision", "blocks", "time_budget"]


class RecordModel(BaseModel):
    """Frozen, and refuses keys it does not know: a record from a newer fairtrial is refused, not misread."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)  # JSON has neither


class Cell(RecordModel):
    """One combination of conditions: levels of every factor but the arm. `name` is `all` if there are none."""

    name: str
    levels: dict[str, str]


class PlannedTrial(RecordModel):
    """One trial as planned. `position` is its slot in the plan, from 0; that of a replacement follows all others.

    `diagnostic`: it carries the plan's probes, and no estimate uses it; `block` and `round` count such trials alone.
    `half`: 1 or 2, the half of its machine's processors that it has in a duet; null, and left out, elsewhere.
    `boot`: trials of the same are in one boot of their place, where its arm's trials share one; else left out.
    `repeat`: the number of the trial of its cell in that boot, left out for the first.
    """

    id: FileName
    cell: FileName
    arm: FileName
    block: int
    round: int
    position: int
    seed: int
    diagnostic: bool = False
    half: Annotated[Literal[1, 2] | None, Field(exclude_if=lambda half: half is None)] = None
    boot: Annotated[str, Field(exclude_if=lambda boot: not boot)] = ""
    repeat: Annotated[int, Field(exclude_if=lambda repeat: repeat == 1)] = 1


class RangeExpectation(RecordModel):
    """A metric's mean over the baseline arm's valid trials in a cell must lie in [low, high] for a verdict."""

    factor: str
    level: str
    metric: str
    low: float | None
    high: float | None
    text: str


class PlannedMetrics(RecordModel):
    """Roles by metric name, and the definition of every metric named.

    `guardrail_margins` has the guardrails whose margin is not the design's, each as a share; `own` says how metrics of
    the study's own are made from counters. `covariates` are measured before each trial; `adjust`: they adjust verdicts.
    """

    primary: list[str]
    secondary: list[str] = []
    guardrails: list[str] = []
    guardrail_margins: dict[str, float] = {}
    own: dict[str, CounterMetric] = {}
    covariates: Annotated[list[str], Field(exclude_if=lambda covariates: not covariates)] = []
    adjust: Annotated[bool, Field(exclude_if=lambda adjust: not adjust)] = False
    definitions: dict[str, MetricDefinition]


class Design(RecordModel):
    """How trials are ordered, stopped and judged.

    Attributes:
        blocks: blocks per cell; the largest number unless `stop` is `fixed`.
        order: `randomised_blocks`, `abba`, `sequential`, or `duet`, both arms of a block at the same time.
        stop: `fixed` runs all blocks; the others decide after each round which cells get more.
        margin: equivalence margin as a share of the baseline (0.02 is 2 %).
        confidence: of every interval, before multiplicity.
        voided_limit: how many blocks a cell may lose to invalid trials and have replaced.
        hosts: of a farm: `alike` must have the kernel, processor and agent in common, `factor` may differ.
        reboot: whether a place that boots does so before every trial, or once for an arm in a round.
        per_boot: trials of each cell in such a boot, whose mean is one value.
        neighbours: what counts once where a rule asks whether neighbouring blocks are alike: `cells`, or their `boots`.
        stops_by: whose test must claim before a cell stops: Student's alone, or that of the `verdict` as well.
        min_blocks: blocks before the first decision; null if `stop` is `fixed`, as all below.
        spending: how `sequential` spends the error over its looks.
        futility: whether a cell is given up once a claim has become improbable.
        equivalence: whether a cell stops once equivalence is shown.
        precision: how far the interval may reach to either side, as a share, for `precision` to stop.
        time_budget_s: time of trials within which the last round must end.
    """

    blocks: int
    order: Literal["randomised_blocks", "abba", "sequential", "duet"]
    seed: int
    stop: Literal["fixed", "sequential", "anytime", "precision"]
    margin: float
    confidence: float = 0.95
    voided_limit: int
    hosts: Literal["alike", "factor"] = "alike"
    reboot: Annotated[Reboot, Field(exclude_if=lambda reboot: reboot == "every_trial")] = "every_trial"
    per_boot: Annotated[int, Field(exclude_if=lambda per_boot: per_boot == 1)] = 1
    neighbours: Annotated[Literal["cells", "boots"], Field(exclude_if=lambda counts: counts == "cells")] = "cells"
    stops_by: Annotated[Literal["student", "verdict"], Field(exclude_if=lambda test: test == "student")] = "student"
    min_blocks: int | None = None
    spending: Literal["pocock", "obrien_fleming"] | None = None
    futility: bool | None = None
    equivalence: bool | None = None
    precision: float | None = None
    time_budget_s: float | None = None


class Difference(RecordModel):
    """One path at which arms differ, with each arm's value (absent where an arm does not set it)."""

    path: str
    values: dict[str, JsonValue]


class Extended(RecordModel):
    """After the look at `round` the largest number of blocks grew by `blocks`: a round for each, of cells left open."""

    event: Literal["extended"] = "extended"
    round: int
    blocks: int
    trials: list[PlannedTrial]


class Plan(RecordModel):
    """plan.json: the study, fully resolved. Analysis reads this and never study.yaml.

    Attributes:
        factors: level names by factor, baseline first, in study order.
        arm: the factor under test.
        resolved: by cell name, then arm name.
        screening: the matrix whose rows are the arms; left out where the study does not screen.
        values: numbers by level, of numeric factors; left out, as `curve` is, where there are none.
        differences: what differs between the arms, whatever the cell.
        trials: every trial of every planned round, in order.
        duration_s, diagnostic_duration_s: expected, all of `trials` and set-up, and all of `diagnostics`.
        exporters, counter_commands: what is read beside the load.
        probes: what diagnostic trials carry.
        diagnostics: diagnostic trials, in order, after all others.
        disk_bytes: expected need at the place.
        against_itself: an A/A run: both levels of the arm are the baseline.
    """

    format_version: FormatVersion = FORMAT_VERSION
    fairtrial_version: str
    study: str
    question: str
    size: str | None
    factors: dict[FileName, list[FileName]]
    arm: FileName
    also_compare: list[FileName]
    cells: list[Cell]
    resolved: dict[str, dict[str, ResolvedTrial]]
    screening: Annotated[Screening | None, Field(exclude_if=lambda screening: screening is None)] = None
    values: Annotated[dict[FileName, dict[FileName, float]], Field(exclude_if=lambda values: not values)] = {}
    curve: Annotated[Curve | None, Field(exclude_if=lambda curve: curve is None)] = None
    builds: Annotated[Builds | None, Field(exclude_if=lambda builds: builds is None)] = None
    differences: list[Difference]
    expectations: list[RangeExpectation]
    metrics: PlannedMetrics
    design: Design
    telemetry_interval_ms: int
    telemetry_lock_waits: bool = False
    exporters: list[Exporter] = []
    counter_commands: list[CounterCommand] = []
    probes: list[Probe] = []
    diagnostics: list[PlannedTrial] = []
    diagnostic_duration_s: float = 0.0
    trials: list[PlannedTrial]
    duration_s: float
    disk_bytes: int
    against_itself: bool = False
    warnings: list[str] = []
    extensions: list[Extended] = Field(default=[], exclude=True)  # of the journal, where a record was read


class Clock(RecordModel):
    """One simultaneous look at a place's clocks."""

    monotonic_ns: int
    realtime_ns: int


class ClockShift(RecordModel):
    """What was added to the times of telemetry, so that one clock, the workload's place's, tells all of a trial's.

    `error_ns`: by how much it may be wrong, half of what asking both places' clocks took.
    """

    shift_ns: int
    error_ns: int


class ClientRecord(RecordModel):
    """One of several clients that drove together.

    Attributes:
        place: in words.
        users: virtual users that it had.
        start_ns: when ramp-up was to begin, one instant for all, on its own monotonic clock.
        clock_shift: what lies between that clock and the one of the system's place; its error is that of the start.
    """

    place: str
    users: int
    start_ns: int
    clock_shift: ClockShift


class Window(RecordModel):
    """The measured window on the monotonic clock of the workload's place."""

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


class SettleResult(generated.Settled):
    """How the page cache came to rest; a record that does not say whether it did counts as at rest."""

    at_rest: bool = True


class TrialData(RecordModel):
    """What a trial started from.

    Attributes:
        key, content_sha256, restored: of the prepared data, and how they were copied; null where there were none.
        settled: how the page cache came to rest after that.
    """

    key: str | None = None
    content_sha256: str | None = None
    restored: generated.Restored | None = None
    settled: SettleResult | None = None

    @model_serializer(mode="wrap")
    def _without_nulls(self, dump: SerializerFunctionWrapHandler) -> dict[str, JsonValue]:
        return {name: value for name, value in dump(self).items() if value is not None}


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
        data: what it started from.
        checks: consistency conditions, empty if none were run after this trial.
        phases_s: seconds spent in each phase: `prepare`, `restore`, `settle`, `start`, `drive` (ramp-up and window),
            `check`, `stop`, `undo`, `collect`.
        telemetry: sampler sources that have a file.
        clock_shift: of a workload at another place than its system; null where one clock told all.
        clients: that drove together, in the study's order; empty where one drove.
        host: name of the host of a farm that ran it; empty where a run has one place for all blocks.
        layout: the order that its program was linked in; left out without builds.
        left_running: programs that its server or load left running, and that were ended; left out without any.
    """

    format_version: FormatVersion = FORMAT_VERSION
    trial: PlannedTrial
    levels: dict[str, str]
    resolved: ResolvedTrial
    valid: bool
    invalid_reason: str = ""
    started: str
    finished: str
    clock: Clock
    window: Window | None
    scalars: dict[str, Annotated[float, AllowInfNan()]]  # none that was read is: see `consistency`
    effective: list[EffectiveSetting] = []
    options: dict[str, str] = {}
    system_facts: dict[str, str] = {}
    subject: dict[str, str] = {}
    data: TrialData = TrialData()
    checks: list[Check] = []
    phases_s: dict[str, float] = {}
    telemetry: list[FileName] = []
    clock_shift: ClockShift | None = None
    clients: list[ClientRecord] = []
    host: str = ""
    layout: Annotated[str, Field(exclude_if=lambda layout: not layout)] = ""
    left_running: Annotated[list[str], Field(exclude_if=lambda left_running: not left_running)] = []


Grade = Literal["fine", "caution", "unfit", "unknown"]


class Finding(RecordModel):
    """One thing seen of a place that decides how well it can measure.

    Attributes:
        name: stable, on the reference page.
        value: what was seen, with its unit.
        grade: `caution` costs precision or comparability, `unfit` makes figures wrong, `unknown` could not be seen.
        why: why it matters, in one sentence.
        fix: what would mend it, or show it, in one sentence; empty if it is fine.
        biases: whether a grade below `fine` is a doubt about results.
        of_host: seen of the machine that carries the place, not in the place.
    """

    name: str
    value: str
    grade: Grade
    why: str
    fix: str = ""
    biases: bool = False
    of_host: bool = False


class PlaceOpened(RecordModel):
    """A place was opened, at the start, after a lost stream or by a resumption.

    Attributes:
        place: its kind and parameters.
        facts: of the machine, as the agent found them.
        agent_sha256: the agent's binary.
        clock: both clocks of the place at that moment.
        server_user: user that servers run as; null if the agent's own.
        findings: how fit it was to measure on; of a place that boots for every trial, as its first boot showed it.
        host: of a farm, where it was opened; empty where a run has one place for all blocks.
    """

    event: Literal["place_opened"] = "place_opened"
    place: Section
    facts: dict[str, JsonValue]
    agent_sha256: str
    clock: Clock
    server_user: str | None
    findings: list[Finding] = []
    host: str = ""


class TrialStarted(RecordModel):
    """A trial began; without a `trial_finished` after it, it left nothing that counts."""

    event: Literal["trial_started"] = "trial_started"
    trial: PlannedTrial


class TrialFinished(RecordModel):
    """A trial's directory was committed. `files`: path relative to the trial's directory → SHA-256."""

    event: Literal["trial_finished"] = "trial_finished"
    trial: FileName
    valid: bool
    invalid_reason: str = ""
    files: dict[RelativePath, str]


class BlockVoided(RecordModel):
    """A block lost a trial, or stood still; no estimate has its trials. `counts`: in `voided_limit`; left out if so."""

    event: Literal["block_voided"] = "block_voided"
    cell: str
    block: int
    reason: str
    counts: Annotated[bool, Field(exclude_if=lambda counts: counts)] = True


class BlockAdded(RecordModel):
    """A replacement joined a later round."""

    event: Literal["block_added"] = "block_added"
    cell: str
    block: int
    round: int
    replaces: int
    trials: list[PlannedTrial]


class ComparisonLook(RecordModel):
    """What a look saw of one comparison of the primary family.

    Attributes:
        n: blocks compared.
        estimate: mean of the log ratios of blocks (of differences, where there are no logarithms).
        t: its statistic; null if it cannot be computed.
        boundary: what |t| has to exceed at Holm's hardest step; null before the first look.
        p_adjusted, p_equivalence_adjusted: sequential, Holm over the family.
        chance: predictive probability of a claim by the last block.
    """

    metric: str
    arm: str
    n: int
    estimate: float
    t: float | None
    boundary: float | None
    p_adjusted: float
    p_equivalence_adjusted: float
    chance: float


class CellLook(RecordModel):
    """What a look decided about one cell.

    Attributes:
        blocks: complete blocks, of the comparison that has the fewest.
        information: the same as a share of the largest number.
        reason: why it stops: a `difference` or `equivalence` in every comparison, `decided` if some are the one and
            some the other, `futility`, `precision`, all `blocks`, `time_budget`; empty if it goes on.
    """

    cell: str
    blocks: int
    information: float
    decision: Literal["continue", "stop"]
    reason: StopReason = ""
    comparisons: list[ComparisonLook] = []


class LookTaken(RecordModel):
    """A stopping rule looked at complete rounds. `cells` were open until then; one that stops gets no more blocks."""

    event: Literal["looked"] = "looked"
    round: int
    decision: Literal["continue", "stop"]
    details: dict[str, JsonValue] = {}
    cells: list[CellLook] = []
