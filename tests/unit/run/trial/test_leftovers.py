"""What a trial's server and load leave running ends with the trial, and is named."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from support.facts import facts_of
from support.machines.places import place_here, place_in_memory
from support.machines.stage import Stage, Staged
from support.progress import Told
from support.records import planned, tiny_plan

from fairtrial import record
from fairtrial.errors import PlaceError, StreamLostError, StuckError, SystemStartError
from fairtrial.protocol.generated import Swept
from fairtrial.run.trial import leftovers, runner
from fairtrial.run.trial.outcome import TrialOutcome
from fairtrial.wire.agent import Agent
from fairtrial.wire.fake import FakeTransport
from fairtrial.wire.open_place import OpenPlace
from fairtrial.workloads import Drive


def ended(place: OpenPlace, fake: FakeTransport, *, error: Exception) -> None:
    """A trial that leaves something running and goes wrong."""
    with leftovers.ended([place], TrialOutcome(), phase=lambda _name: contextlib.nullcontext()):
        fake.left_running = ["worker"]
        raise error


def test_programs_of_every_place_are_ended_and_named_once() -> None:
    outcome, phases = TrialOutcome(), []

    def phase(name: str) -> contextlib.AbstractContextManager[None]:
        phases.append(name)
        return contextlib.nullcontext()

    with place_in_memory() as (server, at_server), place_in_memory() as (client, at_client):
        with leftovers.ended([server, client], outcome, phase=phase):
            at_server.left_running = ["sh", "worker"]
            at_client.left_running = ["helper\t", "sh"]
        assert outcome.left_running == ["'helper\\t'", "sh", "worker"]
        assert at_server.left_running == at_client.left_running == []
    assert (outcome.invalid_reason, phases) == ("", ["stop"])


@pytest.mark.parametrize("kind", [SystemStartError, PlaceError])
def test_they_are_ended_whatever_went_wrong_which_stays_the_news(kind: type[PlaceError]) -> None:
    with place_in_memory() as (place, fake):
        with pytest.raises(kind, match="on purpose"):
            ended(place, fake, error=kind("on purpose", hint=""))
        assert fake.left_running == []


def test_with_the_stream_lost_nothing_is_asked() -> None:
    with place_in_memory() as (place, fake):
        with pytest.raises(StreamLostError):
            ended(place, fake, error=StreamLostError("the agent is gone", hint=""))
        assert fake.left_running == ["worker"]


def test_one_that_not_even_a_kill_ends_interrupts_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would run beside the next trial, too."""
    stuck = Swept(id=1, programs=["worker"], killed=1, left=1)
    monkeypatch.setattr(Agent, "sweep", lambda _agent, _grace_s: stuck)
    with place_in_memory() as (place, _), pytest.raises(StuckError, match="worker of the trial's server or load still"):
        leftovers.end(place, grace_s=0.1)


def test_what_the_load_leaves_running_has_ended_after_its_trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    staged, child = Staged(), tmp_path / "child"
    monkeypatch.setattr(runner, "parts_of", lambda _resolved: staged.parts)
    writer = record.create(tmp_path / "run", plan=tiny_plan(), sources={"study.yaml": "study: tiny\n"})
    with contextlib.closing(writer), place_here(tmp_path) as place:
        place.facts = facts_of(processors=[0, 1, 2])

        def leave(_drive: Drive) -> None:
            is_asleep = '[ "$(cat /proc/$!/comm)" = sleep ]'  # until then it has its parent's name
            script = f"sleep 1000 >/dev/null 2>&1 & echo $! >{child}; until {is_asleep}; do :; done"
            place.agent.spawn("load", ["sh", "-c", script], of_trial=True).wait(60.0)

        own = runner.TrialRunner(place, writer, Told(), runner.ExistingServers(place, "a test"))
        stage = Stage(staged, own, writer, Told(), monkeypatch, tmp_path)
        staged.at["drive"] = leave
        found = stage.run()
        assert (found.valid, found.left_running) == (True, ["sleep"])
        assert not Path(f"/proc/{child.read_text().strip()}").exists()
        del staged.at["drive"]
        assert "left_running" not in stage.run(planned(2, "a")).model_dump(), "records without any are as ever"
