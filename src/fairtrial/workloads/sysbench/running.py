"""sysbench at a place: which one it is, its files, its processes, and the files made from what they print."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import PurePosixPath
from typing import Final

from fairtrial.protocol import generated as wire
from fairtrial.protocol.endpoints import Server
from fairtrial.record.models import Window
from fairtrial.wire.open_place import OpenPlace
from fairtrial.workloads import tool
from fairtrial.workloads.sysbench import arguments, output
from fairtrial.workloads.sysbench.parameters import SysbenchParameters
from fairtrial.workloads.tool import LOAD_S, WORDS, Invocation, Life, ToolRun
from fairtrial.workloads.workload import Drive

OBSERVER: Final = "observing.lua"
SCRIPTS: Final = "scripts"
SCRIPT: Final = "OBSERVED_SCRIPT"
TROUBLE: Final = ("FATAL:", "ALERT:", "PANIC:", "PANIC ", "invalid option:")


def _trouble(lines: Sequence[str]) -> str:
    return "; ".join(dict.fromkeys(line.strip() for line in lines if line.startswith(TROUBLE)))[:WORDS]


PROGRAM: Final = tool.Tool(
    "sysbench",
    "install sysbench 1.0 at the place (apt install sysbench)",
    words=lambda lines: _trouble(lines) or tool.last_words(lines),
    usable=lambda version: version.startswith("sysbench 1.0."),
    needed="expected sysbench 1.0, the version whose reports fairtrial reads",
    trouble=_trouble,
)


@dataclass(frozen=True)
class SysbenchBench(tool.Bench):
    """sysbench with its files in a directory of the place.

    Attributes:
        script: a name that sysbench knows, or a path.
    """

    parameters: SysbenchParameters
    directory: PurePosixPath
    configuration: PurePosixPath
    script: str

    @classmethod
    def set_up(
        cls, place: OpenPlace, parameters: SysbenchParameters, *, endpoint: Server, directory: PurePosixPath
    ) -> SysbenchBench:
        """Puts the script, its modules, and where the server is into the directory."""
        configuration = directory / "sysbench.cnf"
        place.agent.put(str(configuration), arguments.connection(endpoint).encode(), mode=0o600)
        scripts = directory / SCRIPTS  # where `require` looks for modules, and nothing of ours lies
        for file in parameters.files:
            place.agent.put(str(scripts / file.name), file.text.encode())
        observer = resources.files("fairtrial.workloads.sysbench").joinpath(OBSERVER).read_bytes()
        place.agent.put(str(directory / OBSERVER), observer)
        place.require(["mkdir", "-p", str(scripts)], hint="check the disk of the place")
        script = str(scripts / parameters.file.name) if parameters.file else str(parameters.script)
        return cls(place, parameters, directory, configuration, script)

    def prepare(self) -> str:
        """Fills the database; returns why it failed, empty if it did not."""
        argv = arguments.prepare(self.parameters, script=self.script, configuration=self.configuration)
        return PROGRAM.run(self.place, argv, Invocation("prepare", self.directory / SCRIPTS, LOAD_S)).failure

    def run(self, life: Life, drive: Drive, *, name: str) -> ToolRun:
        """One life, observed."""
        observer = str(self.directory / OBSERVER)
        argv = arguments.run(self.parameters, life, script=observer, configuration=self.configuration)
        process_options = drive.process_options
        process_options["environment"] = {**process_options["environment"], SCRIPT: self.script}
        return PROGRAM.run(self.place, argv, Invocation(name, self.directory / SCRIPTS, life.limit_s, process_options))

    def measured(self, ran: ToolRun, drive: Drive, _clock: wire.Reading) -> tuple[Window, str]:
        """Keeps what sysbench counted in the whole of it, in classes of latency and in intervals."""
        result = output.result(ran.text, ended_ns=ran.life.end_ns)
        files = {
            "latency.hlog": output.latency_log(ran.text, window=result.window).encode(),
            "timeline.parquet": output.timeline(ran.text, window=result.window),
        }
        self.leave(drive, ran, result=result, files=files)
        return result.window, _why_invalid(result, limit=self.parameters.lost_connections_limit)


def _why_invalid(result: output.SysbenchResult, *, limit: int) -> str:
    """Why a trial is invalid by the study's rule; empty if it is valid."""
    lost = sum(error.count for error in result.errors if error.kind == "connection")
    if lost > limit:
        return f"sysbench reconnected {lost} times" + (f", {limit} allowed" if limit else "")
    return "" if result.done else "sysbench ended no event inside the measurement window"
