"""The main job on a host over SSH: a real sshd on loopback, cut and refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.command_line import Desk, eventually
from support.machines.holding import Held
from support.machines.kernel_parameter import kernel_parameter
from support.machines.ssh_host import SSHD, Host, host, make_key

from fairtrial import record

pytestmark = [
    pytest.mark.servers,
    pytest.mark.skipif(SSHD is None, reason="no sshd: install openssh-server"),
]

STUDY = """\
study: far
place: {{ssh: {{host: far, config: {config}, state_directory: {state}}}}}
workload: {{command: {{run: {program}}}}}
settings: {settings}
factors: {{arm: {{a: {{}}, b: {{workload: {{command: {{run: {program} b}}}}}}}}}}
arm: arm
trials: {{blocks: 2, seed: 4}}
metrics: {{primary: elapsed_s}}
telemetry: {{interval: 50ms}}
"""


@pytest.fixture
def far(here: Desk) -> Iterator[Host]:
    with host(here) as found:
        yield found


def study(here: Desk, far: Host, *, settings: str = "{}") -> Path:
    return here.study(STUDY.format(config=far.config, state=here.state, program=Held(here).run, settings=settings))


def test_a_study_runs_on_a_host_over_ssh_from_file_to_report(far: Host, here: Desk) -> None:
    with kernel_parameter() as parameter:
        done = here.fairtrial("run", study(here, far, settings=parameter.settings), drawn=True)
        assert parameter.restored()
    found = record.read(here.run)
    assert [trial.trial.id for trial in found.trials] == [trial.id for trial in found.plan.trials]
    assert all(trial.valid and trial.telemetry for trial in found.trials)
    (place,) = found.places
    assert place.place.root["ssh"]["host"] == "far"
    assert (far.directory / "cache/fairtrial/agents" / place.agent_sha256).is_dir(), "the agent there did the work"
    assert "report.html" in done.stdout
    assert list((here.state / "work").glob("*")) == [], "work directories stayed there"
    here.fairtrial("verify", here.run)


def test_a_connection_cut_mid_trial_voids_its_block_and_the_run_goes_on(far: Host, here: Desk) -> None:
    with kernel_parameter() as parameter:
        held = Held(here)
        held.hold()
        run = here.start("run", study(here, far, settings=parameter.settings))
        eventually(held.is_running, "a trial under way")
        assert parameter.changed()
        cut_off = held.running()
        far.cut()
        # Those alone: the next trial may run before anybody looks.
        eventually(lambda: not cut_off & held.running(), "the agent there has not noticed")
        held.release()
        output, _ = run.communicate(timeout=300)
        assert run.returncode == 0, output
        assert parameter.restored()
    found = record.read(here.run)
    assert found.finished
    first = found.plan.trials[0]
    reasons = {trial.trial.id: trial.invalid_reason for trial in found.trials if not trial.valid}
    assert list(reasons) == [first.id], reasons
    invalid = found.trials[0]
    assert invalid.invalid_reason.startswith("the stream to the place was lost")
    assert [(event.cell, event.block) for event in found.voided] == [(first.cell, first.block)]
    assert [event.replaces for event in found.added] == [first.block]
    assert sum(trial.valid for trial in found.trials) == 4
    assert "void" in output
    here.fairtrial("verify", here.run)


def test_a_host_key_that_changed_is_refused_in_sshs_own_words(far: Host, here: Desk) -> None:
    other = make_key(far.directory / "other")
    (far.directory / "known_hosts").write_text(f"[127.0.0.1]:{far.port} {other}\n")
    done = here.fairtrial("run", study(here, far), code=3)
    assert "REMOTE HOST IDENTIFICATION HAS CHANGED" in done.stderr
    assert "ssh-keygen -R" in done.stderr
    assert record.read(here.run).trials == ()
    assert not (far.directory / "cache").exists(), "something was brought to a host that was not trusted"


def test_a_run_that_lost_its_host_for_good_ends_in_order_and_resumes_once_it_is_back(far: Host, here: Desk) -> None:
    path, held = study(here, far), Held(here)
    held.hold()
    run = here.start("run", path)
    eventually(held.is_running, "a trial under way")
    allowed = (far.directory / "authorized_keys").read_text()
    (far.directory / "authorized_keys").write_text("")
    far.cut()
    output, _ = run.communicate(timeout=300)
    assert run.returncode == 3, output
    assert "Permission denied" in output
    (far.directory / "authorized_keys").write_text(allowed)
    held.release()
    here.fairtrial("run", path, "--resume")
    found = record.read(here.run)
    assert found.finished
    assert [trial.valid for trial in found.trials] == [False, True, True, True, True]
