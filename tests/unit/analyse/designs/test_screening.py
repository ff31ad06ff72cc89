"""Effects against statsmodels, Lenth against a published example, adjustments against published tables."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from statsmodels.regression.linear_model import OLS, RegressionResults

from fairtrial.analyse.designs import maxima
from fairtrial.analyse.designs.screening import one_metric, screened
from fairtrial.analyse.designs.screening_models import ScreenedMetric
from fairtrial.analyse.designs.screening_power import detectable, replicates_for
from fairtrial.plan.screening import aliasing, matrix
from fairtrial.record.screening import Screening

# Montgomery, Design and Analysis of Experiments, example 6.2: effects on a filtration rate.
FILTRATION = (21.625, 3.125, 9.875, 14.625, 0.125, -18.125, 16.625, 2.375, -0.375, -1.125, 1.875, 4.125, -1.625, -2.625)
Trials = Sequence[tuple[str, int, float]]


def design(kind: str, options: int, *, fold: bool = False) -> Screening:
    codes, names = matrix(kind, options, fold=fold), [f"o{n}" for n in range(options)]
    levels = ["low", "middle", "high"] if kind == "definitive" else ["low", "high"]
    return Screening(
        design=kind,  # type: ignore[arg-type]
        options=dict.fromkeys(names, levels),
        rows={f"r{n:02d}": row for n, row in enumerate(codes.tolist(), start=1)},
        resolution=4 if kind != "plackett_burman" or fold else 3,
        folded=fold,
        aliases=aliasing(codes, names),
    )


def trials(of: Screening, effects: dict[str, float], *, replicates: int = 1, sd: float = 0.03) -> Trials:
    """Effects are log ratios; replicates differ by 20 %."""
    random, names = np.random.default_rng(7), list(of.options)
    return [
        (
            row,
            replicate,
            100
            * 1.2**replicate
            * math.exp(
                sum(by / 2 * codes[names.index(name)] for name, by in effects.items()) + sd * random.standard_normal()
            ),
        )
        for replicate in range(1, replicates + 1)
        for row, codes in of.rows.items()
    ]


def by_statsmodels(of: Screening, measured: Trials, *, saturated: bool = False) -> RegressionResults:
    replicates = sorted({replicate for _, replicate, _ in measured})
    dummies = [[float(replicate == each) for each in replicates] for _, replicate, _ in measured]
    rows = list(of.rows)
    columns = (
        [[float(row == each) for each in rows[1:]] for row, _, _ in measured]
        if saturated
        else [of.rows[row] for row, _, _ in measured]
    )
    x = np.hstack([np.array(dummies), np.array(columns, dtype=float)])
    return OLS(np.log([value for _, _, value in measured]), x).fit()


def effects_of(metric: ScreenedMetric, of: Screening) -> NDArray[np.float64]:
    found = {each.option: each.effect for each in metric.effects}
    return np.array([found[option] for option in of.options])


def test_effects_and_intervals_of_one_replicate_are_those_of_least_squares() -> None:
    of = design("fractional", 15)
    measured = trials(of, {"o2": 0.1, "o7": -0.06})
    metric = one_metric(of, "tpm", measured, confidence=0.95)
    assert metric is not None
    fit = by_statsmodels(of, measured)
    assert (metric.error, metric.df) == ("unassigned columns", 16)
    assert effects_of(metric, of) == pytest.approx(2 * fit.params[1:], rel=1e-9)
    assert metric.sd == pytest.approx(math.sqrt(fit.mse_resid), rel=1e-9)
    low, high = fit.conf_int().T[:, 1:]
    for index, option in enumerate(of.options):
        each = next(effect for effect in metric.effects if effect.option == option)
        assert each.interval == pytest.approx((math.exp(2 * low[index]), math.exp(2 * high[index])), rel=1e-9)
        assert each.p == pytest.approx(fit.pvalues[1 + index], rel=1e-9)
    assert [each.option for each in metric.effects[:2]] == ["o2", "o7"]


def test_replicates_judge_by_pure_error_and_take_their_own_means_out() -> None:
    of = design("plackett_burman", 11)
    measured = trials(of, {"o0": 0.1}, replicates=3)
    metric = one_metric(of, "tpm", measured, confidence=0.95)
    assert metric is not None
    fit, saturated = by_statsmodels(of, measured), by_statsmodels(of, measured, saturated=True)
    assert (metric.error, metric.df) == ("replicates", saturated.df_resid)
    assert effects_of(metric, of) == pytest.approx(2 * fit.params[3:], rel=1e-9)
    assert metric.sd == pytest.approx(math.sqrt(saturated.mse_resid), rel=1e-9)


def test_what_rows_have_beyond_main_effects_is_tested_against_pure_error() -> None:
    of = design("fractional", 4)
    names = list(of.options)
    measured = [
        (row, replicate, value * math.exp(0.2 * of.rows[row][names.index("o0")] * of.rows[row][names.index("o1")]))
        for row, replicate, value in trials(of, {}, replicates=2)
    ]
    metric = one_metric(of, "tpm", measured, confidence=0.95)
    assert metric is not None
    fit, saturated = by_statsmodels(of, measured), by_statsmodels(of, measured, saturated=True)
    assert metric.lack_of_fit_p == pytest.approx(saturated.compare_f_test(fit)[1], rel=1e-6)
    assert metric.columns[0].interactions == ("o0 × o1", "o2 × o3")
    assert metric.columns[0].effect == pytest.approx(0.4, abs=0.05)


def test_a_missing_row_is_still_least_squares() -> None:
    of = design("fractional", 15)
    measured = [*trials(of, {"o2": 0.1})][:-1]
    metric = one_metric(of, "tpm", measured, confidence=0.95)
    assert metric is not None
    fit = by_statsmodels(of, measured)
    assert effects_of(metric, of) == pytest.approx(2 * fit.params[1:], rel=1e-9)


@pytest.mark.parametrize(("options", "replicates", "missing"), [(4, 1, 0), (4, 1, 3), (6, 2, 31), (6, 2, None)])
def test_interactions_are_least_squares_beside_the_options_where_a_row_is_missing(
    options: int, replicates: int, missing: int | None
) -> None:
    of = design("fractional", options)
    every = trials(of, {"o0": 0.5}, sd=0.001, replicates=replicates)
    measured = [each for place, each in enumerate(every) if place != missing]
    metric = one_metric(of, "tpm", measured, confidence=0.95)
    assert metric is not None
    assert len(metric.columns) >= 3
    fit, names = by_statsmodels(of, measured), list(of.options)
    for each in metric.columns:
        assert abs(each.effect) < 0.005
        first, second = (names.index(name) for name in each.interactions[0].removeprefix("-").split(" × "))
        sign = -1 if each.interactions[0].startswith("-") else 1
        column = [sign * of.rows[row][first] * of.rows[row][second] for row, _, _ in measured]
        more = OLS(fit.model.endog, np.column_stack([fit.model.exog, column])).fit()
        assert each.effect == pytest.approx(2 * more.params[-1], rel=1e-6)


def test_an_interaction_that_no_row_is_left_for_is_not_told() -> None:
    of = design("fractional", 4)
    metric = one_metric(of, "tpm", trials(of, {})[:-3], confidence=0.95)
    assert metric is not None
    assert metric.columns == ()


def test_rows_that_differ_by_no_more_than_main_effects_have_no_lack_of_fit() -> None:
    """Where rounding leaves less than nothing of it, and where not."""
    of, found = design("plackett_burman", 10), []
    for seed in (34, 118, 263, 268, 351, 0, 1, 2):
        random = np.random.default_rng(seed)
        measured = [(row, replicate, 1.0 + (random.random() < 0.5)) for replicate in (1, 2) for row in of.rows]
        metric = one_metric(of, "tpm", measured, confidence=0.95)
        assert metric is not None
        found.append(metric.lack_of_fit_p)
    assert all(p is not None and 0 <= p <= 1 for p in found)


def test_what_has_no_logarithm_or_too_few_rows_has_no_effects() -> None:
    of = design("fractional", 15)
    measured = trials(of, {})
    zero = [(row, replicate, 0.0) for row, replicate, _ in measured]
    result = screened(of, {"zero": zero, "few": measured[:9], "tpm": measured}, confidence=0.95)
    assert result.absent == ("zero", "few")
    (first,) = result.metrics
    assert first.metric == "tpm"
    assert result.nominated == tuple(each.option for each in first.effects)
    assert screened(of, {"zero": zero}, confidence=0.95).nominated == ()
    same = one_metric(of, "tpm", [(row, 1, 5.0) for row in of.rows], confidence=0.95)
    assert same is not None
    assert same.standard_error is None
    assert not any(each.stands_out for each in same.effects)


@pytest.mark.parametrize(
    ("kind", "options", "replicates"),
    [("plackett_burman", 7, 2), ("plackett_burman", 7, 1), ("fractional", 7, 1), ("definitive", 6, 2)],
)
def test_rounding_is_no_noise_that_effects_are_judged_by(kind: str, options: int, replicates: int) -> None:
    of = design(kind, options)
    measured = [(row, turn, 4 * 2.0 ** codes[0]) for turn in range(1, replicates + 1) for row, codes in of.rows.items()]
    metric = one_metric(of, "bytes", measured, confidence=0.95)
    assert metric is not None
    assert (metric.effects[0].option, metric.effects[0].ratio) == ("o0", pytest.approx(4))
    assert (metric.standard_error, metric.lack_of_fit_p) == (None, None)
    every = (*metric.effects, *metric.curvature)
    assert not any(each.stands_out or each.interval or each.p_adjusted for each in every)


@pytest.mark.parametrize("replicates", [1, 2])
def test_noise_that_is_hardly_more_than_rounding_is_still_noise(replicates: int) -> None:
    of = design("plackett_burman", 7)
    metric = one_metric(of, "bytes", trials(of, {"o0": 1.0}, replicates=replicates, sd=1e-12), confidence=0.95)
    assert metric is not None
    assert metric.standard_error == pytest.approx(1e-12, rel=0.8)
    assert all(each.interval for each in metric.effects)


def test_lenths_example() -> None:
    effects = np.array([*FILTRATION, 1.375])
    assert float(maxima.pseudo_error(effects)) == pytest.approx(2.625)
    many = maxima.pseudo_error(np.stack([effects, 2 * effects]))
    assert many.tolist() == pytest.approx([2.625, 5.25])
    # Ye and Hamada (2000), table 1 and 2, 15 contrasts: simulated quantiles of one and of the largest.
    assert maxima.lenth_reach(0.95, count=15) == pytest.approx((2.16, 4.24), abs=0.06)
    assert maxima.lenth_reach(0.95, count=7) == pytest.approx((2.30, 4.87), abs=0.1)
    one, largest = maxima.lenth_p(16.625 / 2.625, count=15)
    assert one < largest < 0.02


def test_a_saturated_design_is_judged_by_its_own_effects() -> None:
    of = design("plackett_burman", 11)
    metric = one_metric(of, "tpm", trials(of, {"o4": 0.4}), confidence=0.95)
    assert metric is not None
    assert (metric.error, metric.sd) == ("Lenth", None)
    assert [each.option for each in metric.effects if each.stands_out] == ["o4"]
    assert metric.standard_error == pytest.approx(float(maxima.pseudo_error(effects_of(metric, of))))


@pytest.mark.parametrize(("count", "df", "quantile"), [(5, 10, 3.10), (10, 20, 3.11), (3, 5, 3.40), (1, 12, 2.179)])
def test_the_maximum_modulus_against_its_published_table(count: int, df: int, quantile: float) -> None:
    """Stoline and Ury (1979), 5 %; the last is Student's."""
    assert maxima.modulus_quantile(0.95, count=count, df=df) == pytest.approx(quantile, abs=0.006)
    assert maxima.modulus_p(maxima.modulus_quantile(0.95, count=count, df=df), count=count, df=df) == pytest.approx(
        0.05, abs=1e-6
    )


