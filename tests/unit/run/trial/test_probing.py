"""Probes in a trial: started with the window, interrupted at its end, and what becomes of those that misbehave."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from support.command_line import eventually
from support.machines.places import place_here, place_in_memory

from fairtrial.metrics.telemetry import probes
from fairtrial.protocol import generated as wire
from fairtrial.record.models import Window
from fairtrial.run.trial import probing
from fairtrial.run.trial.probing import NEVER_MEASURED, TrialProbes, command, ended, report_command
from fairtrial.study.probes import Probe
from fairtrial.wire import Limits
from fairtrial.wire.fake import FakeProgram, FakeTransport
from fairtrial.wire.open_place import OpenPlace
from fairtrial.wire.process import Process

OUT = PurePosixPath("/var/lib/fairtrial/work/x/out/diagnostics")
MEASURING = wire.MeasuringProgress(time_ns=1)
RAMP_UP = wire.RampUpProgress(time_ns=0)
needs_perf = pytest.mark.skipif(shutil.which("perf") is None, reason="needs perf: `apt install linux-perf`")
needs_bpftrace = pytest.mark.skipif(
    shutil.which("bpftrace") is None or os.geteuid() != 0, reason="needs bpftrace, as root: `apt install bpftrace`"
)


def asked(*given: object) -> list[Probe]:
    return [Probe.model_validate(each) for each in given]


def here(place: OpenPlace, *given: object) -> tuple[TrialProbes, Path]:
    """Probes of a trial on this machine, and the directory of that trial."""
    trial = Path(place.state_directory) / "work" / "trial"
    return TrialProbes(place, PurePosixPath(trial / probes.DIRECTORY), asked(*given)), trial


def test_a_program_runs_until_the_end_and_what_it_prints_is_kept(tmp_path: Path) -> None:
    with place_here(tmp_path) as place:
        subject, trial = here(
            place, {"command": "sh -c 'trap \"echo ended; exit 0\" INT; echo begun; while :; do sleep 0.01; done'"}
        )
        subject.begin()
        output = trial / probes.DIRECTORY / "1-command.txt"
        eventually(lambda: output.exists() and output.read_text() == "begun\n", "the probe never began")
        assert subject.end() == ""
        (found,) = probes.read(trial)
    assert found.lines == ("begun", "ended")
    assert found.seconds is not None
    assert found.seconds > 0


def test_a_program_that_dies_of_the_interruption_did_as_asked(tmp_path: Path) -> None:
    with place_here(tmp_path) as place:
        subject, trial = here(place, {"command": "sleep 600"}, {"command": "sh -c 'trap \"exit 130\" INT; sleep 600'"})
        subject.begin()
        time.sleep(0.1)  # the shell has to set its trap; without it, it dies of the signal, which is as good
        assert subject.end() == ""
        assert [each.failure for each in probes.read(trial)] == ["", ""]


def test_children_of_a_program_end_with_it(tmp_path: Path) -> None:
    """The whole process group is interrupted, as a terminal does it."""
    with place_here(tmp_path) as place:
        subject, _trial = here(place, {"command": f"sh -c 'sleep 600 & echo $! > {tmp_path}/child; wait; wait'"})
        subject.begin()
        child = tmp_path / "child"
        eventually(lambda: child.exists() and child.read_text().strip(), "the child never began")
        number = child.read_text().strip()
        subject.end()

        def gone() -> bool:
            try:
                state = Path(f"/proc/{number}/stat").read_text().split(")")[1].split()[0]
            except OSError:
                return True
            return state == "Z"

        eventually(gone, "the child outlived its probe")


def test_times_of_probes_are_told_in_the_clock_of_the_load(tmp_path: Path) -> None:
    with place_here(tmp_path) as place:
        subject, trial = here(place, {"command": "sleep 60"})
        subject.begin()
        (run,) = [each.run for each in subject._started]
        assert run.start_ns is not None
        window = Window(start_ns=run.start_ns + 10**12, end_ns=run.start_ns + 10**12 + 1)
        assert subject.end(window, shift_ns=10**12) == "", "it began before the window's end on that clock"
        (told,) = json.loads((trial / probes.DIRECTORY / probes.RUNS).read_bytes())
    assert told["start_ns"] == run.start_ns + 10**12
    assert told["end_ns"] > told["start_ns"]


def test_a_program_may_be_done_before_the_window_is(tmp_path: Path) -> None:
    with place_here(tmp_path) as place:
        subject, trial = here(place, {"command": "echo once"})
        subject.begin()
        process = subject._started[0].process
        assert process is not None
        process.wait(60)
        assert subject.end() == ""
        assert probes.read(trial)[0].lines == ("once",)


@pytest.mark.parametrize(
    ("script", "how"), [("exit 3", "exit code 3"), ("exit 130", "exit code 130"), ("kill -TERM $$", "signal SIGTERM")]
)
def test_one_that_fails_by_itself_makes_the_trial_doubtful(tmp_path: Path, script: str, how: str) -> None:
    with place_here(tmp_path) as place:
        subject, trial = here(place, {"command": f"sh -c '{script}'"}, {"command": "sleep 600"})
        subject.begin()
        process = subject._started[0].process
        assert process is not None
        process.wait(60)
        reason = subject.end()
        assert reason.startswith("probe command sh -c")
        assert f"ended with {how}; its words are in 1-command-errors.log" in reason
        assert "sleep" not in reason, "the other one did well"
        failed, well = probes.read(trial)
    assert how in failed.failure
    assert well.failure == ""


def test_one_that_does_not_start_is_noted_and_the_others_go_on(tmp_path: Path) -> None:
    with place_here(tmp_path) as place:
        subject, trial = here(place, {"command": "no-such-program"}, {"command": "sleep 600"})
        subject.begin()
        assert "probe command no-such-program: did not start" in subject.end()
        first, second = probes.read(trial)
    assert first.seconds is None
    assert second.failure == ""
    assert second.seconds is not None


def impatient(process: Process, *, limits: Limits, **_usual: float) -> wire.Exited:
    """Waits for a probe's end as `ended` does, and not long; what else the place is asked has its usual time."""
    return ended(process, again_s=0.1, limits=replace(limits, short_s=0.4))


