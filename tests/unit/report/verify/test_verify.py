"""What a record and its report say follows from the raw files, or is named."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Callable
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from support.records import planned, tiny_plan, trial_record

from fairtrial import completeness, verify
from fairtrial.analyse.sequential import follow
from fairtrial.errors import RecordError
from fairtrial.record import Record, consistency, create, read
from fairtrial.record.events import Event, RunFinished
from fairtrial.record.models import BlockAdded, BlockVoided, LookTaken
from fairtrial.report import document
from fairtrial.report.analysing import analysed
from fairtrial.report.scene import Scene

TRIAL = "0000-low-delete-b0"


@pytest.fixture(scope="module")
def reported(record: Record, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A record with its report."""
    directory = tmp_path_factory.mktemp("reported") / "run"
    shutil.copytree(record.directory, directory)
    _report(read(directory), contrast="journal")
    return directory


@pytest.fixture
def copy(reported: Path, tmp_path: Path) -> Path:
    """The same to damage."""
    return shutil.copytree(reported, tmp_path / "run")


def _report(record: Record, *, contrast: str) -> None:
    """Its report.json alone."""
    analysis = analysed(record, contrast=contrast)
    own = "" if contrast == record.plan.arm else f"by-{contrast}"
    path = record.directory / "report" / own / verify.REPORT
    path.parent.mkdir(exist_ok=True)
    path.write_text(document.render(Scene(record, analysis)), encoding="utf-8")


def _changed(path: Path, change: Callable[[Any], None]) -> None:
    content = json.loads(path.read_bytes())
    change(content)
    path.write_text(json.dumps(content), encoding="utf-8")


def test_a_record_as_written_has_no_mismatch(copy: Path) -> None:
    assert verify.recompute(read(copy)) == []


def test_many_trials_are_recomputed_side_by_side_with_the_same_outcome(
    copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _changed(copy / "trials" / TRIAL / "trial.json", lambda trial: trial["scalars"].update(elapsed_s=1e9))
    (copy / "trials" / TRIAL / "result.json").write_text("{")
    alone = verify.recompute(read(copy))
    monkeypatch.setattr(verify, "FEWEST_SHARED", 0)
    assert verify.recompute(read(copy)) == alone != []


def test_no_module_of_a_record_is_imported(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("multiprocessing", "signal"):
        (copy / f"{name}.py").write_text(
            "from pathlib import Path\nPath(__file__ + '.ran').touch()\nraise SystemExit\n"
        )
    monkeypatch.chdir(copy)
    monkeypatch.setattr(verify, "FEWEST_SHARED", 0)
    monkeypatch.setattr("os.sched_getaffinity", lambda _process: {0, 1})
    variables = dict(os.environ)
    with contextlib.suppress(BrokenProcessPool):
        assert verify.recompute(read(copy)) == []
    assert [path.name for path in copy.glob("*.ran")] == []
    assert dict(os.environ) == variables


@pytest.mark.parametrize("reason", ["a thunderstorm", "0014-high-delete-b3 is invalid"])
def test_a_void_block_whose_reason_is_not_its_invalid_trial_is_found_without_a_report_too(
    copy: Path, reason: str
) -> None:
    shutil.rmtree(copy / "report")
    journal = copy / "journal.jsonl"
    (given,) = [event.reason for event in read(copy).voided]
    journal.write_text(journal.read_text(encoding="utf-8").replace(given, reason), encoding="utf-8")
    found = verify.recompute(read(copy))
    assert found == [f"journal.jsonl: block 3 of high is void ({reason}), but 0015-high-wal-b3 is what was invalid"]


def test_a_shift_curve_that_was_flattered_is_named_to_its_point(copy: Path) -> None:
    def flatter(report: Any) -> None:
        report["latency_shift"][1]["points"][3]["high"] = 0.99

    _changed(copy / "report" / verify.REPORT, flatter)
    (found,) = verify.recompute(read(copy))
    assert found.startswith("report/report.json: latency_shift[1].points[3].high is 0.99 but recomputed 1.")


def test_a_trial_called_steady_by_hand_is_named(copy: Path) -> None:
    def calm(report: Any) -> None:
        report["analysis"]["steadiness"][2]["drift"] = 0.0

    _changed(copy / "report" / verify.REPORT, calm)
    (found,) = verify.recompute(read(copy))
    assert found.startswith("report/report.json: steadiness[2].drift is 0.0 but recomputed ")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("finished", False),
        ("invalid", []),
        ("checks", [["made up", 999, 0]]),
        ("differences", [["workload.x", {"wal": "1"}]]),
        ("design", {"blocks": 100}),
        ("size", "full"),
        ("places", []),
    ],
)
def test_what_a_report_says_of_its_record_is_compared_as_well(copy: Path, field: str, value: object) -> None:
    _changed(copy / "report" / verify.REPORT, lambda report: report["record"].update({field: value}))
    found = verify.recompute(read(copy))
    assert found
    assert all(text.startswith(f"report/report.json: record.{field}") for text in found), found


