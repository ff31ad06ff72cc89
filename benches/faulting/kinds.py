"""The kinds of faults: what each does to a run, drawn by a seed, and which promises were broken."""

from __future__ import annotations

import errno
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath

from faulting import calls, power, promises, session
from faulting.calls import CALLS, KILLED, Call, Logged, Strike
from faulting.origin import Command, asked
from faulting.page import Page
from faulting.session import KILLED_EXIT
from faulting.stands import Stand

GONE_S, RESUMES = 20.0, 3
ENVIRONMENT_EXIT = 3
CHANGES = {"mounted", "group", "setting", "data"}  # of the machine, by a run on the local stand
LONGEST_STOP_S = 8.0  # twice the silence that loses a stream
RELAY = Path(__file__).with_name("relay.py")
NAMES: Mapping[str, tuple[Call, ...]] = {"w": ("write",), "s": ("fsync",), "r": ("rename",), "cdt": ("create",)}


@dataclass
class Ground:
    """A stand with what an undisturbed run of it was like.

    Attributes:
        length_s: of that run.
        log: its calls, all below `top`.
        whole: the record of a session.
    """

    stand: Stand
    length_s: float = 0.0
    log: list[Logged] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    top: Path = Path()
    whole: Path = Path()

    def survey(self) -> None:
        """Runs it undisturbed, and keeps what it was like."""
        here = self.stand
        here.begin()
        log = here.state / "calls.log"
        if here.kind == "session":
            self.top = here.state / "session"
            self.whole = self.top / "runs" / session.RUN
            self._note(log, self.whole, session.struck(self.top, {"FAULT_LOG": str(log)}))
            return
        self.top, began = here.output, time.monotonic()
        command = here.run(faults={"FAULT_BELOW": str(here.output), "FAULT_LOG": str(log)})
        seen: set[str] = set()
        while not seen >= CHANGES and command.wait(0.1) is None and time.monotonic() < began + here.limit_s:
            with suppress(OSError):  # what goes while it is looked at
                seen |= {line.partition(":")[0] for line in here.left(data=True)}
        if command.wait(here.limit_s) != 0 or here.record is None:
            raise SystemExit(f"the undisturbed run failed:\n{command.said}")
        self.length_s = time.monotonic() - began
        if here.kind == "local" and not seen >= CHANGES:
            raise SystemExit(f"of what a run changes only {seen} was seen: what is left of it would not be, either")
        self._note(log, here.record, asked(partial(promises.of_finished, here.record, [])) + here.left(data=True))

    def _note(self, log: Path, record: Path, wrong: list[str]) -> None:
        self.log = list(calls.read(log))
        disk = power.Disk(PurePosixPath(self.top)).carry_out(self.log)
        safe = power.reported(disk, PurePosixPath(record / "journal.jsonl"))
        if wrong or not safe or safe != asked(partial(promises.finished, record)):
            raise SystemExit(f"the undisturbed run is broken: {wrong}, and {safe} are safe on its disk")
        for call in self.log:
            self.counts.update(name for kinds, names in NAMES.items() if call.kind in kinds for name in names)


@dataclass(frozen=True)
class Outcome:
    """What a fault did. `struck`: whether it could be done; `wrong`: promises that were broken; `faults`: how many."""

    what: str
    wrong: list[str]
    struck: bool = True
    faults: int = 1


Fault = Callable[[Ground, random.Random], Outcome]


def gone(here: Stand) -> list[str]:
    """Waits for what ends by itself; what does not is ended, and told."""
    deadline = time.monotonic() + GONE_S
    while (left := here.others()) and time.monotonic() < deadline:
        time.sleep(0.02)
    for pid in left:
        end(pid, signal.SIGKILL)
    return [f"process: {line.strip()}" for line in left.values()]


