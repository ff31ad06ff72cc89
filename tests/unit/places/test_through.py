"""Through command lines that run others: real ones, and one that stands for kubectl by name."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

import pytest
from support.command_line import shell_program

from fairtrial.errors import PlaceError
from fairtrial.places import open_place
from fairtrial.wire.open_place import OpenPlace

# `kubectl exec (POD | TYPE/NAME) [-c CONTAINER] [flags] -- COMMAND [args...]`, as kubectl documents it.
KUBECTL = """\
[ "$1 $2 $3 $4" = "exec -i bench-0 --" ] || { echo "error: unknown command: $*" >&2; exit 1; }
shift 4
exec "$@"
"""


def answers(command: str, state: Path) -> str:
    """What a program says in a place reached through a command line."""
    parameters = {"command": command, "state_directory": str(state)}
    with open_place("through", parameters, holder="a test", lock=False) as agent:
        return OpenPlace(agent=agent).execute(["id", "-u"]).output


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    return tmp_path


def test_kubectl_by_its_documented_syntax(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = shell_program(home / "bin" / "kubectl", KUBECTL)
    monkeypatch.setenv("PATH", f"{script.parent}:{os.environ['PATH']}")
    assert answers("kubectl exec -i bench-0 --", home / "state") == str(os.getuid())
    (kept,) = (home / "state/agents").iterdir()
    written = (kept / "fairtrial-agent").stat().st_mtime_ns
    answers("kubectl exec -i bench-0 --", home / "state")
    assert (kept / "fairtrial-agent").stat().st_mtime_ns == written, "it was brought a second time"


def test_an_agent_that_was_damaged_there_is_brought_again(home: Path) -> None:
    answers("env", home / "state")
    (kept,) = (home / "state/agents").iterdir()
    (kept / "fairtrial-agent").write_bytes(b"#!/bin/sh\nexit 7\n")
    assert answers("env", home / "state") == str(os.getuid())


def test_a_place_with_a_find_that_lacks_options_is_refused_before_the_agent_is_brought(home: Path) -> None:
    """As BusyBox's does; the other programs are this machine's."""
    programs = home / "programs"
    programs.mkdir()
    for name in ("sh", "printf", "cat", "rm", "mktemp", "mkdir", "sha256sum", "mv", "chmod"):
        (programs / name).symlink_to(shutil.which(name) or "")
    shell_program(programs / "find", "echo 'find: unrecognized: -printf' >&2\nexit 1")
    with pytest.raises(PlaceError, match="rm and find lack options that coreutils'") as error:
        answers(f"env PATH={programs}", home / "state")
    assert "coreutils, findutils" in error.value.hint
    assert not (home / "state").exists()


def test_words_that_a_shell_on_the_way_splits_arrive_whole(home: Path) -> None:
    """As sshd has the user's shell do; `eval` joins its words and splits them again."""
    script = shell_program(home / "far", 'eval "$*"')
    assert answers(str(script), home / "state") == str(os.getuid())


@pytest.mark.skipif(os.getuid() != 0, reason="only root may become another user")
def test_another_user_as_sudo_would_make_one() -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as home:  # pytest's directories are root's alone
        os.chown(home, 65534, 65534)
        command = f"setpriv --reuid 65534 --regid 65534 --clear-groups env HOME={home}"
        assert answers(command, Path(home) / "state") == "65534"


@pytest.mark.skipif(os.getuid() != 0, reason="only root may make namespaces")
def test_a_namespace_as_nsenter_and_unshare_reach_one(home: Path) -> None:
    """A process of its own there is number 2: the agent is the first."""
    state = home / "state"
    command = f"unshare --mount --pid --fork --mount-proc env HOME={home}"
    parameters = {"command": command, "state_directory": str(state)}
    with open_place("through", parameters, holder="a test", lock=False) as agent:
        inside = OpenPlace(agent=agent)
        assert inside.execute(["cat", "/proc/1/comm"]).output == "fairtrial-agent"
        own = str(Path("/proc/self/ns/pid").readlink())
        assert inside.execute(["readlink", "/proc/self/ns/pid"]).output != own
    with subprocess.Popen(["unshare", "--uts", "--fork", "sleep", "1000"]) as holder:
        try:
            (child,) = _children(holder.pid)
            answers(f"nsenter --target {child} --uts env HOME={home}", state)
        finally:
            holder.kill()
            os.kill(child, signal.SIGKILL)


def _children(pid: int) -> list[int]:
    listing = Path(f"/proc/{pid}/task/{pid}/children")
    while not (children := listing.read_text().split()):
        pass
    return [int(child) for child in children]


def test_a_state_directory_may_have_any_name(home: Path) -> None:
    assert answers("env", home / 'a "b" $HOME `c` \\d') == str(os.getuid())


def test_without_a_state_directory_the_agent_is_kept_in_the_users_cache(home: Path) -> None:
    with open_place("through", {"command": "env"}, holder="a test", lock=False):
        pass
    assert list((home / ".cache/fairtrial/agents").iterdir())


def script(directory: Path, text: str) -> str:
    return str(shell_program(directory / "way", text))


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ('exec "$@" </dev/null', "pass standard input on"),
        ('exec script --quiet --return --command "$*" /dev/null', "no terminal"),
    ],
)
def test_a_way_without_standard_input_or_with_a_terminal_is_refused_with_what_to_change(
    home: Path, text: str, hint: str
) -> None:
    with pytest.raises(PlaceError) as error:
        answers(script(home, text), home / "state")
    assert hint in error.value.hint


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("no-such-program --", "cannot be run"),
        ("cat", "`cat` failed: .*No such file"),
        ("echo hello", "changes what passes through it: .* arrived as b'hello printf"),
        ("false", "`false` failed: exit code 1"),
    ],
)
def test_a_command_that_reaches_nothing_is_named(command: str, says: str, home: Path) -> None:
    with pytest.raises(PlaceError, match=says):
        answers(command, home / "state")
