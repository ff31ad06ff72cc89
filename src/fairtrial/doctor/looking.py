"""What is looked at to say how fit a place is: files of its kernel, twice, a second apart, and its programs.

Owns the one script that runs at the place. It needs a POSIX shell and grep, no root, and leaves nothing there. It must
not judge: that is for the modules of findings, which are pure and see a `PlaceObservation` only.
"""

from __future__ import annotations

import contextlib
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Final

from fairtrial.errors import StuckError
from fairtrial.programs import Program
from fairtrial.wire.facts import Facts
from fairtrial.wire.open_place import OpenPlace

SAMPLE_S: Final = 1.0  # 100 ticks of each processor: one stolen tick of a processor is 1 %
LOOK_S: Final = 120.0  # an emulated guest takes ten to a hundred times as long as a machine
END_S: Final = 5.0
CPU: Final = "/sys/devices/system/cpu"

# Read once. Patterns are the shell's.
FILES: Final = (
    f"{CPU}/online",
    f"{CPU}/smt/active",
    f"{CPU}/cpu[0-9]*/topology/thread_siblings_list",
    f"{CPU}/cpu[0-9]*/cpufreq/scaling_governor",
    f"{CPU}/cpu[0-9]*/cpufreq/scaling_driver",
    f"{CPU}/cpufreq/boost",
    f"{CPU}/intel_pstate/no_turbo",
    f"{CPU}/cpu[0-9]*/cpufreq/boost",
    "/sys/devices/system/node/online",
    "/sys/devices/system/clocksource/clocksource0/current_clocksource",
    "/sys/devices/system/clocksource/clocksource0/available_clocksource",
    "/sys/kernel/mm/transparent_hugepage/enabled",
    "/sys/kernel/mm/transparent_hugepage/defrag",
    "/sys/kernel/mm/lru_gen/enabled",
    "/sys/kernel/security/lockdown",
    "/sys/fs/cgroup/cgroup.controllers",
    "/sys/fs/cgroup/unified/cgroup.controllers",
    "/proc/meminfo",
    "/proc/loadavg",
    "/proc/swaps",
    "/proc/cgroups",
    "/proc/filesystems",
    "/proc/pressure/cpu",
    "/proc/pressure/io",
    "/proc/pressure/memory",
    "/proc/self/limits",
    "/proc/self/status",
    "/proc/sys/kernel/perf_event_paranoid",
    "/proc/sys/kernel/random/boot_id",
    "/proc/sys/kernel/unprivileged_bpf_disabled",
    "/proc/sys/kernel/io_uring_disabled",
    "/proc/sys/fs/aio-max-nr",
    "/proc/sys/fs/aio-nr",
    "/proc/sys/fs/file-max",
    "/proc/sys/vm/swappiness",
)
# Read at both ends of the sample.
COUNTERS: Final = (
    "/proc/stat",
    "/proc/vmstat",
    "/proc/[0-9]*/stat",
    f"{CPU}/cpu[0-9]*/thermal_throttle/core_throttle_count",
    f"{CPU}/cpu[0-9]*/thermal_throttle/package_throttle_count",
)
# Devices and files that are only there or not, and whether this user may read and write them.
NODES: Final = ("/dev/kvm", "/sys/kernel/btf/vmlinux", "/sys/fs/bpf", "/sys/fs/cgroup")
# Where servers and mkfs are, which an unprivileged user's PATH often lacks.
_PATH: Final = 'PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin"'

# Marks of the sections; no file of the kernel begins so.
_ONCE, _FIRST, _SECOND, _NODE, _PROGRAM, _STATE = "@once", "@first", "@second", "@node", "@program", "@state"

# Of POSIX's six columns the first and the last may hold blanks: device, size, used, available, share used, mount point.
_DF: Final = re.compile(r" (\d+) +\d+ +(-?\d+) +(?:\d+%|-) +/")

# `$1` is the root, `$2` the state directory, `$3` the length of the sample. Patterns stand unquoted: the shell expands
# them, and grep reads all files in one process, so that a machine with hundreds of processors is no slower.
_SCRIPT: Final = """
LC_ALL=C; export LC_ALL
root=$1; state=$2; sample=$3
cd "${root:-/}" || exit 1
echo @once; grep -H '' @FILES@
echo @first; grep -H '' @COUNTERS@
sleep "$sample"
echo @second; grep -H '' @COUNTERS@
for node in @NODES@; do
    [ -e "$node" ] || continue
    may=; [ -r "$node" ] && may=r; [ -w "$node" ] && may=${may}w
    echo "@node $node $may"
done
"""
# A copy by reference, tried where data are kept: a file system's name does not tell (XFS may be made without).
_REFLINK: Final = """
if [ -w "$state" ] && file=$(mktemp "$state/.doctor.XXXXXX" 2>/dev/null); then
    echo x >"$file"
    trap 'rm -f "$file" "$file.copy"' EXIT
    can=no; cp --reflink=always "$file" "$file.copy" 2>/dev/null && can=yes
    echo "@state reflink $can"
    rm -f "$file" "$file.copy"
fi
for known in "$state"/vm/kvm.json "$state"/ceiling-*.json; do
    [ -r "$known" ] && echo "@state ${known##*/} $(cat "$known")"
done
if [ -e "$state" ]; then df -Pk "$state" | while read -r line; do echo "@state df $line"; done; fi
"""
_VERSIONS: Final = """
while read -r program words; do
    path=$(command -v -- "$program") || continue
    said=$("$path" $words 2>/dev/null </dev/null | grep -m 1 '[0-9]')
    echo "@program $program $path $said"
done <<'END'
@PROGRAMS@
END
"""