def end(pid: int, number: int) -> bool:
    """Sends a signal; whether there was such a process."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


def went_on(here: Stand, command: Command, *, undone: bool = True, options: tuple[str, ...] = ()) -> list[str]:
    """Waits for a run that was disturbed, resumes it to its end, and asks for every promise on the way.

    Args:
        here: where it runs.
        command: it.
        undone: whether its agent lived on, which then leaves nothing, even before anybody resumes.
        options: of the run.
    """
    wrong: list[str] = []
    known: list[str] = []
    for attempt in range(1 + RESUMES):
        status = command.wait(here.limit_s)
        if status is None:
            wrong.append(f"hangs: {command.said[-300:]}")
            command.signal(signal.SIGKILL)
            status = command.wait(here.limit_s)
        if status not in {0, ENVIRONMENT_EXIT, KILLED_EXIT}:
            wrong.append(f"exit code {status}: {command.said[-600:]}")
        wrong += gone(here)
        ended = False
        if here.record is not None:
            known += asked(partial(promises.finished, here.record))
            ended, found = asked(partial(promises.of_interrupted, here.record))
            wrong += found
        if undone or ended:
            wrong += here.left(data=ended)
        if ended or attempt == RESUMES:
            break
        undone = True
        command = here.resume(*options)
    if here.record is None:
        return [*wrong, f"no record: {command.said[-300:]}"]
    return wrong + asked(partial(promises.of_finished, here.record, known))


def struck_at(here: Stand, command: Command, name: str, *, after_s: float) -> int | None:
    """Waits for an instant, and then for a process; None if the run ends before."""
    command.wait(after_s)
    while command.wait(0.0) is None:
        if (pid := here.victim(name)) is not None:
            return pid
        time.sleep(0.002)
    return None


def killed(ground: Ground, chance: random.Random, *, victim: str, options: tuple[str, ...] = ()) -> Outcome:
    """SIGKILL of one process."""
    here, after_s = ground.stand, chance.uniform(0, ground.length_s)
    here.begin()
    command = here.run(*options)
    pid = struck_at(here, command, victim, after_s=after_s)
    struck = pid is not None and end(pid, signal.SIGKILL)
    wrong = unharmed(here, command) if victim == "page" else []
    wrong += went_on(here, command, undone=victim != "agent", options=options)
    if struck and victim == "load" and here.record is not None:
        wrong += asked(partial(promises.of_noticed, here.record))
    return Outcome(f"SIGKILL of {victim} after {after_s:.3f} s", wrong, struck)


def stopped(ground: Ground, chance: random.Random, *, victim: str, options: tuple[str, ...] = ()) -> Outcome:
    """SIGSTOP of one process, and SIGCONT."""
    here, after_s = ground.stand, chance.uniform(0, ground.length_s)
    pause_s = chance.uniform(0.05, LONGEST_STOP_S)
    here.begin()
    command = here.run(*options)
    pid = struck_at(here, command, victim, after_s=after_s)
    struck = pid is not None and end(pid, signal.SIGSTOP)
    if pid is not None and struck:
        command.wait(pause_s) if victim != "controller" else time.sleep(pause_s)
        end(pid, signal.SIGCONT)
    what = f"SIGSTOP of {victim} after {after_s:.3f} s for {pause_s:.3f} s"
    wrong = unharmed(here, command) if victim == "page" else []
    return Outcome(what, wrong + went_on(here, command, undone=victim != "agent", options=options), struck)


def unharmed(here: Stand, command: Command) -> list[str]:
    """Waits for a run that a fault must not concern."""
    if (status := command.wait(here.limit_s)) != 0 or here.record is None:
        return [f"exit code {status} of a run that was not disturbed: {command.said[-600:]}"]
    return asked(partial(promises.of_unharmed, here.record))


def looked_at(ground: Ground, chance: random.Random, *, victim: str, number: signal.Signals) -> Outcome:
    """SIGKILL or SIGSTOP of `fairtrial serve`, or of who asks it, while the run that it shows goes on."""
    here, after_s = ground.stand, chance.uniform(0, ground.length_s)
    here.begin()
    page = Page(here)
    try:
        command = here.run()
        struck = command.wait(after_s) is None and end(page.pids[victim], number)
        wrong = unharmed(here, command)
        if victim != "serve" and not page.answers():
            wrong.append("the page does not answer")
    finally:
        page.end()
    return Outcome(f"{number.name} of {victim} after {after_s:.3f} s", wrong + went_on(here, command), struck)


def host_gone(ground: Ground, chance: random.Random) -> Outcome:
    """SIGKILL of every process at once, as the end of a machine is."""
    here, after_s = ground.stand, chance.uniform(0, ground.length_s)
    here.begin()
    command = here.run()
    struck = command.wait(after_s) is None
    for pid in here.others():
        end(pid, signal.SIGKILL)
    return Outcome(f"SIGKILL of all after {after_s:.3f} s", went_on(here, command, undone=False), struck)


def struck_call(ground: Ground, chance: random.Random, *, error: int) -> Outcome:
    """One call that writes below the record's directory fails, or is the last thing that its process does."""
    here = ground.stand
    call = chance.choice(CALLS)
    lasts = error == errno.ENOSPC and bool(chance.getrandbits(1))
    strike = Strike(call, chance.randint(1, ground.counts[call]), error, lasts)
    here.begin()
    mark = here.directory / "was-struck"
    command = here.run(faults={"FAULT_BELOW": str(here.output), **strike.environment(mark)})
    wrong = went_on(here, command)
    return Outcome(str(strike), wrong, mark.exists())


