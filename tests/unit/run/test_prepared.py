"""Prepared data: found again by what determines them and by nothing else, and never when half made."""

from __future__ import annotations

import hashlib
import json
import signal
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from support.machines.places import place_here
from support.records import section

from fairtrial.errors import PlaceError, SystemStartError
from fairtrial.protocol import generated as wire
from fairtrial.protocol.endpoints import Endpoint, FilesEndpoint
from fairtrial.run import prepared
from fairtrial.run.kinds import Parts, parts_of
from fairtrial.study.resolved import ResolvedTrial
from fairtrial.systems import SYSTEMS, Identity, Instance
from fairtrial.wire.agent import Agent
from fairtrial.wire.fake import USAGE
from fairtrial.workloads import WORKLOADS, Loaded

FILES = FilesEndpoint(directory="/nowhere")
IDENTITY = Identity(version="1", sha256="a" * 64)


def trial(*, system: str = "sqlite", own: Mapping[str, Any] | None = None, **workload: Any) -> ResolvedTrial:
    return ResolvedTrial(
        place={"local": {}},
        system=section(SYSTEMS, system, **(own or {})),
        workload=section(WORKLOADS, "tpcc", duration="1s", **workload),
    )


def key(of: ResolvedTrial, identity: Identity = IDENTITY) -> str | None:
    return prepared.key_of(of, parts_of(of), identity)


@pytest.mark.parametrize(
    "other",
    [
        trial(warehouses=2),
        trial(data_seed=2),
        trial(own={"pragmas": {"page_size": 8192}}),
        trial(system="mariadb"),
    ],
)
def test_what_determines_the_data_changes_their_key(other: ResolvedTrial) -> None:
    assert key(other) != key(trial())


@pytest.mark.parametrize(
    ("data", "restores", "told"),
    [({}, None, True), ({}, "template", True), ({}, "none", False), ({}, "command", False), (None, None, False)],
)
def test_a_loader_counts_where_fairtrial_has_it_make_data(
    data: dict[str, Any] | None, restores: str | None, *, told: bool
) -> None:
    """A server that keeps its data would lose them to another loader, and what is never loaded needs none."""
    existing = None if restores is None else SimpleNamespace(restores=restores)
    system = SimpleNamespace(identity=lambda _place: IDENTITY, existing=lambda: existing)
    workload = SimpleNamespace(data=lambda: data, loader=lambda _place: {"version": "1"})
    found = prepared.identity_of(cast("Any", None), cast("Any", SimpleNamespace(system=system, workload=workload)))
    assert bool(found.loader) is told


def test_another_binary_and_another_initial_option_change_the_key() -> None:
    assert key(trial(), Identity(version="1", sha256="b" * 64)) != key(trial())
    assert key(trial(), replace(IDENTITY, loader={"sysbench_version": "1.0.20"})) != key(trial())
    small = trial(system="mariadb", own={"options": {"innodb_page_size": "4k"}})
    assert key(small) != key(trial(system="mariadb"))


@pytest.mark.parametrize(
    "other",
    [
        trial(virtual_users=9, ramp_up="3s", retries=1, think_time_scale=1),
        trial(load_threads=1),
        trial(own={"pragmas": {"journal_mode": "WAL"}, "busy_timeout": "1s"}),
    ],
)
def test_what_does_not_determine_the_data_leaves_their_key(other: ResolvedTrial) -> None:
    assert key(other) == key(trial())


def test_a_workload_without_data_has_no_key() -> None:
    workload = section(WORKLOADS, "command", run="true")
    assert key(ResolvedTrial(place={"local": {}}, system={"sqlite": {}}, workload=workload)) is None


