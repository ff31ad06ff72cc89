"""Client and server on two hosts: a real sshd in a network namespace, a real MariaDB, a wire that is cut."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from support.command_line import Desk, eventually
from support.machines.kernel_parameter import kernel_parameter
from support.machines.namespace import Namespace, namespace, refused
from support.machines.ssh_host import SSHD, Host, host, loads

from fairtrial import record
from fairtrial.record.models import PlaceOpened, TrialRecord

MARIADB = shutil.which("mariadbd", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
POSTGRES = shutil.which("postgres")
REFUSED = refused()

pytestmark = [
    pytest.mark.servers,
    pytest.mark.skipif(SSHD is None, reason="no sshd: install openssh-server"),
    pytest.mark.skipif(bool(REFUSED), reason=REFUSED),
]
needs_mariadb = pytest.mark.skipif(MARIADB is None, reason="no mariadbd: install mariadb-server")

STUDY = """\
study: two-hosts
place: {place}
system: {system}
workload:
  oltp: {{profile: read_write, tables: 1, table_size: 500, ramp_up: 200ms, {load}, interval: 100ms}}
  place: {client}
settings: {settings}
factors: {{users: {{one: {{}}, four: {{workload: {{oltp: {{virtual_users: 4{four}}}}}}}}}}}
arm: users
trials: {{blocks: {blocks}, seed: 3}}
metrics: {{primary: throughput_tps, secondary: [cpu_user_share]}}
telemetry: {{interval: 100ms}}
"""
# The first trial, one of four users, lasts until its wire is cut, also while the test stands still; the other need not.
SPARING = {"load": "transactions: 20, think_time: 50ms", "four": ", transactions: 700"}
SMALL = "{mariadb: {options: {innodb_buffer_pool_size: 32M}}}"


@pytest.fixture
def far_side() -> Iterator[Namespace]:
    with namespace() as found:
        yield found


@pytest.fixture
def far(here: Desk, far_side: Namespace) -> Iterator[Host]:
    with host(here, address=far_side.address, within=far_side.within) as found:
        yield found


def ssh(here: Desk, far: Host) -> str:
    """The far host, whose state is its own although its disk is ours."""
    state = here.directory / "far"
    state.mkdir(mode=0o755, exist_ok=True)
    return f"{{ssh: {{host: far, config: {far.config}, state_directory: {state}}}}}"


def study(here: Desk, **changed: str) -> Path:
    values = {"place": "{local: {}}", "system": SMALL, "settings": "{}", "blocks": "1", "four": ""}
    values["load"] = "transactions: 60, think_time: 5ms"
    return here.study(STUDY.format(**{**values, **changed}))


def measured(trial: TrialRecord) -> dict[str, float]:
    assert trial.valid, trial.invalid_reason
    return trial.scalars


@pytest.mark.skipif(POSTGRES is None, reason="no postgres: install postgresql")
def test_postgres_listens_for_the_other_host_only_where_it_is_asked_for(
    here: Desk, far: Host, far_side: Namespace
) -> None:
    # A deadlock is looked for after a second by default, which is longer than the whole window.
    system = "{postgres: {options: {shared_buffers: 16MB, deadlock_timeout: 50ms}}}"
    here.fairtrial("run", study(here, system=system, client=ssh(here, far)))
    for trial in record.read(here.run).trials:
        assert measured(trial)["throughput_tps"] > 0
        assert trial.options["listen_addresses"] == far_side.ours


@pytest.mark.waits
@needs_mariadb
@pytest.mark.parametrize("far_is", ["client", "server"])
def test_a_cut_wire_ends_the_trial_undoes_settings_and_the_run_goes_on(
    here: Desk, far: Host, far_side: Namespace, *, far_is: str
) -> None:
    places = {"client": ssh(here, far)} if far_is == "client" else {"place": ssh(here, far), "client": "{local: {}}"}
    with kernel_parameter() as parameter:
        path = study(here, settings=parameter.settings, **SPARING, **places)
        run = here.start("run", path)
        eventually(lambda: parameter.changed() and loads(here) > 0, "a trial under way")
        far.cut()
        output, _ = run.communicate(timeout=300)
        assert run.returncode == 0, output
        assert parameter.restored()
    found = record.read(here.run)
    first = found.plan.trials[0]
    reasons = {trial.trial.id: trial.invalid_reason for trial in found.trials if not trial.valid}
    assert list(reasons) == [first.id], reasons
    assert reasons[first.id].startswith("the stream to the place was lost"), reasons
    assert [event.replaces for event in found.added] == [first.block]
    used = [trial for trial in found.trials if trial.valid]
    assert len(used) == 2
    assert all(measured(trial)["throughput_tps"] > 0 for trial in used)
    if far_is == "client":
        require_driven_from_there(here, far_side, found)
    else:
        assert [trial.options["bind_address"] for trial in used] == [far_side.address] * 2
    here.fairtrial("verify", here.run)


def require_driven_from_there(here: Desk, far_side: Namespace, found: record.Record) -> None:
    """The load came from the other host, the system was sampled where it is, and one clock tells both."""
    assert [event.place for event in found.events if isinstance(event, PlaceOpened)][1].root["ssh"]["host"] == "far"
    for trial in [each for each in found.trials if each.valid]:
        assert trial.options["bind_address"] == far_side.ours
        assert trial.clock_shift is not None
        assert abs(trial.clock_shift.shift_ns) <= trial.clock_shift.error_ns, "two hosts of one kernel have one clock"
        directory = found.trial_directory(trial.trial.id)
        assert {"cpu", "process-server", "server"} <= set(trial.telemetry), "sampled where the system is"
        assert trial.window is not None
        samples = pl.read_parquet(directory / "telemetry-cpu.parquet")["time_ns"]
        assert samples.min() < trial.window.end_ns  # type: ignore[operator]
        assert samples.max() > trial.window.start_ns  # type: ignore[operator]
        assert (directory / "log" / "server.log").exists()
        assert json.loads((directory / "result.json").read_bytes())["window"]
    assert list((here.state / "work").glob("*")) == [], "of the server"
    assert list((here.directory / "far" / "work").glob("*")) == [], "of the client"


@pytest.mark.waits
@needs_mariadb
def test_a_wire_that_goes_dead_without_a_word_ends_the_run_and_it_resumes_once_it_is_back(
    here: Desk, far: Host, far_side: Namespace, *, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Answers that users wait for never come.
    monkeypatch.setenv("FAIRTRIAL_LIMITS", "connect_s=8,silence_s=6,grace_s=1,finish_s=2")
    with kernel_parameter() as parameter:
        path = study(here, place=ssh(here, far), client="{local: {}}", settings=parameter.settings, **SPARING)
        run = here.start("run", path)
        eventually(lambda: parameter.changed() and loads(here) > 0, "a trial under way")
        far_side.wire("down")
        output, _ = run.communicate(timeout=300)
        assert run.returncode == 3, output
        eventually(parameter.restored, "the far side gives up by itself what it was told to change")
        far_side.wire("up")
        monkeypatch.setenv("FAIRTRIAL_LIMITS", "lock_s=60")  # now nobody is impatient
        here.fairtrial("run", path, "--resume")
        assert parameter.restored()
    found = record.read(here.run)
    assert found.finished
    assert [trial.valid for trial in found.trials] == [False, True, True]
    here.fairtrial("verify", here.run)


@needs_mariadb
def test_what_the_loads_own_host_cannot_do_is_refused_before_anything_is_prepared(here: Desk, far: Host) -> None:
    done = here.fairtrial("run", study(here, client=ssh(here, far), settings="{affinity: {client: 777}}"), code=3)
    assert "processors [777] are not online at the load's place" in " ".join(done.stderr.split())
    assert not list(here.state.glob("prepared/*"))


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"system": "{sqlite: {}}"}, "no server that another place could reach"),
        ({"place": "{vm: {kernel: debian-6.1}}"}, "no network but its own loopback"),
    ],
)
def test_what_has_no_network_is_refused_before_anything_is_opened(
    here: Desk, *, changed: dict[str, str], said: str
) -> None:
    done = here.fairtrial("run", study(here, client="{ssh: {host: never.asked}}", **changed), code=2)
    assert said in done.stderr
    assert "study.yaml:" in done.stderr, "with its line"
    assert record.read(here.run).places == ()