def every_call(ground: Ground, _chance: random.Random) -> Outcome:
    """The same for every call of a session, in every way."""
    ways = ((KILLED, False), (errno.ENOSPC, False), (errno.ENOSPC, True), (errno.EIO, False), (errno.EIO, True))
    every = [Strike(call, at, *way) for call in CALLS for at in range(1, 1 + ground.counts[call]) for way in ways]
    wrong: list[str] = []
    faults = 0
    for strike in every:
        ground.stand.begin()
        mark = ground.stand.directory / "was-struck"
        found = session.struck(ground.stand.directory / "session", strike.environment(mark))
        wrong += [f"{strike}: {each}" for each in found]
        faults += mark.exists()
    return Outcome(f"every call of a session in {len(ways)} ways", wrong, faults=faults)


@contextmanager
def small(directory: Path, size: str) -> Iterator[None]:
    """A file system of a few MB in a directory's place."""
    directory.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=755", "none", directory], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", directory], check=True)


def full(ground: Ground, chance: random.Random, *, of: str) -> Outcome:
    """A file system of a few MB fills up at an instant, and is freed after the run has noticed or not."""
    here, after_s = ground.stand, chance.uniform(0, ground.length_s)
    here.begin()
    directory = here.output if of == "record" else here.state
    with small(directory, "24m"):
        here.write()
        command = here.run()
        struck = command.wait(after_s) is None
        filler = directory / "filler"
        with filler.open("wb", buffering=0) as file:
            try:
                while struck:
                    file.write(bytes(1 << 12))
            except OSError:
                pass
            command.wait(2 * ground.length_s)
        filler.unlink()
        wrong = went_on(here, command, undone=of == "record")
        return Outcome(f"the {of}'s disk full after {after_s:.3f} s", wrong, struck)


def clock(ground: Ground, chance: random.Random) -> Outcome:
    """The calendar clock of the controller jumps: what an agent starts has an environment of its own."""
    here, after_s = ground.stand, chance.uniform(0, ground.length_s)
    by_s = chance.choice((-1, 1)) * 10 ** chance.uniform(0, 7.6)
    here.begin()
    command = here.run(faults={"FAULT_CLOCK": f"{after_s} {by_s}"})
    struck = command.wait(after_s) is None
    return Outcome(f"the clock jumps by {by_s:.0f} s after {after_s:.3f} s", went_on(here, command), struck)


def cut(ground: Ground, chance: random.Random) -> Outcome:
    """The streams to the agent end, or stand still, after so many bytes one way."""
    here = ground.stand
    which, most = chance.choice(("to", "from")), int(10 ** chance.uniform(1, 4.7))
    how = chance.choice(("ends", "hangs"))
    here.begin()
    once, wrapper = here.directory / "was-cut", here.directory / "fairtrial-agent"
    words = f"exec {sys.executable} -S {RELAY} {here.agent} {which} {most} {how} {once}"
    usual = f'[ "$1" = serve ] && [ ! -e {once} ] || exec {here.agent} "$@"'
    wrapper.write_text(f"#!/bin/sh\n{usual}\n{words}\n", encoding="ascii")
    wrapper.chmod(0o755)
    command = here.run(FAIRTRIAL_AGENT=str(wrapper))
    wrong = went_on(here, command)
    return Outcome(f"the stream {which} the agent {how} after {most} bytes", wrong, once.exists())


def disk_after(ground: Ground, chance: random.Random, directory: Path) -> tuple[str, list[str]]:
    """Makes what may be on the disk if power fails; when, and which trials were reported by then."""
    top = PurePosixPath(ground.top)
    at = chance.randint(1, len(ground.log))
    disk = power.Disk(top).carry_out(ground.log[:at])
    run = next((name for name in _names(disk.node(top / "runs"))), "")
    disk.after_cut(directory, chance)
    reported = power.reported(disk, top / "runs" / run / "journal.jsonl")
    return f"power fails after call {at} of {len(ground.log)}", reported


