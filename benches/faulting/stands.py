"""What is run under faults: quick studies whose trials change something in a place of its own, and their processes."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from faulting.origin import Command
from support.forking import reap
from support.machines import images

from fairtrial.caching import cache_directory
from fairtrial.places.vm import kernels
from fairtrial.wire import find_agent

ARMS, BLOCKS = ("a", "b"), 2
LIMITS = "silence_s=4,ping_s=0.5,grace_s=0.5,hang_s=5,end_s=10,bye_s=10,stop_s=10,short_s=20,shutdown_s=10"
SLOW, SLOW_LIMITS = ("container", "guest"), "silence_s=6,grace_s=0.5"
QUICK_S, SLOW_S = 120.0, 600.0
TTL = Path("/proc/sys/net/ipv4/ip_default_ttl")  # of a network namespace
SERVER_S, HELD = 86411, "fault-load.sh"  # how long the server sleeps names it
LOAD = 'sleep 0.$(( $$ % 2 + 1 ))\necho "$1"\n'

STUDY = """\
study: faults
place: {place}
system: {system}
workload: {workload}
settings: {settings}
factors: {{arm: {{a: {{}}, b: {other}}}}}
arm: arm
trials: {{blocks: {blocks}, seed: 4, voided_limit: 100}}
metrics: {{primary: {metric}}}
telemetry: {{interval: 50ms}}
"""
SERVICE = f"{{service: {{run: sleep {SERVER_S}}}}}"
MARIADB = "{mariadb: {options: {innodb_buffer_pool_size: 16MiB, innodb_log_file_size: 8MiB}}}"
OLTP = "{oltp: {profile: point_select, table_size: 1000, virtual_users: 2, ramp_up: 100ms, duration: 500ms}}"
CHANGED = "{storage: {device: memory, size: 8MiB}, memory: {server: 64MiB}, sysctl: {net.ipv4.ip_default_ttl: 61}}"


def processes() -> dict[int, str]:
    """Every process of this namespace that is no zombie: its number and its command line."""
    found: dict[int, str] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if line:
                found[int(entry.name)] = line
    return found


# Processes by what they are: whether a command line is one of them.
VICTIMS: Mapping[str, Callable[[str], bool]] = {
    "agent": lambda line: line.endswith("fairtrial-agent serve "),
    "sampler": lambda line: line.startswith("fairtrial-agent sample"),
    "load": lambda line: HELD in line or "oltp-drive" in line,
    "server": lambda line: f"sleep {SERVER_S}" in line or "mariadbd " in line,
    "page": lambda line: "serve.companion" in line,
    "qemu": lambda line: line.startswith("qemu-system"),
    "container": lambda line: "conmon" in line,
}


@dataclass
class Stand:
    """A place for runs, whose state stays from fault to fault, as a machine's does.

    Attributes:
        kind: of the study.
        directory: of records and logs, new for every fault.
        state: of the place.
        agent: a copy of the binary, which may be built anew meanwhile.
    """

    kind: str
    directory: Path
    state: Path
    agent: Path
    image: str = ""
    kernel: str = ""
    commands: list[Command] = field(default_factory=list)

    @property
    def output(self) -> Path:
        """Where records are; it is there before any."""
        return self.directory / "out"

    @property
    def record(self) -> Path | None:
        """The run's: one whose plan could not be written is no record, and another was begun."""
        begun = sorted((self.output / "runs").glob("faults-*"))
        return max(begun, key=lambda path: (path / "plan.json").exists(), default=None)

    @property
    def environment(self) -> Mapping[str, str]:
        """Of commands."""
        state = {name: str(self.state) for name in ("FAIRTRIAL_STATE_DIRECTORY", "FAIRTRIAL_MACHINE_DIRECTORY")}
        limits = SLOW_LIMITS if self.kind in SLOW else LIMITS
        return {
            **state,
            "FAIRTRIAL_AGENT": str(self.agent),
            "FAIRTRIAL_LIMITS": limits,
            "COLUMNS": "200",
            "NO_COLOR": "1",
        }

    @property
    def limit_s(self) -> float:
        """For a run to end."""
        return SLOW_S if self.kind in SLOW else QUICK_S

    def begin(self) -> None:
        """An empty directory with the study; pages of earlier runs are ended."""
        for pid, line in processes().items():
            if VICTIMS["page"](line):
                os.kill(pid, signal.SIGKILL)
        reap()
        shutil.rmtree(self.directory, ignore_errors=True)
        self.output.mkdir(parents=True)
        self.directory.chmod(0o755)
        self.write()
        self.commands.clear()

    def write(self) -> None:
        """The study, and what it runs."""
        (self.state / HELD).write_text(LOAD, encoding="ascii")
        (self.directory / "study.yaml").write_text(self._study(), encoding="utf-8")

    def _study(self) -> str:
        words = f"sh {self.state / HELD}"
        given = {
            "place": "{local: {}}",
            "system": SERVICE,
            "workload": f"{{command: {{run: {words} a}}}}",
            "other": f"{{workload: {{command: {{run: {words} b}}}}}}",
            "settings": CHANGED if os.geteuid() == 0 else "{}",
            "blocks": BLOCKS,
            "metric": "elapsed_s",
        }
        if self.kind == "mariadb":
            given |= {"system": MARIADB, "workload": OLTP, "metric": "throughput_tps", "settings": "{memory: 512MiB}"}
            given["other"] = "{workload: {oltp: {virtual_users: 3}}}"
        if self.kind in {"container", "guest"}:
            boxed = f"{{container: {{image: '{self.image}', cpus: 1, memory: 128MiB}}}}"
            booted = f"{{vm: {{kernel: {self.kernel}, memory: 256MiB, cpus: 1, disk: 512MiB}}}}"
            given |= {"place": boxed if self.kind == "container" else booted, "system": "{command: {}}"}
            given |= {"workload": "{command: {run: sleep 0.3}}", "settings": "{}", "blocks": 1}
            given |= {"other": "{workload: {command: {run: sleep 0.4}}}", "metric": "minor_faults"}
        return STUDY.format(**given)

    def run(self, *arguments: str, faults: Mapping[str, str] | None = None, **environment: str) -> Command:
        """Starts a run of the study, or goes on with it."""
        words = ["run", self.directory / "study.yaml", "--output", self.output / "runs", "--plain", *arguments]
        command = Command(
            words, cwd=self.directory, environment={**self.environment, **environment}, faults=faults or {}
        )
        self.commands.append(command)
        return command

    def resume(self, *arguments: str) -> Command:
        """Goes on, or begins anew where no run had begun."""
        begun = self.record is not None and (self.record / "plan.json").exists()
        return self.run(*arguments, "--resume") if begun else self.run(*arguments)

    def victim(self, name: str) -> int | None:
        """A process of a kind, if there is one now: the first, as what an agent starts bears its words for a moment."""
        if name == "controller":
            return self.commands[-1].pid if self.commands[-1].status is None else None
        return min((pid for pid, line in processes().items() if VICTIMS[name](line)), default=None)

    def others(self) -> dict[int, str]:
        """Every process but this one and pages, which stay for a while after a run by design."""
        return {pid: line for pid, line in processes().items() if pid != os.getpid() and not VICTIMS["page"](line)}

    def left(self, *, data: bool) -> list[str]:
        """Mounts, groups and settings of trials that are still there; and data, which the next run may take away."""
        found = [f"mounted: {line}" for line in _lines("/proc/self/mounts") if f"{self.state}/" in line]
        found += [f"swap: {line}" for line in _lines("/proc/swaps") if str(self.state) in line]
        backing = (path.read_text().strip() for path in Path("/sys/block").glob("loop*/loop/backing_file"))
        found += [f"device: {path}" for path in backing if str(self.state) in path]
        works = tuple(self._works())
        groups = (path for depth in ("", "*/") for path in Path("/sys/fs/cgroup").glob(f"{depth}fairtrial-*"))
        found += [f"group: {path}" for path in groups if path.name.startswith(works)]
        work = self.state / "work"
        found += [f"data: {path}" for path in (work.iterdir() if data and work.exists() else ())]
        if TTL.read_text().strip() != "64":
            found.append(f"setting: {TTL} is {TTL.read_text().strip()}")
        return found

    def _works(self) -> Iterator[str]:
        """Names of the groups of every trial there could be."""
        run = "" if self.record is None else self.record.name
        for block in range(1, 5 * BLOCKS):
            for arm in ARMS:
                yield "fairtrial-" + hashlib.sha256(f"{run}/all.b{block:02d}.{arm}".encode()).hexdigest()[:12]


