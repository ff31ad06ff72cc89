"""Commands are tried out by a real agent: what fails is the user's to mend, what is short is run more often."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.machines.places import place_here

from fairtrial.compare import trying
from fairtrial.compare.compiling import CompareOptions
from fairtrial.compare.trying import MOST_RUNS, try_out
from fairtrial.errors import InputError
from fairtrial.wire.open_place import OpenPlace


@pytest.fixture
def place(tmp_path: Path) -> Iterator[OpenPlace]:
    with place_here(tmp_path) as found:
        yield found


def test_setting_up_comes_once_and_preparing_before_every_try(place: OpenPlace, tmp_path: Path) -> None:
    options = CompareOptions(
        ("echo A >>log", "echo B >>log"),
        shell=True,
        directory=str(tmp_path),
        setup="echo set up >>log",
        prepare="echo prepare >>log",
    )
    calibration = try_out(place, options, runs=None)
    lines = (tmp_path / "log").read_text().split("\n")[:-1]
    assert lines.count("set up") == 1
    assert lines[0] == "set up"
    assert lines[1::2] == ["prepare"] * lines.count("prepare")
    assert set(lines[2::2]) == {"A", "B"}
    assert calibration.runs == 1


def test_short_commands_are_run_several_times_and_long_ones_once(place: OpenPlace, tmp_path: Path) -> None:
    here = str(tmp_path)
    assert 1 <= try_out(place, CompareOptions(("true", "true"), directory=here), runs=None).runs <= MOST_RUNS
    assert try_out(place, CompareOptions(("true", "sleep 0.3"), directory=here), runs=None).runs == 1
    assert try_out(place, CompareOptions(("true", "true"), directory=here), runs=5).runs == 5
    assert try_out(place, CompareOptions(("echo 1", "echo 1"), directory=here, metric="(.)"), runs=None).runs == 1


def test_the_floor_is_what_an_empty_program_takes(place: OpenPlace, tmp_path: Path) -> None:
    calibration = try_out(place, CompareOptions(("sleep 2", "sleep 2"), directory=str(tmp_path)), runs=None)
    assert 0 < calibration.floor.elapsed_s < 2 <= min(calibration.elapsed_s.values())
    assert calibration.floor.reach > 0
    assert calibration.floor.max_resident_bytes > 0
    shelled = try_out(place, CompareOptions(("true", "true"), directory=str(tmp_path), shell=True), runs=None)
    assert (calibration.floor.program, shelled.floor.program) == ("true", "sh -c :")


@pytest.mark.parametrize(
    ("case", "message"),
    [
        ((("true", "no-such-program"), {}), "B: cannot start `no-such-program`"),
        ((("true", "sh -c 'echo sorry >&2; exit 3'"), {}), "ended with exit code 3\n  sorry"),
        ((("true", "sh -c 'kill -9 $$'"), {}), "ended with signal SIGKILL"),
        ((("true", "sleep 1000"), {"timeout_s": 5}), "`sleep 1000` did not end within 5 s"),
        ((("echo tps = 5", "echo TPS = 5"), {"metric": r"TPS = (\d+)"}), "nothing matches `TPS = (\\d+)`\n  tps = 5"),
        ((("echo {}", "true"), {"metric": "jobs[0].iops"}), "of `echo {}`: nothing is at `jobs[0].iops`: no `jobs`"),
        ((("true", "true"), {"setup": "false"}), "--setup: `false` ended with exit code 1"),
        ((("true", "true"), {"prepare": "false", "exit_codes": (1, 0)}), "--prepare: `false` ended with exit code 1"),
    ],
)
def test_what_fails_is_named_with_what_it_said(
    place: OpenPlace, tmp_path: Path, *, case: tuple[tuple[str, ...], dict[str, object]], message: str
) -> None:
    commands, options = case
    with pytest.raises(InputError) as caught:
        try_out(place, CompareOptions(commands, directory=str(tmp_path), **options), runs=None)
    assert message in str(caught.value)


def test_the_advice_about_a_setup_is_of_the_setup(
    place: OpenPlace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InputError) as failed:
        try_out(place, CompareOptions(("true", "true"), directory=str(tmp_path), setup="false"), runs=None)
    assert failed.value.hint == "fix the command"
    monkeypatch.setattr(trying, "SETUP_S", 0.1)
    with pytest.raises(InputError, match=r"`sleep 1000` did not end within 0\.1 s") as late:
        try_out(place, CompareOptions(("true", "true"), directory=str(tmp_path), setup="sleep 1000"), runs=None)
    assert late.value.hint == "give the command less to do"


def test_an_exit_code_of_success_may_be_another(place: OpenPlace, tmp_path: Path) -> None:
    options = CompareOptions(("sh -c 'exit 3'", "true"), directory=str(tmp_path), exit_codes=(0, 3))
    assert set(try_out(place, options, runs=1).elapsed_s) == {"A", "B"}


@pytest.mark.parametrize(
    ("command", "metric"),
    [
        ("echo '{'; echo working >&2; echo '\"score\": 12.5}'", "score"),
        ('printf \'{"before": "%0100000d", "score": 12.5}\' 0', "score"),
        ("echo score 12.5", r"score (\S+)\n"),
    ],
    ids=["errors between", "a long line", "the end of a line"],
)
def test_the_figure_is_looked_for_as_in_a_trial(place: OpenPlace, tmp_path: Path, *, command: str, metric: str) -> None:
    options = CompareOptions((command, command), shell=True, directory=str(tmp_path), metric=metric)
    assert set(try_out(place, options, runs=1).elapsed_s) == {"A", "B"}


def test_a_figure_among_errors_is_none(place: OpenPlace, tmp_path: Path) -> None:
    options = CompareOptions(("echo score 1 >&2",) * 2, shell=True, directory=str(tmp_path), metric=r"score (\S+)")
    with pytest.raises(InputError, match="nothing matches"):
        try_out(place, options, runs=1)