@dataclass(frozen=True)
class PlaceObservation:
    """What was seen of a place.

    Attributes:
        facts: of the place, as the agent tells them.
        files: lines by path.
        first, second: counters at both ends of the sample, lines by path.
        refused: paths that are there and may not be read.
        nodes: by path: `rw`, `r`, `w` or nothing: what this user may do.
        programs: by name: path and version; those that are missing are not there.
        looked_for_programs: whether `programs` was looked for at all.
        state: of the state directory, those that are known: `reflink` (`yes` or `no`), `size_kib`, `available_kib`;
            `kvm.json` and `ceiling`, what fairtrial found out here before, as JSON.
    """

    facts: Facts
    files: Mapping[str, Sequence[str]] = field(default_factory=dict)
    first: Mapping[str, Sequence[str]] = field(default_factory=dict)
    second: Mapping[str, Sequence[str]] = field(default_factory=dict)
    refused: frozenset[str] = frozenset()
    nodes: Mapping[str, str] = field(default_factory=dict)
    programs: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    looked_for_programs: bool = False
    state: Mapping[str, str] = field(default_factory=dict)

    def text(self, path: str) -> str | None:
        """A file of one line; None if it is not there."""
        lines = self.files.get(path)
        return lines[0].strip() if lines else None

    def number(self, path: str) -> int | None:
        """A file of one integer; None if it is not there or is none."""
        text = self.text(path)
        try:
            return None if text is None else int(text)
        except ValueError:
            return None

    def each(self, pattern: str) -> dict[str, str]:
        """First lines of every file whose path matches, by path."""
        return {path: lines[0].strip() for path, lines in self.files.items() if fnmatchcase(path, pattern) and lines}

    def table(self, path: str) -> dict[str, str]:
        """A file of `name: value` or `name value` lines, such as /proc/meminfo."""
        parts = (line.partition(":" if ":" in line else " ") for line in self.files.get(path, ()))
        return {name: rest.strip() for name, _, rest in parts}

    def kibibytes(self, name: str) -> int | None:
        """An entry of /proc/meminfo."""
        value = self.table("/proc/meminfo").get(name, "").split()
        return int(value[0]) if value and value[0].isdigit() else None


def look(
    place: OpenPlace, *, programs: Iterable[Program] = (), root: str = "", sample_s: float = SAMPLE_S
) -> PlaceObservation:
    """Looks at a place. What cannot be seen is absent, never an error.

    Args:
        place: open, with its facts.
        programs: whose versions are asked for as well, which takes up to a second more.
        root: the tree that holds `proc` and `sys`; a tree of one's own in tests.
        sample_s: how long counters are watched.

    Raises:
        StreamLostError: the stream to the place ended.
    """
    lines = [f"{program.name} {program.version}" for program in programs]
    script = _SCRIPT + _REFLINK + (_VERSIONS if lines else "")
    for name, words in (("FILES", FILES), ("COUNTERS", COUNTERS), ("NODES", NODES)):
        script = script.replace(f"@{name}@", " ".join(word.lstrip("/") for word in words))
    script = _PATH + script.replace("@PROGRAMS@", "\n".join(lines))
    said: list[tuple[str, str]] = []
    process = place.agent.spawn(
        "doctor",
        ["sh", "-c", script, "doctor", root, str(place.state_directory), f"{sample_s:g}"],
        on_line=lambda stream, line: said.append((stream, line)),
    )
    try:
        process.wait(LOOK_S)
    except TimeoutError:
        with contextlib.suppress(StuckError):  # at a dead network file system, say
            process.stop(END_S)  # what was said until then is what is known
    return parsed(said, facts=place.facts, programs=bool(lines))


