"""What a study says of pgbench: scripts with their weights, what the data are made from, and how the clients behave."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self, get_args

from pydantic import BaseModel, BeforeValidator, Field, ValidationInfo, WithJsonSchema, field_validator, model_validator

from fairtrial.study.tree.problems import did_you_mean
from fairtrial.study.tree.quantities import Rate, Seconds
from fairtrial.workloads.pgbench.scripts import SqlFile
from fairtrial.workloads.text_files import RAMP_UP, read, reserving, spelt, text_file

Builtin = Literal["tpcb-like", "simple-update", "select-only"]
DataOption = Literal["fillfactor", "foreign-keys", "partition-method", "partitions", "unlogged-tables"]
OptionName = Annotated[str, Field(pattern=r"^[a-z][a-z-]*[a-z]$")]
VariableName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_]+$")]
BUILTINS: Final = get_args(Builtin)
NUMBERS: Final[Mapping[DataOption, tuple[int, int]]] = {
    "fillfactor": (10, 100),
    "partitions": (0, 32_767),
}  # of the data's options, with what pgbench takes
ALL: Final = "all"

RESERVED: Final = reserving(
    {
        "script": "builtin select-only skip-some-updates",
        **{key: key for key in ("file", "define", "jobs", "protocol", "rate", "transactions", "scale")},
        "clients": "client",
        "latency_limit": "latency-limit",
        "max_tries": "max-tries",
        "duration": "time",
        "trials.seed": "random-seed",
        "data": " ".join(get_args(DataOption)),
    },
    """
    aggregate-interval dbname debug failures-detailed help host index-tablespace init-steps initialize log log-prefix
    no-vacuum port progress progress-timestamp quiet sampling-rate show-script tablespace username vacuum-all version
    """,
)


OptionValue = Annotated[
    Annotated[str, Field(pattern=r"^[^\n]+$")] | bool,
    spelt(yes=True, no=False),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "number"}, {"type": "boolean"}]}),
]
VariableValue = Annotated[
    str,
    Field(pattern=r"^[^\n]+$"),
    spelt(yes=True, no=False),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "number"}]}),
]


Sql = Annotated[SqlFile, BeforeValidator(read), WithJsonSchema({"type": "string", "description": "SQL file, `.sql`."})]


class WeightedScript(BaseModel, frozen=True, extra="forbid"):
    """How often a script of a mix is drawn, relative to the others; its file if it is no builtin."""

    weight: int = Field(ge=0, le=1_000_000)
    file: SqlFile | None = None


def _mixed(value: Any, info: ValidationInfo) -> Any:
    """Weights by name become scripts: what ends with `.sql` is a file, anything else one of pgbench's."""
    if not isinstance(value, Mapping):
        return value
    scripts: dict[str, Any] = {}
    for name, weight in value.items():
        if not str(name).endswith(".sql") and name not in BUILTINS:
            known = ", ".join(f"`{each}`" for each in BUILTINS)
            near = did_you_mean(str(name), BUILTINS)
            raise ValueError(
                f"`{name}` is not a script: expected {known} or a file `.sql`" + (f"; {near}" if near else "")
            )
        if isinstance(weight, int) and not isinstance(weight, bool):
            file = text_file(str(name), info, "mix", str(name)) if str(name).endswith(".sql") else None
            scripts[str(name)] = {"weight": weight, "file": file}
        else:
            scripts[str(name)] = weight
    return scripts


Mix = Annotated[
    dict[str, WeightedScript],
    BeforeValidator(_mixed),
    WithJsonSchema({"type": "object", "additionalProperties": {"type": "integer", "minimum": 0}}),
]


