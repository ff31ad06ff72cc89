"""The real sysbench as a workload, on real servers: what it says is what the record says."""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.command_line import Desk, desk, shell_program

from fairtrial import record

POSTGRES = next((found.parents[1] for found in sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))), None)
SYSTEMS = {
    "mariadb": "{mariadb: {options: {innodb_buffer_pool_size: 32M}}}",
    "postgres": f"{{postgres: {{base_directory: {POSTGRES}}}}}",
}
STUDY = """\
study: by-sysbench
question: Are more users faster?
system: {system}
workload: {{sysbench: {workload}}}
factors:
  users:
    one: {{workload: {{sysbench: {{threads: 1}}}}}}
    three: {{workload: {{sysbench: {{threads: 3}}}}}}
arm: users
trials: {{blocks: 1, seed: 5}}
metrics: {{primary: throughput_tps}}
"""
MIXED = (
    "{script: oltp_read_write, data: {tables: 2, table-size: 500}, options: {rand-type: uniform, rate: 60}, "
    "ramp_up: 1s, events: 90}"
)
COUNTED = "{script: oltp_read_write, data: {table-size: 300}, ramp_up: 0s, events: 40}"

pytestmark = pytest.mark.skipif(shutil.which("sysbench") is None, reason="sysbench is not installed here")


def study(here: Desk, workload: str, *, system: str = "mariadb") -> Path:
    if system == "postgres" and POSTGRES is None:
        pytest.skip("no PostgreSQL on this machine")
    return here.study(STUDY.format(system=SYSTEMS[system], workload=workload))


@pytest.fixture(scope="module")
def mixed() -> Iterator[dict[str, Path]]:
    """A run on each system that is here."""
    with desk() as here:
        ran = {}
        for system in SYSTEMS if POSTGRES else ["mariadb"]:
            here.fairtrial("run", study(here, MIXED, system=system))
            ran[system] = here.runs[-1]
        yield ran


@pytest.mark.parametrize("system", list(SYSTEMS))
def test_a_study_runs_to_its_report_and_every_number_is_found_again(
    here: Desk, mixed: dict[str, Path], system: str
) -> None:
    if system not in mixed:
        pytest.skip("no PostgreSQL on this machine")
    found = record.read(mixed[system])
    assert [(trial.valid, trial.invalid_reason) for trial in found.trials] == [(True, "")] * 2
    for trial in found.trials:
        directory = found.trial_directory(trial.trial.id)
        printed = (directory / "log" / "load.log").read_text()
        assert f"total number of events:              {trial.scalars['transactions']:.0f}\n" in printed
        assert trial.window is not None
        said = re.search(r"total time: +([0-9.]+)s", printed)
        assert said is not None
        assert (trial.window.end_ns - trial.window.start_ns) / 1e9 == pytest.approx(float(said[1]), abs=0.5)
        assert trial.scalars["latency_count"] == trial.scalars["transactions"]
        assert trial.options["sysbench_version"].startswith("sysbench 1.")
    assert "recomputed" in here.fairtrial("verify", mixed[system]).stdout


def test_statements_of_as_many_transactions_are_those_of_our_own_engine(here: Desk) -> None:
    here.fairtrial("run", study(here, COUNTED))
    theirs = record.read(here.run).trials
    own = "{profile: read_write, table_size: 300, ramp_up: 0s, transactions: 40}"
    path = here.study(
        STUDY.replace("sysbench", "oltp")
        .replace("threads", "virtual_users")
        .format(system=SYSTEMS["mariadb"], workload=own)
    )
    here.fairtrial("run", path)
    ours = record.read(here.runs[-1]).trials
    per_transaction = []
    for found, trials in ((here.runs[0], theirs), (here.runs[-1], ours)):
        directory = record.read(found).trial_directory(
            next(each.trial.id for each in trials if each.trial.arm == "one")
        )
        (outcome,) = json.loads((directory / "result.json").read_text())["transactions"].values()
        assert outcome["committed"] == 40
        per_transaction.append(outcome["statements"] / outcome["committed"])
    assert per_transaction == [20, 20]


