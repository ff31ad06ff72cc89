"""A host that boots kernels and is restarted, hung, cut off, or left in the middle of a run.

What needs no machine to restart is in tests/unit/run/test_rebooting.py.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

import pytest
from support.command_line import Desk
from support.forking import Started
from support.machines.booting_host import BootingHost, patiently, require_default, study

from fairtrial import record
from fairtrial.places.boot.command_line import token_of

pytestmark = [pytest.mark.long, pytest.mark.timeout(7200)]  # the cheaper sibling is tests/unit/run/test_rebooting.py

LIMIT_S = 240  # a host that hangs, and has not answered by then, is switched off and on
PATIENT_S = 1800  # the same of a host that comes back by itself, however long that takes on a busy machine
RECOVERED_S = 60  # from then until it has been told to, and boots
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


def await_trial(host: BootingHost, running: Started) -> None:
    """Returns when a trial is under way."""
    patiently(lambda: running.poll() is not None or host.run("ls /root/running", check=False), "no trial is under way")
    assert running.poll() is None, running.communicate()[0]


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
    limit_s = LIMIT_S if fails is hangs else PATIENT_S
    running = here.start("run", study(here, host, by="kexec", run=HELD, limit=limit_s))
    await_trial(host, running)
    known = len(host.resets_s())
    fails(host)
    failed_s = time.monotonic()
    patiently(lambda: host.run("rm -f /root/hold && echo gone", check=False), "the host does not come back")
    back_s = time.monotonic() - failed_s
    resets = [reset_s - failed_s for reset_s in host.resets_s()[known:]]
    assert len(resets) == (fails is hangs)
    # How long the boot after it takes is the emulated machine's affair: its share of a busy machine's processors.
    assert all(LIMIT_S / 2 < reset_s < LIMIT_S + RECOVERED_S for reset_s in resets)
    assert resets or back_s < LIMIT_S + RECOVERED_S
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
    assert "more than the limit of" in " ".join(ended.stderr.split())
    (lost,) = [trial for trial in record.read(here.run).trials if not trial.valid]
    assert lost.trial.arm == "new"
    assert "did not come up on booting by grub, but another kernel, in 2 attempts" in lost.invalid_reason
    require_default(host)