def test_one_that_does_not_end_is_killed_and_not_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probing, "ended", impatient)
    with place_here(tmp_path) as place:
        subject, trial = here(place, {"command": "sh -c 'trap \"\" INT; echo deaf; while :; do sleep 0.01; done'"})
        subject.begin()
        output = trial / probes.DIRECTORY / "1-command.txt"
        eventually(lambda: output.exists() and output.read_text(), "the probe never began")
        assert "was killed" in subject.end()
        process = subject._started[0].process
        assert process is not None
        assert process.exited is not None
        assert process.exited.signal == signal.SIGKILL


def test_a_file_is_read_before_and_after(tmp_path: Path) -> None:
    watched = tmp_path / "watched"
    watched.write_text("a 1\nb 2\n")
    with place_here(tmp_path) as place:
        subject, trial = here(place, {"file": str(watched)})
        subject.begin()
        watched.write_text("a 1\nb 3\n")
        assert subject.end() == ""
        (found,) = probes.read(trial)
    assert found.lines == ("-b 2", "+b 3")


def test_a_file_of_the_kernel_is_read_whole_though_it_has_no_length(tmp_path: Path) -> None:
    with place_here(tmp_path) as place:
        subject, trial = here(place, {"file": "/proc/vmstat"})
        subject.begin()
        subject.end()
        before = (trial / probes.DIRECTORY / "1-file.before.txt").read_text()
    names = [line.split()[0] for line in Path("/proc/vmstat").read_text().splitlines()]
    assert [line.split()[0] for line in before.splitlines()] == names


def test_a_file_that_vanishes_inside_the_window_is_a_doubt(tmp_path: Path) -> None:
    watched = tmp_path / "watched"
    watched.write_text("a 1\n")
    with place_here(tmp_path) as place:
        subject, _trial = here(place, {"file": str(watched)})
        subject.begin()
        watched.unlink()
        assert f"`cat {watched}` failed after the window with code 1" in subject.end()


def test_a_file_that_is_not_there_is_not_asked_for_twice(tmp_path: Path) -> None:
    with place_here(tmp_path) as place:
        subject, trial = here(place, {"file": str(tmp_path / "nothing")})
        subject.begin()
        (tmp_path / "nothing").write_text("now it is")
        assert "failed before the window" in subject.end()
        assert not (trial / probes.DIRECTORY / "1-file.after.txt").exists()


def test_nothing_starts_before_the_window_and_progress_goes_on(tmp_path: Path) -> None:
    heard: list[Any] = []
    with place_here(tmp_path) as place:
        subject, trial = here(place, {"command": "sleep 600"})
        subject.begin_when_measuring()
        listen = subject.listening(heard.append)
        listen(RAMP_UP)
        time.sleep(0.05)
        assert subject._started == []
        listen(MEASURING)
        eventually(lambda: subject._started and subject._started[0].process, "the probe never began")
        listen(MEASURING)  # a search measures many windows: once is enough
        assert subject.end() == ""
        assert len(probes.read(trial)) == 1
    assert heard == [RAMP_UP, MEASURING, MEASURING]


def test_a_load_that_never_measures_starts_no_probe(tmp_path: Path) -> None:
    with place_here(tmp_path) as place:
        subject, trial = here(place, {"command": "sleep 600"})
        subject.begin_when_measuring()
        subject.listening(lambda _line: None)(RAMP_UP)
        assert subject.end() == NEVER_MEASURED
        assert subject._started == []
        assert probes.read(trial) == []


