"""Several clients on hosts of their own: real sshds in network namespaces, a real MariaDB here; and what encrypts."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pytest
from support.command_line import Desk, eventually
from support.machines.namespace import Namespace, namespace, refused
from support.machines.ssh_host import SSHD, Host, host, loads

from fairtrial import record
from fairtrial.metrics import latency
from fairtrial.metrics.telemetry import probes
from fairtrial.verify import recompute

MARIADB = shutil.which("mariadbd", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
POSTGRES = shutil.which("postgres")
REFUSED = refused()

pytestmark = pytest.mark.servers
needs_mariadb = pytest.mark.skipif(MARIADB is None, reason="no mariadbd: install mariadb-server")
needs_hosts = [
    needs_mariadb,
    pytest.mark.skipif(SSHD is None, reason="no sshd: install openssh-server"),
    pytest.mark.skipif(bool(REFUSED), reason=REFUSED),
]

STUDY = """\
study: several-clients
system: {system}
workload:
  oltp: {{profile: point_select, table_size: 500, ramp_up: 200ms, {load}, interval: 100ms}}
{network}
factors:
  users: {{two: {{workload: {{oltp: {{virtual_users: 2}}}}}}, five: {{workload: {{oltp: {{virtual_users: 5}}}}}}}}
arm: users
trials: {{blocks: {blocks}, seed: 3}}
metrics: {{primary: throughput_tps, secondary: [latency_ns_p99]}}
telemetry: {telemetry}
"""
SMALL = "{mariadb: {options: {innodb_buffer_pool_size: 32M}}}"


@dataclass(frozen=True)
class Far:
    """A host with a network of its own."""

    host: Host
    side: Namespace

    def place(self, here: Desk) -> str:
        state = here.directory / self.host.name
        state.mkdir(mode=0o755, exist_ok=True)
        return f"{{ssh: {{host: {self.host.name}, config: {self.host.config}, state_directory: {state}}}}}"


@pytest.fixture
def both(here: Desk) -> Iterator[list[Far]]:
    with ExitStack() as stack:
        found = []
        for name in ("east", "west"):
            side = stack.enter_context(namespace())
            far = stack.enter_context(host(here, name=name, address=side.address, within=side.within))
            found.append(Far(far, side))
        yield found


def study(here: Desk, network: str, **changed: str) -> Path:
    values = {"system": SMALL, "load": "duration: 500ms", "blocks": "1", "telemetry": "{interval: 100ms}"}
    return here.study(STUDY.format(network=network, **{**values, **changed}))


def places(here: Desk, both: list[Far]) -> str:
    return f"  place: [{', '.join(far.place(here) for far in both)}]"


@pytest.mark.usefixtures("here")
class TestHosts:
    pytestmark = needs_hosts

    def test_two_clients_drive_one_server_and_their_figures_add_up(self, here: Desk, both: list[Far]) -> None:
        # In a session of its own: a run that is stopped for a while between its words to the clients starts them late.
        run = here.start("run", study(here, places(here, both), load="duration: 2s"))
        output, _ = run.communicate(timeout=500)
        assert run.returncode == 0, output
        found = record.read(here.run)
        for trial in found.trials:
            assert trial.valid, trial.invalid_reason
            assert trial.options["bind_address"] == ",".join(far.side.ours for far in both)
            users = {"two": [1, 1], "five": [3, 2]}[trial.trial.arm]
            assert [client.users for client in trial.clients] == users
            assert [client.place for client in trial.clients] == ["ssh east", "ssh west"]
            first, second = trial.clients
            allowed_ns = sum(client.clock_shift.error_ns for client in trial.clients)
            assert abs(second.start_ns - first.start_ns) <= allowed_ns, "two hosts of one kernel have one clock"
            directory = found.trial_directory(trial.trial.id)
            own = [latency.read(directory / "clients" / number)["point_select"].n for number in ("1", "2")]
            assert latency.read(directory)["point_select"].n == sum(own)
            assert min(own) > 0
            assert {"client_1_busy_share", "client_2_latency_ns_p99"} <= set(trial.scalars)
        assert recompute(found) == []
        damaged = found.trial_directory(found.trials[0].trial.id) / "clients" / "2" / "timeline.parquet"
        rows = pl.read_parquet(damaged)
        rows.with_columns(point_select_committed=pl.col("point_select_committed") + 1).write_parquet(damaged)
        assert any("differs from the sum of the clients' files" in text for text in recompute(record.read(here.run)))

    @pytest.mark.long  # its sibling: a lost client in tests/unit/run/trial/test_driving.py
    @pytest.mark.waits
    def test_a_lost_client_voids_the_trial_and_is_named(self, here: Desk, both: list[Far]) -> None:
        path = study(here, places(here, both), load="duration: 2s")
        run = here.start("run", path)
        eventually(lambda: loads(here) == 2, "a trial under way")
        both[1].host.cut()
        output, _ = run.communicate(timeout=500)
        assert run.returncode == 0, output
        found = record.read(here.run)
        lost = [trial.invalid_reason for trial in found.trials if not trial.valid]
        assert len(lost) == 1
        assert lost[0].startswith("the stream to the place was lost: client 2 (ssh west): ")
        assert sum(trial.valid for trial in found.trials) == 2


@pytest.mark.parametrize(
    "system",
    [
        pytest.param(SMALL, marks=needs_mariadb, id="mariadb"),
        pytest.param(
            "{postgres: {options: {shared_buffers: 16MB}}}",
            marks=[
                pytest.mark.long,  # its sibling: MariaDB
                pytest.mark.skipif(POSTGRES is None, reason="no postgres: install postgresql"),
            ],
            id="postgres",
        ),
    ],
)
def test_a_load_elsewhere_encrypts_at_the_address_that_the_study_chooses_beside_probes(here: Desk, system: str) -> None:
    state = here.directory / "other"
    state.mkdir(mode=0o755)
    network = f"  place: {{local: {{state_directory: {state}}}}}\n  address: 127.0.0.1\n  tls: true"
    telemetry = "{interval: 100ms, diagnostic_blocks: 1, probes: [{file: /proc/vmstat}]}"
    load = "transactions: 100, think_time: 5ms"
    here.fairtrial("run", study(here, network, load=load, system=system, telemetry=telemetry))
    found = record.read(here.run)
    for trial in found.committed:
        assert trial.valid, trial.invalid_reason
        if "mariadb" in system:
            assert (trial.options["bind_address"], trial.options["require_secure_transport"]) == ("127.0.0.1", "ON")
        else:
            assert (trial.options["listen_addresses"], trial.options["ssl"]) == ("127.0.0.1", "on")
    (diagnostic, *_) = [trial for trial in found.committed if trial.trial.diagnostic]
    (probe,) = probes.read(found.trial_directory(diagnostic.trial.id))
    assert probe.failure == ""
    assert any(line.startswith("+") for line in probe.lines)