class Making:
    """A system and a workload whose data are one file; they tell what was asked of them."""

    def __init__(self, *, fails: bool = False, endpoint: Endpoint | None = FILES, loads: bool = True) -> None:
        self.calls: list[str] = []
        self.data = {"rows": 1} if loads else None
        self.fails = fails
        self.starts_failing = 0
        self.process: Any = None
        self.ends: wire.Exited | None = None
        self.endpoint = endpoint
        self.orderly_codes: Collection[int] | None = None

    @property
    def parts(self) -> Parts:
        system = SimpleNamespace(
            for_loading=lambda _facts: system,
            user=lambda place: place.server_user,
            create=self.create,
            start=self.start,
            stop=self.stop,
            create_database=self.create_database,
            orderly_codes=self.orderly_codes,
        )
        return Parts(
            system=cast("Any", system),
            workload=cast("Any", SimpleNamespace(load=self.load, data=lambda: self.data)),
        )

    def create(self, place: Any, launch: Any) -> None:
        self.calls.append("create")
        place.agent.put(str(launch.data_directory / "table"), b"rows")
        place.agent.put(str(launch.work_directory / "socket"), b"")

    def start(self, *_: Any) -> Instance:
        self.calls.append("start")
        if self.starts_failing:
            self.starts_failing -= 1
            raise SystemStartError("it does not start on purpose", hint="none")
        return Instance(endpoint=self.endpoint, process=self.process)

    def create_database(self, *_: Any) -> None:
        self.calls.append("create database")
        if self.fails:
            raise PlaceError("the database broke on purpose", hint="none")

    def load(self, *_: Any, **__: Any) -> Loaded:
        self.calls.append("load")
        if self.fails:
            raise PlaceError("the load broke on purpose", hint="none")
        return Loaded(content_sha256="c" * 64, rows={"table": 1})

    def stop(self, *_: Any, settled: bool) -> None:
        self.calls.append(f"stop {'slowly' if settled else 'now'}")
        if self.process is not None:
            self.process.exited = self.process.exited or self.ends


def ensure(place: Any, making: Making) -> prepared.PreparedData:
    return prepared.ensure(place, "key", making.parts, on_progress=lambda _line: None)


def test_data_are_made_once_stopped_slowly_and_found_again(tmp_path: Path) -> None:
    making = Making()
    with place_here(tmp_path) as place:
        first = ensure(place, making)
        assert making.calls == ["create", "start", "load", "stop slowly"]
        assert ensure(place, making) == first
        assert len(making.calls) == 4
    assert first.content_sha256 == "c" * 64
    assert [path.name for path in Path(first.directory).iterdir()] == ["table"], "only data are kept"
    assert [path.name for path in Path(first.directory).parent.parent.iterdir()] == ["key"]


def test_a_system_without_a_workloads_data_is_created_and_nothing_is_loaded(tmp_path: Path) -> None:
    making = Making(loads=False, endpoint=None)
    with place_here(tmp_path) as place:
        made = ensure(place, making)
    assert making.calls == ["create", "start", "create database", "stop slowly"]
    assert made.content_sha256 == hashlib.sha256(b"").hexdigest()


def test_a_server_has_a_key_without_a_workloads_data_and_a_command_has_none() -> None:
    def bare(system: str) -> ResolvedTrial:
        return trial(system=system).model_copy(update={"workload": section(WORKLOADS, "command", run="true")})

    assert key(bare("mariadb")) not in (None, key(trial(system="mariadb")))
    assert key(bare("postgres")) is not None
    assert [key(bare(system)) for system in ("command", "sqlite", "files")] == [None, None, None]


def test_data_that_broke_while_being_made_are_not_used(tmp_path: Path) -> None:
    with place_here(tmp_path) as place:
        broken = Making(fails=True)
        with pytest.raises(PlaceError, match="on purpose"):
            ensure(place, broken)
        assert broken.calls[-1] == "stop now"
        whole = Making()
        ensure(place, whole)
        assert whole.calls == ["start", "load", "stop slowly"], "the loader knows what is in"


def exited(*, code: int | None = None, by: int | None = None) -> wire.Exited:
    return wire.Exited(process=1, code=code, signal=by, time_ns=1, usage=USAGE)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (exited(code=0), None, r"ended while its data were made \(exit code 0\)"),
        (None, exited(by=signal.SIGKILL), r"did not shut down properly once its data were made \(signal SIGKILL\)"),
        (None, exited(by=signal.SIGSEGV), "signal SIGSEGV"),
        (None, exited(by=signal.SIGTERM), None),
        (None, exited(code=143), None),
    ],
)
def test_data_of_a_server_that_crashed_or_had_to_be_killed_are_not_kept(
    tmp_path: Path, *, before: wire.Exited | None, after: wire.Exited | None, expected: str | None
) -> None:
    making = Making()
    making.process, making.ends = SimpleNamespace(exited=before), after
    with place_here(tmp_path) as place:
        if expected is None:
            ensure(place, making)
        else:
            with pytest.raises(SystemStartError, match=expected):
                ensure(place, making)
    assert (tmp_path / "state" / "prepared" / "key").exists() == (expected is None)
    assert making.calls[-1].startswith("stop")