def test_a_window_as_short_as_its_end_still_gets_its_probes(tmp_path: Path) -> None:
    with place_here(tmp_path) as place:
        subject, trial = here(place, {"command": "sleep 600"})
        subject.begin_when_measuring()
        subject.listening(lambda _line: None)(MEASURING)
        assert subject.end() == ""
        (found,) = probes.read(trial)
    assert found.seconds is not None


def ticks_used(pid: int) -> int:
    """User time of a process, in the kernel's ticks (proc_pid_stat(5))."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11])


@needs_perf
def test_perf_counts_and_samples_a_busy_place(tmp_path: Path) -> None:
    with place_here(tmp_path) as place:
        subject, trial = here(
            place, "perf_stat", {"perf_record": {"frequency": 999}}, {"command": "sh -c 'while :; do :; done'"}
        )
        subject.begin()
        _counting, recording, working = (each.process.pid for each in subject._started if each.process is not None)
        # perf reads what runs already before it records and waits for samples.
        eventually(lambda: "poll" in Path(f"/proc/{recording}/wchan").read_text(), "perf never began")
        before = ticks_used(working)
        eventually(lambda: ticks_used(working) > before + 1, "there was nothing to sample")
        assert subject.end() == ""
        counted, sampled, _busy = probes.read(trial)
        kept = {path.name for path in (trial / probes.DIRECTORY).iterdir()}
    assert counted.seconds is not None
    assert counted.counters["task-clock"] is not None
    every_ms = 1000 * counted.seconds * len(os.sched_getaffinity(0))
    assert 0 < counted.counters["task-clock"] <= 1.01 * every_ms, "milliseconds of all processors together"
    assert sampled.samples > 0
    assert 0 < sum(each.share for each in sampled.symbols) <= 1 + 1e-9
    assert {"1-perf_stat.tsv", "2-perf_record.data", "2-perf_record.tsv", "probes.json"} <= kept


@needs_bpftrace
def test_bpftrace_prints_its_maps_when_it_is_interrupted(tmp_path: Path) -> None:
    program = "interval:ms:10 { @ticks = count(); }"
    with place_here(tmp_path) as place:
        subject, trial = here(place, {"bpftrace": {"program": program, "script": "ticks.bt"}})
        subject.begin()
        output = trial / probes.DIRECTORY / "1-bpftrace.txt"
        eventually(lambda: output.exists() and "Attach" in output.read_text(), "bpftrace never attached")
        time.sleep(0.5)
        assert subject.end() == ""
        (found,) = probes.read(trial)
        assert (trial / probes.DIRECTORY / "1-bpftrace.bt").read_text() == program
    assert any(line.startswith("@ticks: ") for line in found.lines)


def test_command_lines_are_those_of_the_manuals() -> None:
    stem = PurePosixPath("/d/1-x")
    (counts,) = asked({"perf_stat": {"events": ["cycles", "cpu/event=1,umask=0/"]}})
    assert command(counts, stem) == [
        *("perf", "stat", "-a", "-x", "\t", "-o", "/d/1-x.tsv"),
        *("-e", "cycles", "-e", "cpu/event=1,umask=0/"),
    ]
    (profile,) = asked({"perf_record": {"frequency": 49, "event": "cycles"}})
    assert command(profile, stem) == [
        *("perf", "record", "-a", "-F", "49", "-e", "cycles", "-o", "/d/1-x.data"),
    ]
    (chains,) = asked({"perf_record": {"call_graph": True}})
    assert "-g" in command(chains, stem)
    (script,) = asked({"bpftrace": {"program": "x"}})
    assert command(script, stem) == ["bpftrace", "-o", "/d/1-x.txt", "/d/1-x.bt"]
    (program,) = asked({"command": "a 'b c' d"})
    assert command(program, stem) == ["a", "b c", "d"]
    assert report_command(PurePosixPath("/d/1-x.data"))[:5] == ["perf", "report", "-f", "-i", "/d/1-x.data"]


def test_one_that_began_after_the_window_saw_nothing_of_it() -> None:
    """A controller that stands still starts them late; the load does not wait for it."""
    with place_in_memory(lambda spawn: FakeProgram(code=None if spawn.name == "probe 1-perf_stat" else 0)) as (
        place,
        fake,
    ):
        subject = TrialProbes(place, OUT, asked("perf_stat", {"file": "/proc/vmstat"}))
        subject.begin()
        counting, reading = (each.run.start_ns or 0 for each in subject._started)
        assert (
            subject.end(Window(start_ns=0, end_ns=reading))
            == "probe file /proc/vmstat: began after the measured window"
        )
        written = json.loads(fake.files[str(OUT / "probes.json")])
    assert counting < reading, "the first one saw some of it"
    assert [each["failure"] for each in written] == ["", "began after the measured window"]


def spawns(fake: FakeTransport) -> list[wire.Spawn]:
    return [
        each for each in fake.requests if isinstance(each, wire.Spawn) and each.name.startswith(("probe", "report"))
    ]


def test_probes_keep_off_the_servers_processors_and_speak_plain_numbers() -> None:
    with place_in_memory(lambda spawn: FakeProgram(code=None if spawn.name.startswith("probe") else 0)) as (
        place,
        fake,
    ):
        subject = TrialProbes(place, OUT, asked("perf_stat"), processors=(2, 3))
        subject.begin()
        subject.end()
        (spawned,) = spawns(fake)
    assert spawned.processors == [2, 3]
    assert spawned.environment == {"LC_ALL": "C"}
    signals = [each for each in fake.requests if isinstance(each, wire.Signal)]
    assert [(each.signal, each.group) for each in signals] == [(signal.SIGINT, True)]


def test_all_are_interrupted_before_anything_slow_is_waited_for() -> None:
    """A profile is read for seconds: a counter must not count that."""
    with place_in_memory(lambda spawn: FakeProgram(code=None if spawn.name.startswith("probe") else 0)) as (
        place,
        fake,
    ):
        subject = TrialProbes(place, OUT, asked("perf_record", "perf_stat"))
        subject.begin()
        subject.end()
    names = [
        each.name if isinstance(each, wire.Spawn) else "signal"
        for each in fake.requests
        if isinstance(each, wire.Signal) or (isinstance(each, wire.Spawn) and each in spawns(fake))
    ]
    assert names == ["probe 1-perf_record", "probe 2-perf_stat", "signal", "signal", "report 1-perf_record"]


def test_a_profile_that_cannot_be_read_is_a_doubt() -> None:
    def run(spawn: wire.Spawn) -> FakeProgram:
        if spawn.name.startswith("report"):
            return FakeProgram(code=1)
        return FakeProgram(code=None if spawn.name.startswith("probe") else 0)

    with place_in_memory(run) as (place, fake):
        subject = TrialProbes(place, OUT, asked("perf_record"))
        subject.begin()
        assert "`perf report` ended with code 1" in subject.end()
        (written,) = json.loads(fake.files[str(OUT / "probes.json")])
    assert "perf report" in written["failure"]


def test_one_that_stays_after_it_was_killed_is_a_doubt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probing, "ended", impatient)
    monkeypatch.setattr(Process, "signal", lambda *_args, **_options: None)  # as if it hung in the kernel
    limits = Limits(kill_s=0.05)

    def run(spawn: wire.Spawn) -> FakeProgram:
        return FakeProgram(code=None if spawn.name.startswith("probe") else 0)

    with place_in_memory(run, limits=limits) as (place, fake):
        subject = TrialProbes(place, OUT, asked("perf_stat"))
        subject.begin()
        assert "is still there after it was killed" in subject.end()
        (written,) = json.loads(fake.files[str(OUT / "probes.json")])
    assert written["failure"]


def test_a_file_whose_reader_hangs_is_a_doubt() -> None:
    def run(spawn: wire.Spawn) -> FakeProgram:
        return FakeProgram(code=None if spawn.argv[0] == "cat" else 0)

    with place_in_memory(run) as (place, _fake):
        subject = TrialProbes(place, OUT, asked({"file": "/proc/hangs"}))
        subject._make_ready()
        place.agent.limits = Limits(short_s=0.01)  # for the reader; what makes directories ready has its usual time
        subject._start_all()
        assert "`cat /proc/hangs` failed before the window" in subject.end()


def test_a_broken_recorder_is_not_asked_for_its_profile() -> None:
    with place_in_memory(lambda spawn: FakeProgram(code=255 if spawn.name.startswith("probe") else 0)) as (place, fake):
        subject = TrialProbes(place, OUT, asked("perf_record"))
        subject.begin()
        process = subject._started[0].process
        assert process is not None
        process.wait(60)
        assert "ended with exit code 255" in subject.end()
        assert [each.name for each in spawns(fake)] == ["probe 1-perf_record"]


def test_scripts_are_at_the_place_before_the_window_begins() -> None:
    with place_in_memory(lambda spawn: FakeProgram(code=None if spawn.name.startswith("probe") else 0)) as (
        place,
        fake,
    ):
        subject = TrialProbes(place, OUT, asked("perf_stat", {"bpftrace": {"program": "BEGIN { }"}}))
        subject.begin_when_measuring()
        assert fake.files == {str(OUT / "2-bpftrace.bt"): b"BEGIN { }"}
        assert spawns(fake) == []
        subject.listening(lambda _line: None)(MEASURING)
        assert subject.end() == ""
        assert [each.argv[0] for each in spawns(fake)] == ["perf", "bpftrace"]
