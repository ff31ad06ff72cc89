"""What a shell sees: an exit code per class of error, the error and its hint, a traceback for our bugs alone."""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Any

import pytest
import typer
from typer.main import get_command

from fairtrial import cli
from fairtrial.errors import (
    AgentError,
    FairtrialError,
    InputError,
    PlaceError,
    Problem,
    RecordError,
    StreamLostError,
    SystemStartError,
)
from fairtrial.run.interrupting import as_interrupt


def failing(error: BaseException) -> Callable[..., Any]:
    def line(**_: Any) -> None:
        raise error

    return line


def code_of(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> int:
    monkeypatch.setattr(cli, "command", lambda: failing(error))
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert isinstance(ended.value.code, int)
    return ended.value.code


PROBLEMS = [Problem("expected a number", "study.yaml", 3, 7, "trials.blocks"), Problem("unknown key", "study.yaml", 5)]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InputError(PROBLEMS, hint="mend it"), 2),
        (PlaceError("no room", hint="mend it"), 3),
        (AgentError("busy", code="busy", hint="mend it"), 3),
        (StreamLostError("gone", hint="mend it"), 3),
        (SystemStartError("exited", hint="mend it"), 3),
        (RecordError("cut", hint="mend it"), 3),
        (FairtrialError("odd", hint="mend it"), 4),
        (KeyboardInterrupt(), 130),
        (BrokenPipeError(), 141),
    ],
)
def test_each_class_of_error_has_its_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *, error: BaseException, code: int
) -> None:
    assert code_of(monkeypatch, error) == code
    said = capsys.readouterr()
    assert "Traceback" not in said.err
    assert said.out == ""
    if isinstance(error, FairtrialError):
        assert said.err == f"error: {error}\nhint: mend it\n"


def test_every_problem_is_shown_with_its_position(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code_of(monkeypatch, InputError(PROBLEMS, hint="mend it"))
    said = capsys.readouterr().err
    assert "study.yaml:3:7: trials.blocks: expected a number" in said
    assert "study.yaml:5:0: unknown key" in said


class Panic(BaseException):
    """As of a library in Rust."""


@pytest.mark.parametrize("error", [ZeroDivisionError("our fault"), Panic("our fault"), EOFError("our fault")])
def test_a_bug_shows_its_traceback_and_says_that_it_is_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: BaseException
) -> None:
    """None is a finding, which typer would make of the end of a file."""
    app = typer.Typer()

    @app.command()
    def only() -> None:
        raise error

    monkeypatch.setattr(cli, "command", lambda: get_command(app))
    monkeypatch.setattr("sys.argv", ["fairtrial"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 4
    said = capsys.readouterr().err
    assert f"{type(error).__name__}: our fault" in said
    assert "this is a bug in fairtrial" in said


@pytest.mark.parametrize(("arguments", "code"), [(["no-such-command"], 2), (["run"], 2), (["--version"], 0)])
def test_a_wrong_command_line_is_the_users_input(
    monkeypatch: pytest.MonkeyPatch, arguments: list[str], code: int
) -> None:
    monkeypatch.setattr("sys.argv", ["fairtrial", *arguments])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == code


def test_sigterm_ends_a_run_as_ctrl_c_does() -> None:
    with pytest.raises(KeyboardInterrupt):
        as_interrupt(signal.SIGTERM, None)
