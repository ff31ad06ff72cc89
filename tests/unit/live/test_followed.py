"""A run's directory read while it grows, and while what stands in it cannot be believed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.records import planned, tiny_plan, trial_record

from fairtrial import record
from fairtrial.errors import RecordError
from fairtrial.live import outline
from fairtrial.live.activity import THROUGHPUT
from fairtrial.live.followed import FollowedRun
from fairtrial.live.words import journalled
from fairtrial.protocol.generated import MeasuringProgress, RateProgress
from fairtrial.protocol.progress import ProgressLine
from fairtrial.record import Writer, live
from fairtrial.record.events import BlockLeased, FarmServed, HostLeft, RunFinished, RunInterrupted
from fairtrial.record.journal import NAME, lines
from fairtrial.record.live import Live, LiveTrial
from fairtrial.record.models import BlockAdded, BlockVoided, Cell, CellLook, Extended, LookTaken, TrialStarted
from fairtrial.report.analysing import analysed


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[Writer]:
    found = record.create(tmp_path / "one", plan=tiny_plan(), sources={"study.yaml": "study: tiny\n"})
    yield found
    found.close()


def commit(writer: Writer, *trials: str) -> None:
    for trial in writer.plan.trials:
        if trial.id in trials:
            writer.begin(trial.id)
            writer.commit(trial_record(trial))


def test_a_damaged_trial_is_said_every_time_and_nothing_is_lost_once_it_is_whole(writer: Writer) -> None:
    commit(writer, "all.b01.a", "all.b01.b")
    writer.append(RunFinished())
    path = writer.directory / "trials" / "all.b01.b" / "trial.json"
    whole = path.read_bytes()
    path.write_bytes(whole[:100])
    run = FollowedRun(writer.directory)
    for _again in range(2):
        with pytest.raises(RecordError, match=r"trial\.json cannot be read"):
            run.refresh()
    path.write_bytes(whole)
    run.refresh()
    assert run.state == "finished"
    assert list(run.trials) == ["all.b01.a", "all.b01.b"]


def test_numbers_of_trials_do_not_depend_on_when_somebody_began_to_look(writer: Writer) -> None:
    early = FollowedRun(writer.directory)
    writer.append(BlockAdded(cell="all", block=9, round=2, replaces=1, trials=[planned(9, arm) for arm in "ab"]))
    writer.append(Extended(round=2, blocks=1, trials=[planned(3, arm) for arm in "ab"]))
    late = FollowedRun(writer.directory)
    for run in (early, late):
        run.refresh()
    assert list(early.slots.planned) == list(late.slots.planned)
    assert early.plan == late.plan
    assert early.plan.design.blocks == tiny_plan().design.blocks + 1


def runs_here(writer: Writer, **said: object) -> FollowedRun:
    live.write(writer.directory, Live.model_validate({"process": os.getpid(), **said}))
    run = FollowedRun(writer.directory)
    run.refresh()
    assert run.state == "running"
    return run


def test_logs_are_believed_where_the_runs_own_user_has_them(writer: Writer, tmp_path: Path) -> None:
    own, link = tmp_path / "own", tmp_path / "link"
    own.mkdir()
    link.symlink_to(own)
    assert runs_here(writer, logs=str(own)).logs == own
    assert runs_here(writer, logs=str(link)).logs is None
    assert runs_here(writer, logs=str(tmp_path / "nothing")).logs is None
    if os.geteuid() == 0:
        os.chown(own, 65534, -1)
        assert runs_here(writer, logs=str(own)).logs is None


def test_on_a_farm_no_trial_that_has_ended_is_shown_as_running(writer: Writer) -> None:
    commit(writer, "all.b01.a")
    writer.append(BlockLeased(cell="all", block=2, host="h1", trials=["all.b02.a", "all.b02.b"]))
    ended = LiveTrial(id="all.b01.a", number=1, total=4, left_s=9, began="2026-01-01T00:00:00.000Z")
    now = outline.now(runs_here(writer, trial=ended.model_dump()))
    assert (now.where, now.number, now.done) == ("", None, 1)
    assert now.sentence.endswith("Hosts are running 2 trials.")


def test_looks_leave_out_what_a_farm_brought_back_after_its_cell_was_stopped(writer: Writer) -> None:
    commit(writer, "all.b01.a", "all.b01.b")
    stop = CellLook(cell="all", blocks=1, information=1.0, decision="stop", reason="difference")
    writer.append(LookTaken(round=1, decision="continue", cells=[stop]))
    commit(writer, "all.b02.a", "all.b02.b")
    run = FollowedRun(writer.directory)
    run.refresh()
    assert [look.blocks for cell in run.looks() for look in cell.looks] == [1]


def followed(writer: Writer) -> FollowedRun:
    run = FollowedRun(writer.directory)
    run.refresh()
    return run


def test_blocks_that_a_farm_lost_are_void_as_in_the_report(writer: Writer) -> None:
    writer.append(BlockVoided(cell="all", block=1, reason="h1 lost it: it burned down"))
    found, reported = followed(writer).analysis(), analysed(record.read(writer.directory))
    assert found.counts.blocks_voided == reported.counts.blocks_voided == 1
    assert {doubt.code for doubt in found.doubts} == {doubt.code for doubt in reported.doubts} >= {"voided"}


def test_nothing_runs_once_the_controller_of_a_farm_was_killed(writer: Writer) -> None:
    writer.append(BlockLeased(cell="all", block=1, host="h1", trials=["all.b01.a", "all.b01.b"]))
    run = followed(writer)
    assert run.state == "interrupted"
    assert {slot.fate for slot in run.fates} == {"planned"}


def test_a_trial_that_begins_again_has_nothing_of_its_earlier_attempt(writer: Writer) -> None:
    """As nobody looks in between, all of that is read at once."""
    trial = writer.plan.trials[0]
    run = followed(writer)

    def attempt(began_s: float, *said: ProgressLine) -> tuple[list[float], dict[str, float]]:
        feed = live.Feed(writer.directory)
        feed.begin()
        writer.append(TrialStarted(trial=trial))
        for second, line in enumerate(said):
            feed.say(trial.id, line, at_s=began_s + second)
        run.refresh()
        feed.end()
        assert run.activity is not None
        return list(run.activity.charts[THROUGHPUT].course.seconds), run.activity.marks

    rates = [RateProgress(per_s=100.0, errors=0)] * 2
    assert attempt(1000.0, MeasuringProgress(time_ns=0), *rates) == ([1.0, 2.0], {"measuring": 0.0})
    writer.append(RunInterrupted(reason="stopped by the user"))
    assert attempt(5000.0, *rates) == ([0.0, 1.0], {})


def test_a_pause_of_a_farm_says_what_its_hosts_do_and_its_way_to_go_on_names_the_farm(writer: Writer) -> None:
    assert runs_here(writer, paused=True).slots.leased is False
    writer.append(BlockLeased(cell="all", block=1, host="h1", trials=["all.b01.a", "all.b01.b"]))
    now = outline.now(runs_here(writer, paused=True))
    assert now.state == "paused"
    assert now.sentence == "The run hands out no more blocks. Hosts finish 2 trials, with settings in effect."
    commit(writer, "all.b01.a", "all.b01.b")
    assert "Settings are undone" in outline.now(runs_here(writer, paused=True)).sentence
    writer.append(RunInterrupted(reason="stopped by the user"))
    (writer.directory / live.NAME).unlink()
    assert outline.now(followed(writer)).sentence.endswith("--resume and the --places or --farm that it had")


def test_the_plan_shows_every_trial_also_diagnostic_ones_of_several_cells_and_those_of_one_boot(tmp_path: Path) -> None:
    tiny, cells = tiny_plan(), {name: Cell(name=name, levels={"load": name}) for name in ("low", "high")}
    trials = [
        planned(block, arm, cell=cell).model_copy(update={"id": f"{cell}.b{block:02d}.{arm}{repeat}", "repeat": repeat})
        for block in (1, 2)
        for cell in cells
        for arm in "ab"
        for repeat in (1, 2)
    ]
    probed = [
        planned(1, arm, cell=cell).model_copy(update={"id": f"{cell}.d01.{arm}", "diagnostic": True})
        for cell in cells
        for arm in "ab"
    ]
    update = {
        "cells": [*cells.values()],
        "resolved": dict.fromkeys(cells, tiny.resolved["all"]),
        "trials": trials,
        "diagnostics": probed,
    }
    writer = record.create(tmp_path / "cells", plan=tiny.model_copy(update=update), sources={"study.yaml": ""})
    run = followed(writer)
    writer.close()
    found = outline.grids(run)
    shown = [slot.trial.id for _, grid in found for row in grid.rows for slot in row.slots if slot is not None]
    assert sorted(shown) == sorted(run.slots.planned)
    assert [(name, grid.label) for name, grid in found] == [
        ("low", "low"),
        ("low", "low, trial 2 of each boot"),
        ("high", "high"),
        ("high", "high, trial 2 of each boot"),
        ("", "diagnostic trials, low"),
        ("", "diagnostic trials, high"),
    ]


def test_a_block_of_a_cell_that_the_plan_lacks_is_shown(writer: Writer) -> None:
    trials = [planned(9, arm, cell="lost") for arm in "ab"]
    writer.append(BlockAdded(cell="lost", block=9, round=2, replaces=1, trials=trials))
    assert [cell for cell, _grid in outline.grids(followed(writer))] == ["all", "lost"]


def test_what_happens_on_a_farm_is_an_event_where_the_plan_does_not_show_it(writer: Writer) -> None:
    writer.append(BlockLeased(cell="all", block=2, host="h1", trials=["all.b02.a"]))
    writer.append(FarmServed(host="h1", processor_s=1.0, elapsed_s=2.0))
    writer.append(HostLeft(host="h1", reason="it does not answer"))
    said = [journalled(line) for line in lines(writer.directory / NAME)]
    assert said[-3:] == ["", "", "h1 gets no more blocks: it does not answer"]


def test_a_pipe_in_a_record_without_a_journal_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    os.mkfifo(tmp_path / "one" / "plan.json")
    with pytest.raises(RecordError, match="a pipe, a socket or a device"):
        FollowedRun(tmp_path / "one")


def test_of_many_blocks_those_about_the_last_that_was_begun_are_shown(
    writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outline, "MOST_BLOCKS", 4)
    monkeypatch.setattr(outline, "BLOCKS_AHEAD", 1)
    trials = [planned(block, arm) for block in range(3, 11) for arm in "ab"]
    writer.append(Extended(round=2, blocks=8, trials=trials))
    run = FollowedRun(writer.directory)

    def shown() -> tuple[str, tuple[int, ...], set[int]]:
        run.refresh()
        ((_cell, grid),) = outline.grids(run)
        return grid.label, grid.blocks, {len(row.slots) for row in grid.rows}

    assert shown() == ("all, blocks 1 to 4 of 10", (1, 2, 3, 4), {4})
    for block in range(1, 7):
        for arm in "ab":
            writer.begin(f"all.b{block:02d}.{arm}")
            writer.commit(trial_record(planned(block, arm)))
    assert shown() == ("all, blocks 4 to 7 of 10", (4, 5, 6, 7), {4})
