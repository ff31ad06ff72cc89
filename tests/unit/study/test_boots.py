"""`reboot: between_blocks`: what it refuses of a study, and how it is planned."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

import pytest

from fairtrial import plan, study
from fairtrial.catalogue import catalogue
from fairtrial.errors import InputError
from fairtrial.record.models import Plan

STUDY = """\
study: kernels
place: {place}
workload: {{command: {{run: a}}}}
factors:
  kernel: {{old: {{}}, new: {{place: {{ssh: {{boot: {{kernel: /b}}}}}}}}}}
  load: {{low: {{}}, high: {{{high}}}}}
arm: {arm}
trials: {{{trials}}}
metrics: {{primary: elapsed_s}}
"""
BOOTS = "{ssh: {host: h, boot: {by: kexec, kernel: /a, expected: 2min}}}"
HIGH = "workload: {command: {run: b}}"


def written(path: Path, **changed: str) -> Path:
    values = {"place": BOOTS, "high": HIGH, "arm": "kernel", "trials": "reboot: between_blocks, blocks: 4"}
    path.write_text(STUDY.format(**{**values, **changed}), encoding="utf-8")
    return path


def made(path: Path, *overrides: str) -> Plan:
    kinds = catalogue()
    return plan.make(study.load(path, catalogue=kinds, overrides=list(overrides)), catalogue=kinds)


def test_an_arm_boots_once_in_a_round_for_all_cells(tmp_path: Path) -> None:
    file = written(tmp_path / "study.yaml")
    found = made(file, "trials.per_boot=3")
    boots = [(boot, list(trials)) for boot, trials in groupby(found.trials, key=lambda trial: trial.boot)]
    assert len(boots) == len({boot for boot, _ in boots}) == 8, "4 rounds of 2 arms, each boot's trials in a row"
    for _boot, trials in boots:
        assert len({(trial.arm, trial.block, trial.round) for trial in trials}) == 1
        assert [trial.repeat for trial in trials] == [1, 1, 2, 2, 3, 3]
        assert len({trial.seed for trial in trials}) == 6, "no two trials draw the same load"
    by_block = {(trial.cell, trial.block, trial.arm, trial.repeat): trial.seed for trial in found.trials}
    assert all(seed == by_block[cell, block, "old", repeat] for (cell, block, _, repeat), seed in by_block.items())
    firsts = [next(trial.arm for trial in found.trials if trial.round == round_) for round_ in range(1, 5)]
    assert set(firsts) == {"old", "new"}, "boots are shuffled in each round"


def test_boots_that_are_spared_are_not_in_the_duration(tmp_path: Path) -> None:
    file = written(tmp_path / "study.yaml")
    shared, each = made(file), made(file, "trials.reboot=every_trial")
    assert each.duration_s - shared.duration_s == pytest.approx(8 * 120)
    assert '"boot":"' not in each.model_dump_json()
    assert '"reboot"' not in each.model_dump_json()
    assert (shared.design.neighbours, '"neighbours"' in each.model_dump_json()) == ("boots", False)


def test_a_replacement_boots_for_its_cell_alone(tmp_path: Path) -> None:
    found = made(written(tmp_path / "study.yaml"), "trials.per_boot=2")
    trials = plan.replacement(found, cell="low", block=5, round_=3, position=40)
    assert sorted(trial.id for trial in trials) == ["low.b05.new", "low.b05.new+2", "low.b05.old", "low.b05.old+2"]
    assert {trial.boot for trial in trials} == {"low.b05.new", "low.b05.old"}


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"place": "{ssh: {host: h}}", "high": HIGH}, ":8:18: trials.reboot: `reboot: between_blocks` needs a host"),
        ({"arm": "load"}, ":5:3: factors.kernel: cells of a round share each arm's boot"),
        ({"high": f"{HIGH[:-1]}, place: {{ssh: {{host: g}}}}}}"}, ":6:3: factors.load: cells of a round share each"),
        ({"trials": "order: abba, reboot: between_blocks"}, "`order: abba` does not"),
        ({"trials": "per_boot: 2"}, "has no effect without `reboot: between_blocks`"),
    ],
)
def test_what_cannot_share_a_boot_is_refused(tmp_path: Path, changed: dict[str, str], expected: str) -> None:
    with pytest.raises(InputError) as raised:
        study.load(written(tmp_path / "study.yaml", **changed), catalogue=catalogue())
    assert expected in str(raised.value)


BOOT = "boot: {by: kexec, kernel: /b}"


@pytest.mark.parametrize(
    ("place", "level"),
    [
        ("{ssh: {host: h}}", f"place: {{ssh: {{{BOOT}}}}}"),
        (f"{{ssh: {{host: h, {BOOT}}}}}", "place: {ssh: {boot: null}}"),
    ],
)
def test_a_host_that_boots_before_some_trials_only_is_refused(tmp_path: Path, place: str, level: str) -> None:
    """Or the arm that boots is compared with one that has run for hours, too."""
    file = written(tmp_path / "study.yaml", place=place, high=level, trials="blocks: 4")
    file.write_text(file.read_text().replace("{old: {}, new: {place: {ssh: {boot: {kernel: /b}}}}}", "{one: {}}"))
    file.write_text(file.read_text().replace("arm: kernel", "arm: load"))
    with pytest.raises(InputError) as raised:
        study.load(file, catalogue=catalogue())
    (said,) = [problem for problem in raised.value.problems if "or in none" in problem.message]
    assert said.message.startswith("expected `boot` in all trials at h, or in none: levels of `load` would")
    assert (said.line, said.field) == (6, "factors.load")


def test_arms_on_hosts_of_their_own_may_boot_or_not(tmp_path: Path) -> None:
    file = written(tmp_path / "study.yaml", place="{ssh: {host: h}}", high=HIGH, trials="blocks: 4")
    text = file.read_text().replace("{place: {ssh: {boot: {kernel: /b}}}}", f"{{place: {{ssh: {{host: g, {BOOT}}}}}}}")
    file.write_text(text)
    assert len(made(file).trials) == 16