def test_steps_down_never_fall_and_the_first_is_over_all() -> None:
    t = np.array([0.5, -4.2, 3.9, 1.0])
    adjusted = maxima.step_down(t, df=9)
    assert adjusted[1] == maxima.modulus_p(4.2, count=4, df=9)
    assert adjusted[2] == pytest.approx(maxima.modulus_p(3.9, count=3, df=9))
    assert adjusted[1] < adjusted[2] < adjusted[3] < adjusted[0]


def test_one_slow_trial_makes_no_option_stand_out() -> None:
    """It moves every effect of a saturated design by as much, which normal quantiles take for several real ones."""
    of = design("plackett_burman", 15)
    standing = []
    for slow in range(16):
        measured = [
            (row, 1, value * (0.7 if place == slow else 1.0))
            for place, (row, _, value) in enumerate(trials(of, {}, sd=0.002))
        ]
        metric = one_metric(of, "tpm", measured, confidence=0.95)
        assert metric is not None
        standing += [each.option for each in metric.effects if each.stands_out]
    assert standing == []


def test_an_effect_names_the_interaction_of_stronger_ones_that_it_may_be() -> None:
    of = design("plackett_burman", 3)
    metric = one_metric(of, "tpm", trials(of, {"o1": 0.3, "o2": 0.2, "o0": 0.1}, sd=1e-4), confidence=0.95)
    assert metric is not None
    assert [(each.option, each.mixed_with) for each in metric.effects] == [
        ("o1", ()),
        ("o2", ()),
        ("o0", ("-o1 × o2",)),
    ]


