"""Whether a place has what a study's probes need, tried before the first trial: installed, permitted, there."""

from __future__ import annotations

import shlex
import signal
import threading
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Final

from fairtrial.errors import AgentError, InputError, Problem
from fairtrial.run.trial import workspace
from fairtrial.run.trial.probing import command, ended, report_command
from fairtrial.study.probes import Probe
from fairtrial.wire.open_place import OpenPlace

ATTACH_S: Final = 60.0  # bpftrace compiles its program first; thousands of probes take a while
AGAIN_S: Final = 1.0  # nothing that it prints here is wanted
POLL_S: Final = 0.05
LINES_SHOWN: Final = 6  # of what a probe says when it fails
PACKAGES: Final = {"perf": "linux-perf", "bpftrace": "bpftrace"}  # Debian's names
_NOT_COUNTED: Final = ("<not supported>", "<not counted>")
_PERMIT: Final = "run as root, or allow it there: `sysctl kernel.perf_event_paranoid=-1` and CAP_PERFMON for perf"


def require(place: OpenPlace, probes: Sequence[Probe]) -> None:
    """Tries every probe for a moment.

    Raises:
        InputError: some cannot work at this place; every one of them, each with what would help.
    """
    directory = place.state_directory / "work" / "probes"
    workspace.remove(place, directory)
    workspace.make(place, directory)
    problems = [
        Problem(fault[0], "telemetry.probes", field=f"telemetry.probes.{index}.{probe.kind}", suggestion=fault[1])
        for index, probe in enumerate(probes)
        if (fault := _wrong(place, probe, directory / f"{index + 1}-{probe.kind}")) is not None
    ]
    workspace.remove(place, directory)
    if problems:
        raise InputError(problems, hint="mend the study or the place; nothing was measured yet")


def _wrong(place: OpenPlace, probe: Probe, stem: PurePosixPath) -> tuple[str, str] | None:
    """What keeps a probe from working, and what would help; None if it works."""
    try:
        if probe.file is not None:
            return _file(place, probe.file)
        if probe.command is not None:
            return _command(place, shlex.split(probe.command)[0])
        if probe.bpftrace is not None:
            return _bpftrace(place, probe, stem)
        return _perf(place, probe, stem)
    except AgentError as error:
        if error.code != "not_found":
            raise
        program = command(probe, stem)[0]
        package = PACKAGES.get(program, program)
        return f"`{program}` is not installed at the place", f"install it there (Debian: `apt install {package}`)"


def _file(place: OpenPlace, path: str) -> tuple[str, str] | None:
    tried = place.execute(["head", "-c", "1", "--", path])
    if tried.code == 0:
        return None
    mount = "mount -t debugfs none /sys/kernel/debug"
    fix = f"`{mount}` there, as root" if path.startswith("/sys/kernel/debug") else "name a file that the agent may read"
    return f"cannot be read at the place: {_last(tried.output)}", fix


def _command(place: OpenPlace, program: str) -> tuple[str, str] | None:
    if place.execute(["sh", "-c", 'command -v -- "$0"', program]).code == 0:
        return None
    return f"`{program}` is not installed at the place", "install it there, or write its whole path"


def _perf(place: OpenPlace, probe: Probe, stem: PurePosixPath) -> tuple[str, str] | None:
    tried = place.execute([*command(probe, stem), "--", "true"])
    if tried.code != 0:
        return f"perf refuses it: {_last(tried.output)}", _PERMIT
    if probe.perf_record is not None:
        read = place.execute(report_command(PurePosixPath(f"{stem}.data")))
        return None if read.code == 0 else (f"perf cannot read its own profile: {_last(read.output)}", "reinstall perf")
    counted = place.agent.get(f"{stem}.tsv").decode(errors="replace")
    lacking = [line.split("\t")[2] for line in counted.splitlines() if line.startswith(_NOT_COUNTED[0])]
    if not lacking:
        return None
    return (
        f"this place cannot count {', '.join(lacking)}",
        "leave them out; a virtual machine often has software events only, such as task-clock and page-faults",
    )


def _bpftrace(place: OpenPlace, probe: Probe, stem: PurePosixPath) -> tuple[str, str] | None:
    """Attaches the program for real: whether a kernel has its probes cannot be told otherwise."""
    assert probe.bpftrace is not None  # noqa: S101 - asked for such a probe only
    script = f"{stem}.bt"
    place.agent.put(script, probe.bpftrace.program.encode())
    attached = threading.Event()
    said: list[str] = []

    def hear(_stream: str, line: str) -> None:
        said.append(line)
        if line.startswith("Attach"):  # `Attaching 2 probes...`; later versions `Attached 2 probes`
            attached.set()

    process = place.agent.spawn(name="bpftrace", argv=["bpftrace", script], on_line=hear)
    waited = 0.0
    while not attached.wait(POLL_S) and process.exited is None and waited < ATTACH_S:
        waited += POLL_S
    if process.exited is None:
        process.signal(signal.SIGINT, group=True)
    exited = ended(process, again_s=AGAIN_S, limits=place.limits)
    if attached.is_set() and (exited.code == 0 or exited.signal == signal.SIGINT):
        return None
    wrong = [line for line in said if "RLIMIT_MEMLOCK" not in line]  # a warning that it prints wherever it is so
    return (
        f"bpftrace refuses it: {_last(chr(10).join(wrong))}",
        "mend the script; it needs root, and tracepoints need `mount -t tracefs none /sys/kernel/tracing`",
    )


def _last(output: str) -> str:
    """The end of what a program said, on one line."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return " ".join(lines[-LINES_SHOWN:]) or "it says nothing"
