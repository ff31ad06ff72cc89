"""What a study says of fio: a few fields that the run must understand, and any other option as fio spells it."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, WithJsonSchema, model_validator

from fairtrial.study.tree.quantities import Seconds
from fairtrial.workloads.prepared_files import FileParameters, skewed
from fairtrial.workloads.text_files import reserving

OptionName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
OptionValue = Annotated[
    str,
    Field(coerce_numbers_to_str=True, pattern=r"^[^\n]*$"),
    WithJsonSchema({"anyOf": [{"type": "string", "pattern": r"^[^\n]*$"}, {"type": "number"}]}),
]

RESERVED = reserving(
    {
        "jobs": "numjobs",
        "size": "size filesize file_size",
        "block_size": "bs blocksize",
        "rw": "rw readwrite",
        "distribution": "random_distribution",
        "engine": "ioengine",
        "iodepth": "iodepth",
        "direct": "direct buffered",
        "accesses": "number_ios io_size io_limit loops",
        "duration": "runtime timeout time_based",
        "warm_up or warm_up_accesses": "ramp_time",
        "interval": "log_hist_msec",
        "trials.seed": "randseed randrepeat allrandrepeat",
    },
    """
    name directory filename filename_format nrfiles nr_files unified_rw_reporting log_unix_epoch log_alternate_epoch
    wait_for_previous create_on_open allow_file_create unlink invalidate group_reporting new_group write_hist_log
    log_hist_coarseness per_job_logs clat_percentiles lat_percentiles disable_clat disable_lat gtod_reduce output
    readonly stonewall wait_for exec_prerun exec_postrun log_store_compressed stats
    """,
)


UNVERIFIED = ("0", "null")  # `null` computes nothing and accepts whatever was read


class FioParameters(FileParameters):
    """fio's jobs, each on a file of its own."""

    rw: Literal["read", "write", "rw", "randread", "randwrite", "randrw"] = Field(
        "randread", description="Accesses of the jobs (fio's `rw`)."
    )
    distribution: str = Field(
        "random",
        pattern=r"^[a-z_]+(:[^\n]*)?$",
        description="Distribution of accesses (fio's `random_distribution`). Without a centre, `zipf` and `pareto` "
        "get one from the trial's seed, so that warm-up and window have the same hot blocks.",
    )
    # By name: of a path fio would load the code, even when it only parses.
    engine: str = Field("psync", pattern=r"^[A-Za-z0-9_-]+$", description="I/O engine (fio's `ioengine`), by its name.")
    iodepth: int = Field(1, ge=1, le=65_536, description="Queue depth (fio's `iodepth`): outstanding accesses per job.")
    warm_up: Seconds = Field(
        0.0, ge=0, description="Length of the warm-up, instead of `warm_up_accesses`, in a separate process."
    )
    options: dict[OptionName, OptionValue] = Field(
        default_factory=dict,
        description="Other options of a job, as in a job file; an option without a value has an empty one, "
        "`''`. `norandommap: 0` undoes the one default that differs from fio's.",
    )

    @model_validator(mode="after")
    def _fitting(self) -> Self:
        if self.warm_up and self.warm_up_accesses:
            raise ValueError("expected one of `warm_up` and `warm_up_accesses`, found both: leave one out")
        return self

    @property
    def is_random(self) -> bool:
        """Whether blocks are drawn."""
        return self.rw.startswith("rand")

    @property
    def reaches_by_hash(self) -> bool:
        """Whether fio spreads ranks by its hash, so that the number of blocks decides which can be met."""
        return self.is_random and skewed(self.distribution) is not None


def verifies(method: str | None) -> bool:
    """Whether a value of fio's `verify` has it look for its own headers or pattern in what it reads."""
    return method not in UNVERIFIED


def reserved(option: str) -> str | None:
    """The key under which the run takes an option; empty: under none; None for any other option.

    fio takes what begins with `include` for the name of another job file, which could hold any option.
    """
    return "" if option.startswith("include") else RESERVED.get(option)
