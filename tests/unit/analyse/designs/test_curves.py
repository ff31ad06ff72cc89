"""Curves over a numeric factor: what two arms' growth shows, and what it does not."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from statsmodels.nonparametric.smoothers_lowess import lowess

from fairtrial.analyse import analyse_table
from fairtrial.analyse.designs import detecting, fits, usl
from fairtrial.analyse.designs.crossings import crossings
from fairtrial.analyse.designs.curve_errors import BlockErrors, GroupErrors, reach
from fairtrial.analyse.designs.curve_models import Curves
from fairtrial.analyse.designs.curves import curves
from fairtrial.analyse.designs.measured_logs import MeasuredLogs, measured_logs
from fairtrial.analyse.inference import sensitivity
from fairtrial.analyse.measured import ArmValues
from fairtrial.analyse.models import Counts
from fairtrial.analyse.tidy import Course, CurveRequest, Request, Table
from fairtrial.study.catalogue import MetricDefinition
from fairtrial.study.designs.numeric_factors import CurveModel

USERS = (1, 2, 4, 8, 16, 32, 64)
PLAIN, SPLIT = (100.0, 0.03, 0.0006), (85.0, 0.01, 0.0001)  # cross at 8.97; the first peaks at 40.2
Law = tuple[float, float, float]


def law(of: Law, users: float) -> float:
    rate, sigma, kappa = of
    return rate * users / (1 + sigma * (users - 1) + kappa * users * (users - 1))


def request(model: CurveModel = "usl", users: tuple[int, ...] = USERS) -> Request:
    metric = MetricDefinition(name="tpm", label="tpm", unit="/s", better="higher", kind="wall_clock")
    return Request(
        study="growth",
        question="",
        contrast="lock",
        levels=("plain", "split"),
        cells={str(n): {"users": str(n)} for n in users},
        metrics={"tpm": metric},
        roles={"tpm": "primary"},
        paired=True,
        confidence=0.95,
        margin=0.02,
        curve=CurveRequest("users", model, {str(n): n for n in users}),
    )


def table(laws: Mapping[str, Law], *, blocks: int = 8, noise: float = 0.02, bend: float = 0.0) -> Table:
    """Trials of blocks that share a noise of their own; `bend` lifts one value off the law."""
    random = np.random.default_rng(1)
    made = {}
    for n in USERS:
        shared = random.normal(0, 0.03, blocks)
        made[str(n), "tpm"] = {
            arm: ArmValues(
                arm=arm,
                values=law(of, n) * np.exp(shared + random.normal(0, noise, blocks) + bend * (n == 8)),
                blocks=tuple(range(1, blocks + 1)),
                positions=tuple(range(blocks)),
                absent=0,
            )
            for arm, of in laws.items()
        }
    return made


TWO = {"plain": PLAIN, "split": SPLIT}


def fitted(made: Table, asked: Request) -> Curves:
    (found,) = curves(made, asked)
    return found


def test_parameters_peak_and_crossing_of_two_arms_are_found_with_their_intervals() -> None:
    found = fitted(table(TWO), request())
    plain, split = found.arms
    assert (found.spread, found.n, found.values) == ("blocks", 8, USERS)
    for arm, of in ((plain, PLAIN), (split, SPLIT)):
        for each, true in zip(arm.parameters.values(), of, strict=True):
            assert each.low is not None
            assert each.high is not None
            assert each.low < true < each.high
    assert plain.peak is not None
    assert plain.peak.position == "within"
    assert plain.peak.at.low is not None
    assert plain.peak.at.low < 40.2 < (plain.peak.at.high or 0)
    assert plain.peak.throughput is not None
    assert plain.peak.throughput.estimate == pytest.approx(law(PLAIN, 40.2), rel=0.03)
    assert split.peak is not None
    assert split.peak.position == "beyond"
    assert split.peak.throughput is None
    (pair,) = found.pairs
    assert pair.shown
    (crossing,) = pair.crossings
    assert (crossing.low or 0) < 8.97 < (crossing.high or 0)
    assert [each.verdict for each in pair.parameters] == ["differs"] * 3
    assert {each.family_size for each in pair.parameters} == {3}
    assert pair.parameters[0].change.estimate == pytest.approx(0.85, rel=0.02)


def test_estimates_lie_in_their_intervals_though_the_law_does_not_allow_what_fits_best() -> None:
    """Throughput that grows in more than proportion: sigma would be below 0."""
    found = fitted(table({"plain": (100.0, -0.05, 0.002), "split": SPLIT}, noise=0.01), request())
    (plain, _split) = found.arms
    assert plain.parameters["sigma"].estimate == 0
    assert plain.peak is not None
    assert plain.peak.throughput is not None
    for each in (*plain.parameters.values(), plain.peak.at, plain.peak.throughput):
        assert each.low is not None
        assert each.high is not None
        assert each.low <= each.estimate <= each.high  # type: ignore[operator]
    assert plain.peak.at.estimate == pytest.approx(22.9, abs=0.3)


def test_equal_arms_do_not_differ_and_a_crossing_of_theirs_is_not_shown() -> None:
    (pair,) = fitted(table({"plain": PLAIN, "split": PLAIN}), request()).pairs
    assert [each.verdict for each in pair.parameters] == ["undecided"] * 3
    assert not pair.shown
    assert all(each.low is None or each.high is None for each in pair.crossings)


@pytest.mark.parametrize("model", ["usl", "linear"])
@pytest.mark.parametrize("paired", [True, False])
def test_rounding_is_no_noise_that_curves_are_judged_by(model: CurveModel, *, paired: bool) -> None:
    made = {
        cell: {arm: replace(each, values=np.full(8, each.values[0])) for arm, each in arms.items()}
        for cell, arms in table({"plain": PLAIN, "split": SPLIT}, noise=0).items()
    }
    found = fitted(made, replace(request(model), paired=paired))
    (pair,) = found.pairs
    for each in pair.parameters:
        assert (each.change.low, each.change.high, each.p, each.verdict) == (None, None, 1.0, "undecided")
    assert not pair.shown
    for arm in found.arms:
        assert all(each.low is each.high is None for each in (*arm.parameters.values(), *arm.line))
        assert arm.misfit is None
        assert arm.peak is None or (arm.peak.position, arm.peak.at.low) == ("none", None)


def test_throughput_that_grows_in_more_than_proportion_has_no_peak() -> None:
    plain, split = fitted(table({"plain": (100.0, 0.1, -0.0008), "split": SPLIT}, noise=0.01), request()).arms
    assert plain.peak is not None
    assert (plain.peak.position, plain.peak.at.low, plain.peak.at.high) == ("excluded", None, None)
    assert split.peak is not None
    assert split.peak.position == "beyond"


def test_a_crossing_among_many_pairs_of_curves_takes_more_to_be_shown() -> None:
    made, asked = table({"plain": PLAIN, "split": (94.0, 0.022, 0.0004)}, blocks=6), request()
    many = {f"{n}+{room}": {"users": str(n), "room": str(room)} for n in USERS for room in range(60)}
    alone = fitted(made, asked).pairs[0].shown
    among = curves(
        {(f"{n}+{room}", "tpm"): made[str(n), "tpm"] for n in USERS for room in range(60)}, replace(asked, cells=many)
    )
    assert (alone, among[0].pairs[0].shown) == (True, False)


def test_what_more_blocks_would_show_follows_from_the_intervals_of_changes() -> None:
    counts = Counts(planned=0, finished=0, valid=0, invalid=0, used=0, blocks_voided=0, blocks_replaced=0)
    analysis = analyse_table(table(TWO), request(), Course(counts=counts))
    rate, sigma, _ = detecting.curves(analysis)
    change = analysis.curves[0].pairs[0].parameters[1].change
    assert (rate.scale, sigma.of) == ("ratio", ("tpm", "all", "split", "sigma"))
    reach = sigma.noise / np.sqrt(8) * stats.t.ppf(0.975, 7)
    assert reach == pytest.approx(((change.high or 0) - (change.low or 0)) / 2)
    assert sigma.at(8, alpha=0.05) == pytest.approx(
        sigma.noise / np.sqrt(8) * sensitivity.shift(7, alpha=0.05), rel=1e-6
    )


def test_a_block_that_replaces_another_leaves_all_others_beside_their_rounds() -> None:
    cells = [
        {"plain": ArmValues("plain", np.exp(values), blocks, positions=blocks, absent=0)}
        for values, blocks in (([0.0, 1, 2, 3], (1, 2, 3, 4)), ([1.0, 2, 3, 9], (2, 3, 4, 5)))
    ]
    measured = measured_logs(cells, paired=True)
    assert isinstance(measured, MeasuredLogs)
    assert isinstance(measured.errors, BlockErrors)
    assert measured.errors.deviations + measured.means == pytest.approx(np.array([[1, 1], [2, 2], [3, 3], [0, 9]]))


@pytest.mark.parametrize(
    ("blocks", "confidence", "claims"),
    [(5, 0.95, False), (6, 0.95, True), (5, 0.9, False), (7, 0.99, False), (8, 0.99, True)],
)
def test_fewer_blocks_than_an_exact_test_needs_claim_nothing(blocks: int, confidence: float, *, claims: bool) -> None:
    asked = replace(request(), confidence=confidence)
    (pair,) = fitted(table(TWO, blocks=blocks, noise=0.001), asked).pairs
    assert pair.shown is claims
    assert {each.verdict for each in pair.parameters} == ({"differs"} if claims else {"none"})


def test_no_verdict_rests_on_an_unfinished_run_or_a_failed_expectation() -> None:
    for more in ({"finished": False}, {"unmet": frozenset({"64"})}):
        (found,) = curves(table(TWO), request(), **more)  # type: ignore[arg-type]
        assert not found.pairs[0].shown
        assert {each.verdict for each in found.pairs[0].parameters} == {"none"}


@pytest.mark.parametrize("arm", TWO)
def test_no_curve_goes_through_values_that_were_cut_off_at_a_limit(arm: str) -> None:
    (found,) = curves(table(TWO), request(), cut_off={("64", "tpm", arm), ("64", "other", arm)})
    assert (found.reason, found.arms, found.pairs) == ("some values were cut off at a limit", (), ())
    assert fitted(table(TWO), request()).arms
    (other,) = curves(table(TWO), request(), cut_off={("64", "other", arm)})
    assert other.arms


def test_a_law_that_does_not_fit_is_doubted_and_one_that_does_is_not() -> None:
    counts = Counts(planned=1, finished=1, valid=1, invalid=0, used=1, blocks_voided=0, blocks_replaced=0)

    def codes(made: Table, asked: Request) -> list[tuple[str, str]]:
        found = analyse_table(made, asked, Course(counts=counts)).doubts
        return [(each.code, each.arm) for each in found if each.code.startswith("curve_")]

    assert codes(table(TWO, noise=0.005), request()) == []
    bent = [("curve_misfit", "plain"), ("curve_misfit", "split")]
    assert codes(table(TWO, noise=0.005, bend=0.3), request()) == bent
    assert codes(table(TWO), request("linear")) == bent
    superlinear = {"plain": (100.0, -0.01, 0.001), "split": SPLIT}
    assert codes(table(superlinear, noise=0.001), request()) == [("curve_superlinear", "plain")]


def test_a_curve_over_the_contrast_itself_is_none() -> None:
    assert curves(table(TWO), replace(request(), contrast="users")) == ()


def test_values_without_logarithms_and_missing_cells_are_told() -> None:
    made = dict(table(TWO))
    zero = {arm: replace(each, values=each.values * 0) for arm, each in made["4", "tpm"].items()}
    assert "logarithm" in fitted({**made, ("4", "tpm"): zero}, request()).reason
    none = {arm: replace(each, values=each.values[:0], blocks=()) for arm, each in zero.items()}
    assert "not every arm" in fitted({**made, ("4", "tpm"): none}, request()).reason


def test_values_known_by_class_have_no_curve() -> None:
    """One arm a little slower everywhere crosses to the next class at some values only: another slope, certainly."""
    random, width = np.random.default_rng(1), np.log1p(0.018)

    def classes(arm: str, slower: float, n: int) -> ArmValues:
        logs = np.log(10 * n**0.5 * slower) + random.normal(0, 0.0015, 8)
        values = np.exp(np.ceil(logs / width) * width)
        return ArmValues(arm=arm, values=values, blocks=tuple(range(8)), positions=tuple(range(8)), absent=0)

    users = (1, 2, 4, 8)
    made = {(str(n), "tpm"): {"plain": classes("plain", 1.0, n), "split": classes("split", 1.004, n)} for n in users}
    exact = request("linear", users)
    by_class = replace(exact, metrics={"tpm": exact.metrics["tpm"].model_copy(update={"resolution": 0.018})})
    assert fitted(made, exact).arms
    found = fitted(made, by_class)
    assert (found.arms, found.pairs) == ((), ())
    assert "classes" in found.reason


def test_a_block_that_replaced_another_stands_in_for_it() -> None:
    made = dict(table(TWO))
    late = {arm: replace(each, blocks=(9, *each.blocks[1:])) for arm, each in made["4", "tpm"].items()}
    assert fitted({**made, ("4", "tpm"): late}, request()).n == 8


def test_single_trials_have_the_intervals_of_r_and_claim_nothing() -> None:
    """R's nls gives sigma 0.0564 with a standard error of 0.00769 over 8 degrees of freedom."""
    n = (1, 4, 8, 12, 16, 20, 24, 28, 32, 48, 64)
    x = (20, 78, 130, 170, 190, 200, 210, 230, 260, 280, 310)
    made: Table = {
        (str(at), "tpm"): {arm: ArmValues(arm, np.array([float(each)]), (1,), (0,), 0) for arm in ("plain", "split")}
        for at, each in zip(n, x, strict=True)
    }
    found = fitted(made, replace(request(users=n), paired=False))
    sigma = found.arms[0].parameters["sigma"]
    away = stats.t.ppf(0.975, 8) * 0.007685847977767
    assert found.spread == "scatter"
    assert (sigma.low, sigma.high) == pytest.approx((0.0564054410682 - away, 0.0564054410682 + away), rel=1e-6)
    assert found.arms[0].misfit is None
    assert found.pairs[0].parameters[0].verdict == "none"


