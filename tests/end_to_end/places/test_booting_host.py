"""A host that boots kernels: a real machine of QEMU with a disk, GRUB and sshd, restarted, hung, and cut off.

What needs no machine to restart is in tests/unit/places/boot and tests/unit/run/test_rebooting.py.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.command_line import Desk
from support.forking import Started
from support.machines import booting_host
from support.machines.booting_host import BootingHost, patiently

from fairtrial import record
from fairtrial.places.boot.command_line import token_of
from fairtrial.record import Record
from fairtrial.record.models import PlaceOpened

# Emulation boots for half a minute, and a study many times. The cheaper sibling is tests/unit/run/test_rebooting.py.
pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]

STUDY = """\
study: booting
place:
  ssh:
    host: booting
    config: {config}
    boot: {{by: {by}, kernel: {first}, limit: {limit}s, power: "{power}"}}
workload:
  command:
    run: >-
      sh -c "{run}"
factors:
  kernel:
    old: {{}}
    new: {{place: {{ssh: {{boot: {other}}}}}}}
arm: kernel
trials: {{blocks: {blocks}, seed: 3}}
metrics: {{primary: elapsed_s}}
telemetry: {{interval: 500ms}}
"""
LIMIT_S = 240  # a host that hangs, and has not answered by then, is switched off and on
PATIENT_S = 1200  # one that boots beside other work, while nothing of it waits for a limit
RECOVERED_S = 60  # from then until it answers
HELD = "touch /root/running; while [ -e /root/hold ]; do sleep 0.2; done"
PLAIN = """\
study: plain
place: {{ssh: {{host: booting, config: {config}}}}}
workload: {{command: {{run: sh -c "cat /proc/cmdline >>/root/lines"}}}}
factors: {{x: {{a: {{}}, b: {{settings: {{environment: {{X: '1'}}}}}}}}}}
arm: x
trials: {{blocks: 1}}
metrics: {{primary: elapsed_s}}
"""
# What no run may leave changed.
DEFAULT = "cat /boot/grub/grub.cfg /boot/grub/grubenv; ls /boot/grub; cat /proc/cmdline"


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BootingHost]:
    for program in ("qemu-system-x86_64", "qemu-img", "mmdebstrap", "sfdisk", "mke2fs"):
        if shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin:/sbin") is None:
            pytest.skip(f"needs {program}")
    with booting_host.started(booting_host.made(), tmp_path_factory.mktemp("host") / "h") as found:
        yield found


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch, host: BootingHost) -> Iterator[None]:
    monkeypatch.setenv("FAIRTRIAL_LIMITS", "silence_s=30")
    yield
    sys.stderr.write(host.shown())  # pytest shows it of a test that failed


def study(here: Desk, host: BootingHost, *, by: str, **others: str | int) -> Path:
    """`others`: `blocks`, what each trial does (`run`), and how the second arm boots differently (`other`)."""
    fields = {
        "config": host.config,
        "power": host.power,
        "limit": PATIENT_S,
        "first": host.image.kernel("6.1"),
        "other": f"{{kernel: {host.image.kernel('6.12')}}}",
        "blocks": 1,
        "run": "true",
        **others,
    }
    return here.study(STUDY.format(by=by, **fields))


def release(host: BootingHost, version: str) -> str:
    return host.image.kernel(version).name.removeprefix("vmlinuz-")


def require_default(host: BootingHost) -> None:
    patiently(host.answers, "the host does not answer")
    assert token_of(host.run("cat /proc/cmdline")) == ""
    assert host.run("uname -r").strip() == release(host, "6.1")
    assert host.run("ls /boot/fairtrial/journal.json", check=False) == ""


def await_trial(host: BootingHost, running: Started) -> None:
    """Returns when a trial is under way."""
    patiently(lambda: running.poll() is not None or host.run("ls /root/running", check=False), "no trial is under way")
    assert running.poll() is None, running.communicate()[0]


def openings(found: Record) -> list[dict[str, Any]]:
    """Facts of the host at every opening, in order."""
    return [event.facts for event in found.events if isinstance(event, PlaceOpened)]


@pytest.mark.parametrize("boots", [("kexec", 15), ("grub", 15)], ids=["kexec", "grub"])
def test_two_kernels_are_arms_and_no_boot_brings_up_another_one(
    here: Desk, host: BootingHost, boots: tuple[str, int]
) -> None:
    by, blocks = boots
    before = host.run(DEFAULT)
    here.fairtrial("run", study(here, host, by=by, blocks=blocks))
    found = record.read(here.run)
    assert len(found.trials) == 2 * blocks
    assert all(trial.valid for trial in found.trials)
    releases = {"old": release(host, "6.1"), "new": release(host, "6.12")}
    builds = {arm: {trial.subject["kernel"] for trial in found.trials if trial.trial.arm == arm} for arm in releases}
    assert len(builds["old"]) == len(builds["new"]) == 1
    assert builds["old"] != builds["new"]
    opened = openings(found)
    assert [facts["kernel"] for facts in opened] == [releases[trial.trial.arm] for trial in found.trials]
    assert len({facts["boot"]["build_id"] for facts in opened}) == 2
    assert len({facts["boot"]["boot_id"] for facts in opened}) == 2 * blocks, "each trial has a boot of its own"
    assert all(facts["boot"]["by"] == by for facts in opened)
    words = {tuple(facts["kernel_command_line"].split()[:-1]) for facts in opened}
    assert len(words) == 1, "every arm has the same nets"
    require_default(host)
    assert host.run(DEFAULT) == before


def panics(host: BootingHost) -> None:
    host.run("echo c >/proc/sysrq-trigger", check=False)


def hangs(host: BootingHost) -> None:
    host.say("stop")


def loses_power(host: BootingHost) -> None:
    host.cut_power()
    host.turn_on()


@pytest.mark.parametrize("fails", [panics, hangs, loses_power])
def test_a_host_that_fails_in_a_trial_costs_its_block_and_ends_with_its_default_kernel(
    here: Desk, host: BootingHost, fails: Callable[[BootingHost], None]
) -> None:
    host.run("rm -f /root/running; touch /root/hold")
    running = here.start("run", study(here, host, by="kexec", run=HELD, limit=LIMIT_S))
    await_trial(host, running)
    fails(host)
    failed_s = time.monotonic()
    patiently(lambda: host.run("rm -f /root/hold && echo gone", check=False), "the host does not come back")
    assert time.monotonic() - failed_s < LIMIT_S + RECOVERED_S
    said, _ = running.communicate(timeout=1500)
    assert running.returncode == 0, said
    found = record.read(here.run)
    (lost,) = [trial for trial in found.trials if not trial.valid]
    assert lost.invalid_reason.startswith("the stream to the place was lost")
    assert len(found.voided) == len(found.added) == 1
    require_default(host)


def test_a_killed_run_is_resumed_and_ends_with_the_default_kernel(here: Desk, host: BootingHost) -> None:
    host.run("rm -f /root/running; touch /root/hold")
    text = study(here, host, by="grub", run=HELD)
    running = here.start("run", text)
    await_trial(host, running)
    os.killpg(running.pid, signal.SIGKILL)
    running.communicate()
    assert token_of(host.run("cat /proc/cmdline")), "nobody is left who would boot the default kernel"
    host.run("rm -f /root/hold")
    here.fairtrial("run", text, "--resume")
    assert record.read(here.run).finished
    require_default(host)


def test_another_run_on_a_host_where_one_was_killed_finds_its_default_kernel(here: Desk, host: BootingHost) -> None:
    host.run("rm -f /root/running; touch /root/hold")
    running = here.start("run", study(here, host, by="kexec", run=HELD))
    await_trial(host, running)
    os.killpg(running.pid, signal.SIGKILL)
    running.communicate()
    host.run("rm -f /root/hold")
    here.fairtrial("run", here.study(PLAIN.format(config=host.config), "plain.yaml"))
    assert "fairtrial.boot" not in host.run("cat /root/lines; rm /root/lines")
    require_default(host)


def test_a_kernel_that_does_not_come_up_voids_its_blocks_and_the_default_comes_back(
    here: Desk, host: BootingHost
) -> None:
    broken = "{parameters: ['rdinit=/nowhere', 'init=/nowhere', 'root=/dev/nowhere', 'rootdelay=1', 'panic=1']}"
    ended = here.fairtrial("run", study(here, host, by="grub", other=broken), "--set", "trials.voided_limit=0", code=3)
    assert "blocks to invalid trials" in " ".join(ended.stderr.split())
    (lost,) = [trial for trial in record.read(here.run).trials if not trial.valid]
    assert lost.trial.arm == "new"
    assert "did not come up on booting by grub, but another kernel, in 2 attempts" in lost.invalid_reason
    require_default(host)


def test_doctor_says_which_ways_do_not_work(here: Desk, host: BootingHost) -> None:
    before = host.run("cat /proc/sys/kernel/random/boot_id")
    ended = here.fairtrial("doctor", study(here, host, by="efi"), code=3)
    assert "this host has no UEFI firmware" in ended.stdout
    assert "what works on this host: `by: kexec`, `by: grub`" in " ".join(ended.stdout.split())
    assert host.run("cat /proc/sys/kernel/random/boot_id") == before, "looking boots nothing"
