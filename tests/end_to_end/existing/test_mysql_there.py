"""MySQL that is there already: the oldest that is tested, as its archive brings it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.command_line import Desk
from support.machines.servers_there import PASSWORD, VARIABLE, MysqlThere, ServerThere, there

from fairtrial import record
from fairtrial.errors import FairtrialError
from fairtrial.servers import install, known
from fairtrial.servers.installing import cache_directory

pytestmark = pytest.mark.servers
STUDY = """\
study: there
system: {{mysql: {{at: {{{at}, database: bench, password: {{env: {variable}}}}}}}}}
workload:
  oltp:
    {{profile: update_non_index, table_size: 1000, virtual_users: 2, think_time: 10ms, ramp_up: 100ms,
      transactions: 100}}
factors: {{arm: {{own: {{}}, ours: {{system: {{mysql: {{options: {{{name}: {value}}}}}}}}}}}}}
arm: arm
trials: {{blocks: 1, seed: 4}}
metrics: {{primary: throughput_tps}}
telemetry: {{interval: 200ms}}
"""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ServerThere]:
    build = known("mysql", "5.5.34")
    assert build is not None
    try:
        base = install(build.source, ("mysqld",), cache=cache_directory()).base_directory
    except FairtrialError as error:
        if "cannot download" not in str(error):
            raise
        pytest.skip(f"MySQL 5.5.34 cannot be had: {error}")
    monkeypatch.setattr(MysqlThere, "base", base, raising=False)
    monkeypatch.setenv(VARIABLE, PASSWORD)
    with there(MysqlThere) as started:
        yield started


def test_an_option_is_an_arm_and_one_that_is_read_only_is_refused(here: Desk, server: ServerThere) -> None:
    def study(name: str, value: str) -> str:
        return STUDY.format(at=server.at(), variable=VARIABLE, name=name, value=value)

    before, databases = server.snapshot(), server.databases()
    refused = here.fairtrial("run", here.study(study(*server.fixed)), code=3)
    assert "which no statement of this server changes: nothing was changed" in refused.stderr
    assert (server.snapshot(), server.databases()) == (before, databases)
    name, value, read = server.option
    here.fairtrial("run", here.study(study(name, value)))
    values = {trial.trial.arm: trial.options[name] for trial in record.read(here.runs[-1]).trials}
    assert values == {"own": "1", "ours": read}
    assert server.snapshot() == before
