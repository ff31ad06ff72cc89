"""A program of somebody else's, run by a real agent."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

import pytest
from support.machines.places import place_here, place_in_memory

from fairtrial.errors import PlaceError
from fairtrial.protocol import generated as wire
from fairtrial.record.models import Window
from fairtrial.wire.fake import USAGE
from fairtrial.wire.open_place import OpenPlace
from fairtrial.workloads import tool
from fairtrial.workloads.tool import Bench, Invocation, Life, Tool, ToolRun
from fairtrial.workloads.workload import Drive, ProcessOptions


@pytest.fixture
def place(tmp_path: Path) -> Iterator[OpenPlace]:
    with place_here(tmp_path) as found:
        yield found


def shell(name: str = "sh", hint: str = "install it at the place") -> Tool:
    return Tool(name, hint, words=lambda lines: lines[-1] if lines else "nothing", stop_s=1)


def run(place: OpenPlace, script: str, *, limit_s: float = 120) -> ToolRun:
    process_options: ProcessOptions = {"environment": {"NAMED": "by the settings"}, "processors": None, "groups": ()}
    return shell().run(place, ["-c", script], Invocation("load", PurePosixPath("/tmp"), limit_s, process_options))


def test_a_life_has_its_lines_its_window_and_what_it_cost(place: OpenPlace) -> None:
    before = place.agent.clock().monotonic_ns
    ran = run(place, 'echo "$NAMED"; pwd >&2; sleep 0.1')
    assert sorted(ran.lines) == sorted(["by the settings", "/tmp"])
    assert ran.text.splitlines() == list(ran.lines)
    assert not ran.failure
    assert before <= ran.life.start_ns
    assert ran.life.end_ns - ran.life.start_ns >= 1e8
    assert ran.life.end_ns <= place.agent.clock().monotonic_ns
    assert ran.usage.max_resident_bytes > 0


@pytest.mark.parametrize(
    ("script", "failure"),
    [
        ("echo why; exit 3", "sh ended with exit code 3: why"),
        ("exit 1", "sh ended with exit code 1: nothing"),
        ("echo last; kill -9 $$", "sh ended with signal SIGKILL: last"),
        ("kill -40 $$", "sh ended with signal 40: nothing"),
    ],
)
def test_how_it_failed_is_told_with_its_own_words(place: OpenPlace, script: str, failure: str) -> None:
    assert run(place, script).failure == failure


@pytest.mark.parametrize("script", ["exec sleep 60", "trap 'exit 0' TERM; echo on; while :; do sleep 0.05; done"])
def test_one_that_does_not_end_is_stopped_and_failed(place: OpenPlace, script: str) -> None:
    ran = run(place, script, limit_s=0.5)
    assert ran.failure == "sh ran longer than 0.5 s and was stopped"
    assert ran.life.end_ns - ran.life.start_ns < 30e9


def test_a_program_is_known_by_path_version_and_hash(place: OpenPlace) -> None:
    found = shell("bash").identify(place)
    assert found["bash_version"].startswith("GNU bash")
    assert found["bash_sha256"] == hashlib.sha256(Path(found["bash"]).read_bytes()).hexdigest()


def test_one_that_is_not_there_is_an_error_with_a_fix(place: OpenPlace) -> None:
    with pytest.raises(PlaceError) as caught:
        shell("no-such-program").identify(place)
    assert caught.value.hint == "install it at the place"


def test_seeds_follow_from_the_trials_and_its_part_alone() -> None:
    assert tool.seed_of(3, "window") == tool.seed_of(3, "window")
    seeds = {tool.seed_of(trial, part) for trial in range(50) for part in ("window", "warm-up", "centre")}
    assert len(seeds) == 150
    assert all(0 <= seed < 1 << 48 for seed in seeds)


def test_what_starts_it_may_be_more_than_its_name(place: OpenPlace) -> None:
    process_options: ProcessOptions = {"environment": {}, "processors": None, "groups": ()}
    started = replace(shell("named"), command=("env", "ADDED=1", "sh"))
    ran = started.run(
        place, ["-c", "echo $ADDED; exit 2"], Invocation("load", PurePosixPath("/tmp"), 120, process_options)
    )
    assert ran.failure == "named ended with exit code 2: 1"


def test_a_failure_that_its_exit_code_hides_is_told_in_its_own_words(place: OpenPlace) -> None:
    telling = replace(shell(), trouble=lambda lines: "; ".join(line for line in lines if line.startswith("FATAL")))
    invocation = Invocation("load", PurePosixPath("/tmp"), 120)
    said = [telling.run(place, ["-c", script], invocation).failure for script in ("echo FATAL: none; echo b", "echo a")]
    assert said == ["sh ended with exit code 0, but printed: FATAL: none", ""]


def test_one_that_hangs_after_trouble_is_told_with_both(place: OpenPlace) -> None:
    telling = replace(shell(), trouble="; ".join)
    said = telling.run(place, ["-c", "echo FATAL: none; exec sleep 60"], Invocation("load", PurePosixPath("/tmp"), 1))
    assert said.failure == "sh ran longer than 1 s and was stopped, and printed: FATAL: none"


def test_lines_are_kept_and_told_as_they_may_be_shown(place: OpenPlace) -> None:
    discreet = replace(shell(), clean=lambda lines: [line for line in lines if "secret" not in line])
    said = discreet.run(place, ["-c", "echo no; echo secret; exit 1"], Invocation("load", PurePosixPath("/tmp"), 120))
    assert (said.failure, said.text) == ("sh ended with exit code 1: no", "no\n")


@dataclass(frozen=True)
class Telling(Bench):
    """Tells what was asked of it; one of its lives may fail."""

    failing: str
    told: list[str]

    def run(self, life: Life, drive: Drive, *, name: str) -> ToolRun:  # noqa: ARG002 - it starts nothing
        self.told.append(f"{name} {life.seed}")
        usage = wire.Usage.model_validate(USAGE)
        return ToolRun([], Window(start_ns=1, end_ns=2), usage, "no" if name == self.failing else "")

    def measured(self, _ran: ToolRun, _drive: Drive, _clock: wire.Reading) -> tuple[Window, str]:
        self.told.append("measured")
        return Window(start_ns=5, end_ns=6), "too few"


@pytest.mark.parametrize(
    ("failing", "ramp_up_s", "told", "reason"),
    [
        ("", 3, ["ramp-up 1", "measuring", "load 2", "measured"], "too few"),
        ("", 0, ["measuring", "load 2", "measured"], "too few"),
        ("ramp-up", 3, ["ramp-up 1"], "ramping up: no"),
        ("load", 3, ["ramp-up 1", "measuring", "load 2"], "no"),
    ],
)
def test_a_trial_ramps_up_and_measures_until_one_of_them_fails(
    *, failing: str, ramp_up_s: int, told: list[str], reason: str
) -> None:
    with place_in_memory() as (place, _fake):
        bench = Telling(place, failing, [])
        drive = Drive(
            endpoint=None,
            seed=7,
            directory=PurePosixPath("/out"),
            work_directory=PurePosixPath("/work"),
            environment={},
            processors=None,
            on_progress=lambda line: bench.told.append(line.progress),
        )
        driven = bench.drive(drive, {"tool": "/bin/tool"}, ramp_up=Life(ramp_up_s, None, 1), window=Life(None, 9, 2))
    assert bench.told == told
    assert driven.invalid_reason == reason
    assert driven.window.start_ns == (5 if "measured" in told else 1)
    seeds = {"seed": "2", "ramp_up_seed": "1"} if ramp_up_s else {"seed": "2"}
    assert driven.effective == {"tool": "/bin/tool", **seeds}