@pytest.mark.parametrize(("code", "kept"), [(0, True), (1, False), (2, False), (23, True), (66, True)])
def test_data_of_a_database_server_that_ended_by_an_error_of_its_own_are_not_kept(
    tmp_path: Path, *, code: int, kept: bool
) -> None:
    """It catches the signal by which it crashes; a sanitizer's report comes after all else."""
    making = Making()
    making.orderly_codes = SYSTEMS["mysql"].orderly_codes
    making.process, making.ends = SimpleNamespace(exited=None), exited(code=code)
    with place_here(tmp_path) as place:
        if kept:
            ensure(place, making)
        else:
            with pytest.raises(SystemStartError, match=rf"did not shut down properly .* \(exit code {code}\)"):
                ensure(place, making)


def test_data_are_not_kept_when_what_their_server_had_started_had_to_be_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may not have written all that it should."""
    killed = wire.Swept(id=1, programs=["writer"], killed=1, left=0)
    monkeypatch.setattr(Agent, "sweep", lambda _agent, _grace_s: killed)
    with place_here(tmp_path) as place, pytest.raises(SystemStartError, match="had to be killed"):
        ensure(place, Making())
    assert not (tmp_path / "state" / "prepared").exists()


def test_an_interrupted_load_goes_on_after_the_run_was_started_again(tmp_path: Path) -> None:
    broken, whole = Making(fails=True), Making()
    with place_here(tmp_path) as place, pytest.raises(PlaceError, match="on purpose"):
        ensure(place, broken)
    with place_here(tmp_path) as place:
        found = ensure(place, whole)
    assert whole.calls == ["start", "load", "stop slowly"]
    assert sorted(path.name for path in Path(found.directory).parent.iterdir()) == ["data", "manifest.json"]


def test_data_whose_manifest_is_damaged_are_told_with_what_makes_them_again(tmp_path: Path) -> None:
    with place_here(tmp_path) as place:
        directory = Path(ensure(place, Making()).directory).parent
        (directory / "manifest.json").write_text("{}")
        with pytest.raises(PlaceError, match=r"manifest\.json is damaged") as refused:
            ensure(place, Making())
    assert str(directory) in refused.value.hint


@pytest.mark.parametrize("harm", ["another boot", "does not start"])
def test_a_load_that_cannot_go_on_begins_anew(tmp_path: Path, harm: str) -> None:
    broken, whole = Making(fails=True), Making()
    with place_here(tmp_path) as place:
        with pytest.raises(PlaceError, match="on purpose"):
            ensure(place, broken)
        if harm == "another boot":
            (tmp_path / "state" / "building" / "key" / "created").write_text("another\n")
        else:
            whole.starts_failing = 1
        ensure(place, whole)
    assert whole.calls[-4:] == ["create", "start", "load", "stop slowly"]


def test_an_empty_system_that_was_interrupted_begins_anew(tmp_path: Path) -> None:
    """Its database would be there already."""
    broken, whole = Making(loads=False, fails=True), Making(loads=False)
    with place_here(tmp_path) as place:
        with pytest.raises(PlaceError, match="on purpose"):
            ensure(place, broken)
        ensure(place, whole)
    assert whole.calls == ["create", "start", "create database", "stop slowly"]


def test_a_load_of_other_data_takes_the_place_of_an_interrupted_one(tmp_path: Path) -> None:
    with place_here(tmp_path) as place:
        with pytest.raises(PlaceError, match="on purpose"):
            ensure(place, Making(fails=True))
        prepared.ensure(place, "other", Making().parts, on_progress=lambda _line: None)
    assert list((tmp_path / "state" / "building").iterdir()) == []


def test_a_directory_that_a_kill_left_half_made_is_not_used(tmp_path: Path) -> None:
    half = tmp_path / "state" / "building" / "key"
    (half / "data").mkdir(parents=True)
    (half / "data" / "old").touch()
    (half / "manifest.json").write_text(json.dumps({"content_sha256": "of another"}))
    making = Making()
    with place_here(tmp_path) as place:
        found = ensure(place, making)
    assert making.calls[0] == "create"
    assert found.content_sha256 == "c" * 64
    assert not (Path(found.directory) / "old").exists()
    assert not half.exists()
