"""What a study says of HammerDB: what every run is asked, and any other setting as HammerDB spells it."""

from __future__ import annotations

from typing import Annotated, Final, Literal, Self

from pydantic import BaseModel, Field, WithJsonSchema, field_validator, model_validator

from fairtrial.study.tree.quantities import Seconds
from fairtrial.workloads.text_files import reserving, spelt

MINUTE_S: Final = 60
SETTABLE: Final = r"[A-Za-z0-9_./:@%+=,-]*"  # what means itself in a script of Tcl, however often it is read


OptionName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
OptionValue = Annotated[
    str,
    Field(pattern=rf"^{SETTABLE}$"),
    spelt(yes="true", no="false"),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "number"}, {"type": "boolean"}]}),
]

PREFIXES: Final = ("mysql_", "maria_", "pg_")
MAKING_DATA: Final = ("cituscompat", "history_pk", "oracompat", "partition", "storage_engine", "tspace")
RESERVED: Final = reserving(
    {
        "warehouses": "count_ware",
        "load_users": "num_vu",
        "ramp_up": "rampup",
        "duration": "duration total_iterations",
        "all_warehouses": "allwarehouse",
        "key_and_think": "keyandthink",
        "procedures": "no_stored_procs storedprocs",
        "prepared": "prepared",
        "raise_error": "raiseerror",
        "time_profile": "timeprofile",
    },
    """
    user pass dbase superuser superuserpass defaultdbase driver
    async_scale async_client async_verbose async_delay connect_pool
    """,
)


class HammerdbParameters(BaseModel, frozen=True, extra="forbid"):
    """TPROC-C by HammerDB's CLI; defaults are HammerDB's own unless a description says otherwise."""

    directory: str | None = Field(
        None,
        pattern=r"^/",
        description="HammerDB's directory at the place (default: that of `hammerdbcli` on the PATH).",
    )
    db: Literal["mysql", "maria"] | None = Field(
        None,
        description="Database of HammerDB (`dbset db`) for MariaDB and MySQL, which decides client library and "
        "procedures (default: `mysql`). PostgreSQL always has `pg`.",
    )
    warehouses: int = Field(
        1, ge=1, le=100_000, description="Number of warehouses (`count_ware`), of about 100 MiB of data each."
    )
    virtual_users: int = Field(1, ge=1, le=10_000, description="Virtual users (`vuset vu`), each with a connection.")
    load_users: int = Field(
        1, ge=1, le=1024, description="Virtual users that build the schema (`num_vu`), at most one per warehouse."
    )
    ramp_up: Seconds = Field(120.0, ge=0, description="Length of ramp-up (`rampup`), whole minutes.")
    duration: Seconds = Field(gt=0, description="Length of the measurement window (`duration`), whole minutes.")
    all_warehouses: bool = Field(
        default=False,
        description="Whether each transaction draws its home warehouse anew (`allwarehouse`); otherwise each "
        "virtual user keeps one.",
    )
    key_and_think: bool = Field(
        default=False, description="Whether virtual users have keying and thinking times (`keyandthink`)."
    )
    procedures: bool | None = Field(
        None,
        description="Whether each transaction is one call of a stored procedure (`no_stored_procs`, `storedprocs`; "
        "default: `true` on MariaDB and MySQL). `false`: statement by statement there; on PostgreSQL (default "
        "there), a call of a function.",
    )
    prepared: bool = Field(
        default=False, description="Whether calls are prepared (`prepared`); MariaDB and MySQL only."
    )
    raise_error: bool = Field(
        default=True,
        description="Whether an error, a deadlock included, ends its virtual user and makes the trial invalid "
        "(`raiseerror`). HammerDB's own default is `false`: virtual users go on, and errors are counted.",
    )
    time_profile: bool = Field(
        default=False,
        description="Whether HammerDB's xtprof measures latencies of each type (`timeprofile`), which costs client "
        "time.",
    )
    interval: Seconds = Field(
        1.0,
        ge=1,
        le=30,
        description="Width of timeline intervals (`tcset refreshrate`), in seconds that divide a minute.",
    )
    data: dict[OptionName, OptionValue] = Field(
        default_factory=dict,
        description="HammerDB's settings of the schema, without their prefix (`history_pk`, `partition`); passed "
        "to the build and to the run.",
    )
    options: dict[OptionName, OptionValue] = Field(
        default_factory=dict, description="Other settings of HammerDB's dictionary `tpcc`, without their prefix."
    )

    @field_validator("ramp_up", "duration")
    @classmethod
    def _whole_minutes(cls, seconds: float) -> float:
        if seconds % MINUTE_S:
            raise ValueError(f"expected whole minutes, as HammerDB requires, found {seconds:g} s")
        return seconds

    @field_validator("interval")
    @classmethod
    def _dividing(cls, seconds: float) -> float:
        if seconds != int(seconds) or MINUTE_S % seconds:
            raise ValueError(f"expected whole seconds that divide a minute, as HammerDB requires, found {seconds:g} s")
        return seconds

    @field_validator("data", "options")
    @classmethod
    def _without_prefix(cls, options: dict[str, str]) -> dict[str, str]:
        for name in options:
            prefix = next((each for each in PREFIXES if name.startswith(each)), None)
            if prefix:
                raise ValueError(f"write `{name.removeprefix(prefix)}`: the run adds `{prefix}` itself")
        return options

    @model_validator(mode="after")
    def _options_once(self) -> Self:
        if misplaced := sorted(name for name in self.options if name in MAKING_DATA):
            raise ValueError(f"`{misplaced[0]}` makes the data: move it to `data`")
        if twice := sorted(self.data.keys() & self.options.keys()):
            raise ValueError(f"`{twice[0]}` is given twice, in `data` and in `options`: leave one out")
        return self
