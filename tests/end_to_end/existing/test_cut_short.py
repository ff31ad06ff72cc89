"""Servers that are there already: the arm's options while data are loaded, and makings that are cut short."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

import pytest
from support.command_line import Desk
from support.machines.servers_there import KINDS, PASSWORD, VARIABLE, ServerThere, require_program, there
from support.records import RESOLVED, section

from fairtrial.errors import PlaceError
from fairtrial.places import open_place
from fairtrial.run.existing import TEMPLATE, ExistingServers
from fairtrial.run.kinds import Parts, parts_of
from fairtrial.study.resolved import Section
from fairtrial.systems.existing import DataMark, ExistingServer
from fairtrial.wire.open_place import OpenPlace
from fairtrial.workloads import WORKLOADS, contents

pytestmark = pytest.mark.servers
WORKLOAD = Section({"oltp": {"table_size": 1000, "transactions": 10}})
SHAPING = {"mariadb": ("character_set_server", "latin2"), "postgres": ("default_statistics_target", "10")}
SHAPE = {
    "mariadb": "SELECT CHARACTER_SET_NAME FROM information_schema.COLUMNS WHERE TABLE_NAME = 'sbtest1' "
    "AND COLUMN_NAME = 'c'",
    "postgres": "SELECT array_length(histogram_bounds::text::int[], 1) - 1 FROM pg_stats WHERE tablename = 'sbtest1' "
    "AND attname = 'id'",
}


@pytest.fixture(scope="module", params=sorted(KINDS))
def server(request: pytest.FixtureRequest) -> Iterator[ServerThere]:
    require_program(request.param)
    with there(request.param) as started:
        yield started


@pytest.fixture
def place(here: Desk, monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenPlace]:
    monkeypatch.setenv(VARIABLE, PASSWORD)
    with open_place("local", {"state_directory": str(here.state)}, holder="a test") as agent:
        yield OpenPlace(agent)


def parts(server: ServerThere, options: dict[str, str] | None = None, **more: str) -> tuple[Parts, ExistingServer]:
    where = dict(part.split(": ") for part in server.at().split(", "))
    at = {**where, "database": "bench", "password": {"env": VARIABLE}, **more}
    section = Section({server.kind: {"at": at, "options": options or {}}})
    found = parts_of(RESOLVED.model_copy(update={"system": section, "workload": WORKLOAD}))
    existing = found.system.existing()
    assert existing is not None
    return found, existing


@pytest.mark.parametrize("restore", ["reload", "none"])
def test_data_are_loaded_with_what_shapes_them_as_the_arm_has_it(
    place: OpenPlace, server: ServerThere, restore: str
) -> None:
    name, value = SHAPING[server.kind]
    arm, existing = parts(server, {name: value}, restore=restore)
    server.ask("DROP DATABASE IF EXISTS bench")
    before, servers = server.snapshot(), ExistingServers(place, "a test")
    servers.prepare(arm, existing, key="k", on_progress=lambda _: None)
    assert server.snapshot() == before, "no trial is under way"
    servers.restore(arm, existing, key="k", on_progress=lambda _: None)
    existing.start(place)
    assert server.ask(SHAPE[server.kind], "bench").strip() == value
    undone = place.agent.undo()
    assert (undone.failed, undone.disturbed) == ([], [])
    assert server.snapshot() == before


@pytest.mark.parametrize("server", ["postgres"], indirect=True)  # no other copies databases
def test_a_template_is_loaded_with_them_too(place: OpenPlace, server: ServerThere) -> None:
    name, value = SHAPING[server.kind]
    arm, existing = parts(server, {name: value})
    before, servers = server.snapshot(), ExistingServers(place, "a test")
    servers.prepare(arm, existing, key="k", on_progress=lambda _: None)
    assert server.ask(SHAPE[server.kind], f"{TEMPLATE}k").strip() == value
    assert server.snapshot() == before


class Cut(Exception):  # noqa: N818 - no error: the end of a process
    """After so many statements."""


def cut_after(left: int, existing: ExistingServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets a server get so many statements more."""
    ask, remaining = existing.ask, [left]

    def asked(place: OpenPlace, *statements: str, **where: Any) -> Any:
        some = statements[: remaining[0]]
        remaining[0] -= len(some)
        rows = ask(place, *some, **where) if some else []
        if len(some) < len(statements):
            raise Cut
        return rows

    monkeypatch.setattr(existing, "ask", asked)


