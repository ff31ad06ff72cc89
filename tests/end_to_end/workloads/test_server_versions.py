"""Servers of several kinds and versions in one study, none of them installed; and sources that are no servers."""

from __future__ import annotations

import dataclasses
import urllib.request
from pathlib import Path

import polars as pl
import pytest
from support.command_line import Desk
from support.repository import zipped

from fairtrial import record
from fairtrial.servers import known, maven

OLDEST = {"m10_1": ("mariadb", "10.1.23"), "my5_5": ("mysql", "5.5.34"), "p18": ("postgres", "18.6")}

STUDY = """\
study: versions
system: {mariadb: {version: 10.1.23}}
workload: {oltp: {profile: read_write, table_size: 1000, virtual_users: 2, ramp_up: 0s, transactions: 200, rate: 200}}
factors:
  server:
    m10_1: {}
    my5_5: {system: {mysql: {version: 5.5.34, options: {innodb_log_file_size: 16M}}}}
    p18: {system: {postgres: {version: '18.6'}}}
arm: server
trials: {blocks: 1, seed: 5}
metrics: {primary: throughput_tps}
telemetry: {interval: 500ms}
"""
# Of the servers' own counters, those that every server of a kind must give, wherever it keeps them.
INNODB = (
    "history_list_length",
    "lsn_current",
    "lsn_flushed",
    "lsn_checkpoint",
    "buffer_pool_pages_dirty",
    "buffer_pool_read_requests",
    "row_lock_waits",
    "log_written_bytes",
    "com_commit",
    "handler_update",
)
COUNTED = {
    "m10_1": (*INNODB, "checkpoint_age_bytes", "checkpoint_age_max_bytes", "deadlocks"),
    "my5_5": INNODB,
    "p18": (
        "transactions_committed",
        "checkpoint_age_bytes",
        "checkpoint_age_max_bytes",
        "lsn_current",
        "buffer_pool_read_requests",
        "buffers_flushed_by_backends",
        "log_written_bytes",
        "log_writes",
        "log_fsyncs",
        "deadlocks",
        "row_lock_current_waits",
    ),
}

ONE = """\
study: one
system: {{mariadb: {{{source}}}}}
workload: {{oltp: {{table_size: 100, duration: 1s}}}}
factors: {{users: {{one: {{}}, two: {{workload: {{oltp: {{virtual_users: 2}}}}}}}}}}
arm: users
metrics: {{primary: throughput_tps}}
"""


class Cached(Desk):
    """A desk whose servers are kept beside its state, where the users that servers run as can read them."""

    @property
    def environment(self) -> dict[str, str]:
        return {**super().environment, "FAIRTRIAL_CACHE_DIRECTORY": str(self.state / "cache")}


@pytest.fixture
def desk(here: Desk) -> Desk:
    return Cached(**{field.name: getattr(here, field.name) for field in dataclasses.fields(here)})


@pytest.fixture
def repository() -> None:
    """Where servers are downloaded from; skipped, and said so, where it is out of reach."""
    build = known("postgres", "18.6")
    assert build is not None
    address = f"{maven.CENTRAL}/{maven.Coordinates.parse(build.maven).path}.sha1"
    try:
        urllib.request.urlopen(address, timeout=30).close()
    except OSError as error:  # of urllib, and of a connection that goes silent once it is there
        pytest.skip(f"no {maven.CENTRAL}: {error}")


@pytest.mark.servers
@pytest.mark.usefixtures("repository")
def test_old_and_new_servers_of_three_kinds_run_side_by_side_and_say_what_they_are(desk: Desk) -> None:
    ran = desk.fairtrial("run", desk.study(STUDY))
    fetched = [line for line in (ran.stdout + ran.stderr).splitlines() if line.startswith("fetching ")]
    assert [line.split()[1] for line in sorted(fetched)] == ["mariadb:", "mysql:", "postgres:"]
    found = record.read(desk.run)
    trials = {trial.trial.arm: trial for trial in found.trials}
    assert all(trial.valid for trial in trials.values()), [trial.invalid_reason for trial in trials.values()]
    for arm, (system, version) in OLDEST.items():
        build = known(system, version)
        assert build is not None
        facts = trials[arm].system_facts
        assert version in facts["version"]
        assert facts["source"] == f"maven {build.maven}"
        assert Path(facts["binary"]).is_relative_to(desk.state / "cache")
        assert trials[arm].scalars["throughput_tps"] > 0
    assert len({trial.system_facts["sha256"] for trial in trials.values()}) == 3
    assert trials["my5_5"].options["innodb_log_file_size"] == str(16 << 20)
    assert trials["m10_1"].options["version"].startswith("10.1.23")
    assert len({trial.data.content_sha256 for trial in trials.values()}) == 1, "the same rows everywhere"
    for arm, columns in COUNTED.items():
        sampled = pl.read_parquet(found.trial_directory(trials[arm].trial.id) / "telemetry-server.parquet")
        assert {name for name in columns if sampled[name].null_count()} == set(), arm
        assert trials[arm].scalars["server_transactions"] > 0, arm
    assert trials["my5_5"].scalars["checkpoint_age_bytes_max"] > 0
    desk.fairtrial("verify", desk.run)
    listed = desk.fairtrial("servers").stdout
    here = {tuple(line.split()[:3]) for line in listed.splitlines()}
    assert {("mariadb", "10.1.23", "yes"), ("mysql", "5.5.34", "yes"), ("mysql", "8.0.33", "no")} <= here
    checked = desk.fairtrial("servers", "check", "mariadb", "10.1.23").stdout
    assert "10.1.23-MariaDB" in checked
    assert list((desk.state / "work").iterdir()) == []


@pytest.mark.servers
@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("version: 10.99.1", "expected mariadb 10.99.1, but "),
        (
            "version: 10.99.1, base_directory: /nowhere",
            "no mariadbd at this place (looked for /nowhere/bin/mariadbd",
        ),
        ("archive: CUT", "cannot be unpacked"),
        ("archive: EMPTY", "does not contain mariadbd or mysqld"),
        ("archive: /nowhere.zip", "/nowhere.zip does not exist on this machine"),
        ("debian: no-such-package", "apt-get download no-such-package` failed"),
    ],
)
def test_a_source_that_is_no_server_ends_the_run_before_its_first_trial(desk: Desk, source: str, said: str) -> None:
    whole = zipped({"bin/mariadb": "a client"})
    (desk.directory / "empty.zip").write_bytes(whole)
    (desk.directory / "cut.tar.gz").write_bytes(b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03 cut")
    source = source.replace("CUT", f"{desk.directory}/cut.tar.gz").replace("EMPTY", f"{desk.directory}/empty.zip")
    done = desk.fairtrial("run", desk.study(ONE.format(source=source)), code=3)
    assert said in " ".join(done.stderr.split())
    assert "hint:" in done.stderr
    assert record.read(desk.run).trials == ()
    assert [path.name for path in (desk.state / "cache" / "servers").glob("*")] == []


def test_a_version_that_is_a_number_is_refused_where_it_stands(desk: Desk) -> None:
    done = desk.fairtrial("plan", desk.study(ONE.format(source="version: 10.10")), code=2)
    assert "study.yaml:2:29: system.mariadb.version" in done.stderr.replace("\n", "")
    assert "a version must be text: quote it" in done.stderr