def test_errors_of_blocks_are_those_of_a_paired_t_test_and_of_repeats_those_of_welch() -> None:
    random = np.random.default_rng(4)
    first, second = random.normal(0, 1, (2, 6))
    difference = np.array([[-1.0, 1.0]])
    rows = np.stack([first, second], axis=1)
    error, away = reach(BlockErrors(rows - rows.mean(axis=0)), difference, confidence=0.95)
    low, high = stats.ttest_rel(second, first).confidence_interval()
    assert (error * away)[0] == pytest.approx((high - low) / 2)
    variances = np.array([first.var(ddof=1) / 6, second.var(ddof=1) / 6])
    groups = GroupErrors(variances, np.arange(2), np.array([5.0, 5.0]))
    error, away = reach(groups, difference, confidence=0.95)
    low, high = stats.ttest_ind(second, first, equal_var=False).confidence_interval()
    assert (error * away)[0] == pytest.approx((high - low) / 2)


def test_a_straight_line_is_that_of_least_squares() -> None:
    n, means = np.array(USERS, dtype=float), np.array([1.0, 1.4, 2.2, 2.9, 3.1, 4.2, 4.4])
    slope, at_zero = np.polyfit(np.log2(n), means, 1)
    np.testing.assert_allclose(fits.line_fit(n, means).theta, [at_zero, slope])


