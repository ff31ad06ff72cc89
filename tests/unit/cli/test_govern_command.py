"""The options of `fairtrial govern purge`: what they become, and what is said of wrong ones."""

from __future__ import annotations

import inspect
import os
import signal
from pathlib import Path

import pytest

from fairtrial.cli import govern, governors
from fairtrial.cli.govern import OPTIONS, GovernOptions, Server, StopSignal
from fairtrial.errors import InputError, PlaceError
from fairtrial.places import open_place
from fairtrial.protocol.generated import Decision, Step
from fairtrial.settings.steps.purge import PurgeGovernor


def test_options_are_the_keys_of_the_setting() -> None:
    keys = set()
    for name, field in PurgeGovernor.model_fields.items():
        below = getattr(field.annotation, "model_fields", None)
        keys |= {f"{name}.{each}" for each in below} if below else {name}
    assert set(OPTIONS.values()) == keys
    offered = set(inspect.signature(governors._purge).parameters)
    assert {option.removeprefix("--").replace("-", "_") for option in OPTIONS} <= offered


def test_they_have_the_setting_s_defaults() -> None:
    given = inspect.signature(governors._purge).parameters
    values = {path: given[option.removeprefix("--").replace("-", "_")].default for option, path in OPTIONS.items()}
    assert GovernOptions(values).purge() == GovernOptions({}).purge()


def test_wishes_are_parameters_of_the_wire() -> None:
    options = GovernOptions({"period": "10ms", "threads.min": 2, "threads.max": 6, "dry_run": True}, seconds=1.5)
    endpoint = Server(Path("/run/x.sock"), "root", None).endpoint()
    found = options.purge().governing(endpoint, duration_s=options.seconds)
    assert (found.period_ms, found.threads.least, found.threads.most) == (10, 2, 6)
    assert (found.duration_s, found.dry_run) == (1.5, True)


@pytest.mark.parametrize(
    ("values", "option"),
    [
        ({"period": "0ms"}, "--period"),
        ({"stop": "101%"}, "--stop-at"),
        ({"threads.min": 0}, "--min-threads"),
        ({"batch_size.max": 9999}, "--max-batch"),
        ({"threads.min": 5, "threads.max": 4}, "--threads"),
        ({"low_water": "90%"}, "govern purge"),
    ],
)
def test_a_wrong_value_is_told_by_its_option(values: dict[str, object], option: str) -> None:
    with pytest.raises(InputError) as caught:
        GovernOptions(values).purge()
    (problem,) = caught.value.problems
    assert problem.file == option


def test_a_password_is_a_line_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("password").write_text(" se cret \n", encoding="utf-8")
    endpoint = Server(Path("own.sock"), "me", Path("password")).endpoint()
    assert endpoint.password == " se cret "
    assert endpoint.socket == str(tmp_path / "own.sock"), "the agent is elsewhere"
    with pytest.raises(InputError, match="--password-file: cannot read missing"):
        Server(Path("own.sock"), "me", Path("missing")).endpoint()


def test_signals_are_heard_and_given_back() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with StopSignal() as told:
        assert told.by is None
        os.kill(os.getpid(), signal.SIGTERM)
        assert told.by == signal.SIGTERM
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def test_a_decision_is_a_line_for_people() -> None:
    decision = Decision(
        time_ns=3_250_000_000,
        decision="fewer",
        reason="age 27 % has reached 26 %",
        checkpoint_age_percent=27,
        history_list_length=120_034,
        threads=3,
        batch_size=300,
    )
    line = govern._line(decision, since_ns=2_000_000_000)
    assert " ".join(line.split()) == "1.250 s fewer threads 3 batch 300 history 120034 age 27 % has reached 26 %"


def test_lines_count_from_the_first(capsys: pytest.CaptureFixture[str]) -> None:
    show = govern._printer(govern.StopSignal(), as_json=False)
    for time_ns in (5_000_000_000, 5_100_000_000):
        show(Decision(time_ns=time_ns, decision="started", reason="here"))
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["0.000", "0.100"]
    govern._printer(govern.StopSignal(), as_json=True)(Decision(time_ns=7, decision="late", reason="no answer"))
    assert Decision.model_validate_json(capsys.readouterr().out).decision == "late"


def test_a_setting_that_an_earlier_run_left_behind_is_told_before_anything_is_governed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FAIRTRIAL_STATE_DIRECTORY", str(tmp_path / "state"))
    setting = tmp_path / "setting"
    setting.write_text("before", encoding="utf-8")
    action = {"kind": "write", "path": str(setting), "value": "after"}
    agent = open_place("local", None, holder="an earlier run")
    agent.change(Step.model_validate({"name": "own", "action": action, "inverse": {"kind": "restore"}}))
    setting.unlink()
    with pytest.raises(PlaceError, match="could not restore: own"):
        agent.close()
    with pytest.raises(PlaceError), govern._place(changes=True):
        assert "cannot restore what an earlier run left behind: own: " in capsys.readouterr().err
