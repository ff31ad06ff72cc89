"""`telemetry.probes`: heavy looks into a system, for diagnostic trials only, which no estimate uses.

Owns what can be said of each kind of probe. How one is started and what it leaves are the run's and the metrics'.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationInfo,
    model_validator,
)

from fairtrial import foreign
from fairtrial.study.tree.problems import FILE_OF
from fairtrial.study.tree.quantities import CommandLine

ProbeKind = Literal["perf_stat", "perf_record", "bpftrace", "file", "command"]
WITHOUT_PARAMETERS: Final = ("perf_stat", "perf_record")  # kinds whose bare name says enough
MOST_PROBES: Final = 20  # each is a process more beside the load; past a few they measure one another
LARGEST_SCRIPT: Final = 64 << 10  # bytes; a plan holds the whole script
HIGHEST_FREQUENCY_HZ: Final = 10_000  # perf's own unprivileged limit is of this order (perf_event_max_sample_rate)
# Counted by the kernel itself, so that they are there in virtual machines too, which often have no hardware counters.
SOFTWARE_EVENTS: Final = ("task-clock", "context-switches", "cpu-migrations", "page-faults", "major-faults")

Event = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_:/=.,-]*$", max_length=200)]


class ProbeModel(BaseModel):
    """Frozen, and refuses keys it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class PerfStat(ProbeModel):
    """`perf stat` over all processors: counts of events."""

    events: list[Event] = Field(
        default=list(SOFTWARE_EVENTS),
        min_length=1,
        description="Events as `perf list` names them (default: events that need no hardware counters, which "
        "virtual machines often lack).",
    )


class PerfRecord(ProbeModel):
    """`perf record` over all processors: which functions run."""

    frequency: int = Field(99, ge=1, le=HIGHEST_FREQUENCY_HZ, description="Samples per second on each processor.")
    event: Event = Field(
        "cpu-clock", description="Event to sample; use `cycles` where the place has hardware counters."
    )
    call_graph: bool = Field(
        default=False, description="Whether to record call chains in `perf.data`, which makes the file much larger."
    )


class Bpftrace(ProbeModel):
    """A bpftrace program: what it prints, maps at its end included. A file's name stands for the program in it."""

    model_config = ConfigDict(frozen=True, extra="forbid", json_schema_extra={"type": ["object", "string"]})

    program: str = Field(min_length=1, max_length=LARGEST_SCRIPT, description="Text of the program.")
    script: str = Field("", description="File from which the text was read.")


def _absolute(path: str) -> str:
    if not path.startswith("/"):
        raise ValueError(f"expected an absolute path at the place, found {path!r}")
    return path


PlacePath = Annotated[str, AfterValidator(_absolute)]


def _read_script(value: Any, info: ValidationInfo) -> Any:
    """`bpftrace: FILE` is the program in it; the file is looked for beside the study file that names it."""
    if not isinstance(value, str):
        return value
    file_of = (info.context or {}).get(FILE_OF)
    # Every script is named in a list below one key, so that key's file is the script's neighbour.
    beside = Path(file_of("telemetry", "probes")).parent if file_of else Path()
    path = beside / value
    try:
        if path.stat().st_size > LARGEST_SCRIPT:
            raise ValueError(f"{path} is larger than {LARGEST_SCRIPT >> 10} KiB: not a bpftrace script")
        return {"program": foreign.read_text(path), "script": value}
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise ValueError(
            f"cannot read {path}: {reason}; name a file relative to the study, or write `bpftrace: {{program: '…'}}`"
        ) from error


def _named(value: Any) -> Any:
    """A bare name as a mapping, for kinds that need no more.

    Raises:
        ValueError: another name.
    """
    if not isinstance(value, str):
        return value
    if value in WITHOUT_PARAMETERS:
        return {value: {}}
    if value in get_args(ProbeKind):
        raise ValueError(f"`{value}` needs a value; write `{{{value}: …}}`")
    names = ", ".join(f"`{name}`" for name in get_args(ProbeKind))
    raise ValueError(f"unknown probe `{value}`; expected one of {names}")


class Probe(ProbeModel):
    """One probe: exactly one of these. `perf_stat` and `perf_record` may stand alone."""

    # A list's items need no overlay, so the schema may say what a bare name is without weakening anything.
    model_config = ConfigDict(frozen=True, extra="forbid", json_schema_extra={"type": ["object", "string"]})

    perf_stat: PerfStat | None = Field(None, description="Counts of kernel and processor events.")
    perf_record: PerfRecord | None = Field(None, description="A profile of where processors spend their time.")
    bpftrace: Annotated[Bpftrace, BeforeValidator(_read_script)] | None = Field(
        None, description="A bpftrace script: a file relative to the study, or `{program: '…'}`."
    )
    file: PlacePath | None = Field(
        None,
        description="A file at the place, read before and after the measurement window: `/sys/kernel/debug/…`, say.",
    )
    command: CommandLine | None = Field(
        None,
        description="A program started with the measurement window and interrupted (SIGINT) at its end.",
    )

    @model_validator(mode="before")
    @classmethod
    def _from_name(cls, value: Any) -> Any:
        return _named(value)

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        kinds = [name for name in type(self).model_fields if getattr(self, name) is not None]
        if len(kinds) != 1:
            raise ValueError(f"expected exactly one of {', '.join(type(self).model_fields)}, found {len(kinds)}")
        return self

    @property
    def kind(self) -> ProbeKind:
        """Which of the kinds it is."""
        kind: ProbeKind = next(name for name in get_args(ProbeKind) if getattr(self, name) is not None)
        return kind

    @property
    def label(self) -> str:
        """What reports and messages call it."""
        if self.bpftrace is not None:
            return f"bpftrace {self.bpftrace.script}".strip()
        if self.perf_stat is not None or self.perf_record is not None:
            return self.kind.replace("_", " ")
        return f"{self.kind} {self.file or self.command}"
