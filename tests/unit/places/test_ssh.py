"""A host over SSH whose login shell is of another kind, or speaks before it is asked: a script stands for ssh(1)."""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from support.command_line import shell_program

from fairtrial.errors import PlaceError, StreamLostError
from fairtrial.places import bringing, open_place, ssh
from fairtrial.places.boot.waiting import RESTART
from fairtrial.places.bringing import LOOK, MOST_LETTERS, PUSH
from fairtrial.wire import Limits

# As sshd does with the command, which is ssh's last word.
SSH = """\
for command; do :; done
{greeting}
exec sh -c "$command"
"""
# It lets the agent come, and not start.
CUT = "cd; ! ls .cache/fairtrial/agents/*/f* >/dev/null 2>&1 || { echo reset by far >&2; exit 9; }"


def greeted(directory: Path, monkeypatch: pytest.MonkeyPatch, *, greeting: str) -> str:
    """The state directory that an agent tells behind a shell whose start-up files are these."""
    program = shell_program(directory / "bin" / "ssh", SSH.format(greeting=greeting))
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("HOME", str(directory))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    parameters = {"host": "far", "state_directory": str(directory / "state")}
    with open_place("ssh", parameters, holder="a test") as agent:
        return agent.hello.state_directory


@pytest.mark.parametrize("greeting", ["echo Welcome to far!", "printf 'no end of line'; echo to you >&2"])
def test_what_start_up_files_print_is_no_message_of_the_agent(
    greeting: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert greeted(tmp_path, monkeypatch, greeting=greeting) == str(tmp_path / "state")


def test_start_up_files_that_print_without_end_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    greeting = f"head -c {2 * ssh.GREETING_BYTES} /dev/zero"
    with pytest.raises(PlaceError, match="login shell at far prints more than 64 KiB") as refused:
        greeted(tmp_path, monkeypatch, greeting=greeting)
    assert "interactive" in refused.value.hint


def test_a_stream_that_ends_before_the_agent_starts_is_lost_in_its_own_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(StreamLostError, match="reset by far"):
        greeted(tmp_path, monkeypatch, greeting=CUT)


def test_no_connection_stays_behind_that_would_hold_a_commands_output_open() -> None:
    argv = ssh._ssh(ssh.SshParameters(host="far"), Limits())
    assert "ControlMaster=no" in argv
    assert not [word for word in argv if word.startswith("ControlPath")], "the user's own may be the only way in"


SHELLS = [shell for shell in ("sh", "bash", "csh", "tcsh", "fish", "zsh") if shutil.which(shell)]


@pytest.mark.parametrize("shell", SHELLS)
def test_every_shell_has_sh_run_a_script_of_many_lines(shell: str) -> None:
    script = 'set -eu\nfor each in \'a\tb\' "$0" !!; do\n    echo "$each"\ndone\ncat\nexit 3\n' + "# " + "long " * 400
    line = bringing.in_any_shell(script)
    done = subprocess.run([shell, "-c", line], input="handed in", capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("a\tb\nsh\n!!\nhanded in", 3)


def brought(directory: Path, *, uname: str) -> str:
    """The script that starts the agent on processors of a name."""
    shell_program(directory / "uname", f"echo {uname}")

    def run(script: str, data: bytes, *, limit_s: float) -> str:
        environment = {"PATH": f"{directory}:/usr/bin:/bin", "HOME": str(directory)}
        done = subprocess.run(
            ["sh", "-c", script], input=data, capture_output=True, timeout=limit_s, env=environment, check=False
        )
        if done.returncode != 0:
            raise PlaceError(done.stderr.decode(), hint="")
        return done.stdout.decode().strip()

    return bringing.serving(run, limits=Limits(), state_directory=None)


def test_processors_that_the_agent_is_not_built_for_are_named(tmp_path: Path) -> None:
    with pytest.raises(PlaceError, match=f"processors are riscv64, the agent's {platform.machine()}"):
        brought(tmp_path, uname="riscv64")


@pytest.mark.parametrize(
    ("machine", "uname", "is_refused"),
    [
        (183, "aarch64", False),
        (183, "armv8l", False),
        (183, "x86_64", True),
        (62, "x86_64", False),
        (62, "i686", False),
        (62, "aarch64", True),
        (243, "riscv64", False),
    ],
)
def test_processors_are_held_against_those_of_the_agent_that_is_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, machine: int, uname: str, is_refused: bool
) -> None:
    agent = tmp_path / "agent"
    agent.write_bytes(b"\x7fELF".ljust(18, b"\0") + machine.to_bytes(2, "little"))
    agent.chmod(0o755)
    monkeypatch.setenv("FAIRTRIAL_AGENT", str(agent))
    if is_refused:
        with pytest.raises(PlaceError, match=f"processors are {uname}"):
            brought(tmp_path, uname=uname)
    else:
        assert brought(tmp_path, uname=uname).endswith("/fairtrial-agent serve")


@pytest.mark.parametrize("script", [LOOK, PUSH, RESTART, "x" * 5000])
def test_a_line_for_any_shell_has_nothing_that_a_csh_would_read_itself(script: str) -> None:
    line = bringing.in_any_shell(script)
    assert "\n" not in line
    assert "!" not in line
    assert max(len(word) for word in shlex.split(line)) <= MOST_LETTERS
    assert not any(word.startswith("=") for word in line.split()), "which zsh would look for as a program"
