"""The noise profile of an A/A run: against R, against simulation, and what it leaves out."""

from __future__ import annotations

import math
import subprocess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.inference.analysis_cases import RESOLVED, Case
from support.skips import require

from fairtrial.analyse import analyse
from fairtrial.analyse.models import Analysis
from fairtrial.analyse.noise import profile as noise
from fairtrial.analyse.noise.floors import FACT
from fairtrial.analyse.noise.models import WHOLE, NoiseProfile
from fairtrial.record.models import Clock, PlaceOpened, Plan, TrialRecord

AA = Case({"kernel": ["base", "base-again"], "memory": ["under", "over"]}, blocks=8)
R = r"""
data <- read.csv(commandArgs(TRUE)[1])
data$y <- log(data$value)
squares <- summary(aov(y ~ factor(block), data))[[1]][["Mean Sq"]]
d <- data$y[data$label == 1] - data$y[data$label == 0]
slot <- t.test(data$y[data$last == 1], data$y[data$last == 0], paired = TRUE)
found <- c(sqrt(squares[2]), sqrt(max(0, (squares[1] - squares[2]) / 2)), sd(d),
  acf(data$y[order(data$position)], lag.max = 1, plot = FALSE)$acf[2], exp(slot$estimate), exp(slot$conf.int),
  slot$p.value, t.test(d)$p.value, exp(diff(t.test(d)$conf.int) / 2) - 1,
  sd(d) * sqrt((length(d) - 1) / qchisq(0.2, length(d) - 1)),
  binom.test(3, 48)$conf.int, ks.test(c(0.02, 0.3, 0.31, 0.9, 0.77), "punif")$p.value)
cat(format(found, digits = 15), sep = "\n")
"""


def plan_of(case: Case) -> Plan:
    return case.plan().model_copy(update={"against_itself": True})


def noisy_trials(case: Case, *, seed: int = 5) -> list[TrialRecord]:
    """Blocks differ by 2 %, trials by 1 %, the second slot of a block gains 3 %."""
    random = np.random.default_rng(seed)
    shared = {(memory, block): random.normal(0, 0.02) for memory in ("under", "over") for block in range(1, 99)}

    def value(levels: object, block: int) -> float:
        assert isinstance(levels, dict)
        later = (levels["kernel"] == "base-again") == bool(block % 2)
        return 1000 * math.exp(shared[levels["memory"], block] + random.normal(0, 0.01) + 0.03 * later)

    return case.trials(tpm=value)


def profile(case: Case = AA, trials: list[TrialRecord] | None = None) -> NoiseProfile:
    found = analyse(plan_of(case), noisy_trials(case) if trials is None else trials).noise
    assert found is not None
    return found


@pytest.mark.servers
def test_r_computes_the_same_profile_from_the_same_values(tmp_path: Path) -> None:
    require("Rscript")
    trials = noisy_trials(AA)
    chosen = [trial for trial in trials if trial.trial.cell == "over"]
    rows = ["block,label,last,position,value"]
    for trial in chosen:
        again = trial.trial.arm == "base-again"
        partner = next(o for o in chosen if o.trial.block == trial.trial.block and o is not trial)
        last = trial.trial.position > partner.trial.position
        rows.append(f"{trial.trial.block},{again:d},{last:d},{trial.trial.position},{trial.scalars['tpm']!r}")
    (tmp_path / "values.csv").write_text("\n".join(rows))
    (tmp_path / "noise.r").write_text(R)
    ran = subprocess.run(
        ["Rscript", "--vanilla", tmp_path / "noise.r", tmp_path / "values.csv"],
        capture_output=True,
        text=True,
        check=True,
    )
    (one,) = [each for each in profile(trials=trials).metrics if each.cell == "over"]
    assert one.slot is not None
    rate, uniformity = noise.rate(3, of=48), noise.uniformity([0.02, 0.3, 0.31, 0.9, 0.77])
    assert uniformity is not None
    ours = [
        *(one.trial_sd, one.block_sd, one.pair_sd, one.autocorrelation),
        *(one.slot.ratio, one.slot.low, one.slot.high, one.slot.p),
        *(one.p, one.floor, one.pair_sd_upper),
        *(rate.low, rate.high, uniformity.p),
    ]
    assert ours == pytest.approx([float(line) for line in ran.stdout.split()], rel=1e-7)


def test_a_slot_effect_is_found_and_does_not_count_as_a_difference_of_labels() -> None:
    for each in profile().metrics:
        assert each.slot is not None
        assert each.slot.low < math.exp(0.03) < each.slot.high
        assert each.slot.p < 0.01


def test_an_ordinary_run_has_no_profile_and_an_aa_run_compared_by_a_condition_has_none() -> None:
    trials = noisy_trials(AA)
    assert analyse(AA.plan(), trials).noise is None
    assert analyse(plan_of(AA), trials, contrast="memory").noise is None


