"""The loop against a real agent and programs that are nothing: rounds, looks, stopping, arms of unequal data."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from support.facts import EMULATED
from support.progress import Told
from support.records import RESOLVED, just_ended, planned, section, tiny_plan, trial_record
from support.trials import Quick, run

from fairtrial import record
from fairtrial.errors import PlaceError, StreamLostError, StuckError
from fairtrial.record import Writer
from fairtrial.record.events import RunFinished, RunInterrupted
from fairtrial.record.models import Clock, LookTaken, PlaceOpened, Plan, TrialData, TrialRecord
from fairtrial.record.writer import Changes
from fairtrial.run import Decision, Run, loop, opening
from fairtrial.study.resolved import ResolvedTrial, Section
from fairtrial.systems import SYSTEMS
from fairtrial.wire import Process
from fairtrial.wire.open_place import OpenPlace
from fairtrial.workloads import WORKLOADS


def runnable() -> Plan:
    """The tiny plan, with every parameter as validation leaves it."""

    trial = ResolvedTrial(
        place={"local": {}},
        system=section(SYSTEMS, "command"),
        workload=section(WORKLOADS, "command", run="true"),
    )
    return tiny_plan().model_copy(update={"resolved": {"all": {"a": trial, "b": trial}}})


def finished(arm: str, *, ago_s: float = 0.0) -> TrialRecord:
    """A trial of its first block, which ended a while ago."""
    resolved = {"resolved": runnable().resolved["all"][arm]}
    return just_ended(trial_record(planned(1, arm)).model_copy(update=resolved), ago_s=ago_s)


@pytest.fixture
def writer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Writer]:
    monkeypatch.setenv("FAIRTRIAL_STATE_DIRECTORY", str(tmp_path / "state"))
    found = record.create(tmp_path / "run", plan=runnable(), sources={"study.yaml": "study: tiny\n"})
    yield found
    found.close()


def looks(writer: Writer) -> list[tuple[int, str]]:
    return [(event.round, event.decision) for event in writer.record().events if isinstance(event, LookTaken)]


def test_real_trials_run_in_planned_order_and_are_committed(writer: Writer) -> None:
    Run(writer=writer, progress=Told()).execute()
    found = writer.record()
    assert [trial.trial.id for trial in found.trials] == [trial.id for trial in found.plan.trials]
    assert all(trial.valid and trial.scalars["elapsed_s"] > 0 for trial in found.trials)
    assert found.finished


def test_a_directory_that_a_program_calls_clients_is_its_own_affair(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only where several clients drove are there files of clients to add up."""
    monkeypatch.setenv("FAIRTRIAL_STATE_DIRECTORY", str(tmp_path / "state"))
    out = tmp_path / "state" / "work"
    trial = ResolvedTrial(
        place={"local": {}},
        system=section(SYSTEMS, "command"),
        workload=section(
            WORKLOADS,
            "command",
            run=f"sh -c 'for out in {out}/*/out; do mkdir $out/clients; touch $out/clients/x; done'",
        ),
    )
    plan = tiny_plan().model_copy(update={"resolved": {"all": {"a": trial, "b": trial}}})
    with contextlib.closing(record.create(tmp_path / "run", plan=plan, sources={"study.yaml": "x\n"})) as writer:
        Run(writer=writer, progress=Told()).execute()
    assert [trial.invalid_reason for trial in writer.record().trials] == [""] * 4
    assert (writer.record().trial_directory("all.b01.a") / "clients" / "x").exists()


