"""What a person sees while a run goes on: lines in a pipe, a bar on a terminal."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from support.records import RESOLVED, planned, tiny_plan, trial_record

from fairtrial.cli.running.progress import ProgressBar, ProgressLines, outcome, progress_for
from fairtrial.protocol import generated as wire
from fairtrial.protocol.progress import ProgressLine
from fairtrial.record.models import Plan
from fairtrial.study.resolved import ResolvedTrial, Section
from fairtrial.words import duration, size
from fairtrial.workloads import WORKLOADS, workload_of

DRIVEN = tuple(name for name, kind in WORKLOADS.items() if kind.throughput)


def console(*, terminal: bool = False) -> Console:
    return Console(file=io.StringIO(), width=60, force_terminal=terminal, color_system=None, legacy_windows=False)


def resolved(workload: str) -> ResolvedTrial:
    """A trial of this workload, as a plan holds it."""
    parameters = workload_of(Section({workload: dict(WORKLOADS[workload].example)})).parameters.model_dump(mode="json")
    return RESOLVED.model_copy(update={"workload": Section({workload: parameters})})


def plan(workload: str) -> Plan:
    return tiny_plan().model_copy(update={"resolved": {"all": dict.fromkeys("ab", resolved(workload))}})


def said(of: Console) -> str:
    assert isinstance(of.file, io.StringIO)
    return of.file.getvalue()


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (0.4, "0 s"), (119.4, "119 s"), (120, "2 min"), (7199, "120 min"), (7200, "2 h 00 min")],
)
def test_durations_are_told_as_precisely_as_they_are_worth(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(("count", "text"), [(0, "0 B"), (1023, "1023 B"), (1 << 20, "1.0 MiB"), (3 << 29, "1.5 GiB")])
def test_sizes_are_told_in_the_largest_unit(count: int, text: str) -> None:
    assert size(count) == text


def test_a_trial_is_told_by_its_throughput_its_time_or_its_fault() -> None:
    record = trial_record(planned(1, "a"))
    assert outcome(record) == "1 s"
    found = {"highest_rate_per_s": 1414.2, "throughput_tpm": 84_000}
    assert outcome(record.model_copy(update={"scalars": found})) == "highest rate 1,414/s"
    assert outcome(record.model_copy(update={"scalars": {}})) == "done"
    assert outcome(trial_record(planned(1, "a"), valid=False)) == "invalid: broken on purpose"


@pytest.mark.parametrize(
    ("workload", "scalars", "text"),
    [
        ("tpcc", {"throughput_tpm": 3412.4, "elapsed_s": 1, "errors": 0.0}, "3,412 transactions/min"),
        ("oltp", {"throughput_tps": 1234.5, "errors": 1.0}, "1,234 transactions/s, 1 error"),
        ("script", {"throughput_tps": 1234.5, "errors": 0.0}, "1,234 transactions/s"),
        ("pgbench", {"throughput_tps": 99.6, "errors": 1200.0}, "100 transactions/s, 1,200 errors"),
        ("sysbench", {"throughput_tps": 99.4, "errors": 2.0}, "99 transactions/s, 2 errors"),
        ("hammerdb", {"throughput_tpm": 7.0, "throughput_nopm": 3.0}, "3 new orders/min"),
        ("fio", {"throughput_iops": 70_000.0}, "70,000 accesses/s"),
        ("file_access", {"throughput_iops": 70_000.0}, "70,000 accesses/s"),
        ("locks", {"acquisitions_per_s": 5e6}, "5,000,000 acquisitions/s"),
    ],
)
def test_a_trial_says_what_its_workload_did_and_what_failed(
    workload: str, scalars: dict[str, float], text: str
) -> None:
    record = trial_record(planned(1, "a")).model_copy(update={"resolved": resolved(workload)})
    assert outcome(record.model_copy(update={"scalars": scalars})) == text


def test_every_workload_but_a_command_has_a_throughput_of_its_own() -> None:
    assert set(WORKLOADS) - set(DRIVEN) == {"command"}
    for workload in DRIVEN:
        record = trial_record(planned(1, "a")).model_copy(update={"resolved": resolved(workload)})
        name = WORKLOADS[workload].throughput
        assert outcome(record.model_copy(update={"scalars": {name: 7.0}})).startswith("7 ")


@pytest.mark.parametrize(
    ("workload", "text"),
    [
        ("tpcc", "3,600 transactions/min"),
        ("oltp", "60 transactions/s"),
        ("script", "60 transactions/s"),
        ("file_access", "60 accesses/s"),
        ("locks", "60 acquisitions/s"),
        ("command", "60/s"),
    ],
)
def test_the_rate_now_is_told_in_the_unit_of_the_workloads_throughput(workload: str, text: str) -> None:
    with progress_for(console(terminal=True), plan(workload)) as progress:
        assert isinstance(progress, ProgressBar)
        progress.trial_started(planned(1, "a"), number=1, total=2, left_s=600)
        progress.load(wire.RateProgress(per_s=60, errors=0))
        assert progress._bar.tasks[0].fields["now"] == f"trial 1/2  all · a  {text}"


def test_a_pipe_gets_one_whole_line_per_trial() -> None:
    into = console()
    with progress_for(into, tiny_plan()) as progress:
        assert isinstance(progress, ProgressLines)
        for number, arm in enumerate("ab", start=1):
            progress.trial_started(planned(1, arm), number=number, total=2, left_s=600 / number)
            progress.phase("drive")
            progress.load(wire.RateProgress(per_s=7, errors=0))
            progress.trial_finished(trial_record(planned(1, arm)))
        progress.note("block 1 of [all] is void: " + "why " * 30)
    first, second, note = said(into).splitlines()
    assert first == "round 1  trial 1/2  all · a  1 s  5 min left"
    assert second == "round 1  trial 2/2  all · b  1 s  0 s left"
    assert note.startswith("block 1 of [all] is void"), "no markup, and no line break in the middle"


def test_a_terminal_gets_a_bar_with_the_rate_now_and_notes_above_it() -> None:
    into = console(terminal=True)
    with progress_for(into, plan("tpcc")) as progress:
        assert isinstance(progress, ProgressBar)
        progress.trial_started(planned(1, "a"), number=1, total=2, left_s=600)
        task = progress._bar.tasks[0]
        assert (task.description, task.completed, task.total) == ("round 1", 0, 2)
        assert task.fields["left"] == "10 min left"
        progress.load(wire.RateProgress(per_s=60, errors=0))
        assert task.fields["now"] == "trial 1/2  all · a  3,600 transactions/min"
        told = wire.LoadingProgress(done=3.0, total=9.0, rows=1_500_000, rows_per_s=50_000.4)
        progress.load(told)
        assert task.fields["now"].endswith("loading 3/9  1,500,000 rows  50,000/s")
        progress.load(told.model_copy(update={"left_s": 300.0}))
        assert task.fields["now"].endswith("50,000/s  5 min left")
        progress.phase("check")
        assert task.fields["now"].endswith("check")
        progress.trial_finished(trial_record(planned(1, "a"), valid=False))
        assert task.completed == 1
    assert "all.b01.a is invalid: broken on purpose" in said(into)
    assert "round 1" in said(into)


def test_a_terminal_follows_a_search_from_probe_to_probe() -> None:
    into = console(terminal=True)
    judged = wire.ProbedProgress(
        probe=3, rate_per_s=2000.0, percentile="p99", latency_ns=31_400_000, met=False, missed_per_s=2000.0
    )
    unended = wire.ProbedProgress(probe=4, rate_per_s=1414.2, percentile="p50", met=True, met_per_s=1000.0)
    lines: list[ProgressLine] = [
        wire.ProbingProgress(probe=3, rate_per_s=2000.0),
        wire.RateProgress(per_s=1900.0, errors=0),
        judged,
        wire.ProbingProgress(probe=4, rate_per_s=1414.2),
        unended,
    ]
    with progress_for(into, plan("tpcc")) as progress:
        assert isinstance(progress, ProgressBar)
        progress.trial_started(planned(1, "a"), number=1, total=2, left_s=600)
        progress.phase("drive")
        task = progress._bar.tasks[0]
        seen = []
        for line in lines:
            progress.load(line)
            seen.append(task.fields["now"].removeprefix("trial 1/2  all · a  "))
        verdict = "probe 3 at 2,000/s missed (p99 31.4 ms), between ? and 2,000/s"
        assert seen == [
            "probe 3 at 2,000/s",
            "probe 3 at 2,000/s  114,000 transactions/min",
            verdict,
            f"probe 4 at 1,414/s  {verdict}",
            "probe 4 at 1,414/s met (no request completed), between 1,000/s and ?",
        ]
        progress.phase("check")
        progress.load(wire.RateProgress(per_s=60, errors=0))
        now = "trial 1/2  all · a  3,600 transactions/min"
        assert task.fields["now"] == now, "the next drive is no part of the search"


def test_a_trial_with_probes_is_in_no_round() -> None:
    probed = planned(1, "a").model_copy(update={"diagnostic": True})
    for terminal in (False, True):
        into = console(terminal=terminal)
        with progress_for(into, tiny_plan()) as progress:
            progress.trial_started(probed, number=3, total=4, left_s=1)
            progress.trial_finished(trial_record(probed))
        assert "diagnostic" in said(into)
        assert "round" not in said(into)
