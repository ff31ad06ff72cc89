"""A server that is there already and takes names that differ by case alone for one."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest
from support.command_line import Desk
from support.machines.servers_there import PASSWORD, SBIN, VARIABLE, MariadbThere, ServerThere, there

from fairtrial import record

pytestmark = pytest.mark.servers
STUDY = """\
study: folded
system: {{mariadb: {{at: {{{at}, database: {database}, password: {{env: {variable}}}}}}}}}
workload: {{command: {{run: 'true'}}}}
factors: {{arm: {{own: {{}}, ours: {{system: {{mariadb: {{options: {{innodb_flush_log_at_trx_commit: 2}}}}}}}}}}}}
arm: arm
trials: {{blocks: 1, seed: 4}}
metrics: {{primary: elapsed_s}}
"""


class Folding(MariadbThere):
    def command(self) -> list[str]:
        return [*super().command(), "--lower-case-table-names=1"]


@pytest.fixture(scope="module")
def server() -> Iterator[ServerThere]:
    if shutil.which("mariadbd", path=SBIN) is None:
        pytest.skip("needs mariadb")
    with there(Folding) as started:
        yield started


def test_another_spelling_of_somebodys_database_is_theirs_and_of_ours_is_ours(
    here: Desk, server: ServerThere, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, PASSWORD)
    server.ask("CREATE DATABASE theirs")
    server.ask("CREATE TABLE kept (id integer)", "theirs")
    theirs, ours = (
        here.study(STUDY.format(at=server.at(), database=name, variable=VARIABLE), name=f"{name}.yaml")
        for name in ("Theirs", "Ours")
    )
    done = here.fairtrial("run", theirs, code=3)
    assert "the database Theirs on" in done.stderr
    assert server.ask("SELECT count(*) FROM kept", "theirs").strip() == "0"
    for _ in range(2):  # the second finds what the first has made
        here.fairtrial("run", ours)
        assert all(trial.valid for trial in record.read(here.runs[-1]).trials)
    assert {"ours", "theirs"} <= set(server.databases())
