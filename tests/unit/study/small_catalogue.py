"""A small catalogue of kinds, enough to say everything the study language can say; no kind here is a real one."""

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, model_validator

from fairtrial.study.catalogue import Catalogue, Kind, MetricDefinition
from fairtrial.study.tree.quantities import Bytes, Seconds


class Parameters(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Local(Parameters):
    """This machine."""


class Vm(Parameters):
    """A virtual machine."""

    kernel: str = Field("debian-6.1", description="Which kernel it boots.")
    memory: Bytes = Field(1 << 30, description="Its memory.")
    cpus: int = 2
    swap: Bytes | None = None
    pmem: Bytes | None = None
    accelerator: Literal["auto", "kvm", "tcg"] = "auto"


class Mariadb(Parameters):
    """A MariaDB server."""

    options: dict[str, str | int | float | bool] = Field(default_factory=dict, description="Server options.")


class Sqlite(Parameters):
    """SQLite."""

    pragmas: dict[str, str] = {}


class Tpcc(Parameters):
    """TPC-C."""

    warehouses: int = Field(1, ge=1, description="Scale.")
    virtual_users: int = Field(1, ge=1)
    ramp_up: Seconds = Field(10.0, ge=0)
    duration: Seconds | None = Field(None, gt=0)
    transactions: int | None = None

    @model_validator(mode="after")
    def _one_end(self) -> Self:
        if (self.duration is None) == (self.transactions is None):
            raise ValueError("expected exactly one of `duration` and `transactions`, which ends the measurement window")
        return self


class Measured(Parameters):
    """A number in a program's output."""

    regex: str
    unit: str = "s"


class Command(Parameters):
    """A program."""

    run: str
    metrics: dict[str, Measured] = {}


def metric(
    name: str, unit: str = "transactions/min", *, better: Literal["higher", "lower"] = "higher"
) -> MetricDefinition:
    return MetricDefinition(name=name, label=name.replace("_", " "), unit=unit, better=better, kind="wall_clock")


TPCC_METRICS = {
    name: metric(name) for name in ("throughput_tpm", "throughput_nopm", "latency_ns_p99", "refaults_per_transaction")
}
BYTES_PER_WAREHOUSE = 100 << 20


def tpcc_duration_s(parameters: dict[str, float]) -> float:
    return parameters["ramp_up"] + (parameters["duration"] or parameters["transactions"] / 100)


SMALL = Catalogue(
    places={
        "local": Kind("local", "This machine.", TypeAdapter(Local)),
        "vm": Kind("vm", "A virtual machine that boots a chosen kernel.", TypeAdapter(Vm), duration_s=lambda _: 4.0),
    },
    systems={
        "mariadb": Kind("mariadb", "A private MariaDB.", TypeAdapter(Mariadb), duration_s=lambda _: 3.0),
        "sqlite": Kind("sqlite", "SQLite, embedded.", TypeAdapter(Sqlite), has_server=lambda _: False),
    },
    workloads={
        "tpcc": Kind(
            "tpcc",
            "TPC-C's mix.",
            TypeAdapter(Tpcc),
            metrics=lambda _: TPCC_METRICS,
            duration_s=tpcc_duration_s,
            disk_bytes=lambda parameters: parameters["warehouses"] * BYTES_PER_WAREHOUSE,
        ),
        "command": Kind(
            "command",
            "Any program.",
            TypeAdapter(Command),
            metrics=lambda parameters: {name: metric(name, found.unit) for name, found in parameters.metrics.items()},
        ),
    },
    settings={
        "lru_gen": Kind("lru_gen", "Multi-generational LRU.", TypeAdapter(Literal["on", "off"])),
        "sysctl": Kind(
            "sysctl",
            "Kernel parameters.",
            TypeAdapter(Annotated[dict[str, str | int], Field(description="By name.")]),
        ),
    },
    telemetry_metrics={name: metric(name, "share") for name in ("swapped_out_share", "cpu_user_share", "server_cpu")},
    is_of_servers=lambda definition: definition == metric("server_cpu", "share"),
)

MGLRU = """\
study: mglru-mariadb-tpcc
question: Does multi-generational LRU raise MariaDB's TPC-C throughput when memory is slightly overcommitted?
place: {vm: {kernel: debian-6.1, memory: 1GiB, swap: 512MiB}}
system: {mariadb: {options: {innodb_flush_method: O_DIRECT_NO_FSYNC}}}
workload: {tpcc: {warehouses: 16, ramp_up: 10s, transactions: 3000}}
factors:
  kernel:
    baseline: {settings: {lru_gen: off}}
    mglru:    {settings: {lru_gen: on}}
  memory:
    underutilizing: {system: {mariadb: {options: {innodb_buffer_pool_size: 512MiB}}}}
    overcommitting: {system: {mariadb: {options: {innodb_buffer_pool_size: 940MiB}}}}
  users:
    low:    {workload: {tpcc: {virtual_users: 6}}}
    high:   {workload: {tpcc: {virtual_users: 38}}}
arm: kernel
also_compare: [memory]
expect: {overcommitting: {swapped_out_share: 8..12 %}}
trials: {blocks: 10, order: randomised_blocks, seed: 7, margin: 2 %}
metrics: {primary: refaults_per_transaction, secondary: [throughput_tpm], guardrails: [latency_ns_p99]}
sizes: {ci: {trials: {blocks: 2}, workload: {tpcc: {warehouses: 2, transactions: 200}}}}
"""
