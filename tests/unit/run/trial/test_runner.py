"""One trial with a real agent and a system and a workload that tell what was asked of them, and when."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from support import pgbench
from support.command_line import eventually
from support.inference import printed
from support.machines.stage import BROKEN, WHOLE, Stage
from support.records import planned

from fairtrial.errors import PlaceError, RecordError, SystemStartError
from fairtrial.metrics.telemetry import probes
from fairtrial.protocol.generated import MeasuringProgress, RampUpProgress
from fairtrial.record.models import TrialRecord
from fairtrial.run.trial import runner
from fairtrial.run.trial.outcome import STREAM_LOST
from fairtrial.settings import Effect
from fairtrial.settings.steps.shared import write_file
from fairtrial.study.probes import Probe
from fairtrial.study.resolved import Section
from fairtrial.systems import Identity
from fairtrial.wire.open_place import OpenPlace
from fairtrial.workloads import WORKLOADS, Drive, workload_of


def test_a_trial_goes_through_its_phases_in_order_and_is_committed(stage: Stage) -> None:
    found = stage.run()
    assert stage.staged.calls == ["identity", "start", "drive", "check", "stop"]
    assert list(dict.fromkeys(stage.progress.phases)) == [
        *("settle", "start", "drive", "check", "stop", "undo", "collect"),
    ]
    assert set(found.phases_s) == set(stage.progress.phases)
    assert found.valid
    assert stage.committed == ["all.b01.a"]
    assert stage.progress.finished == [found] == [*stage.writer.record().trials]
    assert found.options == {"cache": "1", "isolation": "read"}
    assert found.system_facts == {"version": "7", "sha256": "e" * 64, "build": "x"}
    assert set(found.subject) == {"agent_sha256", "kernel"}
    assert found.checks == [WHOLE]
    assert {"cpu", "memory", "vmstat"} <= set(found.telemetry)


def test_figures_are_the_workloads_and_the_samplers_together(stage: Stage) -> None:
    found = stage.run()
    assert found.scalars["elapsed_s"] == 1.5
    assert any(name.endswith("_share") or "cpu" in name for name in found.scalars), sorted(found.scalars)


def test_nothing_of_a_trial_stays_at_the_place(stage: Stage) -> None:
    stage.run()
    assert not list((stage.directory / "state" / "work").glob("*"))


def test_the_sampler_has_ended_before_the_data_are_checked(stage: Stage) -> None:
    """A check reads every row: its disk traffic is no part of the trial's."""
    seen: list[bool] = []
    logs = stage.directory / "state" / "work"
    stage.staged.at["drive"] = lambda _drive: seen.append(bool(list(logs.glob("*/out/log/sampler.log"))))
    stage.staged.at["check"] = lambda _: seen.append(bool(list(logs.glob("*/out/log/sampler.log"))))
    stage.run()
    assert seen == [False, True]


def test_what_a_system_is_is_looked_for_once(stage: Stage) -> None:
    stage.run()
    stage.run(planned(1, "b"))
    assert stage.staged.calls.count("identity") == 1


def test_a_program_that_is_replaced_during_the_run_ends_it(stage: Stage) -> None:
    program = stage.directory / "stored"
    program.write_text("old")
    digest = hashlib.sha256(b"old").hexdigest()
    stage.staged.found = Identity(version="7", sha256=digest, facts={"binary": str(program)})
    assert stage.run().system_facts["sha256"] == digest
    program.write_text("new")
    with pytest.raises(PlaceError, match="stored was replaced during the run"):
        stage.run(planned(1, "b"))
    assert stage.committed == ["all.b01.a"]


def steps(directory: Path) -> Effect:
    """One file per phase that holds `old` and is set to `new`."""
    phases = ("before_ramp_up", "place", "after_server", "before_server")  # the order of phases is not that of steps
    for phase in phases:
        (directory / phase).write_text("old\n")
    return Effect(
        steps=tuple(
            (phase, write_file(str(directory / phase), "new", name=phase, normalise="trim")) for phase in phases
        )
    )