def test_a_local_regression_is_that_of_statsmodels() -> None:
    n = np.array([1.0, 2, 3, 5, 9, 12, 20, 33])
    means = np.log(n) ** 1.5
    frac = 6 / 8  # six of eight values in each window
    expected = lowess(means, np.log(n), frac=frac, it=0, delta=0.0, return_sorted=False)
    np.testing.assert_allclose(fits.loess_fit(n, means).at(n), expected, rtol=1e-6)


@pytest.mark.parametrize("model", ["usl", "linear", "loess"])
def test_a_fit_moves_with_its_means_as_it_says(model: CurveModel) -> None:
    """The derivatives that all errors rest on, against differences."""
    n = np.array(USERS, dtype=float)
    means = usl.logs(np.array([4.6, 0.03, 0.0006]), n) + 0.01 * np.cos(n)
    at, step = np.array([1.5, 10.0, 60.0]), 1e-6
    fit = fits.FITS[model](n, means)
    for index in range(len(n)):
        moved = fits.FITS[model](n, means + step * np.eye(len(n))[index])
        np.testing.assert_allclose((moved.at(at) - fit.at(at)) / step, fit.moves_at(at)[:, index], atol=0.05)


def test_crossings_are_one_several_or_none_and_open_where_the_range_ends() -> None:
    n = np.geomspace(1, 100, 2001)
    x = np.log(n)
    (one,) = crossings(n, x - np.log(10), np.full(len(n), 0.1))
    assert (one.at, one.low, one.high) == pytest.approx((10, 10 * np.exp(-0.1), 10 * np.exp(0.1)), rel=1e-3)
    two = [each.at for each in crossings(n, (x - 1) * (x - 3), np.full(len(n), 0.1))]
    assert two == pytest.approx([np.exp(1), np.exp(3)], rel=1e-3)
    assert not list(crossings(n, x + 1, np.full(len(n), 0.1)))
    (open_,) = crossings(n, x - np.log(90), np.full(len(n), 0.5))
    assert open_.high is None
    assert open_.low == pytest.approx(90 * np.exp(-0.5), rel=1e-3)