def test_what_has_no_logarithm_or_no_variation_is_named_and_left_out() -> None:
    case = Case({"kernel": ["base", "base-again"]}, blocks=4, roles={"primary": ["tpm"], "secondary": ["p99"]})
    found = profile(case, case.trials(tpm=lambda _levels, _block: 0.0, p99=lambda _levels, _block: 7.0))
    assert found.left_out == ("tpm in all", "p99 in all")
    assert found.metrics == ()
    assert found.false_positives.rate is None
    assert found.uniformity is None


def test_the_profile_is_the_same_each_time_and_for_trials_in_any_order() -> None:
    trials = noisy_trials(AA)
    assert profile(trials=trials) == profile(trials=trials[::-1])


def test_false_positives_of_many_aa_runs_are_as_many_as_the_level_says() -> None:
    rejected = tested = 0
    for seed in range(60):
        case = Case({"kernel": ["base", "base-again"]}, blocks=6)
        random = np.random.default_rng(seed)
        values = case.trials(tpm=lambda _levels, _block, r=random: math.exp(r.normal(0, 0.02)))  # type: ignore[misc]
        found = profile(case, values)
        rejected += found.false_positives.rejected
        tested += found.false_positives.tests
        assert 0 <= (found.resampled.rate or 0) < 0.3
    rate = noise.rate(rejected, of=tested)
    assert rate.low is not None
    assert rate.high is not None
    assert rate.low <= 0.05 <= rate.high


@given(st.lists(st.tuples(st.floats(-1, 1), st.floats(-1, 1)), min_size=3, max_size=12))
def test_components_add_up_to_the_variance_that_means_and_differences_show(pairs: list[tuple[float, float]]) -> None:
    first, second = np.array(pairs).T
    trial, block = noise.components(first, second)
    assert trial >= 0 <= block
    shown = float(np.var((first + second) / 2, ddof=1))
    assert block**2 + trial**2 / 2 >= shown - 1e-12  # equal unless the block component was cut off at 0


@given(st.floats(1e-4, 0.5), st.integers(2, 30))
def test_the_upper_bound_is_above_the_deviation_and_nears_it_with_more_blocks(sd: float, df: int) -> None:
    assert noise.upper_deviation(sd, df=df) > noise.upper_deviation(sd, df=df * 10) > sd


# The floor beside a later run's effects.

LATER = Case({"kernel": ["base", "new"], "memory": ["under", "over"]}, blocks=5)


def opened(*profiles: NoiseProfile) -> PlaceOpened:
    return PlaceOpened(
        place=RESOLVED.place,
        facts={FACT: [each.model_dump(mode="json") for each in profiles]},
        agent_sha256="00",
        clock=Clock(monotonic_ns=1, realtime_ns=2),
        server_user=None,
    )


def later(place: PlaceOpened) -> Analysis:
    random = np.random.default_rng(1)
    trials = LATER.trials(tpm=lambda _levels, _block: 100 * math.exp(random.normal(0, 0.01)))
    return analyse(LATER.plan(), trials, events=[place])


def test_a_later_run_shows_the_floor_of_its_own_cell_for_its_own_number_of_blocks() -> None:
    known = profile()
    floors = {floor.cell: floor for floor in later(opened(known)).floors}
    for each in known.metrics:
        floor = floors[each.cell]
        assert (floor.at_blocks, floor.aa_blocks, floor.same_study) == (5, 8, True)
        expected = math.log1p(each.floor) * math.sqrt(8 / 5)
        assert math.log1p(floor.share) == pytest.approx(expected)


def test_a_profile_of_the_study_itself_goes_before_a_newer_one_of_another_study() -> None:
    own, other = profile(), profile().model_copy(update={"study": "other", "date": "2030-01-01T00:00:00.000Z"})
    assert {floor.study for floor in later(opened(other, own)).floors} == {"case"}
    (hint, _) = later(opened(other)).floors
    assert (hint.study, hint.same_study) == ("other", False)


def test_what_a_host_of_a_farm_keeps_is_no_floor_of_the_others() -> None:
    assert later(opened(profile()).model_copy(update={"host": "x"})).floors == ()


def test_another_size_of_the_study_is_a_hint_and_a_profile_that_says_none_is_of_the_study_as_before() -> None:
    whole, small = (profile().model_copy(update={"size": size}) for size in (WHOLE, "ci"))
    assert {floor.same_study for floor in later(opened(small)).floors} == {False}
    assert {floor.size for floor in later(opened(small)).floors} == {"ci"}
    newer = small.model_copy(update={"date": "2030-01-01T00:00:00.000Z"})
    for known in (whole, profile()):
        assert {(floor.same_study, floor.size) for floor in later(opened(newer, known)).floors} == {(True, known.size)}
    assert "size" not in profile().model_dump(mode="json")


def test_a_profile_that_cannot_be_read_is_no_profile() -> None:
    place = opened().model_copy(update={"facts": {FACT: [{"study": "case"}]}})
    assert later(place).floors == ()