def test_settings_are_in_effect_from_their_phase_on_and_undone_at_the_end(stage: Stage) -> None:
    stage.effect(steps(stage.directory))
    seen: dict[str, set[str]] = {}

    def look(name: str) -> Callable[[Any], None]:
        phases = ("place", "before_server", "after_server", "before_ramp_up")

        def note(_: Any) -> None:
            seen[name] = {phase for phase in phases if (stage.directory / phase).read_text().strip() == "new"}

        return note

    for name in ("start", "drive", "stop"):
        stage.staged.at[name] = look(name)
    found = stage.run()
    assert seen["start"] == {"place", "before_server"}
    assert seen["drive"] == seen["stop"] == {"place", "before_server", "after_server", "before_ramp_up"}
    assert {(stage.directory / phase).read_text() for phase in seen["drive"]} == {"old\n"}
    assert [(each.name, each.asked, (each.before or "").strip(), each.read_back) for each in found.effective] == [
        (phase, "new", "old", "new") for phase in ("place", "before_server", "after_server", "before_ramp_up")
    ]


def test_a_setting_that_is_refused_ends_the_run_with_the_others_undone(stage: Stage) -> None:
    good = write_file(str(stage.directory / "good"), "new", name="good", normalise="trim")
    bad = write_file(str(stage.directory / "no" / "such"), "new", name="bad", normalise="trim")
    (stage.directory / "good").write_text("old\n")
    stage.effect(Effect(steps=(("place", good), ("after_server", bad))))
    with pytest.raises(PlaceError, match="setting bad is not in effect"):
        stage.run()
    assert (stage.directory / "good").read_text() == "old\n"
    assert stage.staged.calls == ["identity", "start", "stop"]
    assert stage.committed == []


def test_a_setting_that_another_process_changed_makes_the_trial_doubtful(stage: Stage) -> None:
    stage.effect(steps(stage.directory))
    stage.staged.at["drive"] = lambda _: (stage.directory / "place").write_text("meddled\n")
    found = stage.run()
    assert not found.valid
    assert found.invalid_reason.startswith("changed by another process during the trial: ")
    assert "place" in found.invalid_reason


def test_a_system_that_never_started_is_the_studys_fault_and_one_that_has_an_accident(stage: Stage) -> None:
    stage.staged.start_error = "no such option"
    with pytest.raises(SystemStartError, match="no such option"):
        stage.run(has_started=False)
    assert stage.committed == []
    found = stage.run(has_started=True)
    assert (found.valid, found.invalid_reason, found.window) == (False, "no such option", None)
    assert found.scalars == {}
    assert stage.committed == ["all.b01.a"]


def test_a_load_that_fails_costs_the_trial_and_not_the_run(stage: Stage) -> None:
    stage.staged.drive_error = "connection refused"
    found = stage.run()
    assert found.invalid_reason == "the load failed: connection refused"
    assert stage.staged.calls == ["identity", "start", "drive", "stop"], "broken data are not worth a check"
    assert found.window is None


def test_a_load_that_doubts_itself_is_kept_with_its_figures(stage: Stage) -> None:
    stage.staged.invalid = "3 connections were lost"
    found = stage.run()
    assert (found.valid, found.invalid_reason) == (False, "3 connections were lost")
    assert found.scalars["elapsed_s"] == 1.5
    assert "check" not in stage.staged.calls


def test_a_violated_condition_makes_the_trial_invalid_and_is_named(stage: Stage) -> None:
    stage.staged.checks = [WHOLE, BROKEN.model_copy(update={"name": "3.3.2.1"})]
    found = stage.run()
    assert found.invalid_reason == "consistency conditions violated: 3.3.2.1"
    assert len(found.checks) == 2


def test_a_check_that_cannot_be_made_makes_the_trial_invalid(stage: Stage) -> None:
    stage.staged.check_error = "no answer"
    assert stage.run().invalid_reason == "the check failed: no answer"


def test_data_are_checked_as_often_as_the_workload_asks(stage: Stage) -> None:
    def checked(when: str) -> int:
        stage.staged.when, stage.staged.calls = when, []
        for block, arm in ((1, "a"), (2, "a"), (1, "b"), (2, "b")):
            stage.run(planned(block, arm).model_copy(update={"id": f"{when}.{block}.{arm}"}))
        return stage.staged.calls.count("check")

    assert checked("never") == 0
    assert checked("every_trial") == 4
    stage.runner.checked.clear()
    assert checked("once_per_cell") == 2, "an arm may be what breaks the data"


def test_a_check_that_found_something_is_made_again(stage: Stage) -> None:
    stage.staged.when, stage.staged.checks = "once_per_cell", [BROKEN]
    stage.run()
    stage.staged.checks = [WHOLE]
    stage.run(planned(2, "a"))
    stage.run(planned(3, "a"))
    assert stage.staged.calls.count("check") == 2


