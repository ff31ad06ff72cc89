"""What a run refuses to do with a server that is there already, before anything is opened."""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePosixPath
from types import SimpleNamespace
from typing import Any, cast

import pytest
from support.records import RESOLVED

from fairtrial.errors import InputError, PlaceError
from fairtrial.protocol.generated import Leftovers
from fairtrial.run import existing
from fairtrial.run.kinds import parts_of
from fairtrial.settings import Effect
from fairtrial.study.resolved import ResolvedTrial, Section
from fairtrial.systems import Instance, ServerAddress
from fairtrial.wire.open_place import OpenPlace

LOCAL = {"socket_directory": "/run/pg", "user": "boss", "database": "bench"}
REMOTE = {"host": "db1", "user": "boss", "database": "bench", "tls": "require"}
PGBENCH = {"script": "tpcb-like", "scale": 1, "duration": 3}
HAMMERDB = {"duration": 60}
NATIVE = {"tpcc": {"warehouses": 1, "transactions": 100}}


def trial(at: dict[str, Any] | None, **more: Any) -> ResolvedTrial:
    system = Section({"postgres": {"at": at} if at is not None else {}})
    return RESOLVED.model_copy(update={"system": system, "workload": Section(NATIVE), **more})


def mariadb(**more: str) -> Section:
    return Section({"mariadb": {"at": {"socket": "/run/my.sock", "user": "boss", "database": "bench", **more}}})


@pytest.mark.parametrize(
    ("refused", "problem"),
    [
        (trial(LOCAL, place=Section({"vm": {"kernel": "debian-6.1"}})), "ends with its trial"),
        (trial(REMOTE, settings={"swap": "off"}), "settings.swap would change the machine of the load, not db1"),
        (trial(REMOTE, workload=Section({"pgbench": PGBENCH})), "not told how to encrypt"),
        (trial(LOCAL, workload=Section({"hammerdb": HAMMERDB})), "HammerDB's build sets the password of its user"),
        (
            trial(None, system=mariadb(), workload=Section({"hammerdb": {**HAMMERDB, "options": {"purge": True}}})),
            "HammerDB's option `purge` sets options of the server",
        ),
        (
            trial(None, system=mariadb(), workload=Section({"hammerdb": HAMMERDB})),
            "HammerDB's build makes different rows each time",
        ),
        (trial(LOCAL, workload_place=Section({"ssh": {"host": "client"}})), "the load runs at another place"),
    ],
)
def test_what_would_not_reach_the_server_is_refused(refused: ResolvedTrial, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        existing.refuse(refused)


def test_what_reaches_it_and_private_servers_are_not_refused() -> None:
    existing.refuse(trial(LOCAL, settings={"swap": "off"}))
    existing.refuse(trial(REMOTE))
    existing.refuse(trial(REMOTE, workload=Section({"command": {"run": "psql"}})))
    existing.refuse(trial(None, system=mariadb(restore="none"), workload=Section({"hammerdb": HAMMERDB})))
    existing.refuse(trial(None, place=Section({"vm": {"kernel": "debian-6.1"}})))


@pytest.mark.parametrize(
    ("effect", "name"),
    [
        (Effect(server_processors=(0,)), "affinity.server"),
        (Effect(server_groups=("/sys/fs/cgroup/x",)), "control groups"),
        (Effect(environment={"LD_PRELOAD": "x"}), "environment"),
        (Effect(data_directory=PurePosixPath("/mnt")), "storage"),
    ],
)
def test_what_a_server_is_given_when_it_starts_is_refused_by_name(effect: Effect, name: str) -> None:
    server = parts_of(trial(LOCAL)).system.there()
    assert server is not None
    with pytest.raises(PlaceError, match=name):
        existing.require_unstarted(server, effect)
    existing.require_unstarted(server, replace(Effect(), client_processors=(0,)))


@pytest.mark.parametrize("number", [1, 2])
def test_a_server_that_still_has_a_dead_runs_options_is_refused(number: int) -> None:
    failed = ["options of postgres on /run/pg2: down", f"options of postgres on /run/pg{number}: down", "swap: busy"]
    agent = SimpleNamespace(
        hello=SimpleNamespace(leftovers=Leftovers(undone=0, killed=0, failed=failed, overwritten=[]))
    )
    servers = existing.ExistingServers(cast("OpenPlace", SimpleNamespace(agent=agent)), "a test")
    server = parts_of(trial({**LOCAL, "socket_directory": "/run/pg1"})).system.existing()
    assert server is not None
    if number == 2:
        servers._require_restored(server)
        return
    with pytest.raises(PlaceError, match="left by an earlier run and not restored: options of postgres on /run/pg1: "):
        servers._require_restored(server)


@pytest.mark.parametrize("is_ending", [True, False])
def test_a_killed_runs_session_may_end_while_the_machine_stands_still(
    monkeypatch: pytest.MonkeyPatch, *, is_ending: bool
) -> None:
    clock, session = [0.0], object()

    def tried(_server: object) -> object:
        clock.append(clock[-1] + 600)
        return session if is_ending and len(clock) > 2 else None

    servers = existing.ExistingServers(cast("OpenPlace", None), "a test")
    server: Any = SimpleNamespace(kind="postgres", address="db1", lock_holder=lambda _: "run A by ann")
    monkeypatch.setattr(servers, "_tried", tried)
    monkeypatch.setattr(existing, "time", SimpleNamespace(monotonic=lambda: clock[-1], sleep=lambda _: None))
    if is_ending:
        assert servers._taken(server) is session
        return
    with pytest.raises(PlaceError, match="another study uses postgres on db1: run A by ann"):
        servers._taken(server)


def test_what_any_arm_sets_is_watched_in_the_trials_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    def systems(trial: ResolvedTrial) -> Any:
        there = ServerAddress(f"db{trial.settings['server']}", None, trial.settings["options"])
        quiet: dict[str, Any] = {"existing": lambda: None, "identity": lambda _: None, "hold": lambda *_, **__: None}
        return SimpleNamespace(system=SimpleNamespace(there=lambda: there, **quiet), workload=None)

    monkeypatch.setattr(existing, "parts_of", systems)
    monkeypatch.setattr(existing.settings, "effects", lambda *_: Effect())
    servers = existing.ExistingServers(cast("OpenPlace", SimpleNamespace(facts=None)), "a test")
    set_by = ((1, []), (1, ["work_mem"]), (1, ["jit", "work_mem"]), (2, ["jit"]))
    trials = [trial(LOCAL, settings={"server": number, "options": names}) for number, names in set_by]
    servers.require(trials)
    assert [sorted(servers.watched(systems(each).system)) for each in trials] == [["jit", "work_mem"]] * 3 + [["jit"]]
    monkeypatch.setattr(servers, "hold", lambda _: None)
    asked: Any = SimpleNamespace(address="db1", changed=lambda _place, _instance, watched: sorted(watched))
    said = servers.disturbance(asked, Instance(endpoint=None, process=None))
    assert said == "changed by another process during the trial: jit, work_mem"
    assert servers.watched(parts_of(trial(None)).system) == ()


def test_a_database_that_is_kept_as_it_is_has_the_data_of_one_study_only() -> None:
    servers = existing.ExistingServers(None, "a test")  # type: ignore[arg-type]
    kept = parts_of(trial({**LOCAL, "restore": "none"})).system.existing()
    assert kept is not None
    for key in ("one", "one", None):
        servers._require_one_set(kept, key)
    with pytest.raises(PlaceError, match=r"keeps one set of data in bench .*, and trials need several") as refused:
        servers._require_one_set(kept, "two")
    assert refused.value.field == "system.postgres.at.restore"