def test_a_scalar_that_was_improved_by_hand_is_named_in_trial_and_report(copy: Path) -> None:
    def improve(trial: Any) -> None:
        trial["scalars"]["throughput_tpm"] *= 1.001

    _changed(copy / "trials" / TRIAL / "trial.json", improve)
    (found,) = verify.recompute(read(copy))
    assert found.startswith(f"trials/{TRIAL}/trial.json: throughput_tpm is ")


def test_a_scalar_that_is_missing_or_made_up_is_named(copy: Path) -> None:
    def swap(trial: Any) -> None:
        trial["scalars"]["made_up"] = trial["scalars"].pop("throughput_nopm")

    _changed(copy / "trials" / TRIAL / "trial.json", swap)
    made_up, missing = sorted(verify.recompute(read(copy)))
    assert "made_up is " in made_up
    assert "but recomputed missing" in made_up
    assert "throughput_nopm is missing but recomputed" in missing


def test_a_verdict_edited_in_the_report_is_named(copy: Path) -> None:
    def flatter(stored: Any) -> None:
        stored["analysis"]["cells"][1]["comparisons"]["throughput_tpm"][0]["verdict"] = "faster"

    _changed(copy / "report" / "report.json", flatter)
    (found,) = verify.recompute(read(copy))
    assert found.startswith("report/report.json: cells[1].comparisons.throughput_tpm[0].verdict is 'faster'")


def test_a_changed_raw_file_shows_in_its_trial_and_in_the_report(copy: Path) -> None:
    def slow_down(result: Any) -> None:
        result["transactions"]["payment"]["committed"] //= 2

    _changed(copy / "trials" / TRIAL / "result.json", slow_down)
    found = verify.recompute(read(copy))
    assert any(text.startswith(f"trials/{TRIAL}/trial.json: throughput_tpm") for text in found)
    assert any(text.startswith("report/report.json: cells[0].summaries.throughput_tpm") for text in found)


def test_files_that_disagree_are_named_unless_their_trial_says_so_itself(copy: Path) -> None:
    def disagreeing() -> list[str]:
        found = [text for text in verify.recompute(read(copy)) if text.startswith("trials/")]
        return [text for text in found if "result.json says" in text]

    def lose_one(result: Any) -> None:
        result["transactions"]["payment"]["committed"] -= 1

    _changed(copy / "trials" / TRIAL / "result.json", lose_one)
    found = disagreeing()
    assert found
    reason = "its files disagree: " + "; ".join(text.removeprefix(f"trials/{TRIAL}/") for text in found)
    _changed(copy / "trials" / TRIAL / "trial.json", lambda trial: trial.update(valid=False, invalid_reason=reason))
    assert disagreeing() == []


def test_a_damaged_raw_file_is_one_finding_not_a_crash(copy: Path) -> None:
    log = copy / "trials" / TRIAL / "latency.hlog"
    log.write_bytes(log.read_bytes()[:5000])
    (found,) = verify.recompute(read(copy))
    assert "latency.hlog cannot be decoded" in found


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{}",
        "[]",
        '{"format_version": 99, "analysis": {"contrast": "journal"}}',
        f'{{"format_version": {document.REPORT_FORMAT_VERSION}, "analysis": {{"contrast": "journal"}}, "record": []}}',
    ],
)
def test_a_report_that_is_none_is_a_finding(copy: Path, content: str) -> None:
    (copy / "report" / "report.json").write_text(content, encoding="utf-8")
    (found,) = verify.recompute(read(copy))
    assert found.startswith("report/report.json: ")


def test_a_record_without_a_report_is_checked_by_its_trials(copy: Path) -> None:
    shutil.rmtree(copy / "report")
    assert verify.recompute(read(copy)) == []


def test_a_report_of_another_contrast_is_recomputed_as_such(copy: Path) -> None:
    found = read(copy)
    _report(found, contrast="users")
    assert verify.recompute(found) == []
    _changed(copy / "report" / "by-users" / verify.REPORT, lambda report: report["analysis"].update(margin=0.5))
    assert verify.recompute(found) == ["report/by-users/report.json: margin is 0.5 but recomputed 0.02"]


@pytest.mark.parametrize("contrast", [["x"], {"a": 1}, "nonsense", "users", None])
@pytest.mark.parametrize("directory", ["report", "report/by-nonsense"])
def test_a_report_that_compares_another_factor_than_its_directory_says_is_a_finding_among_others(
    copy: Path, *, directory: str, contrast: Any
) -> None:
    path = copy / directory / verify.REPORT
    path.parent.mkdir(exist_ok=True)
    path.write_bytes((copy / "report" / verify.REPORT).read_bytes())
    _changed(path, lambda report: report["analysis"].update(contrast=contrast))
    _changed(copy / "trials" / TRIAL / "trial.json", lambda trial: trial["scalars"].update(elapsed_s=1e9))
    found = verify.recompute(read(copy))
    assert [each for each in found if each.startswith(f"{directory}/{verify.REPORT}: compares {contrast!r}: expected")]
    assert [each for each in found if each.startswith(f"trials/{TRIAL}/trial.json: elapsed_s is")]