def test_a_server_that_ended_by_itself_makes_the_trial_invalid(stage: Stage) -> None:
    def dying(place: OpenPlace) -> Any:
        process = place.agent.spawn("server", ["sh", "-c", "exit 3"])
        process.wait(60)
        return process

    stage.staged.process = dying
    found = stage.run()
    assert found.invalid_reason == "the server ended during the trial (exit code 3)"


def test_figures_that_cannot_be_computed_make_the_trial_invalid_and_end_no_run(stage: Stage) -> None:
    def damaged() -> dict[str, float]:
        raise RecordError("latency.hlog is cut", hint="none")

    stage.staged.scalars = damaged
    found = stage.run()
    assert found.invalid_reason == "its figures cannot be computed: latency.hlog is cut"
    assert found.scalars == {}
    assert found.window is not None


@pytest.mark.parametrize(
    ("kind", "write", "figure"),
    [
        ("hammerdb", printed.hammerdb, "nopm"),
        ("sysbench", printed.sysbench, "total_s"),
        ("fio", printed.fio, "iops"),
        ("pgbench", pgbench.write, "connecting_ms"),
    ],
)
def test_what_only_the_reader_of_a_programs_output_finds_wrong_makes_the_trial_invalid(
    stage: Stage, *, kind: str, write: Callable[[Path], None], figure: str
) -> None:
    workload = pgbench.RATED if kind == "pgbench" else workload_of(Section({kind: dict(WORKLOADS[kind].example)}))
    stage.staged.contradictions = workload.contradictions
    stage.staged.at["drive"] = lambda drive: write(Path(drive.directory))
    assert stage.run().invalid_reason == ""
    stage.staged.at["drive"] = lambda drive: printed.falsify(write, Path(drive.directory), figure)
    found = stage.run(planned(2, "a"))
    assert found.invalid_reason.startswith(f"its files disagree: result.json: {figure} is 1, but ")
    assert found.scalars["elapsed_s"] == 1.5, "its figures stay"


def test_files_that_disagree_are_named_beside_another_reason(stage: Stage) -> None:
    stage.staged.invalid = "no transaction ended"
    stage.staged.contradictions = lambda _directory: ["one says 3", "the other 4"]
    found = stage.run()
    assert found.invalid_reason == "no transaction ended; its files disagree: one says 3; the other 4"


@pytest.mark.parametrize("error", [FileNotFoundError("log/load.log"), ValueError("cut"), KeyError("clock")])
def test_files_that_cannot_be_compared_make_the_trial_invalid_and_end_no_run(stage: Stage, error: Exception) -> None:
    def damaged(_directory: Path) -> list[str]:
        raise error

    stage.staged.contradictions = damaged
    found = stage.run()
    assert found.invalid_reason == f"its figures cannot be computed: cannot compare the files: {error!r}"


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_figure_that_is_no_number_is_left_out_and_named(stage: Stage, value: float) -> None:
    stage.staged.scalars = lambda: {"elapsed_s": 1.0, "odd": value}
    found = stage.run()
    assert found.invalid_reason == f"metric odd is {value}, which is not a number"
    assert found.scalars["elapsed_s"] == 1.0
    assert "odd" not in found.scalars


def test_variables_reach_the_server_and_the_load_only_where_it_is_the_system(stage: Stage) -> None:
    stage.effect(Effect(environment={"LD_PRELOAD": "x.so"}))
    stage.run()
    stage.staged.process = lambda place: place.agent.spawn("server", ["sleep", "600"])
    stage.run(planned(2, "a"))
    assert [launch.environment for launch in stage.staged.launches] == [{"LD_PRELOAD": "x.so"}] * 2
    assert [drive.environment for drive in stage.staged.drives] == [{"LD_PRELOAD": "x.so"}, {}]


def test_every_trial_drives_with_its_own_seed_and_directories(stage: Stage) -> None:
    stage.run(planned(1, "a"))
    stage.run(planned(2, "b"))
    first, second = stage.staged.drives
    assert (first.seed, second.seed) == (1, 2)
    assert first.directory != second.directory
    assert first.directory.name == "out"
    assert first.work_directory.parent == first.directory.parent


def test_an_embedded_system_takes_the_servers_processors_to_its_load(stage: Stage) -> None:
    stage.staged.embedded = True
    stage.effect(Effect(server_processors=(0,)))
    stage.run()
    stage.effect(Effect(client_processors=(1,)))
    stage.run(planned(2, "a"))
    stage.effect(Effect(server_processors=(0,), client_processors=(0,)))
    stage.run(planned(3, "a"))
    assert [drive.processors for drive in stage.staged.drives] == [(0,), (1,), (0,)]