def parsed(said: Sequence[tuple[str, str]], *, facts: Facts, programs: bool) -> PlaceObservation:
    """What the script printed, as (`stdout` or `stderr`, line)."""
    sections: dict[str, dict[str, list[str]]] = {_ONCE: {}, _FIRST: {}, _SECOND: {}}
    nodes: dict[str, str] = {}
    entries: dict[str, tuple[str, str]] = {}
    state: dict[str, str] = {}
    section = ""
    for line in (line for stream, line in said if stream == "stdout"):
        mark, _, rest = line.partition(" ")
        if line in sections:
            section = line
        elif mark == _NODE:
            path, _, may = rest.partition(" ")
            nodes[f"/{path}"] = may
        elif mark == _PROGRAM:
            name, path, version = (*rest.split(" ", 2), "", "")[:3]
            entries[name] = (path, version)
        elif mark == _STATE:
            state |= _state(rest)
        elif section:
            path, _, content = line.partition(":")
            sections[section].setdefault(f"/{path}", []).append(content)
    return PlaceObservation(
        facts=facts,
        files=sections[_ONCE],
        first=sections[_FIRST],
        second=sections[_SECOND],
        refused=frozenset(_refused(said)),
        nodes=nodes,
        programs=entries,
        looked_for_programs=programs,
        state=state,
    )


def _refused(said: Sequence[tuple[str, str]]) -> Iterator[str]:
    for stream, line in said:
        refusal = re.fullmatch(r"grep: (.*): (Permission denied|Operation not permitted)", line)
        if stream == "stderr" and refusal:
            yield f"/{refusal[1]}"


def _state(rest: str) -> dict[str, str]:
    """`reflink yes`, `kvm.json {…}`, or a line of df(1): `df /dev/sda1 103081248 24379900 73421684 25% /`."""
    kind, _, value = rest.partition(" ")
    if kind != "df":
        return {"ceiling" if kind.startswith("ceiling-") else kind: value}
    figures = _DF.search(value)
    return {} if figures is None else {"size_kib": figures[1], "available_kib": figures[2]}


@dataclass(frozen=True)
class ProcessorShares:
    """What processors did in the sample, as shares of all their time.

    Attributes:
        busy: in user space, in the kernel and in interrupts, guests included.
        steal: wanted to run and were not let by the hypervisor.
        ticks: all of it, of all processors.
        runnable: tasks that wanted a processor at the sample's end, this look's own included.
    """

    busy: float
    steal: float
    ticks: int
    runnable: int


def spent(observation: PlaceObservation) -> ProcessorShares | None:
    """From both readings of /proc/stat (proc(5)); None if one is missing or nothing passed."""
    readings = [_stat(counters.get("/proc/stat", ())) for counters in (observation.first, observation.second)]
    before, after = readings[0].get("cpu", []), readings[1].get("cpu", [])
    # user nice system idle iowait irq softirq steal; guest time is part of user, too
    moved = [max(0, b - a) for a, b in zip(before[:8], after[:8], strict=False)]
    total = sum(moved)
    if len(moved) < 8 or total == 0:  # noqa: PLR2004 - the eight columns above
        return None
    user, nice, system, _idle, _iowait, irq, softirq, steal = moved
    runnable = readings[1].get("procs_running", [1])[0]
    return ProcessorShares(
        busy=(user + nice + system + irq + softirq) / total, steal=steal / total, ticks=total, runnable=runnable
    )


def _stat(lines: Sequence[str]) -> dict[str, list[int]]:
    counters: dict[str, list[int]] = defaultdict(list)
    for line in lines:
        name, *values = line.split()
        if name in ("cpu", "procs_running"):
            counters[name] = [int(value) for value in values]
    return counters


def processes(observation: PlaceObservation) -> list[tuple[str, int]]:
    """Processes by the ticks they ran in the sample, most first; those that ran none are left out."""
    before, after = (
        dict(
            _process(path, lines) for path, lines in counters.items() if path.endswith("/stat") and path != "/proc/stat"
        )
        for counters in (observation.first, observation.second)
    )
    ran = [(after[path][0], after[path][1] - before[path][1]) for path in after.keys() & before.keys()]
    return sorted(((name, ticks) for name, ticks in ran if ticks > 0), key=lambda each: (-each[1], each[0]))


def _process(path: str, lines: Sequence[str]) -> tuple[str, tuple[str, int]]:
    """Name and ticks in user space and kernel (proc(5): fields 2, 14 and 15; a name may hold anything)."""
    head, _, tail = "\n".join(lines).rpartition(")")
    values = tail.split()
    ticks = int(values[11]) + int(values[12]) if len(values) > 12 else 0  # noqa: PLR2004 - the fields above
    return path, (head.partition("(")[2], ticks)


def moved(observation: PlaceObservation, path: str, name: str) -> int | None:
    """How far a counter of a `name value` file went up in the sample; None if it is not there."""
    readings = []
    for counters in (observation.first, observation.second):
        values = dict(line.split(" ", 1) for line in counters.get(path, ()) if " " in line)
        if name not in values:
            return None
        readings.append(int(values[name]))
    return readings[1] - readings[0]
