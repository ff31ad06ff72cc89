"""PostgreSQL that is there already, by its network: encrypted, on another machine as far as can be told, restarted."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.command_line import Desk
from support.machines.servers_there import PASSWORD, VARIABLE, PostgresThere, there

from fairtrial import record

pytestmark = [
    pytest.mark.servers,
    pytest.mark.skipif(not Path("/usr/lib/postgresql").exists(), reason="needs postgres"),
]
STUDY = """\
study: there
system: {{postgres: {{at: {{{at}, database: bench, password: {{env: {variable}}}}}}}}}
workload:
  oltp:
    {{profile: point_select, table_size: 1000, virtual_users: 2, ramp_up: 100ms, transactions: 100, think_time: 10ms}}
factors: {{arm: {{own: {{}}, ours: {{system: {{postgres: {{options: {{{option}}}}}}}}}}}}}
arm: arm
trials: {{blocks: 1, seed: 4}}
metrics: {{primary: throughput_tps}}
telemetry: {{interval: 200ms}}
"""


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresThere]:
    with there("postgres") as started:
        assert isinstance(started, PostgresThere)
        yield started


@pytest.fixture(autouse=True)
def _password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, PASSWORD)


def study(here: Desk, at: str, option: str = "work_mem: 8MB") -> Path:
    return here.study(STUDY.format(at=at, variable=VARIABLE, option=option))


def test_a_certificate_is_held_against_the_name_of_the_host(here: Desk, server: PostgresThere) -> None:
    verified = f"tls: verify-full, authorities: {here.directory}/server.crt"
    (here.directory / "server.crt").write_bytes(server.certificate.read_bytes())
    refused = here.fairtrial("run", study(here, f"{server.over_network('127.0.0.1')}, {verified}"), code=3)
    assert "the connection cannot be encrypted" in refused.stderr
    assert "not valid for name" in refused.stderr
    assert server.databases() == ["postgres", "template0", "template1"]
    here.fairtrial("run", study(here, f"{server.over_network('localhost')}, {verified}"))
    run = record.read(here.runs[-1])
    assert all(trial.valid for trial in run.trials)


def test_of_another_machine_the_servers_own_counters_alone_are_seen_and_the_report_says_so(
    here: Desk, server: PostgresThere
) -> None:
    name = socket.gethostname()
    try:
        socket.gethostbyname(name)
    except OSError:
        pytest.skip("this machine does not know its own name")
    silent = here.fairtrial("run", study(here, server.over_network(name)), code=2)
    assert f"say how the connection to {name} is encrypted" in silent.stderr
    text = study(here, f"{server.over_network(name)}, tls: require").read_text()
    set_there = here.fairtrial("run", here.study(text + "settings: {sysctl: {vm.swappiness: 10}}\n"), code=2)
    assert "would change the machine of the load" in set_there.stderr
    here.fairtrial("run", here.study(text))
    run = record.read(here.runs[-1])
    assert [trial.telemetry for trial in run.trials] == [["server"], ["server"]]
    report = json.loads((here.runs[-1] / "report/report.json").read_text())
    assert "host_unseen" in json.dumps(report)


def test_what_needs_a_restart_gets_one_and_another_to_be_restored(here: Desk, server: PostgresThere) -> None:
    before = server.snapshot()
    with server.supervised() as restart:
        at = f"{server.at()}, restart: {restart}"
        here.fairtrial("run", study(here, at, "max_connections: 77"))
    values = {trial.trial.arm: trial.options["max_connections"] for trial in record.read(here.runs[-1]).trials}
    assert values == {"own": "100", "ours": "77"}
    assert server.snapshot() == before


def test_an_option_that_the_servers_command_line_decides_is_not_in_effect_and_ends_the_run(
    here: Desk, server: PostgresThere, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIRTRIAL_LIMITS", "start_s=1")
    before = server.snapshot()
    refused = here.fairtrial("run", study(here, server.at(), "fsync: true"), code=3)
    assert "options not in effect: fsync: expected on, the server reports off" in refused.stderr
    assert server.snapshot() == before