def test_a_stopping_rule_is_asked_once_after_each_complete_round(
    writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []

    def rule(changes: Changes) -> Decision:
        seen.append(len(changes.trials))
        return Decision("continue", {"trials": sum(seen)})

    run(writer, Quick(), monkeypatch, stopping=rule)
    assert seen == [2, 2], "each trial is read once"
    assert looks(writer) == [(1, "continue"), (2, "continue")]
    details = [event.details for event in writer.record().events if isinstance(event, LookTaken)]
    assert details == [{"trials": 2}, {"trials": 4}]


def test_a_decision_to_stop_ends_the_run_as_finished(writer: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    quick = Quick()
    run(writer, quick, monkeypatch, stopping=lambda _: Decision("stop"))
    assert quick.ran == ["all.b01.a", "all.b01.b"]
    assert looks(writer) == [(1, "stop")]
    assert isinstance(writer.record().events[-1], RunFinished)


def test_a_run_killed_after_its_decision_runs_nothing_more(writer: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    for arm in "ab":
        writer.begin(planned(1, arm).id)
        writer.commit(finished(arm))
    writer.append(LookTaken(round=1, decision="stop"))
    quick = Quick()
    run(writer, quick, monkeypatch, stopping=lambda _: pytest.fail("asked again about a round that was decided"))
    assert quick.ran == []
    assert writer.record().finished


def test_a_round_completed_right_before_a_kill_is_looked_at_on_resume(
    writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for arm in "ab":
        writer.begin(planned(1, arm).id)
        writer.commit(finished(arm))
    quick = Quick()
    run(writer, quick, monkeypatch, stopping=lambda _: Decision("stop"))
    assert quick.ran == []
    assert looks(writer) == [(1, "stop")]


def test_a_lost_stream_opens_the_place_again_and_its_round_is_still_looked_at(
    writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick = Quick(invalid=("all.b01.b",), reason=f"{loop.STREAM_LOST}: gone")
    run(writer, quick, monkeypatch, stopping=lambda _: Decision("continue"))
    assert quick.opened == 2
    assert [round_ for round_, _ in looks(writer)] == [1, 2]
    assert quick.ran[:4] == ["all.b01.a", "all.b01.b", "all.b02.b", "all.b02.a"]
    assert sorted(quick.ran[4:]) == ["all.b03.a", "all.b03.b"]


@pytest.mark.parametrize("comes_back", [True, False])
def test_a_place_that_was_lost_after_the_last_trial_is_restored_before_the_run_is_finished(
    writer: Writer, *, monkeypatch: pytest.MonkeyPatch, comes_back: bool
) -> None:
    opened: list[int] = []

    @contextlib.contextmanager
    def unconfirmed(*arguments: Any, **options: Any) -> Iterator[OpenPlace]:
        opened.append(len(writer.record().trials))
        if len(opened) > 1 and not comes_back:
            raise StreamLostError("gone", hint="look at it")
        with opening.opened(*arguments, **options) as found:
            yield found
        if len(opened) == 1:
            raise StreamLostError("the agent did not confirm that the place is restored", hint="look at it")

    monkeypatch.setattr(loop, "opened", unconfirmed)
    ends: Any = contextlib.nullcontext() if comes_back else pytest.raises(StreamLostError, match="gone")
    with ends:
        run(writer, Quick(), monkeypatch)
    assert opened == [0, 4]
    assert writer.record().finished is comes_back


def test_a_clock_cannot_decide_at_a_place_that_is_emulated(writer: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    @contextlib.contextmanager
    def emulated(*arguments: Any, **options: Any) -> Iterator[OpenPlace]:
        with opening.opened(*arguments, **options) as found:
            found.__dict__["facts"] = found.facts.model_copy(update={"guest": EMULATED})
            yield found

    monkeypatch.setattr(loop, "opened", emulated)
    quick = Quick()
    with pytest.raises(PlaceError, match="elapsed_s cannot be primary"):
        run(writer, quick, monkeypatch)
    assert quick.prepared == quick.ran == []


def test_arms_that_start_from_other_data_end_the_run(writer: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(PlaceError, match="arm b starts from other data"):
        run(writer, Quick(content="hash-of-"), monkeypatch)
    assert isinstance(writer.record().events[-1], RunInterrupted)


def test_a_load_that_not_even_a_kill_ends_interrupts_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would run beside the next trial, too."""

    def stop(process: Process, _limit_s: float, **_group: bool) -> None:
        raise StuckError(f"{process.name} has not ended", hint="look at the disks")

    monkeypatch.setattr(Process, "stop", stop)
    monkeypatch.setenv("FAIRTRIAL_STATE_DIRECTORY", str(tmp_path / "state"))
    load = section(WORKLOADS, "command", run="sleep 1000", timeout=0.05)
    trial = runnable().resolved["all"]["a"].model_copy(update={"workload": load})
    plan = runnable().model_copy(update={"resolved": {"all": {"a": trial, "b": trial}}})
    with contextlib.closing(record.create(tmp_path / "stuck", plan=plan, sources={"study.yaml": "x\n"})) as writer:
        with pytest.raises(StuckError, match="load has not ended"):
            Run(writer=writer, progress=Told()).execute()
        found = writer.record()
    assert not found.trials
    assert found.events[-1] == RunInterrupted(reason="load has not ended", exit_code=3)


def test_data_of_another_hash_are_noticed_across_a_resume(writer: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    writer.begin(planned(1, "a").id)
    writer.commit(finished("a").model_copy(update={"data": TrialData(content_sha256="of a")}))
    with pytest.raises(PlaceError, match="other data"):
        run(writer, Quick(content="of "), monkeypatch)


def test_a_block_that_a_farms_host_began_does_not_go_on_on_this_machine(
    writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer.begin(planned(1, "a").id)
    writer.commit(finished("a").model_copy(update={"host": "alpha"}))
    quick = Quick()
    run(writer, quick, monkeypatch)
    assert quick.ran == ["all.b02.b", "all.b02.a", "all.b03.a", "all.b03.b"]
    (lost,) = writer.record().voided
    assert (lost.block, lost.reason) == (1, "alpha ran only a part of it, and this run goes on without its farm")


def test_every_arms_data_are_prepared_before_the_first_trial(writer: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    quick = Quick()
    run(writer, quick, monkeypatch)
    assert quick.prepared == ["all a", "all b"]


@pytest.mark.parametrize("part", ["agent_sha256", "kernel", "system"])
def test_a_resumed_run_does_not_go_on_with_another_build(
    writer: Writer, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    before = {"agent_sha256": "1", "kernel": "2", "system": "3", part: "another"}
    subject = {name: value for name, value in before.items() if name != "system"}
    facts = {"sha256": before["system"]}
    writer.begin(planned(1, "a").id)
    writer.commit(finished("a").model_copy(update={"subject": subject, "system_facts": facts}))

    class Rebuilt(Quick):
        def finished(self, found: TrialRecord) -> TrialRecord:
            now = {"subject": {"agent_sha256": "1", "kernel": "2"}, "system_facts": {"sha256": "3"}}
            return found.model_copy(update=now)

    with pytest.raises(PlaceError, match=f"ran on another {part} than"):
        run(writer, Rebuilt(), monkeypatch)
    assert isinstance(writer.record().events[-1], RunInterrupted)


@pytest.mark.parametrize("part", ["agent_sha256", "kernel", "system"])
def test_an_arm_that_has_not_run_yet_does_not_begin_on_another_build(
    writer: Writer, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    """Arm after arm, or a screening's rows, each of which runs once."""
    now = {"agent_sha256": "1", "kernel": "2", "system": "3"}

    class Upgraded(Quick):
        def finished(self, found: TrialRecord) -> TrialRecord:
            return _on(found, **now)

    writer.begin(planned(1, "a").id)
    writer.commit(_on(finished("a"), **now | {part: "another"}))
    quick = Upgraded()
    with pytest.raises(PlaceError, match=f"all.b01.b ran on another {part} than the trials before it"):
        run(writer, quick, monkeypatch)
    assert quick.ran == ["all.b01.b"]
    assert len(writer.record().trials) == 1


def test_arms_may_have_programs_of_their_own(writer: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    class Different(Quick):
        def finished(self, found: TrialRecord) -> TrialRecord:
            return _on(found, agent_sha256="1", kernel="2", system=f"of {found.trial.arm}", binary=found.trial.arm)

    run(writer, Different(), monkeypatch)
    assert writer.record().finished


def _on(trial: TrialRecord, *, system: str, binary: str = "/usr/sbin/server", **subject: str) -> TrialRecord:
    return trial.model_copy(update={"subject": subject, "system_facts": {"sha256": system, "binary": binary}})


def test_a_resumed_run_does_not_go_on_with_another_build_of_its_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pgbench = section(WORKLOADS, "pgbench", **WORKLOADS["pgbench"].example)
    resolved = RESOLVED.model_copy(update={"workload": pgbench})
    plan = tiny_plan().model_copy(update={"resolved": {"all": {"a": resolved, "b": resolved}}})
    same = {"subject": {"kernel": "2"}, "system_facts": {"sha256": "3"}, "resolved": resolved}

    class Upgraded(Quick):
        def finished(self, found: TrialRecord) -> TrialRecord:
            return found.model_copy(update={**same, "options": {"pgbench_sha256": "of 17", "timezone": "UTC"}})

    with contextlib.closing(record.create(tmp_path / "run", plan=plan, sources={"study.yaml": "x\n"})) as writer:
        writer.begin(planned(1, "a").id)
        writer.commit(finished("a").model_copy(update={**same, "options": {"pgbench_sha256": "of 15"}}))
        with pytest.raises(PlaceError, match="ran on another pgbench than"):
            run(writer, Upgraded(), monkeypatch)


def test_time_left_starts_with_the_plan_and_follows_what_trials_took(
    writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    progress = run(writer, Quick(), monkeypatch)  # each took one second, as the plan expects
    assert progress.left_s == [4.0, 3.0, 2.0, 1.0]


def test_the_facts_of_the_place_are_recorded(writer: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    run(writer, Quick(), monkeypatch)
    (place,) = writer.record().places
    assert place.place == Section({"local": {}})
    assert place.facts["processors"]
    assert len(place.agent_sha256) == 64


@pytest.mark.parametrize("fact", ["processor_model", "machine", "processors", "kernel_command_line"])
def test_a_run_does_not_go_on_on_another_machine_or_boot(
    writer: Writer, monkeypatch: pytest.MonkeyPatch, fact: str
) -> None:
    facts, clock = {fact: "another"}, Clock(monotonic_ns=0, realtime_ns=0)
    writer.note_place(PlaceOpened(place={"local": {}}, facts=facts, agent_sha256="0", clock=clock, server_user=None))
    quick = Quick()
    with pytest.raises(PlaceError, match=f"{fact} was another, is ") as refused:
        run(writer, quick, monkeypatch)
    assert "resume where the run began" in refused.value.hint
    assert quick.ran == []


def test_what_a_voided_block_does_not_run_is_not_counted(writer: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    progress = run(writer, Quick(invalid=("all.b01.a",)), monkeypatch)
    assert progress.counted == [(1, 4), (2, 5), (3, 5), (4, 5), (5, 5)]
    assert progress.left_s[-1] == 1.0


def test_an_arm_that_started_before_a_resume_is_known_to_start(writer: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    writer.begin(planned(1, "a").id)
    writer.commit(finished("a"))
    quick = Quick()
    run(writer, quick, monkeypatch)
    assert quick.had_started == [False, True, True]


def test_what_a_loads_own_place_cannot_do_ends_the_run_before_its_data_are_prepared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two agents of this machine, one of them as if it had been reached over SSH."""

    def opened(place: Section, **options: Any) -> Any:
        here = Section({"local": {"state_directory": str(tmp_path / place.kind)}})
        return opening.opened(here, **options)

    monkeypatch.setattr(loop, "opened", opened)
    monkeypatch.setenv("SSH_CONNECTION", "192.0.2.1 50000 192.0.2.2 22")
    trial = ResolvedTrial(
        place={"local": {}},
        system=section(SYSTEMS, "mariadb"),
        workload=section(WORKLOADS, "oltp", duration="1s"),
        workload_place=Section({"ssh": {"host": "far"}}),
        settings={"affinity": {"client": "777"}},
    )
    plan = tiny_plan().model_copy(update={"resolved": {"all": {"a": trial, "b": trial}}})
    own, quick = record.create(tmp_path / "run", plan=plan, sources={"study.yaml": "study: tiny\n"}), Quick()
    with contextlib.closing(own), pytest.raises(PlaceError, match="not online at the load's place"):
        run(own, quick, monkeypatch)
    assert quick.prepared == []


@pytest.mark.parametrize(
    ("order", "ago_s", "is_void"),
    [
        ("randomised_blocks", 3000.0, False),
        ("randomised_blocks", 30_000.0, True),
        ("randomised_blocks", -30_000.0, False),  # a clock that was set says nothing
        ("sequential", 30_000.0, False),
    ],
)
def test_a_block_that_a_long_pause_tore_is_void_and_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, order: str, ago_s: float, is_void: bool
) -> None:
    monkeypatch.setenv("FAIRTRIAL_STATE_DIRECTORY", str(tmp_path / "state"))
    plan = runnable()
    plan = plan.model_copy(update={"design": plan.design.model_copy(update={"order": order, "voided_limit": 0})})
    with contextlib.closing(record.create(tmp_path / "run", plan=plan, sources={"study.yaml": "x\n"})) as writer:
        writer.begin(planned(1, "a").id)
        writer.commit(finished("a", ago_s=ago_s))
        quick = Quick()
        run(writer, quick, monkeypatch)
        reasons = [event.reason for event in writer.record().voided]
    kept, of_others = ["all.b01.b"], ["all.b02.a", "all.b02.b"]
    again = ["all.b03.a", "all.b03.b"]
    assert sorted(quick.ran) == sorted([*of_others, *(again if is_void else kept)])
    assert reasons == ["the run stood still for 8 h 20 min after a part of it"] * is_void


def test_a_pause_of_hours_inside_a_block_voids_it_as_an_interruption_does(
    writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends: list[datetime] = []

    class Sleeping(Quick):
        def finished(self, found: TrialRecord) -> TrialRecord:
            ends.append(datetime.now(UTC))
            return found.model_copy(update={"started": ends[-1].isoformat(), "finished": ends[-1].isoformat()})

    class LaterOnce(datetime):
        """The machine slept after the first trial."""

        @classmethod
        def now(cls, tz: Any = None) -> datetime:
            return datetime.now(tz) + timedelta(hours=5 if len(ends) == 1 else 0)

    seconds = itertools.chain([0.0, 5 * 3600.0], itertools.repeat(0.0))
    monkeypatch.setattr(loop, "datetime", LaterOnce)
    monkeypatch.setattr(loop.time, "time", lambda: next(seconds))
    quick = Sleeping()
    told = run(writer, quick, monkeypatch)
    assert quick.ran == ["all.b01.a", "all.b02.b", "all.b02.a", "all.b03.a", "all.b03.b"]
    assert any("the run stood still for 5 h 00 min" in note for note in told.notes)