def test_curves_that_coincide_do_not_cross_and_those_that_meet_for_a_while_cross_in_the_middle() -> None:
    n = np.geomspace(1, 100, 1201)
    x = np.log(n)
    for away in (np.zeros(len(n)), np.full(len(n), 0.1)):
        assert not list(crossings(n, np.zeros(len(n)), away))
        assert not list(crossings(n, np.maximum(x - 1, 0), away))  # apart from there on: neither is ever below
    meeting = np.where((x >= 1) & (x <= 3), 0.0, np.where(x < 1, x - 1, x - 3))
    (one,) = crossings(n, meeting, np.zeros(len(n)))
    assert (one.at, one.low, one.high) == pytest.approx((np.exp(2), np.exp(1), np.exp(3)), rel=1e-2)
    (at_a_point,) = crossings(n, x - x[600], np.full(len(n), 0.1))
    assert at_a_point.at == pytest.approx(10)


@pytest.mark.parametrize("away", [0.1, 0.01, 0.002, 1e-5, 0.0])
def test_a_crossing_has_ends_however_narrow_its_interval_is(away: float) -> None:
    n = np.geomspace(1, 100, 1201)  # in steps of 0.0038
    x = np.log(n)
    found = list(crossings(n, (x - 1) * (x - 3), np.full(len(n), away)))
    assert [each.at for each in found] == pytest.approx(np.exp([1, 3]), rel=1e-5)
    inner, outer = np.sqrt(1 - away), np.sqrt(1 + away)
    ends = [each for place in found for each in (place.low, place.high)]
    assert ends == pytest.approx(np.exp([2 - outer, 2 - inner, 2 + inner, 2 + outer]), rel=1e-5)
    assert all((each.low or 0) <= each.at <= (each.high or 0) for each in found)


