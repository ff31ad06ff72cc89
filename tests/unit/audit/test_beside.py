"""A run beside the publication it re-runs: the published data against themselves, turned round, and in part."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from support.inference.analysis_cases import Case

from fairtrial import audit as publications
from fairtrial import study as language
from fairtrial.analyse import analyse
from fairtrial.analyse.models import Analysis
from fairtrial.audit import Dataset, RerunComparison, beside
from fairtrial.audit.models import Rerun, RerunFactor
from fairtrial.catalogue import catalogue
from fairtrial.record.models import RangeExpectation

NAME = "mglru-mariadb-tpcc"
FACTORS = {
    "lru_gen": ("off", "on"),
    "memory": ("underutilizing", "overcommitting"),
    "users": ("low", "medium", "high"),
}
BLOCKS = 10


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    return publications.load(NAME)


@pytest.fixture(scope="module")
def rerun() -> Rerun:
    found = publications.rerun_by(NAME)
    assert found is not None
    assert found[0] == NAME
    return found[1].model_copy(update={"metrics": {"tpm": ["tpm"]}})


def measured(
    dataset: Dataset, rerun: Rerun, value: Callable[[float, str], float], **changed: Any
) -> Mapping[str, Analysis]:
    """A run that measured what the publication's data say, changed by `value` (of a value and its arm).

    Keywords: `users` for fewer levels, `finished` of the analysis, `of_plan` and `of_trial` for copies of them; others
    are the case's.
    """
    users, finished = changed.pop("users", FACTORS["users"]), changed.pop("finished", True)
    of_plan, of_trial = changed.pop("of_plan", {}), changed.pop("of_trial", {})
    case = Case({**FACTORS, "users": users}, **{"blocks": BLOCKS, **changed}, arm="lru_gen")
    there = {
        factor.name: {here: (name, level) for level, here in factor.levels.items()}
        for name, factor in rerun.factors.items()
    }

    def tpm(levels: Mapping[str, str], block: int) -> float:
        at = dict(there[factor][level] for factor, level in levels.items())
        return value(float(dataset.values("tpm", at)[block - 1]), levels["lru_gen"])

    plan = case.plan().model_copy(update=of_plan)
    trials = [trial.model_copy(update=of_trial) for trial in case.trials(tpm=tpm)]
    return {contrast: analyse(plan, trials, contrast=contrast, finished=finished) for contrast in ("lru_gen", "memory")}


def said(rows: list[RerunComparison], table: str) -> Counter[str]:
    return Counter(row.said for row in rows if row.table == table)


def test_the_published_data_agree_with_themselves(dataset: Dataset, rerun: Rerun) -> None:
    rows = beside(dataset, rerun, measured(dataset, rerun, lambda value, _arm: value))
    assert len(rows) == 6 + 6, "every field of both tables"
    assert said(rows, "Table 1")["disagree"] == 0
    at = {"memory": "overcommitting", "virtual_users": "600"}
    (found,) = [row for row in rows if row.table == "Table 1" and row.at == at]
    assert (found.there, found.here, found.said) == ("better", "better", "agree")
    assert found.comparison is not None
    assert found.comparison.cell == "overcommitting+high"
    assert (found.comparison.baseline, found.comparison.arm) == ("off", "on")
    assert found.comparison.ratio.estimate == pytest.approx(337366.8 / 274069.7, rel=0.01)


def test_arms_that_changed_places_disagree(dataset: Dataset, rerun: Rerun) -> None:
    """What was a quarter more is made a quarter less."""
    rows = beside(dataset, rerun, measured(dataset, rerun, lambda value, arm: value * (0.5 if arm == "on" else 1)))
    there = [row for row in rows if row.table == "Table 1" and row.there == "better"]
    assert there
    assert {row.said for row in there} == {"disagree"}
    assert {row.here for row in there} == {"worse"}


def test_equal_arms_contradict_a_published_difference_and_noise_does_not(dataset: Dataset, rerun: Rerun) -> None:
    """Shown to be equivalent is an answer; not shown to differ is none."""
    equal = beside(dataset, rerun, measured(dataset, rerun, lambda value, arm: 1000 + value % 7 + (arm == "on")))
    shown = [row for row in equal if row.table == "Table 1" and row.there == "better"]
    assert {(row.here, row.said) for row in shown} == {("no difference", "disagree")}
    noisy = beside(
        dataset, rerun, measured(dataset, rerun, lambda value, arm: (value * (7 if arm == "on" else 11)) % 1000 + 1)
    )
    shown = [row for row in noisy if row.table == "Table 1" and row.there == "better"]
    assert {row.said for row in shown} <= {"only published"}


@pytest.mark.parametrize("how", [{"finished": False}, {"blocks": 5}, {"blocks": 1}], ids=["unfinished", "five", "one"])
def test_a_run_that_could_claim_nothing_is_not_held_against_the_publication(
    dataset: Dataset, rerun: Rerun, how: Mapping[str, Any]
) -> None:
    rows = beside(dataset, rerun, measured(dataset, rerun, lambda value, _arm: value, **how))
    assert said(rows, "Table 1") == said(rows, "Table 2") == {"no verdict": 6}


def test_a_cell_that_missed_its_condition_is_not_held_against_the_publication(dataset: Dataset, rerun: Rerun) -> None:
    missed = RangeExpectation(factor="memory", level="overcommitting", metric="tpm", low=None, high=1.0, text="<= 1")
    rows = beside(dataset, rerun, measured(dataset, rerun, lambda value, _arm: value, expectations=[missed]))
    table = [row for row in rows if row.table == "Table 1"]
    assert {row.said for row in table if row.at["memory"] == "overcommitting"} == {"no verdict"}
    assert "no verdict" not in {row.said for row in table if row.at["memory"] != "overcommitting"}


def test_an_arm_without_values_leaves_no_verdict_and_no_missing_run(dataset: Dataset, rerun: Rerun) -> None:
    rows = beside(dataset, rerun, measured(dataset, rerun, lambda value, arm: math.nan if arm == "on" else value))
    assert said(rows, "Table 1") == {"no verdict": 6}
    assert {row.comparison for row in rows if row.table == "Table 1"} == {None}


def test_equal_values_that_no_test_can_judge_leave_no_verdict(dataset: Dataset, rerun: Rerun) -> None:
    rows = beside(dataset, rerun, measured(dataset, rerun, lambda _value, _arm: 7.0))
    assert said(rows, "Table 1") == {"no verdict": 6}


@pytest.mark.parametrize(("kind", "evidence"), [("wall_clock", False), ("count", True)])
def test_a_clock_under_emulation_is_no_evidence_and_a_count_is(
    dataset: Dataset, rerun: Rerun, kind: str, *, evidence: bool
) -> None:
    metrics = Case(FACTORS, blocks=1, arm="lru_gen").plan().metrics
    timed = metrics.definitions | {"tpm": metrics.definitions["tpm"].model_copy(update={"kind": kind})}
    changed = {
        "of_plan": {"metrics": metrics.model_copy(update={"definitions": timed})},
        "of_trial": {"subject": {"accelerator": "tcg"}},
    }
    rows = beside(dataset, rerun, measured(dataset, rerun, lambda value, _arm: value, **changed))
    counted = said(rows, "Table 1")
    assert counted["no evidence"] == (0 if evidence else 6)
    assert (counted["agree"] > 0) == evidence


def test_what_a_smaller_run_left_out_is_not_run(dataset: Dataset, rerun: Rerun) -> None:
    rows = beside(dataset, rerun, measured(dataset, rerun, lambda value, _arm: value, users=("high",)))
    assert said(rows, "Table 1")["not run"] == 4
    assert {row.at["virtual_users"] for row in rows if row.said != "not run"} == {"600"}


def test_a_factor_that_only_the_run_has_gives_a_row_for_each_of_its_levels(dataset: Dataset, rerun: Rerun) -> None:
    less = {name: factor for name, factor in rerun.factors.items() if name != "memory"}
    description = dataset.description.model_copy(
        update={"tables": [table.model_copy(update={"columns": None}) for table in dataset.description.tables[:1]]}
    )
    kept = {name: factor for name, factor in description.factors.items() if name != "memory"}
    smaller = Dataset(
        name=dataset.name,
        description=description.model_copy(update={"factors": kept}),
        rows=tuple(row for row in dataset.rows if row["memory"] == "overcommitting"),
        claims=(),
        r_output=(),
    )
    analyses = measured(dataset, rerun, lambda value, _arm: value)
    rows = beside(smaller, rerun.model_copy(update={"factors": less}), analyses)
    assert len(rows) == 3 * 2
    assert {tuple(row.also.values()) for row in rows} == {("underutilizing",), ("overcommitting",)}


def test_a_factor_that_was_not_compared_is_not_run(dataset: Dataset, rerun: Rerun) -> None:
    analyses = measured(dataset, rerun, lambda value, _arm: value)
    rows = beside(dataset, rerun, {"lru_gen": analyses["lru_gen"]})
    assert said(rows, "Table 2") == {"not run": 6}


def test_a_metric_that_does_not_stand_for_the_publications_is_left_out(dataset: Dataset, rerun: Rerun) -> None:
    other = rerun.model_copy(update={"metrics": {"latency": ["tpm"]}})
    assert beside(dataset, other, measured(dataset, rerun, lambda value, _arm: value)) == []


def test_levels_are_said_in_the_study_s_words() -> None:
    rerun = Rerun(study="s", factors={"kernel": RerunFactor(name="lru_gen", levels={"5.14": "off"})}, metrics={})
    assert rerun.levels({"kernel": "5.14"}) == {"lru_gen": "off"}


def test_a_study_that_re_runs_nothing_has_no_publication() -> None:
    assert publications.rerun_by("sqlite-wal") is None


@pytest.mark.parametrize(
    "name", [name for name in publications.names() if (publications.folder(name) / "rerun.yaml").is_file()]
)
def test_every_re_run_names_factors_levels_and_metrics_that_both_sides_have(name: str) -> None:
    dataset = publications.load(name)
    study = next(
        found
        for found in (publications.rerun_by(each) for each in _studies())
        if found is not None and found[0] == name
    )[1]
    with resources.as_file(resources.files("fairtrial.studies") / f"{study.study}.yaml") as path:
        loaded = language.load(Path(path), catalogue=catalogue(), size="published")
        smaller = language.load(Path(path), catalogue=catalogue())
    levels = {factor.name: set(factor.level_names) for factor in loaded.factors}
    assert set(study.factors) == set(dataset.description.factors)
    for published, factor in study.factors.items():
        assert set(factor.levels) == set(dataset.levels(published))
        assert set(factor.levels.values()) <= levels[factor.name]
    assert set(study.metrics) <= set(dataset.description.metrics)
    for metrics in study.metrics.values():
        assert set(metrics) <= set(loaded.definitions)
    assert {*loaded.file.metrics.primary, *smaller.file.metrics.primary} <= {
        name for metrics in study.metrics.values() for name in metrics
    }


def _studies() -> list[str]:
    entries = resources.files("fairtrial.studies").iterdir()
    return [entry.name.removesuffix(".yaml") for entry in entries if entry.name.endswith(".yaml")]