def test_a_definitive_design_compares_the_ends() -> None:
    of = design("definitive", 6)
    metric = one_metric(of, "tpm", trials(of, {"o3": 0.2}, sd=1e-6), confidence=0.95)
    assert metric is not None
    assert (metric.error, metric.effects[0].option, metric.effects[0].high) == ("Lenth", "o3", "high")
    assert metric.effects[0].ratio == pytest.approx(math.exp(0.2), rel=1e-4)


@pytest.mark.parametrize(("options", "missing"), [(6, None), (5, None), (6, 20)])
def test_the_middle_of_three_levels_is_held_against_its_ends(options: int, missing: int | None) -> None:
    of = design("definitive", options)
    bend = math.log(1.25)  # o2 is better in the middle, by a quarter, and its ends are alike
    made = [
        (row, replicate, value * math.exp(bend * (of.rows[row][2] == 0)))
        for row, replicate, value in trials(of, {"o0": 0.2}, replicates=3, sd=0.02)
    ]
    measured = [each for place, each in enumerate(made) if place != missing]
    metric = one_metric(of, "tpm", measured, confidence=0.95)
    assert metric is not None
    assert [each.option for each in metric.effects if each.stands_out] == ["o0"]
    assert [each.option for each in metric.curvature if each.stands_out] == ["o2"]
    first = metric.curvature[0]
    assert (first.option, first.low, first.high) == ("o2", "low, high", "middle")
    fit, pure = by_statsmodels(of, measured), by_statsmodels(of, measured, saturated=True)
    squares = [[1.0 - 2 * code**2 for code in of.rows[row]] for row, _, _ in measured]
    both = OLS(fit.model.endog, np.hstack([fit.model.exog, np.array(squares)])).fit()
    found = {each.option: each.effect for each in metric.curvature}
    assert [found[option] for option in of.options] == pytest.approx(2 * both.params[-options:], rel=1e-9)
    error = 2 * both.bse[-options + 2] * math.sqrt(pure.mse_resid / both.mse_resid)
    reach = stats.t.ppf(0.975, pure.df_resid) * error
    assert first.interval == pytest.approx((math.exp(first.effect - reach), math.exp(first.effect + reach)), rel=1e-9)
    assert first.effect == pytest.approx(bend, abs=4 * error)


