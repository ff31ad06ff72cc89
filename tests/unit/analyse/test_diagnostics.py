"""The analysis itself leaves diagnostic trials out, also if handed them: of figures, doubts, looks and noise."""

from __future__ import annotations

import math

import pytest
from support.inference.analysis_cases import Case

from fairtrial.analyse import analyse
from fairtrial.analyse.models import Analysis
from fairtrial.analyse.sequential import follow
from fairtrial.record.models import Design, Plan, RangeExpectation, TrialRecord

FACTORS = {"kernel": ["base", "patched"], "memory": ["small", "large"]}
ABSURD = 1e12
WANDER = {1: 0.0, 2: 1.0, 3: -1.0, 4: -1.0, 5: 1.0, 6: 0.0}  # by block: no slope, whatever else


def case(**options: object) -> Case:
    return Case(factors=FACTORS, blocks=6, **options)  # type: ignore[arg-type]


def measured(subject: Case) -> list[TrialRecord]:
    def value(levels: object, block: int) -> float:
        factor = 1.1 if levels["kernel"] == "patched" else 1.0  # type: ignore[index]
        return 1000 * factor * math.exp(0.01 * WANDER[block] + 0.002 * math.sin(factor * WANDER[block]))

    return subject.trials(tpm=value)


def diagnostic(of: TrialRecord, *, valid: bool = True, value: float = ABSURD) -> TrialRecord:
    """The same trial as one with probes: it has the same block and round, and measured something else altogether."""
    planned = of.trial.model_copy(
        update={"id": of.trial.id.replace(".b", ".d"), "diagnostic": True, "position": 1000 + of.trial.position}
    )
    return of.model_copy(
        update={
            "trial": planned,
            "scalars": {"tpm": value},
            "valid": valid,
            "invalid_reason": "" if valid else "the probe died",
            "started": "2026-01-02T00:00:00.000Z",
        }
    )


def compared(
    plan: Plan, trials: list[TrialRecord], extra: list[TrialRecord], *, contrast: str | None = None
) -> Analysis:
    """The analysis with them, after a check that it is the one without them but for their count."""
    plain = analyse(plan, trials, contrast=contrast)
    found = analyse(plan, [*extra, *trials], contrast=contrast)
    assert plain.counts.diagnostic == 0
    assert found.counts.diagnostic == len(extra)
    counts = found.counts.model_copy(update={"diagnostic": 0})
    assert found.model_copy(update={"counts": counts}) == plain
    return found


@pytest.mark.parametrize("contrast", [None, "memory"])
def test_absurd_values_of_every_arm_and_cell_change_nothing(contrast: str | None) -> None:
    subject = case()
    trials = measured(subject)
    found = compared(subject.plan(), trials, [diagnostic(each) for each in trials], contrast=contrast)
    assert found.counts.used == len(trials)


def test_broken_ones_void_no_block() -> None:
    subject = case()
    trials = measured(subject)
    found = compared(subject.plan(), trials, [diagnostic(each, valid=False) for each in trials[:3]])
    assert (found.counts.invalid, found.counts.blocks_voided) == (0, 0)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 0.0, -1.0])
def test_values_without_logarithms_do_not_take_the_others(value: float) -> None:
    subject = case()
    trials = measured(subject)
    found = compared(subject.plan(), trials, [diagnostic(trials[0], value=value)])
    assert all(each.ratio.estimate is not None for cell in found.cells for each in cell.comparisons["tpm"])


def test_what_a_cell_is_expected_to_be_is_judged_without_them() -> None:
    expected = RangeExpectation(factor="memory", level="small", metric="tpm", low=None, high=5000.0, text="..5000")
    subject = case(expectations=[expected])
    trials = measured(subject)
    found = compared(subject.plan(), trials, [diagnostic(each) for each in trials])
    assert {each.met for cell in found.cells for each in cell.expectations} == {True}


def test_they_make_no_drift_and_no_doubt_about_order() -> None:
    """A thousandfold rise at the end of a run would be the steepest drift there is."""
    subject = case()
    trials = measured(subject)
    found = compared(subject.plan(), trials, [diagnostic(each, value=1e6) for each in trials])
    assert "drift" not in {doubt.code for doubt in found.doubts}


def test_a_noise_profile_is_of_the_others_alone() -> None:
    subject = case()
    plan = subject.plan().model_copy(update={"against_itself": True})
    trials = measured(subject)
    found = compared(plan, trials, [diagnostic(each) for each in trials])
    assert found.noise is not None


def sequential(subject: Case) -> Plan:
    plan = subject.plan()
    asked = plan.design.model_dump() | {"stop": "sequential", "min_blocks": 3, "spending": "pocock", "futility": True}
    return plan.model_copy(update={"design": Design.model_validate(asked | {"equivalence": True})})


def test_looks_of_a_stopping_rule_are_the_same_with_them() -> None:
    subject = case()
    plan, trials = sequential(subject), measured(subject)
    found = compared(plan, trials, [diagnostic(each) for each in trials])
    run = follow(plan, trials)
    assert run is not None
    assert found.stopping is not None
    assert {stop.cell: stop.blocks for stop in found.stopping.cells} == {
        name: stop.blocks for name, stop in run.stops.items()
    }


def test_a_run_of_nothing_else_has_measured_nothing() -> None:
    subject = case()
    found = analyse(subject.plan(), [diagnostic(each) for each in measured(subject)])
    assert (found.counts.finished, found.counts.used, found.counts.diagnostic) == (0, 0, 24)
    assert not any(each.n for cell in found.cells for each in cell.summaries.get("tpm", ()))
    assert {each.verdict for cell in found.cells for each in cell.comparisons.get("tpm", ())} <= {"none"}


def test_two_of_an_arm_in_a_block_are_no_contradiction() -> None:
    """Two trials that estimates use would be an error there."""
    subject = case()
    trials = measured(subject)
    compared(subject.plan(), trials, [diagnostic(trials[0]), diagnostic(trials[0])])


def test_the_guard_is_the_mark_and_not_the_name() -> None:
    """Without the mark the very same trials are what the checks of a record refuse or count."""
    subject = case()
    trials = measured(subject)
    bare = diagnostic(trials[0]).model_copy(
        update={"trial": trials[0].trial.model_copy(update={"block": 7, "round": 7})}
    )
    assert analyse(subject.plan(), [*trials, bare]).counts.finished == len(trials) + 1