def sequential_run(directory: Path, *, reason: str | None, looks: range = range(1, 4), finished: bool) -> list[str]:
    """Mismatches of a run of 3 of 8 blocks that stopped for a reason, or did not look; without those of its trials."""
    base = tiny_plan()
    design = base.design.model_copy(update={"blocks": 8, "stop": "sequential", "min_blocks": 3})
    trials = [planned(block, arm) for block in range(1, 9) for arm in "ab"]
    plan = base.model_copy(update={"design": design, "trials": trials})
    with closing(create(directory, plan=plan, sources={"study.yaml": "study: tiny\n"})) as writer:
        for trial in trials[:6]:
            elapsed_s = trial.block / 1000 + (1 if trial.arm == "a" else 2)
            writer.begin(trial.id)
            writer.commit(trial_record(trial).model_copy(update={"scalars": {"elapsed_s": elapsed_s}}))
        run = follow(plan, writer.record().committed)
        assert run is not None
        for round_ in looks:
            (look,) = run.looks[round_ - 1]
            if look.decision == "stop" and reason is None:
                break
            noted = look.model_copy(update={"reason": reason}) if look.decision == "stop" else look
            writer.append(LookTaken(round=round_, decision=look.decision, cells=[noted]))
        if finished:
            writer.append(RunFinished())
    return [text for text in verify.recompute(read(directory)) if not text.startswith("trials/")]


@pytest.mark.parametrize(
    ("reason", "mismatches"),
    [
        ("difference", []),
        ("futility", ["cell all stopped with 3 blocks (futility) but recomputed 3 blocks (difference)"]),
        (None, []),  # killed before it could look
    ],
)
def test_a_decision_to_stop_follows_from_the_trials(tmp_path: Path, reason: str | None, mismatches: list[str]) -> None:
    found = sequential_run(tmp_path / "run", reason=reason, finished=False)
    assert found == [f"journal.jsonl: {text}" for text in mismatches]


@pytest.mark.parametrize(
    ("reason", "looks", "mismatches"),
    [
        ("difference", range(1, 4), []),
        (
            None,
            range(1, 4),
            [
                "run_finished, but all.b04.a and 9 other trials are still to run",
                "run_finished, but no look after round 3",
            ],
        ),
        (
            None,
            range(0),
            [
                "run_finished, but all.b04.a and 9 other trials are still to run",
                "run_finished, but no look after round 1",
            ],
        ),
        ("difference", range(3, 4), ["run_finished, but no look after round 1"]),
    ],
)
def test_a_run_that_stops_early_is_finished_by_its_looks_alone(
    tmp_path: Path, reason: str | None, looks: range, *, mismatches: list[str]
) -> None:
    found = sequential_run(tmp_path / "run", reason=reason, looks=looks, finished=True)
    assert found == [f"journal.jsonl: {text}" for text in mismatches]


def finished_run(directory: Path, *events: Event, invalid: str = "") -> list[str]:
    """What the journal of a tiny run with all its trials, and these events, lacks."""
    with closing(create(directory, plan=tiny_plan(), sources={"study.yaml": "study: tiny\n"})) as writer:
        for trial in tiny_plan().trials:
            writer.begin(trial.id)
            writer.commit(trial_record(trial, valid=trial.id != invalid))
        for event in (*events, RunFinished()):
            writer.append(event)
    return completeness.unfinished(read(directory))


def test_a_block_that_lost_a_trial_is_void_and_replaced_before_a_run_is_finished(tmp_path: Path) -> None:
    void = BlockVoided(cell="all", block=1, reason="all.b01.a is invalid")
    again = [planned(3, "a"), planned(3, "b")]
    added = BlockAdded(cell="all", block=3, round=3, replaces=1, trials=again)
    stop = LookTaken(round=1, decision="stop")
    assert finished_run(tmp_path / "whole") == []
    found = [
        *finished_run(tmp_path / "kept", invalid="all.b01.a"),
        *finished_run(tmp_path / "void", void, invalid="all.b01.a"),
        *finished_run(tmp_path / "added", void, added, invalid="all.b01.a"),
        *finished_run(tmp_path / "looked", stop),
    ]
    assert found == [
        "journal.jsonl: run_finished, but block 1 of all is not void: all.b01.a is invalid",
        "journal.jsonl: run_finished, but nothing replaces block 1 of all, which is void",
        "journal.jsonl: run_finished, but all.b03.a and 1 other trial are still to run",
        "journal.jsonl: a look was taken, but the plan runs all blocks",
    ]


def test_a_round_far_beyond_all_others_is_refused(tmp_path: Path) -> None:
    added = [planned(3, arm, round_=1 << 50) for arm in "ab"]
    with pytest.raises(RecordError, match="expected at most 6 rounds, as there are so many trials, found more"):
        consistency.require_whole(tiny_plan(), [*tiny_plan().trials, *added], tmp_path)
    consistency.require_whole(tiny_plan(), tiny_plan().trials, tmp_path)