def test_crossings_whose_intervals_meet_share_one_and_an_end_is_open_where_it_is_not_reached() -> None:
    n = np.geomspace(1, 100, 1201)
    x = np.log(n)
    both = list(crossings(n, (x - 1) * (x - 3), np.full(len(n), 1.2)))
    ends = (pytest.approx(np.exp(2 - np.sqrt(2.2)), rel=1e-4), pytest.approx(np.exp(2 + np.sqrt(2.2)), rel=1e-4))
    assert [(each.low, each.high) for each in both] == [ends, ends]
    unknown = np.where(x > np.log(10) + 0.001, np.inf, 1e-5)  # how sure the curves are is not known from there on
    (one,) = crossings(n, x - np.log(10), unknown)
    assert (one.low, one.high) == (pytest.approx(10, rel=1e-4), None)
    (other,) = crossings(n, x - np.log(10), np.where(np.abs(x - np.log(10)) < 0.01, np.inf, 1e-5))
    assert (other.low, other.high) == pytest.approx((10 * np.exp(-0.01), 10 * np.exp(0.01)), rel=1e-2)


@pytest.mark.parametrize("model", ["usl", "linear"])
def test_a_crossing_of_curves_that_are_known_exactly_has_both_ends(model: CurveModel) -> None:
    (pair,) = fitted(table(TWO, noise=1e-4), request(model)).pairs
    assert pair.shown
    assert all(each.low and each.high and each.low < each.at < each.high for each in pair.crossings)
