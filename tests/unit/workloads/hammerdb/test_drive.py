"""A drive at a place in memory, whose HammerDB prints what the real one printed, or fails as it does."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any

import polars as pl
import pytest
from support.machines.places import place_in_memory, spawned

from fairtrial.errors import PlaceError
from fairtrial.protocol import generated as wire
from fairtrial.protocol.generated import MeasuringProgress, MysqlEndpoint, RampUpProgress
from fairtrial.protocol.progress import ProgressLine
from fairtrial.wire.fake import FakeProgram, FakeTransport
from fairtrial.workloads import Drive, DriveOutcome
from fairtrial.workloads.hammerdb import Hammerdb
from fairtrial.workloads.hammerdb.parameters import HammerdbParameters

PRINTED = (Path(__file__).parent / "printed.txt").read_text(encoding="utf-8").splitlines()
OUT = PurePosixPath("/w/out")
WORK = PurePosixPath("/w/work")
PASSWORD = "5ec2e7"
ENDPOINT = MysqlEndpoint(host="10.0.0.2", port=3310, user="fairtrial", password=PASSWORD, database="fairtrial")
ABOUT_US = "HammerDB CLI v4.12"


def place_with(load: FakeProgram, said: str = ABOUT_US) -> Callable[[wire.Spawn], FakeProgram]:
    """A place where HammerDB is, whose one drive prints and ends so."""

    def run(spawn: wire.Spawn) -> FakeProgram:
        if spawn.name == "load":
            return load
        text = " ".join(spawn.argv)
        if "readlink" in text:
            return FakeProgram(stdout=["/opt/hammerdb/hammerdbcli"])
        return FakeProgram(stdout=[said if "hammerdbcli version" in text else "c0ffee  -"])

    return run


def driven(
    load: FakeProgram, *, said: list[ProgressLine] | None = None, password: str = PASSWORD, **given: Any
) -> tuple[DriveOutcome, FakeTransport]:
    asked = HammerdbParameters.model_validate({"duration": "1min", "time_profile": True, **given})
    drive = Drive(
        endpoint=ENDPOINT.model_copy(update={"password": password}),
        seed=99,
        directory=OUT,
        work_directory=WORK,
        environment={"LD_PRELOAD": "/lib/one.so"},
        processors=(1, 2),
        on_progress=([] if said is None else said).append,
    )
    with place_in_memory(place_with(load)) as (place, fake):
        return Hammerdb(asked).drive(place, drive), fake


def test_a_drive_leaves_its_output_and_what_was_made_of_it() -> None:
    found, fake = driven(FakeProgram(stdout=PRINTED))
    assert not found.invalid_reason
    assert found.effective == {
        "hammerdb": "/opt/hammerdb",
        "hammerdb_version": "4.12",
        "hammerdb_sha256": "c0ffee",
    }
    assert fake.files[str(OUT / "log" / "load.log")].decode().splitlines() == PRINTED
    told = json.loads(fake.files[str(OUT / "result.json")])
    assert told["nopm"] == 15794
    assert told["window"] == found.window.model_dump()
    assert "user_s" in told["client"]
    assert str(OUT / "timeline.parquet") in fake.files


def test_it_says_when_its_window_begins_so_that_probes_do() -> None:
    said: list[ProgressLine] = []
    found, _ = driven(FakeProgram(stdout=PRINTED), said=said)
    ramping_up, measuring = said
    assert isinstance(ramping_up, RampUpProgress)
    assert isinstance(measuring, MeasuringProgress)
    assert abs(measuring.time_ns - found.window.start_ns) <= 1000, "both from the same line"


def test_it_runs_in_its_own_directory_and_keeps_its_files_in_the_trials() -> None:
    _, fake = driven(FakeProgram(stdout=PRINTED))
    started = spawned(fake, "load")
    assert started.argv == ["./hammerdbcli", "tcl", "auto", "/w/work/hammerdb/load.tcl"]
    assert started.directory == "/opt/hammerdb"
    assert started.environment == {"LD_PRELOAD": "/lib/one.so", "TMP": "/w/work/hammerdb"}
    assert started.processors == [1, 2]


def test_a_password_is_in_a_file_that_only_its_user_can_read_and_in_nothing_that_stays() -> None:
    talkative = [*PRINTED, f"Changed tpcc:mysql_pass from mysql to {PASSWORD} for MySQL", f"given {PASSWORD}"]
    _, fake = driven(FakeProgram(stdout=talkative))
    puts = {each.path: each.mode for each in fake.requests if isinstance(each, wire.Put)}
    holding = [path for path, content in fake.files.items() if PASSWORD.encode() in content]
    assert holding == ["/w/work/hammerdb/load.tcl"]
    assert puts[holding[0]] == 0o600
    died, _ = driven(FakeProgram(code=1, stdout=["Vuser 1:RUNNING", *talkative[-2:]]))
    assert PASSWORD not in died.invalid_reason
    assert not any(PASSWORD in word for each in fake.requests if isinstance(each, wire.Spawn) for word in each.argv)


@pytest.mark.parametrize("password", ["fairtrial", "36823", "8358", "99"])
def test_a_password_that_stands_in_figures_by_chance_takes_none_away(password: str) -> None:
    def figures(**given: str) -> tuple[object, list[int]]:
        found, fake = driven(FakeProgram(stdout=PRINTED), **given)
        assert not found.invalid_reason
        timeline = pl.read_parquet(io.BytesIO(fake.files[str(OUT / "timeline.parquet")]))
        told = json.loads(fake.files[str(OUT / "result.json")])
        return (told["nopm"], told["tpm"], told["latency_ms"]), timeline["transaction_committed"].to_list()

    assert figures(password=password) == figures()


FAILED = [
    "Vuser 3:RUNNING",
    "Error in Virtual User 3: Payment : Lost connection",
    "Vuser 3:FINISHED FAILED",
]


@pytest.mark.parametrize(
    ("load", "reason"),
    [
        (
            FakeProgram(code=1, stdout=FAILED),
            "HammerDB ended with exit code 1: Error in Virtual User 3: Payment : Lost connection; Vuser 3:",
        ),
        (
            FakeProgram(stdout=[*PRINTED, *FAILED]),
            "HammerDB ended with exit code 0, but printed: Error in Virtual User 3:",
        ),
        (
            FakeProgram(stdout=['Dictionary "tpcc" for MySQL exists but key "mysql_bogus" doesn\'t', *PRINTED]),
            'but printed: Dictionary "tpcc" for MySQL exists but key "mysql_bogus" doesn\'t',
        ),
        (FakeProgram(stdout=PRINTED[:40]), "HammerDB did not print a TEST RESULT"),
        (FakeProgram(stdout=[line for line in PRINTED if not line.endswith(" begun")]), "lacks the line `begun`"),
        (FakeProgram(stdout=[]), "HammerDB did not print a TEST RESULT"),
        (
            FakeProgram(stdout=[line.replace("15794 NOPM", "0 NOPM") for line in PRINTED]),
            "HammerDB counted no new order inside its window",
        ),
        (
            FakeProgram(stdout=[line.replace("36823 MySQL TPM", "-12 MySQL TPM") for line in PRINTED]),
            "the server's counts of transactions were reset inside HammerDB's window: -12 TPM",
        ),
        (
            FakeProgram(stdout=[line.replace("period of 1 in minutes", "period of 5 in minutes") for line in PRINTED]),
            "HammerDB divides its counts by 300 s, and 60.1 s lay between them",
        ),
        (FakeProgram(stdout=[line.replace("SUMMARY", "") for line in PRINTED]), "HammerDB printed no time profile"),
        (FakeProgram(code=127, stdout=["./hammerdbcli: exec: ./bin/tclsh8.6: not found"]), "tclsh8.6: not found"),
    ],
)
def test_a_run_that_failed_is_invalid_in_hammerdbs_words(load: FakeProgram, reason: str) -> None:
    found, fake = driven(load)
    assert reason in found.invalid_reason
    assert str(OUT / "log" / "load.log") in fake.files


@pytest.mark.parametrize("said", ["HammerDB CLI v4.5", "HammerDB CLI v3.3", "exec: ./bin/tclsh8.6: not found"])
def test_an_older_one_or_none_is_refused(said: str) -> None:
    older = pytest.raises(PlaceError, match=r"4\.6 or later")
    with place_in_memory(place_with(FakeProgram(), said)) as (place, _), older:
        Hammerdb(HammerdbParameters(duration=60)).require(place)


def test_a_study_may_say_where_it_is() -> None:
    _, fake = driven(FakeProgram(stdout=PRINTED), directory="/srv/HammerDB-4.12")
    assert spawned(fake, "load").directory == "/srv/HammerDB-4.12"


def test_no_system_is_an_error() -> None:
    drive = Drive(None, 1, OUT, WORK, environment={}, processors=None, on_progress=lambda _line: None)
    with place_in_memory(place_with(FakeProgram())) as (place, _), pytest.raises(PlaceError, match="needs a database"):
        Hammerdb(HammerdbParameters(duration=60)).drive(place, drive)


def test_another_hammerdb_makes_data_of_its_own() -> None:
    """Its procedures are stored with them; where it lies changes none."""
    asked = HammerdbParameters.model_validate({"duration": "1min"})
    with place_in_memory(place_with(FakeProgram(), "HammerDB CLI v5.0")) as (place, _fake):
        assert Hammerdb(asked).loader(place) == {"hammerdb_version": "5.0", "hammerdb_sha256": "c0ffee"}
