"""What a study says of sysbench: a script, what its data are made from, and any other option as sysbench spells it."""

from __future__ import annotations

import re
from typing import Annotated, Final, Literal, Self

from pydantic import BaseModel, BeforeValidator, Field, WithJsonSchema, field_validator, model_validator

from fairtrial.study.tree.quantities import Seconds
from fairtrial.workloads.engine import oltp
from fairtrial.workloads.text_files import RAMP_UP, TextFile, read, reserving, spelt

OptionName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]*$")]


OptionValue = Annotated[
    str,
    Field(pattern=r"^[^\n]*$"),
    spelt(yes="on", no="off"),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "number"}, {"type": "boolean"}]}),
]
Script = Literal[
    "bulk_insert",
    "oltp_delete",
    "oltp_insert",
    "oltp_point_select",
    "oltp_read_only",
    "oltp_read_write",
    "oltp_update_index",
    "oltp_update_non_index",
    "oltp_write_only",
    "select_random_points",
    "select_random_ranges",
]

RESERVED: Final = reserving(
    {
        "threads": "threads num-threads",
        "duration": "time max-time",
        "events": "events max-requests",
        "interval": "report-interval",
        "trials.seed": "rand-seed",
    },
    """
    mysql-host mysql-port mysql-user mysql-password mysql-db mysql-socket
    pgsql-host pgsql-port pgsql-user pgsql-password pgsql-db
    config-file db-driver debug forced-shutdown help histogram percentile report-checkpoints verbosity version
    """,
)
SHARED: Final = ("oltp_", "select_random_")  # sysbench's scripts of these names have the same tables
LOADABLE: Final = {"tables": oltp.MOST_TABLES, "table-size": oltp.MOST_ROWS}
NATIVE: Final = {"tables": 1, "table-size": 10_000}  # what our own loader is told, with sysbench's defaults


class LuaFile(TextFile):
    """A file of Lua."""

    name: str = Field(pattern=r"^[A-Za-z0-9_.-]+\.lua$")


Lua = Annotated[LuaFile, BeforeValidator(read), WithJsonSchema({"type": "string", "description": "Lua file, `.lua`."})]


class SysbenchParameters(BaseModel, frozen=True, extra="forbid"):
    """A script of sysbench 1.0 on a database: its own, or one from a file."""

    script: Script | None = Field(None, description="One of sysbench's built-in scripts.")
    file: Lua | None = Field(
        None, description="A script of your own instead, `.lua`; the path is relative to the file that names it."
    )
    modules: list[Lua] = Field(
        default_factory=list, description="Files that the script loads by `require`; the run copies them beside it."
    )
    loader: Literal["native", "sysbench"] | None = Field(
        None,
        description="Loader of the tables: `native`, for scripts on sysbench's OLTP tables, where it is the "
        "default, with equal content on every server; or `sysbench`, the script's `prepare`, whose content differs "
        "each time.",
    )
    data: dict[OptionName, OptionValue] = Field(
        default_factory=dict,
        description="Options of the data, passed to the loader and to the run (`tables`, `table-size`).",
    )
    options: dict[OptionName, OptionValue] = Field(
        default_factory=dict, description="Options of the run only, as sysbench spells them, without the dashes."
    )
    threads: int = Field(
        1, ge=1, le=100_000, description="Concurrent threads (sysbench's `--threads`), each with a connection."
    )
    ramp_up: Seconds = Field(10.0, ge=0, description=RAMP_UP)
    duration: Seconds | None = Field(None, gt=0, description="Length of the measurement window, whole seconds.")
    events: int | None = Field(
        None, ge=1, description="Length of the measurement window as a number of events, instead of `duration`."
    )
    interval: Seconds = Field(1.0, ge=1, le=60, description="Width of timeline intervals, whole seconds.")
    lost_connections_limit: int = Field(
        0, ge=0, description="Number of reconnections that a valid trial may have inside the measurement window."
    )
    data_seed: int = Field(1, ge=0, description="Seed of the data of the native loader; `prepare` has none.")
    load_threads: int = Field(2, ge=1, le=64, description="Number of connections that load data in parallel.")

    @field_validator("ramp_up", "duration", "interval")
    @classmethod
    def _whole(cls, seconds: float | None) -> float | None:
        if seconds is not None and seconds != int(seconds):
            raise ValueError(f"expected whole seconds, as sysbench requires, found {seconds:g} s")
        return seconds

    @model_validator(mode="after")
    def _fitting(self) -> Self:
        if (self.duration is None) == (self.events is None):
            raise ValueError("expected exactly one of `duration` and `events`, which ends the measurement window")
        if (self.script is None) == (self.file is None):
            raise ValueError("expected exactly one of `script` and `file`, which names what sysbench runs")
        if len({file.name for file in self.files}) < len(self.files):
            raise ValueError("`file` and `modules` share one directory: give each a different name")
        return self

    @model_validator(mode="after")
    def _options_once(self) -> Self:
        named = [name.replace("_", "-") for name in (*self.data, *self.options)]
        if twice := sorted({name for name in named if named.count(name) > 1}):
            raise ValueError(f"`{twice[0]}` is given twice, in `data` or `options`: leave one out")
        if made := sorted(name for name in self.options if name.replace("_", "-") in NATIVE):
            raise ValueError(f"`{made[0]}` makes the data: move it to `data`")
        return self

    @model_validator(mode="after")
    def _loadable(self) -> Self:
        if not self.is_native:
            return self
        if not self.has_oltp_tables:
            raise ValueError(
                "`loader: native` fills the tables of sysbench's `oltp_` and `select_random_` scripts only"
            )
        for name, value in self.data.items():
            if name.replace("_", "-") not in NATIVE:
                raise ValueError(f"the native loader does not have the option `{name}`: use `loader: sysbench`")
            most = LOADABLE[name.replace("_", "-")]
            if not re.fullmatch("[1-9][0-9]{0,9}", value) or int(value) > most:
                raise ValueError(f"`{name}` must be a whole number from 1 to {most}, found `{value}`")
        return self

    @property
    def files(self) -> list[LuaFile]:
        """What is put at the place: the script, and its modules."""
        return [*([self.file] if self.file else []), *self.modules]

    @property
    def has_oltp_tables(self) -> bool:
        """Whether it runs one of sysbench's scripts that share their tables."""
        return self.script is not None and self.script.startswith(SHARED) and not self.modules

    @property
    def is_native(self) -> bool:
        """Whether our own loader fills the tables."""
        return self.has_oltp_tables if self.loader is None else self.loader == "native"

    @property
    def rate(self) -> float | None:
        """Events that are due per second, by sysbench's own option; None in a closed loop."""
        value = self.options.get("rate", "")
        return float(value) if value.isdecimal() and int(value) else None


def reserved(option: str) -> str | None:
    """The key under which the run takes an option; empty: under none; None for any other option."""
    return RESERVED.get(option.replace("_", "-"))
