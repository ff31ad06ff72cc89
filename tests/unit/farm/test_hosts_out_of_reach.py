"""What a host that fails costs a run of a farm: as little as it can, as long as others have run none of its block."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest
from support.instant_farm import Fate, InstantFarm
from support.progress import Told
from support.records import planned, tiny_plan

from fairtrial import record
from fairtrial.errors import PlaceError
from fairtrial.farm import controller
from fairtrial.farm.controller import FarmRun
from fairtrial.farm.executor import Returned
from fairtrial.farm.orders import Failure, Order, Outcome
from fairtrial.record import Record
from fairtrial.record.events import HostLeft

HOUR_S = 3600


class Clocked(InstantFarm):
    """A minute and a half for each block, or until somebody looks again."""

    now_s = 0.0

    def returned(self, timeout_s: float) -> Sequence[Returned]:
        Clocked.now_s += 90.0
        return super().returned(timeout_s)


def ended(directory: Path, farm: InstantFarm, *, blocks: int) -> tuple[Record, Told]:
    """A run of so many blocks to its end, whose limit of voided blocks is 1."""
    tiny, told = tiny_plan(), Told()
    trials = [planned(block, arm) for block in range(1, blocks + 1) for arm in ("a", "b")]
    plan = tiny.model_copy(update={"trials": trials, "design": tiny.design.model_copy(update={"blocks": blocks})})
    writer = record.create(directory / "run", plan=plan, sources={"study.yaml": ""})
    try:
        FarmRun(writer=writer, progress=told, farm=farm).execute()
    finally:
        writer.close()
    return record.read(directory / "run"), told


def left(found: Record) -> list[str]:
    return [event.host for event in found.events if isinstance(event, HostLeft)]


def test_hosts_that_differ_cost_no_block(tmp_path: Path) -> None:
    odd = [f"odd{number}" for number in range(4)]
    facts = {host: {"kernel": "another"} for host in odd}
    found, told = ended(tmp_path, InstantFarm(*odd, "first", facts=facts), blocks=8)
    assert (found.finished, list(found.voided), sorted(left(found))) == (True, [], odd)
    assert {trial.host for trial in found.trials} == {"first"}
    assert sum("is handed out again: odd" in note for note in told.notes) == 4


def cut(from_s: float, to_s: float) -> Fate:
    """The network of `x`: its block is lost, and it cannot be reached for a while."""

    def fate(host: str, _order: Order, outcome: Outcome) -> Outcome | str:
        if host != "x" or not from_s <= Clocked.now_s < to_s:
            return outcome
        if Clocked.now_s == from_s:
            return outcome.model_copy(update={"failure": Failure(message="no answer", hint="look at it")})
        failure = Failure(message="Connection timed out", hint="check that the host is up")
        gone = {"failure": failure, "begun": False, "trials": [], "finished": [], "places": []}
        return outcome.model_copy(update=gone)

    return fate


@pytest.fixture
def _clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Clocked, "now_s", 0.0)
    monkeypatch.setattr(controller, "time", SimpleNamespace(monotonic=lambda: Clocked.now_s))


@pytest.mark.usefixtures("_clock")
@pytest.mark.parametrize("hosts", [("x",), ("x", "y")])
def test_a_host_gets_further_blocks_once_it_can_be_reached_again(tmp_path: Path, hosts: tuple[str, ...]) -> None:
    farm = Clocked(*hosts, fate=cut(180.0, 700.0))
    found, told = ended(tmp_path, farm, blocks=14)
    assert (found.finished, left(found), len(found.voided)) == (True, [], 1)
    waits = [note for note in told.notes if note.startswith("x gets no block for")]
    assert waits == [f"x gets no block for {words}" for words in ("60 s", "2 min")]
    assert sum(trial.host == "x" for trial in found.trials) > 4


@pytest.mark.usefixtures("_clock")
def test_a_host_that_stays_away_is_given_up(tmp_path: Path) -> None:
    with pytest.raises(PlaceError, match="Connection timed out"):
        ended(tmp_path, Clocked("x", fate=cut(180.0, 1e9)), blocks=10)
    assert left(record.read(tmp_path / "run")) == ["x"]
    assert HOUR_S < Clocked.now_s < 1.5 * HOUR_S


@pytest.mark.usefixtures("_clock")
def test_a_host_that_is_reached_and_cannot_prepare_is_given_up_at_once(tmp_path: Path) -> None:
    def fate(_host: str, _order: Order, outcome: Outcome) -> Outcome:
        if Clocked.now_s < 180.0:
            return outcome
        failure = Failure(message="no sysbench at this place", hint="install it")
        return outcome.model_copy(update={"failure": failure, "begun": False, "trials": [], "finished": []})

    with pytest.raises(PlaceError, match="no sysbench"):
        ended(tmp_path, Clocked("x", fate=fate), blocks=10)
    assert left(record.read(tmp_path / "run")) == ["x"]
    assert Clocked.now_s < HOUR_S / 4
