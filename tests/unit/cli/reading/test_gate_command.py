"""Which run a gate holds against its baseline."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from support.records import kept_unfaithful, planned, tiny_plan, trial_record

from fairtrial import record
from fairtrial.cli.reading import gate
from fairtrial.cli.reading.history import DetectionLevels
from fairtrial.errors import InputError
from fairtrial.record.events import RunFinished
from fairtrial.record.models import Plan

LEVELS = DetectionLevels(alpha=0.05, alarm_alpha=0.01, margin=None)


def written(
    directory: Path, *, slower: float = 1.0, blocks: int = 5, finished: bool = True, plan: Plan | None = None
) -> Path:
    """A record of `blocks` trials of each arm near a second, with a little noise."""
    writer = record.create(directory, plan=plan or tiny_plan(blocks=5), sources={"study.yaml": "study: tiny\n"})
    for index, (block, arm) in enumerate((block, arm) for block in range(1, blocks + 1) for arm in "ab"):
        trial = trial_record(planned(block, arm))
        writer.begin(trial.trial.id)
        writer.commit(trial.model_copy(update={"scalars": {"elapsed_s": slower * (1 + index / 10_000)}}))
    if finished:
        writer.append(RunFinished())
    writer.close()
    return directory


def verdicts(paths: list[Path], baseline: Path) -> list[str]:
    return [check.status for check in gate._against(paths, baseline, metrics=[], levels=LEVELS).checks]


def test_of_several_runs_the_newest_is_held_against_the_baseline(tmp_path: Path) -> None:
    baseline = written(tmp_path / "runs/z-first")
    written(tmp_path / "runs/m-slower", slower=2.0)
    assert verdicts([tmp_path / "runs"], baseline) == ["failed", "failed"]
    written(tmp_path / "runs/a-mended", slower=1.0)
    assert verdicts([tmp_path / "runs"], baseline) == ["passed", "passed"]


def test_a_newest_run_that_did_not_finish_passes_nothing(tmp_path: Path) -> None:
    """Its few trials would show no difference, which is not the same as having none; an older run is another one."""
    baseline = written(tmp_path / "runs/first")
    written(tmp_path / "runs/good")
    killed = written(tmp_path / "runs/killed", finished=False)
    written(tmp_path / "runs/noise", plan=tiny_plan(blocks=5).model_copy(update={"against_itself": True}))
    for path in (tmp_path / "runs", killed):
        with pytest.raises(InputError, match="killed: the newest run is not finished") as refused:
            verdicts([path], baseline)
        assert f"fairtrial run {killed} --resume" in refused.value.hint
    written(tmp_path / "runs/slower", slower=2.0)
    assert verdicts([tmp_path / "runs"], baseline) == ["failed", "failed"]


def test_a_baseline_that_did_not_finish_is_none(tmp_path: Path) -> None:
    baseline = written(tmp_path / "first", finished=False)
    run = written(tmp_path / "second")
    with pytest.raises(InputError, match="first: the baseline is not finished"):
        verdicts([run], baseline)


def test_too_few_trials_are_no_check(tmp_path: Path) -> None:
    """Three of each arm can show nothing, however slow: that is not having passed."""
    baseline = written(tmp_path / "runs/first", blocks=3)
    written(tmp_path / "runs/slower", slower=9.0, blocks=3)
    assert verdicts([tmp_path / "runs"], baseline) == ["skipped", "skipped"]


def test_a_run_against_itself_is_nobodys_newest(tmp_path: Path) -> None:
    baseline = written(tmp_path / "runs/first")
    written(tmp_path / "runs/noise", plan=tiny_plan(blocks=5).model_copy(update={"against_itself": True}))
    with pytest.raises(InputError, match="A/A runs do not count"):
        verdicts([tmp_path / "runs"], baseline)


def test_a_baseline_alone_is_held_against_nothing(tmp_path: Path) -> None:
    baseline = written(tmp_path / "runs/first")
    with pytest.raises(InputError, match="no run to compare with the baseline"):
        verdicts([tmp_path / "runs"], baseline)


@pytest.mark.parametrize("other", [{"study": "large"}, {"size": "ci"}])
def test_a_run_of_another_study_or_size_is_not_held_against_the_baseline(tmp_path: Path, other: dict[str, str]) -> None:
    baseline = written(tmp_path / "runs/first")
    written(tmp_path / "runs/second", slower=2.0)
    strange = written(tmp_path / "runs/third", plan=tiny_plan(blocks=5).model_copy(update=other))
    assert verdicts([tmp_path / "runs"], baseline) == ["failed", "failed"]
    with pytest.raises(InputError, match="no run to compare with the baseline, tiny"):
        verdicts([strange], baseline)


def test_arms_are_judged_by_their_own_study_alone(tmp_path: Path) -> None:
    run = written(tmp_path / "run")
    for baseline, margin, option in ((tmp_path, None, "--baseline"), (None, 0.1, "--margin")):
        with pytest.raises(InputError, match=f"{option}: `--arms` takes baseline and margin from the run's own study"):
            gate._within([run], baseline, metrics=[], margin=margin)
    with pytest.raises(InputError, match="unknown metric `speed`; expected one of `elapsed_s`"):
        gate._within([run], None, metrics=["speed"], margin=None)
    (check,) = gate._within([run], None, metrics=[], margin=None).checks
    assert (check.series, check.metric) == ("b", "elapsed_s")


@pytest.mark.parametrize(
    ("option", "given", "modes"),
    [
        ("--by", {"by": "cell"}, ["--arms", "--baseline"]),
        ("--acknowledged", {"acknowledged": Path("known.yaml")}, ["--arms", "--baseline"]),
        ("--alarm-alpha", {"levels": replace(LEVELS, alarm_alpha=0.02)}, ["--arms", "--baseline"]),
        ("--alpha", {"levels": replace(LEVELS, alpha=0.01)}, ["--arms"]),
    ],
)
def test_options_of_histories_are_refused_where_they_say_nothing(
    tmp_path: Path, *, option: str, given: dict[str, object], modes: list[str]
) -> None:
    first, second = written(tmp_path / "first"), written(tmp_path / "second")
    outputs = gate.Outputs(junit=None, markdown=None, as_json=True)
    common = {"accepted": None, "metrics": [], "by": "cell, arm", "acknowledged": None, "levels": LEVELS}
    common |= {"outputs": outputs}
    for mode in ("--arms", "--baseline"):
        how = {"arms": mode == "--arms", "baseline": None if mode == "--arms" else first}
        with suppress(SystemExit):  # undecided
            gate.gate([second], **how, **common)  # type: ignore[arg-type]
        if mode in modes:
            with pytest.raises(InputError, match=f"{option}: `{mode}` does not use this option"):
                gate.gate([second], **how, **(common | given))  # type: ignore[arg-type]
        else:
            with suppress(SystemExit):
                gate.gate([second], **how, **(common | given))  # type: ignore[arg-type]


def test_a_baseline_that_is_the_current_directory_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    baseline, run = written(tmp_path / "first"), written(tmp_path / "second")
    monkeypatch.chdir(baseline)
    assert gate._against([run], Path(), metrics=[], levels=LEVELS).against == "first"


def test_a_gate_within_a_run_says_what_its_drives_did_not_draw(tmp_path: Path) -> None:
    found = gate._within([kept_unfaithful(tmp_path / "run")], None, metrics=[], margin=None)
    assert any("payment by last name" in note for note in found.notes)
