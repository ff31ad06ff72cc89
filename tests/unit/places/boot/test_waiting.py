"""A host that restarts: which boot answers, and what ends a silence. This machine's shell stands for its."""

from __future__ import annotations

import itertools
import re
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest
from support.command_line import eventually

from fairtrial.errors import PlaceError
from fairtrial.places.boot import waiting
from fairtrial.places.boot.parameters import BootParameters
from fairtrial.places.boot.waiting import ASK, Answer, RestartingHost

BOOT_ID = Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def in_shell(script: str, data: bytes, *, limit_s: float) -> str:
    done = subprocess.run(["sh", "-c", script], input=data, capture_output=True, timeout=limit_s, check=True)
    return done.stdout.decode().strip()


def here(**boot: object) -> RestartingHost:
    return RestartingHost("h", in_shell, BootParameters.model_validate({"by": "kexec", **boot}))


def saying(path: Path, **boot: object) -> RestartingHost:
    """A host whose boot is what a file says; without the file it is down."""

    def run(script: str, data: bytes, *, limit_s: float) -> str:
        del script
        if not path.exists():
            raise PlaceError("down", hint="")
        return in_shell(f"cat {path}", data, limit_s=limit_s)

    parameters = BootParameters.model_validate({"by": "kexec", "limit": 0.2, **boot})
    return RestartingHost("h", run, parameters, sleep=lambda _seconds: None)


def test_a_host_says_which_boot_answers() -> None:
    answer = here().back()
    assert answer.boot_id == BOOT_ID
    assert answer.command_line == Path("/proc/cmdline").read_text().strip()
    assert answer.token == ""
    assert Answer("1", "root=/dev/vda1 fairtrial.boot=0a1b").token == "0a1b"


def test_a_host_that_is_still_going_down_is_waited_for(tmp_path: Path) -> None:
    said = tmp_path / "said"
    said.write_text("1 old\n")
    seconds: list[float] = []

    def sleep(_seconds: float) -> None:
        seconds.append(_seconds)
        said.write_text("2 new fairtrial.boot=7\n")

    host = saying(said, limit=600)
    restarting = RestartingHost(host.name, host.run, host.boot, sleep=sleep)
    assert restarting.back(after="1") == Answer("2", "new fairtrial.boot=7")
    assert len(seconds) == 1


def test_a_silent_host_is_turned_off_and_on_if_the_study_says_how(tmp_path: Path) -> None:
    said = tmp_path / "said"
    with pytest.raises(PlaceError, match=r"h does not answer within 0.2 s") as caught:
        saying(said).back()
    assert caught.value.field == "place.ssh.boot.power"
    host = saying(said, power=f"sh -c 'echo 2 default > {said}'")
    assert host.back(after="1") == Answer("2", "default")


def test_a_host_that_stays_silent_and_a_power_command_that_fails_are_told(tmp_path: Path) -> None:
    with pytest.raises(PlaceError, match="after `true`"):
        saying(tmp_path / "said", power="true").back()
    with pytest.raises(PlaceError, match="`sh -c 'echo no BMC >&2; exit 3'` failed: no BMC"):
        saying(tmp_path / "said", power="sh -c 'echo no BMC >&2; exit 3'").back()
    with pytest.raises(PlaceError, match="cannot be run"):
        saying(tmp_path / "said", power="/nowhere").back()


@pytest.mark.parametrize(
    "said", ["ssh cannot log in to h: ann@h: Permission denied (publickey).", "Could not resolve hostname h"]
)
def test_the_power_of_a_host_that_only_keeps_us_out_stays_on_unless_we_have_restarted_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    turned = tmp_path / "turned"

    def run(script: str, data: bytes, *, limit_s: float) -> str:
        del data, limit_s
        if script != ASK:
            return "restarting"
        if turned.exists():
            return "2 default"
        raise PlaceError(said, hint="")

    monkeypatch.setattr(waiting, "RESTARTED", set())
    boot = BootParameters.model_validate({"by": "kexec", "limit": 0.05, "power": f"touch {turned}"})
    slept: list[float] = []
    with pytest.raises(PlaceError, match=re.escape(said)):
        RestartingHost("h", run, boot, sleep=slept.append).back()
    assert bool(slept) == ("denied" not in said), "a host that boots may have no name yet; one that answers may not"
    assert not turned.exists()
    RestartingHost("h", run, boot).restart(("reboot", "reboot"))
    for after in ("1", ""):  # at once, and when the next trial finds what came up
        turned.unlink(missing_ok=True)
        host = RestartingHost("h", run, boot, sleep=lambda _seconds: None)
        assert host.back(after=after) == Answer("2", "default")


def test_a_host_that_does_not_go_down_is_told_from_a_silent_one(tmp_path: Path) -> None:
    said = tmp_path / "said"
    said.write_text("1 old\n")
    with pytest.raises(PlaceError, match=r"h does not restart within 0\.01 s: the boot of before answers"):
        saying(said, limit=0.01).back(after="1")
    said.unlink()
    with pytest.raises(PlaceError, match=r"h does not answer within 0\.01 s: down"):
        saying(said, limit=0.01).back(after="1")


def test_a_host_is_asked_once_at_least_however_late_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = tmp_path / "said"
    said.write_text("2 new\n")
    seconds = itertools.count(step=100)
    monkeypatch.setattr(waiting, "time", SimpleNamespace(monotonic=lambda: next(seconds)))
    assert saying(said).back(after="1") == Answer("2", "new")


def test_a_restart_outlives_the_session_that_asked_for_it(tmp_path: Path) -> None:
    went = tmp_path / "it's down"
    command = f'touch "{went}"'
    here().restart((command, command))
    eventually(went.exists, "nothing restarted")