class PgbenchParameters(BaseModel, frozen=True, extra="forbid"):
    """Scripts of pgbench on a PostgreSQL: its own, or anyone's."""

    script: Builtin | None = Field(None, description="One of pgbench's built-in scripts.")
    file: Sql | None = Field(
        None, description="A script of your own instead, `.sql`; the path is relative to the file that names it."
    )
    mix: Mix | None = Field(
        None,
        description="Several scripts instead, with their weights: `{select-only: 9, own.sql: 1}`; names of files "
        "end with `.sql`.",
    )
    define: dict[VariableName, VariableValue] = Field(
        default_factory=dict, description="Variables of the scripts (pgbench's `--define`)."
    )
    scale: int | None = Field(
        None,
        ge=1,
        le=2_000_000,
        description="Size of pgbench's own tables, in units of 100,000 accounts (default: 1; with `init`, none).",
    )
    data: dict[DataOption, OptionValue] = Field(
        default_factory=dict,
        description="Options of the creation of pgbench's tables, as pgbench spells them: `partitions: 8`, for "
        "example.",
    )
    init: Sql | None = Field(
        None,
        description="SQL file that creates the data of your own scripts, run by psql, after pgbench's own tables "
        "if `scale` is given.",
    )
    clients: int = Field(
        1, ge=1, le=100_000, description="Concurrent clients (pgbench's `--client`), each with a connection."
    )
    jobs: int = Field(1, ge=1, le=1000, description="Number of pgbench's threads; at most one per client starts.")
    protocol: Literal["simple", "extended", "prepared"] = Field(
        "simple", description="Protocol by which statements are sent."
    )
    rate: Rate | None = Field(
        None,
        gt=0,
        description="Rate of transactions, which begin at random times whether or not a client is free (an open "
        "loop); latencies count from when a transaction should have begun.",
    )
    latency_limit: Seconds | None = Field(
        None,
        ge=1e-6,
        description="Latency limit: transactions above it are counted; with `rate`, those already later than it are "
        "skipped.",
    )
    max_tries: int = Field(
        1, ge=1, le=1_000_000, description="Number of attempts at a transaction that deadlocks or cannot be serialized."
    )
    ramp_up: Seconds = Field(10.0, ge=0, description=RAMP_UP)
    duration: Seconds | None = Field(None, gt=0, description="Length of the measurement window, whole seconds.")
    transactions: int | None = Field(
        None,
        ge=1,
        description="Length of the measurement window as a number of transactions of all clients together, instead "
        "of `duration`; a multiple of `clients`.",
    )
    interval: Seconds = Field(1.0, ge=0.1, le=60, description="Width of timeline intervals.")
    keep_log: bool = Field(
        default=True,
        description="Whether the record keeps every transaction, 3 bytes each, from which `verify` recomputes "
        "everything.",
    )
    options: dict[OptionName, OptionValue] = Field(
        default_factory=dict, description="Other options of the run, by their long names without the dashes."
    )

    @field_validator("ramp_up", "duration")
    @classmethod
    def _whole(cls, seconds: float | None) -> float | None:
        if seconds is not None and seconds != int(seconds):
            raise ValueError(f"expected whole seconds, as pgbench requires, found {seconds:g} s")
        return seconds

    @model_validator(mode="after")
    def _lasting(self) -> Self:
        if (self.duration is None) == (self.transactions is None):
            raise ValueError("expected exactly one of `duration` and `transactions`, which ends the measurement window")
        if self.transactions is not None and self.transactions % self.clients:
            near = max(1, round(self.transactions / self.clients)) * self.clients
            raise ValueError(
                f"`transactions` must be a multiple of the {self.clients} `clients`, each of which runs as many: {near}"
            )
        return self

    @model_validator(mode="after")
    def _scripted(self) -> Self:
        if [self.script, self.file, self.mix].count(None) != 2:  # noqa: PLR2004 - of the three one is said
            raise ValueError("expected exactly one of `script`, `file` and `mix`, which names what pgbench runs")
        if not any(weight for _name, weight, _file in self.scripts):
            raise ValueError("all weights of `mix` are 0: give one of its scripts a weight above 0")
        files = [file.name for _name, _weight, file in self.scripts if file]
        if len(set(files)) < len(files) or len(set(self.types)) < len(self.types):
            raise ValueError("two scripts of `mix` have the same name, so their metrics would be the same: rename one")
        if ALL in self.types:
            raise ValueError("a script cannot be named `all`, which stands for all scripts together: rename it")
        return self

    @model_validator(mode="after")
    def _loadable(self) -> Self:
        for option, (least, most) in NUMBERS.items():
            value = self.data.get(option)
            if value is not None and not (str(value).isdecimal() and least <= int(value) <= most):
                raise ValueError(f"`data.{option}` must be a whole number from {least} to {most}")
        if self.tables_scale is None and self.data:
            raise ValueError("`data` applies to pgbench's own tables only: give their `scale`, or leave `data` out")
        if self.tables_scale is None and self.uses_builtins:
            raise ValueError("pgbench's own scripts need pgbench's own tables: give their `scale` beside `init`")
        return self

    @property
    def scripts(self) -> list[tuple[str, int, SqlFile | None]]:
        """Name, weight and file of each script, as pgbench numbers them; pgbench's own have no file."""
        if self.mix is not None:
            return [(name, each.weight, each.file) for name, each in self.mix.items()]
        return [(self.file.name, 1, self.file)] if self.file is not None else [(str(self.script), 1, None)]

    @property
    def types(self) -> tuple[str, ...]:
        """Each script's name as the beginning of a metric's: `tpcb_like`."""
        return tuple(
            re.sub(r"[^a-z0-9]+", "_", Path(name).name.removesuffix(".sql").lower()).strip("_") or "script"
            for name, _weight, _file in self.scripts
        )

    @property
    def is_open(self) -> bool:
        """Whether transactions have times at which they should begin."""
        return self.rate is not None

    @property
    def uses_builtins(self) -> bool:
        """Whether one of pgbench's own scripts is among them."""
        return any(file is None for _name, _weight, file in self.scripts)

    @property
    def tables_scale(self) -> int | None:
        """Of pgbench's own tables; None if there are none."""
        return 1 if self.scale is None and self.init is None else self.scale


def limit_text(limit_s: float) -> str:
    """`latency_limit` as pgbench is told it: milliseconds."""
    return f"{limit_s * 1000:.12g}"


def limit_us(limit_s: float) -> int:
    """`latency_limit` as pgbench takes it: that text as a double, times 1,000, cut to whole microseconds."""
    return int(float(limit_text(limit_s)) * 1000)


def reserved(option: str) -> str | None:
    """The key under which the run takes an option; empty: under none; None for any other option."""
    if option in RESERVED:
        return RESERVED[option]
    meant = [name for name in RESERVED if name.startswith(option)]  # getopt takes abbreviations
    return RESERVED[meant[0]] if meant else None