def _lines(path: str) -> list[str]:
    return Path(path).read_text(encoding="utf-8").splitlines()


def _own_storage(top: Path) -> Mapping[str, str]:
    """For podman, which keeps its locks in memory that is not shared with others here: what it writes, apart."""
    storage, engine = top / "storage.conf", top / "containers.conf"
    shared = 'additionalimagestores = ["/var/lib/containers/storage"]'
    own = f'[storage]\ndriver = "overlay"\nrunroot = "{top}/run"\ngraphroot = "{top}/storage"'
    storage.write_text(f"{own}\n[storage.options]\n{shared}\n", encoding="ascii")
    engine.write_text(f'[engine]\ntmp_dir = "{top}/tmp"\n', encoding="ascii")
    return {"CONTAINERS_STORAGE_CONF": str(storage), "CONTAINERS_CONF": str(engine)}


@contextmanager
def stand(kind: str) -> Iterator[Stand]:
    """A stand of a kind, below /tmp: its sockets' paths are short."""
    top = Path(tempfile.mkdtemp(prefix="ft-"))
    top.chmod(0o755)
    (top / "state").mkdir(mode=0o755)
    agent = shutil.copy(find_agent(), top / "fairtrial-agent")
    found = Stand(kind, directory=top / "desk", state=top / "state", agent=Path(agent))
    if kind == "container":
        os.environ.update(_own_storage(top))
        found.image = images.make()
    if kind == "guest":
        found.kernel = str(kernels.find("debian-6.1", cache=cache_directory() / "kernels").image)
    try:
        yield found
    finally:
        shutil.rmtree(top, ignore_errors=True)
