"""What `order: duet` refuses of a study, with the place where it is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairtrial import plan, study
from fairtrial.catalogue import catalogue
from fairtrial.errors import InputError

STUDY = """\
study: duet
workload: {{command: {{run: a}}{workload}}}
factors: {{arm: {{a: {{}}, b: {{workload: {{command: {{run: b}}}}}}{arms}}}}}
arm: arm
trials: {{order: duet, blocks: 6}}
metrics: {{primary: elapsed_s{metrics}}}
{more}
"""


def written(path: Path, *, workload: str = "", arms: str = "", metrics: str = "", more: str = "") -> Path:
    path.write_text(STUDY.format(workload=workload, arms=arms, metrics=metrics, more=more), encoding="utf-8")
    return path


def test_a_duet_is_planned_as_one_trial_per_block_with_halves(tmp_path: Path) -> None:
    file = written(tmp_path / "study.yaml")
    made, alone = (
        plan.make(study.load(file, catalogue=catalogue(), overrides=overrides), catalogue=catalogue())
        for overrides in ([], ["trials.order=abba"])
    )
    assert made.duration_s * 2 == pytest.approx(alone.duration_s)
    halves = [[trial.half for trial in made.trials if trial.arm == arm] for arm in ("a", "b")]
    assert [sorted(each) for each in halves] == [[1, 1, 1, 2, 2, 2]] * 2
    assert all(first != second for first, second in zip(*halves, strict=True))
    assert '"half"' not in alone.model_dump_json()


def test_a_duet_that_was_written_back_is_the_same_duet(tmp_path: Path) -> None:
    loaded = study.load(written(tmp_path / "study.yaml"), catalogue=catalogue())
    again = tmp_path / "again.yaml"
    again.write_text(study.dump(loaded), encoding="utf-8")
    assert study.load(again, catalogue=catalogue()) == loaded


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"arms": ", c: {workload: {command: {run: c}}}"}, "factors.arm: `order: duet` runs two arms at a time"),
        ({"more": "place: {ssh: {host: h}}"}, ":7:1: place: `order: duet` divides this machine: expected `local`"),
        ({"more": "settings: {swap: 1GiB}"}, ":7:1: settings: settings change what both arms of a duet share"),
        ({"workload": ", place: {ssh: {host: h}}"}, "workload.place: a load elsewhere would be shared"),
        ({"more": "telemetry: {probes: [{perf_stat: {events: [cycles]}}]}"}, "probes see the whole machine"),
        ({"metrics": ", guardrails: disk_written_bytes"}, "metrics.guardrails: metric `disk_written_bytes` is of the"),
        ({"metrics": ", secondary: memory_stall_share"}, ":6:42: metrics.secondary: metric `memory_stall_share` is"),
        (
            {
                "arms": "}, load: {low: {workload: {command: {label: low}}}",
                "more": "expect: {low: {cpu_idle_share: <= 1}}",
            },
            "expect.low: metric `cpu_idle_share` is of the whole",
        ),
    ],
)
def test_what_two_halves_cannot_run_is_refused(tmp_path: Path, given: dict[str, str], expected: str) -> None:
    with pytest.raises(InputError) as raised:
        study.load(written(tmp_path / "study.yaml", **given), catalogue=catalogue())
    assert expected in str(raised.value)
    assert "order: randomised_blocks" in str(raised.value)
