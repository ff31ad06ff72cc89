"""A command is driven by a real agent: what it is told, how long it may take, and how it may end."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from signal import SIGKILL, SIGTERM
from typing import Any

import pytest
from support.command_line import eventually, shell_program
from support.machines.places import place_here

from fairtrial.errors import AgentError, PlaceError
from fairtrial.protocol.generated import Signal
from fairtrial.wire.agent import Agent
from fairtrial.wire.fake import FakeProgram, FakeTransport
from fairtrial.wire.open_place import OpenPlace
from fairtrial.workloads import Drive, DriveOutcome
from fairtrial.workloads.command import PROGRAM, Command
from fairtrial.workloads.command.parameters import CommandParameters


@pytest.fixture
def place(tmp_path: Path) -> Iterator[OpenPlace]:
    with place_here(tmp_path) as found:
        yield found


def drive(place: OpenPlace, here: Path, **given: Any) -> DriveOutcome:
    (here / "out" / "log").mkdir(parents=True)
    (here / "work").mkdir()
    return Command(CommandParameters.model_validate(given)).drive(
        place,
        Drive(
            endpoint=None,
            seed=42,
            directory=PurePosixPath(here / "out"),
            work_directory=PurePosixPath(here / "work"),
            environment={"COLOUR": "green"},
            processors=(0,),
            on_progress=lambda _line: None,
        ),
    )


def test_it_finds_its_seed_its_directory_and_its_settings_in_its_environment(place: OpenPlace, tmp_path: Path) -> None:
    script = 'echo $FAIRTRIAL_SEED $COLOUR; pwd; echo oops >&2; echo {} >"$FAIRTRIAL_METRICS_FILE"'
    driven = drive(place, tmp_path, run=f"sh -c '{script}'")
    out = tmp_path / "out"
    assert (out / "log" / "load.log").read_text() == f"42 green\n{tmp_path}/work\n"
    assert (out / "log" / "load-errors.log").read_text() == "oops\n"
    assert (out / "metrics.json").read_text() == "{}\n"
    assert driven.invalid_reason == ""


def test_the_window_is_its_whole_life_and_the_kernels_accounting_is_kept(place: OpenPlace, tmp_path: Path) -> None:
    driven = drive(place, tmp_path, run="sleep 0.2")
    usage = json.loads((tmp_path / "out" / "usage.json").read_text())
    assert usage["elapsed_s"] == (driven.window.end_ns - driven.window.start_ns) / 1e9 >= 0.2
    assert usage["max_resident_bytes"] > 0


def test_it_runs_where_it_is_told_to(place: OpenPlace, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    drive(place, tmp_path, run="pwd", directory=str(tmp_path / "there"))
    assert (tmp_path / "out" / "log" / "load.log").read_text() == f"{tmp_path}/there\n"


def test_one_that_takes_too_long_is_stopped_with_its_children_and_its_trial_is_invalid(
    place: OpenPlace, tmp_path: Path
) -> None:
    script = "sleep 1000 & echo $! >child; wait"
    driven = drive(place, tmp_path, run=f"sh -c '{script}'", timeout="8s")
    assert "ran longer than 8 s and was stopped" in driven.invalid_reason
    child = int((tmp_path / "work" / "child").read_text())
    eventually(lambda: not Path(f"/proc/{child}").exists(), "a child of the stopped program still runs")


def test_what_it_leaves_running_is_told_to_end_before_the_next_trial(place: OpenPlace, tmp_path: Path) -> None:
    is_asleep = '[ "$(cat /proc/$!/comm)" = sleep ]'  # until then it has its parent's name
    driven = drive(place, tmp_path, run=f"sh -c 'sleep 1000 & echo $! >child; until {is_asleep}; do :; done'")
    child = Path(f"/proc/{(tmp_path / 'work' / 'child').read_text().strip()}")
    assert (driven.invalid_reason, child.exists()) == ("", True)
    swept = place.agent.sweep(8.0)
    assert (swept.programs, swept.killed, swept.left) == (["sleep"], 0, 0)
    assert not child.exists()


class Slow(FakeTransport):
    """A place where SIGTERM alone ends nothing in time."""

    def end(self, process: int, *, code: int | None = None, signal: int | None = None) -> None:
        if signal != SIGTERM:
            super().end(process, code=code, signal=signal)


def test_one_that_takes_too_long_is_asked_to_end_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some take a second SIGTERM for "now", and lose what they would have written."""
    monkeypatch.setattr("fairtrial.workloads.command.runs.STOP_S", 0.01)
    fake = Slow(run=lambda spawn: FakeProgram(code=None if spawn.name == "load" else 0))
    with Agent(fake, holder="a test", lock=True) as agent:
        driven = drive(OpenPlace(agent), tmp_path, run="sleep 1000", timeout=0.01)
    assert "ran longer than 0.01 s and was stopped" in driven.invalid_reason
    sent = [(request.signal, request.group) for request in fake.requests if isinstance(request, Signal)]
    assert sent == [(SIGTERM, True), (SIGKILL, True)]


@pytest.mark.parametrize(
    ("script", "expected"), [("exit 7", "ended with exit code 7"), ("kill -9 $$", "ended with signal SIGKILL")]
)
def test_one_that_fails_makes_its_trial_invalid(tmp_path: Path, script: str, expected: str) -> None:
    with place_here(tmp_path) as place:
        assert expected in drive(place, tmp_path, run=f"sh -c '{script}'").invalid_reason