def test_curvature_has_no_error_without_replicates_and_none_of_two_levels() -> None:
    of = design("definitive", 6)
    metric = one_metric(of, "tpm", trials(of, {"o0": 0.2}), confidence=0.95)
    assert metric is not None
    assert len(metric.curvature) == 6
    assert not any(each.interval or each.stands_out for each in metric.curvature)
    few = one_metric(of, "tpm", trials(of, {"o0": 0.2})[1:], confidence=0.95)
    assert few is not None
    assert few.curvature == ()
    two = design("plackett_burman", 11)
    ends = one_metric(two, "tpm", trials(two, {}, replicates=2), confidence=0.95)
    assert ends is not None
    assert ends.curvature == ()


def test_few_rows_let_no_effect_stand_out_however_large_it_is() -> None:
    """Every order of four trials has the same largest effect; replicates make it differ."""
    few, more = design("plackett_burman", 3), design("plackett_burman", 7)
    shown = [
        [detectable(of, replicates=replicates, noise=0.03, confidence=0.95) is not None for replicates in (1, 2, 3)]
        for of in (few, more)
    ]
    assert shown == [[False, False, True], [False, True, True]]
    huge = one_metric(few, "tpm", trials(few, {"o0": 5.0}, sd=1e-4), confidence=0.95)
    assert huge is not None
    assert not any(each.stands_out for each in huge.effects)
    assert replicates_for(few, effect=10.0, noise=0.03, confidence=0.95) == 3


