"""Locks as arms: the library is in the server, and only there; what it counted is in the record."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.command_line import Desk
from support.machines.places import place_here

from fairtrial import record
from fairtrial.errors import PlaceError
from fairtrial.locks import announcement_in, counted, library
from fairtrial.run.trial import read_back

STUDY = """\
study: locks
system: {mariadb: {options: {innodb_buffer_pool_size: 32M}}}
workload:
  oltp: {profile: point_select, table_size: 1000, virtual_users: 4, ramp_up: 100ms, transactions: 200, rate: 200}
factors:
  lock:
    as-is: {}
    control: {settings: {locks: {}}}
    ticket: {settings: {locks: {kind: ticket, spins: 50, count: true}}}
arm: lock
trials: {blocks: 1, seed: 3}
metrics: {primary: throughput_tps}
"""


@pytest.mark.servers
def test_arms_differ_in_their_locks(here: Desk) -> None:
    here.fairtrial("run", here.study(STUDY))
    found = record.read(here.run)
    trials = {trial.levels["lock"]: trial for trial in found.trials}
    assert [trial.valid for trial in found.trials] == [True] * 3
    said = {arm: [each for each in trial.effective if each.name == "locks"] for arm, trial in trials.items()}
    assert said["as-is"] == []
    assert [each.read_back for each in said["control"]] == ["kind=passthrough count=no"]
    assert [each.read_back for each in said["ticket"]] == ["kind=ticket spins=50 count=yes"]
    (file,) = here.run.rglob("lock-counts.*")
    assert sum(site.counters["acquisitions"] for site in counted(file).sites) > 100


def test_a_server_without_the_library_is_found_out(tmp_path: Path) -> None:
    wanted = announcement_in("/memfd:fairtrial-locks kind=ticket spins=100 count=no (deleted)")
    assert wanted is not None
    with place_here(tmp_path) as place:
        process = place.agent.spawn("server", ["sleep", "600"], environment={"FAIRTRIAL_LOCK": "ticket"})
        with pytest.raises(PlaceError, match="it is not preloaded"):
            read_back.preloaded(place, process.pid, wanted)
        variables = {"FAIRTRIAL_LOCK": "fast", "LD_PRELOAD": os.fspath(library())}
        process = place.agent.spawn("other", ["sh", "-c", "echo up; sleep 600"], environment=variables)
        next(process.lines())  # the dynamic linker is done
        with pytest.raises(PlaceError, match="it announces kind=fast spins=8 count=no"):
            read_back.preloaded(place, process.pid, wanted)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ("{locks: {kind: adaptive, spins: 5}}", "adaptive does as glibc does"),
        ("{locks: {kind: ticket, fast_mutex: 'off'}}", "leave one of them out"),
        ("{locks: {kind: tickets}}", "passthrough"),
        ("{locks: {}, environment: {LD_PRELOAD: x.so}}", "both set LD_PRELOAD"),
    ],
)
def test_what_cannot_be_meant_is_refused(here: Desk, settings: str, said: str) -> None:
    text = STUDY.replace("{settings: {locks: {}}}", f"{{settings: {settings}}}")
    done = here.fairtrial("run", here.study(text), code=None)
    assert done.returncode in (2, 3)
    assert said in done.stdout + done.stderr
