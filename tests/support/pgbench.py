"""What pgbench 15 printed and logged in four runs on a PostgreSQL 15, as a trial's files are made from it."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from fairtrial.protocol import generated as wire
from fairtrial.record.models import Window
from fairtrial.wire.fake import USAGE
from fairtrial.workloads.pgbench import Pgbench, measuring
from fairtrial.workloads.pgbench.parameters import PgbenchParameters
from fairtrial.workloads.tool import ToolRun

OUTPUTS = Path(__file__).parents[1] / "unit" / "workloads" / "pgbench" / "outputs"
SCRIPTS = {name: {"name": f"{name}.sql", "text": (OUTPUTS / f"{name}.sql").read_text()} for name in ("pay", "dead")}
MIX = {
    "pay.sql": {"weight": 2, "file": SCRIPTS["pay"]},
    "dead.sql": {"weight": 1, "file": SCRIPTS["dead"]},
    "select-only": 3,
}
ASKED: dict[str, dict[str, Any]] = {
    "plain": {"script": "tpcb-like", "clients": 3, "jobs": 2, "transactions": 60},
    "mixed": {"mix": MIX, "clients": 4, "jobs": 2, "transactions": 120, "max_tries": 3, "interval": 0.1},
    "failing": {"file": SCRIPTS["pay"], "clients": 4, "transactions": 60},
    "rated": {"file": SCRIPTS["pay"], "duration": "1s", "rate": 300, "latency_limit": "4ms", "interval": "250ms"},
}
BOOTED_NS = 1_795_340_000_000_000_000  # time of day at which the monotonic clock of these runs is taken to have begun


def parameters(**given: Any) -> PgbenchParameters:
    """Of a study that says as much."""
    named = {} if given.keys() & {"file", "mix"} else {"script": "tpcb-like"}
    lasting = {} if "transactions" in given else {"duration": "5s"}
    return PgbenchParameters.model_validate({**named, **lasting, **given})


RATED: Final = Pgbench(parameters(**ASKED["rated"]))


@dataclass(frozen=True)
class Kept:
    """One of the runs, with its logs in a directory of a test."""

    name: str
    directory: Path

    @property
    def text(self) -> str:
        """What it printed."""
        return (OUTPUTS / f"{self.name}.txt").read_text(encoding="utf-8")

    @property
    def parameters(self) -> PgbenchParameters:
        """As its study would have them."""
        return parameters(**ASKED[self.name])

    @property
    def logs(self) -> list[Path]:
        """Of its threads."""
        return sorted(self.directory.glob(f"{self.name}-*.log"))

    def ends_ns(self) -> list[int]:
        """When each line of the log was written, on the monotonic clock."""
        lines = [line.split() for log in self.logs for line in log.read_text().splitlines()]
        return [int(line[4]) * 10**9 + int(line[5]) * 1000 - BOOTED_NS for line in lines]

    def ran(self, *, ended_after_ns: int = 2_000_000) -> ToolRun:
        """Its life, until some time after its last transaction."""
        ends = self.ends_ns()
        life = Window(start_ns=min(ends) - 10**9, end_ns=max(ends) + ended_after_ns)
        return ToolRun(lines=self.text.splitlines(), life=life, usage=wire.Usage.model_validate(USAGE), failure="")

    def measured(self, *, ended_after_ns: int = 2_000_000) -> measuring.PgbenchMeasurement:
        """Its files."""
        clock = wire.Reading(monotonic_ns=5, realtime_ns=BOOTED_NS + 5)
        ran = self.ran(ended_after_ns=ended_after_ns)
        return measuring.measured(ran, self.logs, parameters=self.parameters, clock=clock)

    def write(self, directory: Path) -> None:
        """Its files, as a trial has them."""
        (directory / "log").mkdir(parents=True, exist_ok=True)
        (directory / "log" / "load.log").write_text(self.text, encoding="utf-8")
        for name, content in self.measured().files.items():
            (directory / name).write_bytes(content if isinstance(content, bytes) else content.read_bytes())

    def trial(self) -> Path:
        """A trial's directory with its files."""
        self.write(self.directory / "trial")
        return self.directory / "trial"


def kept(name: str, directory: Path) -> Kept:
    """A run, its logs copied."""
    for log in OUTPUTS.glob(f"{name}-*.log"):
        shutil.copy(log, directory)
    return Kept(name, directory)


def write(directory: Path) -> None:
    """The files of the run at a rate."""
    with tempfile.TemporaryDirectory() as scratch:
        kept("rated", Path(scratch)).write(directory)