def test_a_servers_processors_are_read_back(stage: Stage) -> None:
    stage.effect(Effect(server_processors=(0,), client_processors=(0,)))
    stage.staged.process = lambda place: place.agent.spawn("server", ["sleep", "600"], processors=[0])
    found = stage.run()
    (affinity,) = [each for each in found.effective if each.name == "affinity.server"]
    assert (affinity.asked, affinity.read_back) == ("0", "0")


@pytest.mark.skipif(len(os.sched_getaffinity(0)) == 1, reason="needs two processors")
def test_a_server_on_other_processors_than_asked_is_not_what_was_asked(stage: Stage) -> None:
    stage.effect(Effect(server_processors=(0,), client_processors=(0,)))
    stage.staged.process = lambda place: place.agent.spawn("server", ["sleep", "600"])
    with pytest.raises(PlaceError, match=r"the server may use processors 0[-,].*, asked were \(0,\)"):
        stage.run()


def group(directory: Path, name: str) -> str:
    """What looks like a control group to who joins it, and keeps nobody."""
    made = directory / name
    made.mkdir()
    (made / "cgroup.procs").touch()
    return str(made)


def test_a_server_outside_of_its_groups_is_not_what_was_asked(stage: Stage) -> None:
    mine = group(stage.directory, "memory")
    stage.effect(Effect(server_groups=(mine,)))
    stage.staged.process = lambda place: place.agent.spawn("server", ["sleep", "600"], groups=[mine])
    with pytest.raises(PlaceError, match=rf"not in the control groups that its limits are set in: \['{mine}'\]"):
        stage.run()
    assert stage.staged.launches[-1].groups == (mine,)


def test_groups_go_to_their_side_and_to_the_load_where_it_is_the_system(stage: Stage) -> None:
    server, client = (group(stage.directory, name) for name in ("server", "client"))
    stage.effect(Effect(server_groups=(server,), client_groups=(client,)))
    stage.run()
    assert [launch.groups for launch in stage.staged.launches] == [(server,)]
    stage.staged.embedded = True
    stage.effect(Effect(server_groups=(server,)))
    stage.run(planned(2, "a"))
    assert [drive.groups for drive in stage.staged.drives] == [(client,), (server,)]


def test_data_and_the_loads_files_lie_where_a_setting_says(stage: Stage) -> None:
    there = stage.directory / "storage"
    mount = write_file(str(stage.directory / "mounted"), "yes", name="mount", normalise="trim")
    (stage.directory / "mounted").write_text("no\n")
    stage.effect(Effect(steps=(("place", mount),), data_directory=PurePosixPath(there / "data")))
    before: list[bool] = []
    stage.staged.at["identity"] = lambda _: before.append((there / "data").is_dir())
    stage.run()
    assert before == [True], "prepared data come when their place is there"
    assert stage.staged.launches[-1].data_directory == PurePosixPath(there / "data")
    assert stage.staged.drives[-1].work_directory == PurePosixPath(there / "work")


def test_a_lost_stream_costs_the_trial_its_window_and_goes_first(stage: Stage) -> None:
    def lose(_drive: Any) -> None:
        stage.runner.place.agent._stream.lose("cut on purpose")

    stage.staged.at["drive"] = lose
    found = stage.run()
    assert found.invalid_reason.startswith(STREAM_LOST)
    assert "cut on purpose" in found.invalid_reason
    assert (found.window, found.scalars) == (None, {})
    assert stage.committed == ["all.b01.a"]


def test_a_bug_leaves_nothing_behind_that_looks_like_a_trial(stage: Stage) -> None:
    def bug(_drive: Any) -> None:
        raise ZeroDivisionError

    stage.effect(steps(stage.directory))
    stage.staged.at["drive"] = bug
    with pytest.raises(ZeroDivisionError):
        stage.run()
    assert stage.staged.calls[-1] == "stop"
    assert (stage.directory / "place").read_text() == "old\n"
    assert list((stage.writer.directory / "trials").iterdir()) == []


DIAGNOSTIC = planned(1, "a").model_copy(update={"id": "all.d01.a", "diagnostic": True})


def findings(stage: Stage, trial: str) -> list[probes.ProbeFinding]:
    return probes.read(stage.writer.directory / "trials" / trial)


