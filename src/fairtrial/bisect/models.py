"""The files of a bisection's directory as models: bisection.json, the lines of journal.jsonl, bisect.json."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, JsonValue

from fairtrial.analyse.result import Verdict
from fairtrial.bisect.deciding import Limits, Outcome
from fairtrial.record.events import Line
from fairtrial.record.models import FileName, FormatVersion, RecordModel
from fairtrial.study.catalogue import Better

FORMAT_VERSION = 1
CONFIDENCE = 0.95  # of the intervals in the table of versions, and of a confirmation's that does not say
LARGEST = 700  # log ratio whose exponential a float holds
LONGEST_S = 1e10
Share = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Version(RecordModel):
    """One version of the history.

    Attributes:
        name: the level's.
        overlay: what it changes of the trial; of a commit, what names its build.
        commit: its whole hash; empty of a level.
        subject: first line of the commit's message.
    """

    name: FileName
    overlay: dict[str, JsonValue] = Field(default_factory=dict)
    commit: str = ""
    subject: str = ""


class Bisection(RecordModel):
    """bisection.json: the question, as it was begun.

    Attributes:
        over: the factor whose levels are the versions.
        versions: in order, the reference (`--from`) first and the end (`--to`) last.
        pinned: level of every other factor.
        metric: the study's first primary metric, whose log ratios are observed.
        seed: the study's; every query has one of its own, made from it.
        margin: largest change that does not matter, as a share.
        resolution, total: as in the metric's definition; 0 in bisections that were begun before they were looked at.
        blocks: the largest number for the search.
        alpha: level of a confirmation's claim about the metric, one of the study's primary ones.
        build: command line that builds a commit; empty where levels are.
        repository: directory of the git repository; empty where levels are.
    """

    format_version: FormatVersion = FORMAT_VERSION
    fairtrial_version: str
    study: str
    over: str
    versions: list[Version]
    pinned: dict[str, str] = Field(default_factory=dict)
    metric: str
    unit: str = ""
    better: Better
    seed: int
    margin: Annotated[float, Field(gt=0, lt=1)]
    resolution: Annotated[float, Field(gt=-1, lt=1, exclude_if=lambda resolution: resolution == 0)] = 0.0
    total: Annotated[float, Field(exclude_if=lambda total: total == 0)] = 0.0
    blocks: int
    alpha: Annotated[float, Field(gt=0, lt=1)] = 0.05
    build: str = ""
    repository: str = ""

    @property
    def limits(self) -> Limits:
        """Of the search."""
        return Limits(blocks=self.blocks, margin=self.margin, resolution=self.resolution, total=self.total)


class Ready(RecordModel):
    """A version was built or fetched; `seconds`: how long that took, 0 where it was there."""

    event: Literal["ready"] = "ready"
    version: int
    seconds: Annotated[float, Field(ge=0, le=LONGEST_S)]


class Gap(RecordModel):
    """A version cannot be built, or does not run: it is left out."""

    event: Literal["gap"] = "gap"
    version: int
    reason: str


class Queried(RecordModel):
    """Blocks of a version against the reference were begun, in the record `blocks/<number>`."""

    event: Literal["queried"] = "queried"
    number: int
    version: int
    blocks: int
    ends: bool


class Believed(RecordModel):
    """The posterior: of none, of two steps, and of the change that is most probable, right before version `best`."""

    none: float
    two_steps: float
    best: int
    probability: float
    size: float


class Measured(RecordModel):
    """The same blocks are finished.

    Attributes:
        log_ratios: of the version to the reference, by block.
        shares: the values of the reference and of the version, where they are shares of a total.
        seconds: that a block took.
        believed: after them; null while the ends are settled.
    """

    event: Literal["measured"] = "measured"
    number: int
    version: int
    log_ratios: list[Annotated[float, Field(ge=-LARGEST, le=LARGEST)]]
    shares: list[tuple[Share, Share]] = Field(default_factory=list, exclude_if=lambda shares: not shares)
    seconds: Annotated[float, Field(ge=0, le=LONGEST_S)]
    believed: Believed | None = None


class FoundChange(RecordModel):
    """Where a step lies: behind version `after`, at `at` or in one of the gaps between them.

    `ratio`: of the levels behind and before it.
    """

    after: int
    at: int
    probability: float
    ratio: float


class Answered(RecordModel):
    """The search ended."""

    event: Literal["answered"] = "answered"
    outcome: Outcome
    changes: list[FoundChange] = Field(default_factory=list)


class Confirmed(RecordModel):
    """A change was compared with its predecessor, in the record `confirmation-<number>`; `agrees`: as it was found."""

    event: Literal["confirmed"] = "confirmed"
    number: int
    after: int
    at: int
    n: int
    verdict: Verdict
    ratio: float | None
    low: float | None
    high: float | None
    confidence: Annotated[float, Field(exclude_if=lambda confidence: confidence == CONFIDENCE)] = CONFIDENCE
    agrees: bool


Event = Ready | Gap | Queried | Measured | Answered | Confirmed


class JournalLine(Line):
    """One line of journal.jsonl."""

    entry: Annotated[Event, Field(discriminator="event")]


class VersionResult(RecordModel):
    """What is known of a version in the end; `gap`: why it was left out, `probability`: of a change right before it."""

    name: str
    commit: str = ""
    subject: str = ""
    blocks: int
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    probability: float | None = None
    gap: str = ""


class BisectResult(RecordModel):
    """bisect.json: the answer, with all that it rests on.

    Attributes:
        bisection: the question.
        outcome: what the search found.
        changes: none, one or two; of an undecided search the range that holds 95 %.
        confirmations: paired studies of each change against its predecessor, whose verdicts alone are claims.
        versions: in order.
        blocks: of the search, those that settled the ends among them.
        ends_blocks: of the two ends.
        seconds: of all blocks of the search.
    """

    format_version: FormatVersion = FORMAT_VERSION
    bisection: Bisection
    outcome: Outcome
    changes: list[FoundChange]
    confirmations: list[Confirmed]
    versions: list[VersionResult]
    two_steps: float | None
    none: float | None
    blocks: int
    ends_blocks: int
    seconds: float