def _names(node: power.File | power.Directory | None) -> list[str]:
    return list(node.live) if isinstance(node, power.Directory) else []


def power_cut(ground: Ground, chance: random.Random, *, resumed: bool = False) -> Outcome:
    """Power fails: what was not synced may be lost, kept or torn; then the record is taken up, or the run goes on."""
    here = ground.stand
    here.begin()
    what, reported = asked(partial(disk_after, ground, chance, here.output))
    if resumed:
        command = here.resume()
        wrong = went_on(here, command)
        names = [] if here.record is None else asked(partial(promises.finished, here.record))
        return Outcome(what, wrong + [f"lost: {name}" for name in sorted(set(reported) - set(names))])
    record = here.record
    if record is None:
        return Outcome(what, [f"lost with its run: {name}" for name in reported])
    return Outcome(what, asked(partial(_taken_up, record, reported)))


def _taken_up(record: Path, reported: list[str]) -> list[str]:
    os.fsync = lambda _descriptor: None  # type: ignore[assignment]  # in a fork, of which no power fails
    return promises.of_cut(record, reported, all_there=False)


def journal_cuts(ground: Ground, _chance: random.Random) -> Outcome:
    """The journal of a session, cut at every byte: each time the record is taken up, with all trials on the disk."""
    cuts, wrong = asked(partial(_every_cut, ground.whole), limit_s=3600)
    return Outcome("the journal cut at every byte", wrong, faults=cuts)


def _every_cut(whole: Path) -> tuple[int, list[str]]:
    os.fsync = lambda _descriptor: None  # type: ignore[assignment]
    path = whole / "journal.jsonl"
    journal, known = path.read_bytes(), promises.finished(whole)
    wrong: list[str] = []
    for left in range(len(journal) + 1):
        path.write_bytes(journal[:left])
        wrong += [f"at byte {left}: {each}" for each in promises.of_cut(whole, known, all_there=True)]
    return len(journal) + 1, wrong


@dataclass(frozen=True)
class Kind:
    """A kind of fault: what it is done to, how often it is drawn among all, and how it is done."""

    stand: str
    weight: float
    fault: Fault


def _of_processes(stand: str, victims: Mapping[str, float], *, options: tuple[str, ...] = ()) -> dict[str, Kind]:
    prefix = "" if stand == "local" else f"{stand}-"
    return {
        f"{prefix}{name}-{victim}": Kind(stand, weight, partial(fault, victim=victim, options=options))
        for victim, weight in victims.items()
        for name, fault in (("kill", killed), ("stop", stopped))
    }


LOCAL = dict.fromkeys(("controller", "agent", "load", "sampler", "server"), 6.0)
KINDS: Mapping[str, Kind] = {
    **_of_processes("local", LOCAL),
    **_of_processes("local", {"page": 1.0}, options=("--page",)),
    **{
        f"{name}-{victim}": Kind("local", 2, partial(looked_at, victim=victim, number=number))
        for victim in ("serve", "visitor")
        for name, number in (("kill", signal.SIGKILL), ("stop", signal.SIGSTOP))
    },
    "kill-all": Kind("local", 6, host_gone),
    "every-call": Kind("session", 0, every_call),
    "kill-at-call": Kind("local", 12, partial(struck_call, error=KILLED)),
    "no-space": Kind("local", 12, partial(struck_call, error=errno.ENOSPC)),
    "io-error": Kind("local", 12, partial(struck_call, error=errno.EIO)),
    "full-record": Kind("local", 2, partial(full, of="record")),
    "full-state": Kind("local", 2, partial(full, of="state")),
    "clock": Kind("local", 4, clock),
    "cut": Kind("local", 8, cut),
    "power": Kind("local", 30, power_cut),
    "power-session": Kind("session", 30, power_cut),
    "power-resumed": Kind("local", 4, partial(power_cut, resumed=True)),
    "journal": Kind("session", 0, journal_cuts),
    **_of_processes("mariadb", dict.fromkeys(("controller", "agent", "load", "sampler", "server"), 0.4)),
    **_of_processes("container", dict.fromkeys(("controller", "agent", "container"), 0.1)),
    **_of_processes("guest", dict.fromkeys(("controller", "agent", "qemu"), 0.05)),
}
