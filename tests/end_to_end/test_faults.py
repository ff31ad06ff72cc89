"""What breaks while a study runs on this machine: the agent killed, of another version, a disk too small."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest
from support.command_line import Desk, eventually, shell_program
from support.machines.holding import Held
from support.machines.kernel_parameter import kernel_parameter

from fairtrial import record
from fairtrial.wire import find_agent
from fairtrial.wire.messages import VERSION

STUDY = """\
study: fragile
place: {place}
workload: {{command: {{run: {program}}}}}
settings: {settings}
factors: {{arm: {{a: {{}}, b: {{workload: {{command: {{run: {program} b}}}}}}}}}}
arm: arm
trials: {{blocks: 2, seed: 4}}
metrics: {{primary: elapsed_s}}
telemetry: {{interval: 50ms}}
"""

# An agent that hears another version than was said, as one from another release would.
OTHER_VERSION = """\
[ "$1" = serve ] || exec {agent} "$@"
read -r hello
{{ printf '%s\\n' "$hello" | sed 's/"version":"{version}"/"version":"0.9"/'; cat; }} | {agent} serve
"""


def study(here: Desk, *, settings: str = "{}", place: str = "{local: {}}") -> Path:
    return here.study(STUDY.format(settings=settings, place=place, program=Held(here).run))


def test_an_agent_killed_mid_trial_voids_the_block_and_a_new_agent_goes_on(here: Desk) -> None:
    with kernel_parameter() as parameter:
        held = Held(here)
        held.hold()
        run = here.start("run", study(here, settings=parameter.settings))
        eventually(held.is_running, "a trial under way")
        assert parameter.changed()
        os.kill(here.agent_pid(), signal.SIGKILL)
        held.release()
        output, _ = run.communicate(timeout=300)
        assert run.returncode == 0, output
        assert parameter.restored()
    found = record.read(here.run)
    (invalid,) = [trial for trial in found.trials if not trial.valid]
    assert invalid.trial.id == found.plan.trials[0].id
    assert invalid.invalid_reason.startswith("the stream to the place was lost")
    assert [event.block for event in found.voided] == [invalid.trial.block]
    assert sum(trial.valid for trial in found.trials) == 4
    assert found.finished
    assert ("settings restored" in output) == (parameter.settings != "{}"), (
        "the new agent restores what the old one left"
    )
    here.fairtrial("verify", here.run)


def test_an_agent_of_another_protocol_version_is_refused_by_both_names(
    here: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = OTHER_VERSION.format(agent=find_agent(), version=VERSION)
    wrapper = shell_program(here.directory / "fairtrial-agent", script)
    monkeypatch.setenv("FAIRTRIAL_AGENT", str(wrapper))
    done = here.fairtrial("run", study(here), code=3)
    assert f"speaks protocol version 0.9, this agent speaks {VERSION}" in done.stderr
    assert "same version" in done.stderr
    assert record.read(here.run).trials == ()


def test_an_agent_that_is_missing_is_refused_with_where_it_was_looked_for(
    here: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIRTRIAL_AGENT", str(here.directory / "nowhere"))
    done = here.fairtrial("run", study(here), code=3)
    assert str(here.directory / "nowhere") in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a small file system")
def test_a_place_without_room_is_refused_at_the_start_with_both_figures(here: Desk) -> None:
    small = here.directory / "small"
    small.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m,mode=755", "none", small], check=False)
    if mounted.returncode:
        pytest.skip("this machine does not let its root mount a file system")
    try:
        done = here.fairtrial("run", study(here, place=f"{{local: {{state_directory: {small}}}}}"), code=3)
        assert "needs about 8MiB" in done.stderr
        assert "has 3MiB free" in done.stderr or "has 4MiB free" in done.stderr
        assert "state_directory" in done.stderr
        assert record.read(here.run).trials == ()
    finally:
        subprocess.run(["umount", small], check=True)