def running(stage: Stage) -> list[str]:
    """Probes that run now, by the agent's children."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0") if entry.name.isdigit() else []
            inside = bool(words) and str(stage.directory) in str((entry / "cwd").readlink())
        except OSError:
            continue
        if inside and words[:2] == [b"sleep", b"600"]:
            found.append(entry.name)
    return found


def test_probes_run_beside_the_drive_of_a_diagnostic_trial_alone(stage: Stage) -> None:
    seen: list[int] = []
    for name in ("start", "drive", "check"):
        stage.staged.at[name] = lambda _: seen.append(len(running(stage)))
    stage.run(planned(1, "a"))
    assert seen == [0, 0, 0]
    assert findings(stage, "all.b01.a") == []
    found = stage.run(DIAGNOSTIC)
    assert seen[3:] == [0, 1, 0]
    assert found.valid
    assert [each.label for each in findings(stage, "all.d01.a")] == ["command sleep 600"]
    assert found.window is not None
    (ran,) = findings(stage, "all.d01.a")
    assert ran.seconds is not None
    assert ran.seconds >= (found.window.end_ns - found.window.start_ns) / 1e9, "the whole window is covered"


def test_probes_wait_for_a_window_that_the_load_announces(stage: Stage) -> None:
    stage.staged.announces = True
    seen: list[int] = []

    def ramp_up(drive: Drive) -> None:
        drive.on_progress(RampUpProgress(time_ns=0))
        seen.append(len(running(stage)))
        drive.on_progress(MeasuringProgress(time_ns=1))
        eventually(lambda: running(stage), "the probe never began")

    stage.staged.at["drive"] = ramp_up
    assert stage.run(DIAGNOSTIC).valid
    assert seen == [0]
    assert len(findings(stage, "all.d01.a")) == 1
    assert {"ramp_up", "measuring"} <= {line.progress for line in stage.progress.lines}


def test_a_diagnostic_trial_whose_probes_saw_nothing_of_a_window_is_invalid(stage: Stage) -> None:
    stage.staged.announces = True
    found = stage.run(DIAGNOSTIC)
    assert "never said that it measures" in found.invalid_reason
    stage.monkeypatch.setattr(runner.TrialProbes, "_has_begun", lambda self, _waiting: self._start_all() is None)
    late = stage.run(DIAGNOSTIC.model_copy(update={"id": "all.d02.a"}))
    assert "began after the measured window" in late.invalid_reason


def test_a_broken_probe_makes_its_trial_invalid_after_the_loads_own_reason(stage: Stage) -> None:
    stage.writer.plan.probes[:] = [Probe(command="no-such-program")]
    assert stage.run(DIAGNOSTIC).invalid_reason.startswith("probe command no-such-program: did not start")
    stage.staged.drive_error = "connection refused"
    again = DIAGNOSTIC.model_copy(update={"id": "all.d02.a"})
    assert stage.run(again).invalid_reason == "the load failed: connection refused"


def test_probes_end_with_a_drive_that_breaks(stage: Stage) -> None:
    def bug(_drive: Any) -> None:
        raise ZeroDivisionError

    stage.staged.at["drive"] = bug
    with pytest.raises(ZeroDivisionError):
        stage.run(DIAGNOSTIC)
    assert running(stage) == []


def test_a_trial_that_the_run_cannot_go_on_with_is_not_in_its_record(stage: Stage) -> None:
    """A resume meets what is committed again: another build there would end every one."""

    def refuse(_trial: TrialRecord) -> None:
        raise PlaceError("another build", hint="install the first one")

    stage.runner.accept = refuse
    with pytest.raises(PlaceError, match="another build"):
        stage.run()
    assert stage.committed == []
    assert stage.writer.record().trials == ()


@pytest.mark.parametrize("cause", ["", ", after: no room: a"])
def test_what_cannot_be_undone_ends_the_run_with_the_failure_before_it(stage: Stage, cause: str) -> None:
    def fail(_drive: Any) -> None:
        raise ValueError(cause.removeprefix(", after: "))

    if cause:
        stage.staged.at["drive"] = fail
    undone = stage.runner.place.agent.undo()
    stage.monkeypatch.setattr(
        type(stage.runner.place.agent), "undo", lambda _agent: undone.model_copy(update={"failed": ["swap: busy"]})
    )
    with pytest.raises(PlaceError, match=f"could not be undone: swap: busy{cause}$"):
        stage.run()
