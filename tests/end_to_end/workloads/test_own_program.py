"""A user's own program beside a real server: it is told how to reach it, and finds it empty in every trial."""

import os
import shutil
from pathlib import Path

import pytest
from support.command_line import Desk
from support.machines.places import place_here

from fairtrial import record
from fairtrial.errors import PlaceError
from fairtrial.protocol.generated import Sql
from fairtrial.protocol.subcommands import SQL
from fairtrial.run import opening
from fairtrial.run.trial import workspace
from fairtrial.systems import Launch
from fairtrial.systems.mariadb import Mariadb, MariadbParameters

POSTGRES = next((found.parents[1] for found in sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))), None)
SYSTEMS = {
    "mariadb": (
        "{mariadb: {options: {innodb_buffer_pool_size: 32M}}}",
        'mariadb --socket="$FAIRTRIAL_SOCKET" --user=root --database=fairtrial -BNe',
        shutil.which("mariadbd", path=os.environ.get("PATH", "") + ":/usr/sbin"),
    ),
    "postgres": (f"{{postgres: {{base_directory: {POSTGRES}}}}}", f"{POSTGRES}/bin/psql -qAtc", POSTGRES),
}
# A local user who is none of the server's: `sh` ends where it gets in, or where it is kept out for another reason.
STRANGER = """\
if setpriv --reuid=54321 --regid=54321 --clear-groups {client} "select 1"
      2>"$FAIRTRIAL_METRICS_FILE.said"; then exit 1; fi;
      grep -qi "permission denied\\|(13)" "$FAIRTRIAL_METRICS_FILE.said";
      """
STUDY = """\
study: own-program
question: How many rows does a program of mine leave?
system: {system}
workload:
  command:
    run: >-
      sh -euc '{stranger}{client} "create table t (i int); insert into t values $VALUES";
      {client} "select count(*) from t" >"$FAIRTRIAL_METRICS_FILE.rows";
      echo "{{\\"rows\\": $(cat "$FAIRTRIAL_METRICS_FILE.rows")}}" >"$FAIRTRIAL_METRICS_FILE"'
    metrics: {{rows: {{file_key: rows, unit: rows, kind: count, better: higher}}}}
factors:
  values:
    few: {{workload: {{command: {{label: few}}}}}}
    many: {{workload: {{command: {{label: many}}}}}}
arm: values
trials: {{blocks: 1, seed: 5}}
metrics: {{primary: rows}}
"""


@pytest.mark.parametrize("system", list(SYSTEMS))
def test_a_program_reaches_a_private_server_that_is_empty_in_every_trial_and_no_other_user_does(
    here: Desk, system: str
) -> None:
    words, client, there = SYSTEMS[system]
    if there is None:
        pytest.skip(f"no {system} on this machine")
    stranger = STRANGER.format(client=client) if os.geteuid() == 0 else ""
    study = STUDY.format(system=words, client=client, stranger=stranger).replace("$VALUES", "(1), (2), (3)")
    here.directory.chmod(0o755)
    here.fairtrial("run", here.study(study))
    found = record.read(here.run)
    assert [(trial.valid, trial.invalid_reason) for trial in found.trials] == [(True, "")] * 2
    assert {trial.scalars["rows"] for trial in found.trials} == {3.0}
    assert len({trial.data.key for trial in found.trials}) == 1
    here.fairtrial("verify", here.run)


@pytest.mark.skipif(SYSTEMS["mariadb"][2] is None, reason="no mariadb on this machine")
def test_a_server_that_listens_has_no_root_for_those_who_are_on_its_machine(here: Desk) -> None:
    mariadb = Mariadb(MariadbParameters(options={"innodb_buffer_pool_size": "32M"}))
    with place_here(here.directory) as place:
        place.server_user = opening._server_user(place) if os.geteuid() == 0 else None
        work = workspace.work_directory(place, "listens")
        workspace.make(place, work)
        for name in ("data", "server"):
            workspace.make_private(place, work / name, user=place.server_user)
        launch = Launch(
            data_directory=work / "data",
            work_directory=work / "server",
            log_path=work / "server.log",
            addresses=("127.0.0.2",),  # reached from 127.0.0.1, which the server's scripts have made a root for
        )
        mariadb.create(place, launch)
        server = mariadb.start(place, launch)

        def user(statement: str = "SELECT USER()", **changes: str) -> list[list[str | None]]:
            assert server.remote is not None
            endpoint = server.remote.model_copy(update={"database": "information_schema", **changes})
            return place.native(SQL, Sql(endpoint=endpoint, statements=[statement])).rows

        assert user() == [["fairtrial@127.0.0.1"]]
        with pytest.raises(PlaceError, match="denied"):
            user("SELECT * FROM mysql.global_priv")
        with pytest.raises(PlaceError, match=r"Access denied for user 'root'@'127\.0\.0\.1'"):
            user(user="root", password="")
        mariadb.stop(place, server, settled=False)
