"""pgbench's own words about a failure, and with which script and line they become a trial's reason."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

import pytest
from support.machines.places import place_in_memory, spawned
from support.pgbench import OUTPUTS, parameters

from fairtrial.errors import PlaceError
from fairtrial.protocol import generated as wire
from fairtrial.protocol.generated import PostgresEndpoint
from fairtrial.wire.fake import FakeProgram
from fairtrial.workloads.pgbench import Pgbench
from fairtrial.workloads.pgbench.parameters import PgbenchParameters
from fairtrial.workloads.pgbench.running import PROGRAM, PgbenchBench, words
from fairtrial.workloads.tool import Life
from fairtrial.workloads.workload import Drive

OUT = PurePosixPath("/out")
ENDPOINT = PostgresEndpoint(host="h", port=5432, user="u", password="secret", database="d")
BAD = {"file": {"name": "bad.sql", "text": "\n\nSELECT 1/0;"}}


def lines(name: str) -> list[str]:
    return (OUTPUTS / f"{name}.txt").read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("bad", "client 1 script 0 aborted in command 0 query 0: ERROR:  division by zero"),
        ("open", "client 0 aborted: end of script reached without completing the last transaction"),
        ("syn", 'syn.sql:1: unexpected function name (foo) in command "set"'),
        ("wrong", "unrecognized option '--frobnicate=3'"),
    ],
)
def test_what_is_wrong_is_said_in_pgbenchs_words_once(name: str, said: str) -> None:
    found = words(lines(name))
    assert said in found
    assert found.count("division by zero") <= 1
    assert "hint" not in found


def test_psql_has_words_of_its_own() -> None:
    assert words(["CREATE TABLE", "psql:make.sql:3: ERROR:  syntax error", "LINE 1: x"]).endswith("syntax error")


def test_one_that_says_nothing_of_it_is_quoted() -> None:
    assert words(["a", "b"]) == "a; b"


def run(ran: FakeProgram, **given: Any) -> tuple[str, wire.Spawn]:
    """Why a life failed, and how it was started."""
    with place_in_memory(lambda spawn: ran if spawn.name == "load" else FakeProgram()) as (place, fake):
        asked = parameters(**given)
        bench = PgbenchBench.set_up(place, asked, "/pg/bin/pgbench", endpoint=ENDPOINT, directory=OUT / "work")
        drive = Drive(
            endpoint=ENDPOINT,
            seed=1,
            directory=OUT,
            work_directory=OUT / "work",
            environment={"PGOPTIONS": "-c x=y"},
            processors=(1,),
            on_progress=lambda _line: None,
        )
        failure = bench.run(Life(5.0, None, seed=1), drive, name="load").failure
        assert "secret" in fake.files[str(OUT / "work" / "pgpass")].decode()
        return failure, spawned(fake, "load")


def test_a_life_is_started_where_its_scripts_are_and_tells_no_password() -> None:
    failure, spawn = run(FakeProgram(stdout=lines("plain")))
    assert failure == ""
    assert spawn.argv[0] == "env"
    assert spawn.argv[spawn.argv.index("/pg/bin/pgbench") + 1] == "--builtin=tpcb-like@1"
    assert spawn.directory == str(OUT / "work" / "scripts")
    assert spawn.environment["PGOPTIONS"] == "-c x=y"
    assert spawn.processors == [1]
    assert "secret" not in str(spawn)


def test_an_aborted_client_is_a_failure_with_the_scripts_line() -> None:
    failure, _spawn = run(FakeProgram(code=2, stdout=lines("bad")), **BAD)
    assert "bad.sql:3 aborted in command 0 query 0: ERROR:  division by zero" in failure
    assert failure.startswith("pgbench ended with exit code 2: ")


def test_an_aborted_client_is_one_even_if_pgbench_ends_well() -> None:
    failure, _spawn = run(FakeProgram(stdout=lines("bad")), **BAD)
    assert failure.startswith("pgbench ended with exit code 0, but printed: ")
    assert "bad.sql:3 aborted" in failure


def test_pgbenchs_own_scripts_have_a_name_and_no_line() -> None:
    failure, _spawn = run(
        FakeProgram(code=2, stdout=["pgbench: error: client 0 script 0 aborted in command 9 query 0: no"])
    )
    assert failure.endswith("client 0 tpcb-like aborted in command 9 query 0: no")


@pytest.mark.parametrize("version", ["pgbench (PostgreSQL) 14.9", "pgbench 15"])
def test_one_that_is_too_old_is_refused(version: str) -> None:
    def answer(spawn: wire.Spawn) -> FakeProgram:
        return FakeProgram(stdout=["/pg/bin/pgbench" if spawn.argv[0] == "sh" else version])

    with place_in_memory(answer) as (place, _fake), pytest.raises(PlaceError, match="expected pgbench 15 or newer"):
        PROGRAM.identify(place)


def test_which_one_it_is_is_told_with_its_hash() -> None:
    answers = {"sh": "/pg/bin/pgbench", "/pg/bin/pgbench": "pgbench (PostgreSQL) 17.2", "sha256sum": "abc  /pg"}
    with place_in_memory(lambda spawn: FakeProgram(stdout=[answers[spawn.argv[0]]])) as (place, _fake):
        assert PROGRAM.identify(place) == {
            "pgbench": "/pg/bin/pgbench",
            "pgbench_version": "pgbench (PostgreSQL) 17.2",
            "pgbench_sha256": "abc",
        }
        loader = Pgbench(PgbenchParameters.model_validate({"duration": "1s", "script": "tpcb-like"})).loader(place)
        assert loader == {"pgbench_version": "pgbench (PostgreSQL) 17.2", "pgbench_sha256": "abc"}