def test_the_effect_that_few_rows_show_stands_out_as_often_as_it_should() -> None:
    """Where effects judge themselves: no law has the power of that and of the exchange of trials."""
    of, random, stood = design("plackett_burman", 11), np.random.default_rng(5), 0
    shown = detectable(of, replicates=1, noise=0.03, confidence=0.95)
    assert shown is not None
    assert detectable(of, replicates=1, noise=0.06, confidence=0.95) == pytest.approx((1 + shown) ** 2 - 1)
    for _ in range(200):
        measured = [
            (row, 1, math.exp(math.log1p(shown) / 2 * codes[0] + 0.03 * random.standard_normal()))
            for row, codes in of.rows.items()
        ]
        metric = one_metric(of, "tpm", measured, confidence=0.95)
        assert metric is not None
        stood += next(each.stands_out for each in metric.effects if each.option == "o0")
    assert 0.72 * 200 <= stood <= 0.88 * 200


def test_the_effect_that_stands_out_with_power_does_so_as_often() -> None:
    of = design("fractional", 15)
    shown = detectable(of, replicates=1, noise=0.03, confidence=0.95)
    assert shown == pytest.approx(0.0467, abs=0.0005)  # 32 trials at 3 %: the margin is wider than 4 %
    assert replicates_for(of, effect=0.04, noise=0.03, confidence=0.95) == 2
    random, codes = np.random.default_rng(3), np.array(list(of.rows.values()), dtype=float)
    logs = codes[:, 0] * math.log1p(shown) / 2 + 0.03 * random.standard_normal((20_000, 32))
    half = (logs - logs.mean(axis=1, keepdims=True)) @ codes / 32
    left = logs - logs.mean(axis=1, keepdims=True) - half @ codes.T
    t = 2 * np.abs(half[:, 0]) / (2 * np.sqrt((left**2).sum(axis=1) / 16) / math.sqrt(32))
    assert (t > maxima.modulus_quantile(0.95, count=15, df=16)).mean() == pytest.approx(0.8, abs=0.01)


def test_a_screening_at_a_high_confidence_has_the_power_of_scipys_noncentral_t() -> None:
    shown = detectable(design("fractional", 15), replicates=1, noise=0.03, confidence=0.999)
    assert shown is not None
    shift = math.log1p(shown) / (0.03 * 2 / math.sqrt(32))
    reach = maxima.modulus_quantile(0.999, count=15, df=16)
    assert stats.nct.sf(reach, 16, shift) == pytest.approx(0.8, abs=1e-6)