@pytest.mark.parametrize("is_there", [True, False])
def test_a_database_whose_making_is_cut_anywhere_is_taken_by_the_next(
    place: OpenPlace, server: ServerThere, monkeypatch: pytest.MonkeyPatch, *, is_there: bool
) -> None:
    _, existing = parts(server)
    for statements in range(100):
        server.ask("DROP DATABASE IF EXISTS bench")
        if is_there:
            existing.recreate(place, "bench")
            existing.note(place, "bench", DataMark(made=True, key="before"))
        with monkeypatch.context() as patch:
            cut_after(statements, existing, patch)
            try:
                ExistingServers(place, "a test")._made(existing, "bench")
                break
            except Cut:
                pass
        existing.require_own(place)
        ExistingServers(place, "a test")._made(existing, "bench")
        assert existing.mark(place, "bench") == DataMark(made=True)
    assert statements > 5
    assert {"fairtrial_new_bench"} & set(server.databases()) == set()


def test_an_empty_database_is_taken_where_it_has_nothing_to_lose(place: OpenPlace, server: ServerThere) -> None:
    _, existing = parts(server, database="empty")
    server.ask("CREATE DATABASE empty")
    try:
        if server.kind == "postgres":
            with pytest.raises(PlaceError, match="is not one that fairtrial made: nothing was changed"):
                existing.require_own(place)
            return
        assert existing.mark(place, "empty") == DataMark(made=True)
        assert parts(server, database="empty", may_overwrite="empty")[1].mark(place, "empty") == DataMark(made=False)
        for made, gone in (
            ("CREATE TABLE t (a INT)", "DROP TABLE t"),
            ("CREATE VIEW t AS SELECT 1", "DROP VIEW t"),
            ("CREATE PROCEDURE t() SELECT 1", "DROP PROCEDURE t"),
            ("CREATE EVENT t ON SCHEDULE EVERY 1 DAY DO SELECT 1", "DROP EVENT t"),
        ):
            server.ask(made, "empty")
            with pytest.raises(PlaceError, match="is not one that fairtrial made: nothing was changed"):
                existing.require_own(place)
            server.ask(gone, "empty")
        arm, kept = parts(server, database="empty", restore="none")
        ExistingServers(place, "a test").restore(arm, kept, key=None, on_progress=lambda _: None)
        server.ask("CREATE TABLE t (a INT)", "empty")
        existing.require_own(place)  # it was marked while it was empty
    finally:
        server.ask("DROP DATABASE empty")


def test_a_database_that_a_program_fills_keeps_its_mark_meanwhile(place: OpenPlace, server: ServerThere) -> None:
    _, existing = parts(server)
    existing.recreate(place, "bench")
    existing.note(place, "bench", DataMark(made=True))
    endpoint, marks = existing.endpoint("bench"), []

    def load(_directory: PurePosixPath) -> str:
        marks.append(existing.mark(place, "bench"))
        server.ask("CREATE TABLE own (a integer)", "bench")
        return ""

    filled = [
        contents.fill(place, endpoint, program=program, by=load, on_progress=lambda _: None)
        for program in ("pgbench", "pgbench", "hammerdb")
    ]
    assert marks[0] == DataMark(made=True), "new, and ours"
    assert DataMark(made=True) not in marks[1:] or server.kind == "mariadb", "what another left goes with its mark"
    assert [each.rows for each in filled] == [{"own": 0}] * 3
    assert len({each.content_sha256 for each in filled}) == 1
    existing.recreate(place, "bench")
    existing.note(place, "bench", DataMark(made=False))
    contents.fill(place, endpoint, program="pgbench", by=load, on_progress=lambda _: None)
    assert not existing.has_mark(place, "bench"), "somebody's, which may be lost: made as all later ones are"


@pytest.mark.parametrize(
    ("workload", "goes_on"),
    [("oltp", True), ("sysbench", True), ("pgbench", False)],
)
@pytest.mark.parametrize("server", ["postgres"], indirect=True)
def test_only_what_our_own_loader_fills_goes_on(
    place: OpenPlace, server: ServerThere, workload: str, *, goes_on: bool
) -> None:
    _, existing = parts(server)
    asked = section(WORKLOADS, workload, **WORKLOADS[workload].example)
    arm = parts_of(RESOLVED.model_copy(update={"workload": asked}))
    servers, partial = ExistingServers(place, "a test"), DataMark(made=True)
    assert servers._is_anew(arm, existing, partial, database="bench") != goes_on
    assert servers._is_anew(arm, existing, DataMark(made=True, key="other"), database="bench")
