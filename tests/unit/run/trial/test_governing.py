"""A governor's life beside a server, told by what is asked of the place: with programs that are functions."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from support.machines.places import place_here, place_in_memory, spawned

from fairtrial.errors import AgentError, PlaceError, StreamLostError, StuckError, SystemStartError
from fairtrial.protocol import generated as wire
from fairtrial.run.trial import governing
from fairtrial.run.trial.governing import Governor, beside
from fairtrial.settings.steps.purge import PurgeGovernor
from fairtrial.wire import Limits, Process
from fairtrial.wire.fake import FakeProgram

ORIGINALS = PurePosixPath("/var/lib/fairtrial/work/x/originals.json")
ENDPOINT = wire.MysqlEndpoint(socket="/s", user="root", database="mysql")
PURGE = PurgeGovernor()
ASKED = PURGE.governing(ENDPOINT)
DRY = PurgeGovernor(dry_run=True)
GOVERNED = {
    "looks": 9,
    "missed_looks": 0,
    "decisions": 2,
    "sets": 2,
    "refused": 0,
    "cpu_ns": 1_000,
    "restored": True,
}
REFUSES = {"error": "the server refuses `SET GLOBAL innodb_purge_threads`: no", "hint": "give the privilege"}


def said(decision: str, **more: object) -> str:
    return json.dumps({"time_ns": 5, "decision": decision, "reason": "10.11.6-MariaDB, by threads", **more})


STARTED = said("started", threads=4, batch_size=300)


def running(*lines: str, code: int | None = 0, errors: tuple[str, ...] = ()) -> Any:
    """What is run at a place where a governor says these lines and ends with a code (None: at a signal)."""

    def run(spawn: wire.Spawn) -> FakeProgram:
        return FakeProgram(code=code, stdout=lines, stderr=errors) if spawn.name == "governor" else FakeProgram()

    return run


def restorings(fake: Any) -> list[wire.Spawn]:
    return [
        each
        for each in fake.requests
        if isinstance(each, wire.Spawn) and list(each.argv[:2]) == list(governing.RESTORE)
    ]


def test_the_way_back_is_remembered_before_it_starts() -> None:
    with place_in_memory(running(STARTED, json.dumps(GOVERNED))) as (place, fake):
        governor = Governor(place, ASKED, originals=ORIGINALS, processors=(1, 2))
        kinds = [type(each).__name__ for each in fake.requests]
        assert kinds.index("Change") < kinds.index("Spawn")
        (step,) = fake.steps
        assert step.model_dump(mode="json")["inverse"] == {
            "kind": "execute",
            "argv": ["fairtrial-agent", "govern-restore", str(ORIGINALS)],
            "lasting": False,
        }
        spawn = spawned(fake, "governor")
        assert list(spawn.argv) == ["fairtrial-agent", "govern-purge"]
        assert spawn.processors == [1, 2]
        sent = wire.GovernPurge.model_validate_json(spawn.stdin or "")
        assert sent == ASKED.model_copy(update={"originals": str(ORIGINALS)})
        assert governor.stop() == ""
        assert governor.governed == wire.Governed.model_validate(GOVERNED)
        assert restorings(fake) == [], "it did so itself"


def test_what_was_asked_and_found_is_written_down_without_the_way_in() -> None:
    with place_in_memory(running(STARTED, json.dumps(GOVERNED))) as (place, _fake):
        effective = Governor(place, ASKED, originals=ORIGINALS).effective
    assert effective.name == "purge_governor"
    assert json.loads(effective.asked)["period_ms"] == 50
    assert "endpoint" not in effective.asked
    assert effective.before == "innodb_purge_threads=4 innodb_purge_batch_size=300"
    assert effective.read_back == "10.11.6-MariaDB, by threads"


def test_who_listens_hears_every_decision() -> None:
    heard: list[wire.Decision] = []
    lines = (STARTED, said("fewer", threads=3), said("restored"), json.dumps(GOVERNED))
    with place_in_memory(running(*lines)) as (place, _fake):
        Governor(place, ASKED, originals=ORIGINALS, on_decision=heard.append).stop()
    assert [(each.decision, each.threads) for each in heard] == [("started", 4), ("fewer", 3), ("restored", None)]


def test_a_dry_run_changes_nothing_and_has_nothing_to_remember() -> None:
    with place_in_memory(running(STARTED, json.dumps(GOVERNED))) as (place, fake):
        governor = Governor(place, DRY.governing(ENDPOINT), originals=ORIGINALS)
        assert fake.steps == []
        governor.restore()
        assert governor.stop() == ""
        assert restorings(fake) == []


def test_a_dry_run_beside_a_trial_says_that_nothing_is_set_and_its_trial_is_valid() -> None:
    """It counts what it decides, sets nothing, and has nothing to give back."""
    told = {**GOVERNED, "decisions": 7, "sets": 0}
    with place_in_memory(running(STARTED, json.dumps(told))) as (place, fake):
        governor = beside(place, PurePosixPath("/work/abc"), DRY, endpoint=ENDPOINT, processors=None)
        assert json.loads(spawned(fake, "governor").stdin or "")["dry_run"] is True
        assert governor.effective.read_back == "nothing is set: 10.11.6-MariaDB, by threads"
        assert json.loads(governor.effective.asked)["dry_run"] is True
        assert governing.ended(governor) == ""
        assert governor.governed is not None
        assert (governor.governed.decisions, governor.governed.sets, governor.governed.restored) == (7, 0, True)
        assert (fake.steps, restorings(fake)) == ([], [])


def test_a_dry_run_that_fails_makes_its_trial_doubtful_and_restores_nothing() -> None:
    with place_in_memory(running(STARTED, code=1)) as (place, fake):
        governor = Governor(place, DRY.governing(ENDPOINT), originals=ORIGINALS)
        assert governing.ended(governor) == "the purge governor failed (exit code 1)"
        assert restorings(fake) == []


def test_a_server_that_refuses_ends_it_before_the_load_begins() -> None:
    with place_in_memory(running(code=1, errors=(json.dumps(REFUSES),))) as (place, _fake):
        with pytest.raises(PlaceError, match="does not start: the server refuses") as caught:
            Governor(place, ASKED, originals=ORIGINALS)
        assert not isinstance(caught.value, SystemStartError)
        assert caught.value.hint == "give the privilege"


@pytest.mark.parametrize(
    "ran",
    [
        FakeProgram(code=1, stderr=[json.dumps({"error": "cannot govern: Connection reset by peer", "hint": "look"})]),
        FakeProgram(code=None),
    ],
)
def test_a_server_that_is_gone_by_then_may_be_one_trial_s(ran: FakeProgram) -> None:
    class Impatient(Governor):
        """It has little time to start, and what is restored after it has its usual time."""

        def restore(self) -> None:
            self._place.agent.limits = Limits()
            super().restore()

    limits = Limits(short_s=0.01)
    with (
        place_in_memory(lambda spawn: ran if spawn.name == "governor" else FakeProgram(), limits=limits) as (
            place,
            _fake,
        ),
        pytest.raises(SystemStartError, match="does not start"),
    ):
        Impatient(place, ASKED, originals=ORIGINALS)


def test_a_governor_that_ends_without_a_word_is_told_by_its_code() -> None:
    with (
        place_in_memory(running(code=3)) as (place, _fake),
        pytest.raises(PlaceError, match=r"it ended \(exit code 3\)"),
    ):
        Governor(place, ASKED, originals=ORIGINALS)


def test_one_that_fails_later_is_cleaned_up_after_and_makes_the_trial_doubtful() -> None:
    error = json.dumps({"error": "cannot write: disk full", "hint": "make room"})
    with place_in_memory(running(STARTED, code=1, errors=(error,))) as (place, fake):
        governor = Governor(place, ASKED, originals=ORIGINALS)
        assert governor.stop() == "the purge governor failed (exit code 1): cannot write: disk full"
        assert [list(each.argv) for each in restorings(fake)] == [[*governing.RESTORE, str(ORIGINALS)]]
        assert governor.governed is None


def test_values_that_cannot_be_restored_are_an_error() -> None:
    def run(spawn: wire.Spawn) -> FakeProgram:
        if spawn.name == "governor":
            return FakeProgram(code=1, stdout=[STARTED])
        return FakeProgram(code=1, stderr=["no answer within 10.0 s"])

    with place_in_memory(run) as (place, _fake):
        governor = Governor(place, ASKED, originals=ORIGINALS)
        with pytest.raises(PlaceError, match="no answer within"):
            governor.stop()
        assert "no answer within" in governing.ended(governor), "of a server that ends with its trial, a doubt"


def test_a_lost_stream_is_nobody_s_doubt() -> None:
    with place_in_memory(running(STARTED, code=None)) as (place, fake):
        governor = Governor(place, ASKED, originals=ORIGINALS)
        assert not governor.wait(0.01)
        fake.cut()
        with pytest.raises(StreamLostError):
            governor.wait(60)
        with pytest.raises(StreamLostError):
            governing.ended(governor)


def test_one_that_does_not_end_would_govern_the_next_trials_server_too(monkeypatch: pytest.MonkeyPatch) -> None:
    with place_in_memory(running(STARTED, code=None), limits=Limits(stop_s=0.01, kill_s=0.01)) as (place, _fake):
        governor = Governor(place, ASKED, originals=ORIGINALS)
        monkeypatch.setattr(Process, "signal", lambda *_args, **_options: None)  # as if it hung in the kernel
        with pytest.raises(StuckError, match="governor"):
            governing.ended(governor)


@pytest.mark.parametrize(
    ("change", "doubt"),
    [
        ({"refused": 3}, "the server refused 3 of the purge governor's values"),
        ({"missed_looks": 91}, "the purge governor missed 91 of 100 looks: lengthen its period"),
        ({"restored": False}, "somebody else has set purge while it was governed"),
    ],
)
def test_what_was_not_as_asked_makes_the_trial_doubtful(change: dict[str, object], doubt: str) -> None:
    with place_in_memory(running(STARTED, json.dumps({**GOVERNED, **change}))) as (place, _fake):
        assert Governor(place, ASKED, originals=ORIGINALS).stop() == doubt


def test_an_agent_that_says_nothing_in_the_end_is_told() -> None:
    with place_in_memory(running(STARTED, "not JSON")) as (place, _fake):
        governor = Governor(place, ASKED, originals=ORIGINALS)
        assert "older one" in governor.stop()
        assert governor.said == "not JSON"


def test_a_trial_s_governor_has_its_files_among_the_raw_ones() -> None:
    trial = PurePosixPath("/var/lib/fairtrial/work/abc")
    with place_in_memory(running(STARTED, json.dumps(GOVERNED))) as (place, fake):
        beside(place, trial, PURGE, endpoint=ENDPOINT, processors=None).stop()
        asked = json.loads(spawned(fake, "governor").stdin or "")
    assert asked["output_directory"] == "/var/lib/fairtrial/work/abc/out"
    assert asked["originals"] == "/var/lib/fairtrial/work/abc/governor-originals.json"
    assert asked["endpoint"] == ENDPOINT.model_dump(mode="json")


def test_a_system_without_a_server_is_refused() -> None:
    with place_in_memory() as (place, _fake), pytest.raises(PlaceError, match="needs a server"):
        beside(place, ORIGINALS.parent, PURGE, endpoint=None, processors=None)


def test_a_real_agent_remembers_and_a_server_that_is_not_there_is_told(tmp_path: Path) -> None:
    absent = ENDPOINT.model_copy(update={"socket": str(tmp_path / "nothing")})
    with place_here(tmp_path) as place:
        originals = PurePosixPath(tmp_path) / "originals.json"
        with pytest.raises(PlaceError, match="cannot govern"):
            Governor(place, PURGE.governing(absent), originals=originals)
        assert place.agent.undo().steps == 1, "the step that was remembered"


def test_originals_that_are_damaged_are_an_error_and_stay(tmp_path: Path) -> None:
    originals = tmp_path / "originals.json"
    originals.write_text("{", encoding="utf-8")
    with contextlib.ExitStack() as stack:
        place = stack.enter_context(place_here(tmp_path))
        with pytest.raises(AgentError, match=r"originals\.json"):
            Governor(place, ASKED, originals=PurePosixPath(originals))
        with pytest.raises(PlaceError, match=r"the agent could not restore: .*originals\.json"):
            place.agent.close()
    assert originals.exists()