def test_an_exit_code_that_means_success_is_none(place: OpenPlace, tmp_path: Path) -> None:
    assert drive(place, tmp_path, run="sh -c 'exit 7'", exit_codes=[0, 7]).invalid_reason == ""


def test_a_program_that_is_not_there_ends_the_run(place: OpenPlace, tmp_path: Path) -> None:
    with pytest.raises(AgentError, match="no-such-load") as missing:
        drive(place, tmp_path, run="no-such-load")
    assert missing.value.code == "not_found"


def test_a_program_is_looked_for_without_running_it(place: OpenPlace, tmp_path: Path) -> None:
    Command(CommandParameters(run=f"touch {tmp_path}/ran")).require(place)
    assert not (tmp_path / "ran").exists()
    with pytest.raises(PlaceError, match="no no-such-load at this place"):
        Command(CommandParameters(run="no-such-load --fast")).require(place)


def test_a_program_by_its_path_is_looked_for_where_it_runs(place: OpenPlace, tmp_path: Path) -> None:
    shell_program(tmp_path / "bench", "")
    Command(CommandParameters(run="./bench --fast", directory=str(tmp_path))).require(place)
    with pytest.raises(PlaceError, match="/usr/bench at this place"):
        Command(CommandParameters(run="./bench --fast", directory="/usr")).require(place)


def test_warm_ups_and_runs_are_each_prepared_and_only_runs_are_measured(place: OpenPlace, tmp_path: Path) -> None:
    log = tmp_path / "order"
    driven = drive(
        place,
        tmp_path,
        run=f"sh -c 'echo run >>{log}; echo said; sleep 0.1'",
        prepare=f"sh -c 'echo prepare >>{log}; sleep 0.2'",
        warm_ups=1,
        runs=3,
    )
    assert log.read_text().split() == ["prepare", "run"] * 4
    usage = json.loads((tmp_path / "out" / "usage.json").read_text())
    elapsed = [run["elapsed_s"] for run in usage["runs"]]
    assert len(elapsed) == 3
    assert usage["elapsed_s"] == pytest.approx(sum(elapsed) / 3)
    assert usage["max_resident_bytes"] == max(run["max_resident_bytes"] for run in usage["runs"])
    assert (tmp_path / "out" / "log" / "load.log").read_text() == "said\n" * 3
    assert (driven.window.end_ns - driven.window.start_ns) / 1e9 > sum(elapsed) + 2 * 0.2


@pytest.mark.parametrize("before", [{"warm_ups": 1}, {"prepare": "sh -c 'echo 1 >$FAIRTRIAL_METRICS_FILE'"}])
def test_metrics_of_what_is_not_measured_never_stand_for_a_run_s(
    place: OpenPlace, tmp_path: Path, before: dict[str, Any]
) -> None:
    once = tmp_path / "once"
    run = f"sh -c 'test -e {once} || echo 1 >$FAIRTRIAL_METRICS_FILE; touch {once}'"
    if "prepare" in before:
        once.touch()
    assert drive(place, tmp_path, run=run, **before).invalid_reason == ""
    assert once.exists()
    assert not (tmp_path / "out" / "metrics.json").exists()


@pytest.mark.parametrize(
    ("given", "runs"), [({"prepare": "false"}, 0), ({"warm_ups": 1}, 1), ({"runs": 3}, 1), ({"exit_codes": [1]}, 1)]
)
def test_nothing_goes_on_after_a_run_or_its_preparation_failed(
    place: OpenPlace, tmp_path: Path, *, given: dict[str, Any], runs: int
) -> None:
    count = tmp_path / "count"
    driven = drive(place, tmp_path, run=f"sh -c 'echo x >>{count}; exit 1'", **given)
    assert bool(driven.invalid_reason) == ("exit_codes" not in given)
    assert (count.read_text().count("x") if count.exists() else 0) == runs
    measured = Command(CommandParameters.model_validate({"run": "false", **given})).scalars(
        tmp_path / "out", driven.window
    )
    assert measured["elapsed_s"] >= 0, "what did not run has no output, and its trial is invalid for that reason alone"


def test_it_runs_on_the_processors_of_its_trial(place: OpenPlace, tmp_path: Path) -> None:
    drive(place, tmp_path, run="grep -w Cpus_allowed_list /proc/self/status")
    assert (tmp_path / "out" / "log" / "load.log").read_text().split() == ["Cpus_allowed_list:", "0"]


def test_another_build_of_a_program_is_told_and_what_it_is_given_is_not(place: OpenPlace, tmp_path: Path) -> None:
    bench, lines = tmp_path / "bench", ["./bench data", f"{tmp_path}/bench data", "sh bench data"]

    def hashed(line: str, directory: str | None = str(tmp_path), **more: Any) -> dict[str, str]:
        return Command(CommandParameters(run=line, directory=directory, **more))._hashed(place)

    seen = []
    for build in ("", "true"):
        shell_program(bench, build)
        seen.append([hashed(line)[PROGRAM] for line in lines])
    assert [first == second for first, second in zip(*seen, strict=True)] == [False, False, True]
    assert hashed("./bench", None) == hashed("./bench", prepare="make") == {}
    assert hashed("no-such-program") == hashed("exit") == {}


def test_a_trial_keeps_the_hash_of_its_program(place: OpenPlace, tmp_path: Path) -> None:
    assert drive(place, tmp_path, run="/bin/true").effective.keys() == {PROGRAM}