def test_our_loaders_data_are_equal_on_every_server(mixed: dict[str, Path]) -> None:
    contents = {trial.data.content_sha256 for run in mixed.values() for trial in record.read(run).trials}
    assert len(contents) == 1


OWN = """\
#!/usr/bin/env sysbench
local helping = require("observing")
sysbench.cmdline.options = {rows = {"Rows", 5}}
function prepare()
   local connection = sysbench.sql.driver():connect()
   connection:query("CREATE TABLE own (i INT PRIMARY KEY)")
   for i = 1, sysbench.opt.rows do connection:query("INSERT INTO own VALUES (" .. i .. ")") end
end
function thread_init() connection = sysbench.sql.driver():connect() end
function event() connection:query("SELECT i FROM own WHERE i = " .. helping.some(sysbench.opt.rows)) end
"""


@pytest.fixture
def own(here: Desk) -> str:
    """A workload by a script with a module."""
    (here.directory / "own.lua").write_text(OWN)
    (here.directory / "observing.lua").write_text(
        "return {some = function(most) return sysbench.rand.uniform(1, most) end}\n"
    )
    return "{file: own.lua, modules: [observing.lua], data: {rows: 7}, ramp_up: 0s, events: 30}"


def test_a_script_of_ones_own_fills_and_drives_and_equal_rows_have_one_hash_on_every_server(
    here: Desk, own: str
) -> None:
    for system in SYSTEMS:
        here.fairtrial("run", study(here, own, system=system))
        for trial in record.read(here.runs[-1]).trials:
            assert (trial.valid, trial.scalars["transactions"]) == (True, 30)
    manifests = [json.loads(path.read_text()) for path in here.state.glob("prepared/*/manifest.json")]
    assert [manifest["rows"] for manifest in manifests] == [{"own": 7}] * len(SYSTEMS)
    assert len({manifest["content_sha256"] for manifest in manifests}) == 1


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (
            "mysql-storage-engine: none_such",
            "loading failed: sysbench ended with exit code 0, but printed: FATAL",
        ),
        ("create-secondary: 'off', create-tables: 1", "invalid option: --create-tables=1"),
    ],
)
def test_a_load_that_fails_ends_the_run_with_what_is_wrong(here: Desk, data: str, said: str) -> None:
    failed = here.fairtrial(
        "run", study(here, f"{{script: oltp_insert, loader: sysbench, data: {{{data}}}, events: 5}}"), code=None
    )
    assert failed.returncode != 0
    assert said in failed.stdout + failed.stderr
    assert here.processes() == {}


ENDS_WELL_ALL_THE_SAME = """\
function prepare() sysbench.sql.driver():connect():query("CREATE TABLE own (i INT)") end
function event() end
function thread_done(thread) if thread == 0 then io.stderr:write("FATAL: a thread gave up\\n") end end
"""


def test_a_sysbench_that_prints_an_error_and_exits_with_0_makes_an_invalid_trial(here: Desk) -> None:
    (here.directory / "own.lua").write_text(ENDS_WELL_ALL_THE_SAME)
    here.fairtrial("run", study(here, "{file: own.lua, ramp_up: 0s, events: 5}"), code=None)
    # What the kernel killed beside it, as another test may have it do, is told after a semicolon.
    reasons = {trial.invalid_reason.partition(";")[0] for trial in record.read(here.run).trials}
    assert reasons == {"sysbench ended with exit code 0, but printed: FATAL: a thread gave up"}


def test_another_sysbench_is_refused(here: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    other = here.directory / "bin"
    shell_program(other / "sysbench", "echo 'sysbench 0.5'")
    monkeypatch.setenv("PATH", f"{other}:/usr/sbin:/usr/bin:/bin")
    failed = here.fairtrial("run", study(here, COUNTED), code=None)
    assert failed.returncode != 0
    assert "`sysbench 0.5`" in failed.stdout + failed.stderr
    assert "expected sysbench 1.0" in failed.stdout + failed.stderr
