"""Medians, percentiles, intervals at any level, standard errors and tests: right ones, and planted false ones.

Figures are SciPy's, which computes none of them by our code.
"""

from __future__ import annotations

import textwrap
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from fairtrial import audit as publications
from fairtrial.audit import Audit, methods
from fairtrial.audit.claims import file as claims_file
from fairtrial.errors import InputError

A = [100.0, 110, 95, 105, 120, 90]
B = [103.0, 114, 97, 110, 123, 94]  # blocks differ by far more than the arms do
BLOCKED = {"a": A, "b": B}
HEAD = "factors: {kind: [a, b]}\nmetrics: {speed: {unit: MB/s}}\n"


def write(desk: Path, values: dict[str, list[float]] = BLOCKED, blocks: dict[str, list[str]] | None = None) -> Path:
    named = blocks or {kind: [str(number) for number in range(len(every))] for kind, every in values.items()}
    rows = [
        f"{block},{kind},{value}"
        for kind, every in values.items()
        for block, value in zip(named[kind], every, strict=True)
    ]
    (desk / "raw.csv").write_text("block,kind,speed\n" + "\n".join(rows) + "\n", encoding="utf-8")
    return desk


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    return write(tmp_path)


def audited(desk: Path, claims: str, *, head: str = HEAD + "block: block\n") -> Audit:
    path = desk / "claims.yaml"
    path.write_text(head + "claims:\n" + textwrap.dedent(claims), encoding="utf-8")
    return publications.audit(claims_file.read(path, data=desk / "raw.csv"))


def found(desk: Path, what: str, *, head: str = HEAD + "block: block\n") -> list[tuple[str, str, str]]:
    claim = f"- {{where: here, metric: speed, contrast: kind, {what}}}\n"
    return [(each.verdict, each.computed, each.why) for each in audited(desk, claim, head=head).findings]


def verdicts(desk: Path, what: str) -> list[str]:
    return [verdict for verdict, _, _ in found(desk, what)]


@pytest.mark.parametrize(
    ("statistic", "printed", "false"),
    [
        ("median", "102.5", "102.4"),
        ("median", "103", "101"),  # halfway between 102 and 103
        ("median", "102", "104"),
        ("standard_error", "4.41", "4.40"),
        ("standard_error", "4.41", "4.03"),  # n instead of n - 1
        ("sd", "10.8", "9.9"),
        ("p50", "102.5", "102.4"),
        ("p90", "115", "114"),
        ("p90", "119.0", "118.0"),
        ("p99.5", "119.8", "119.9"),
    ],
)
def test_statistics_of_one_arm(*, statistic: str, printed: str, false: str, desk: Path) -> None:
    claim = "values: [{at: {kind: a}, statistic: %s, printed: %s}]"
    assert verdicts(desk, claim % (statistic, printed)) == ["confirmed"]
    assert verdicts(desk, claim % (statistic, false)) == ["contradicted"]


def test_the_figures_above_are_scipys() -> None:
    assert stats.sem(A) == pytest.approx(4.41, abs=0.005)
    assert stats.sem(A, ddof=0) == pytest.approx(4.03, abs=0.005)
    assert np.percentile(A, [50, 90, 99.5]) == pytest.approx([102.5, 115, 119.75])


def test_percentiles_follow_one_of_the_usual_definitions_and_the_finding_names_it(desk: Path) -> None:
    """Nearest rank: the 90th percentile of six values is the sixth, 120; no definition gives 117."""
    claim = "values: [{at: {kind: a}, statistic: p90, printed: %s}]"
    assert found(desk, claim % 120) == [("confirmed", "120 (inverted cdf)", "")]
    assert found(desk, claim % 117) == [("contradicted", "115", "the data give a different value")]


@pytest.mark.parametrize(
    ("percentiles", "printed", "expected"),
    [
        ("[5, 95]", "[91.3, 117.5]", ["confirmed", "confirmed"]),
        ("[25, 75]", "[96.3, 108.8]", ["confirmed", "confirmed"]),
        ("[0, 100]", "[90, 120]", ["confirmed", "confirmed"]),
        ("[5, 95]", "[91.3, 118.0]", ["confirmed", "contradicted"]),
        ("[5, 95]", "[92.0, 117.5]", ["contradicted", "confirmed"]),
        ("[5, 95]", "[90, 117.5]", ["contradicted", "confirmed"]),  # the ends by two definitions
    ],
)
def test_an_interval_of_trials(*, percentiles: str, printed: str, expected: list[str], desk: Path) -> None:
    claim = f"intervals: [{{at: {{kind: a}}, percentiles: {percentiles}, printed: {printed}}}]"
    assert verdicts(desk, claim) == expected


@pytest.mark.parametrize("confidence", ["50", "90", "95", "99", "99.9 %"])
def test_a_confidence_interval_of_the_mean_at_any_level(confidence: str, desk: Path) -> None:
    level = float(confidence.removesuffix(" %")) / 100
    low, high = stats.t.interval(level, len(A) - 1, loc=np.mean(A), scale=stats.sem(A))
    claim = "intervals: [{at: {kind: a}, confidence: '%s', %s}]"
    assert verdicts(desk, claim % (confidence, f"printed: [{low:.3f}, {high:.3f}]")) == ["confirmed"] * 2
    assert verdicts(desk, claim % (confidence, f"plus_minus: {(high - low) / 2:.2f}")) == ["confirmed"]
    assert verdicts(desk, claim % (confidence, f"printed: [{low + 0.1:.3f}, {high:.3f}]")) == [
        "contradicted",
        "confirmed",
    ]
    assert verdicts(desk, claim % (confidence, f"plus_minus: {(high - low) / 2 + 0.1:.2f}")) == ["contradicted"]


def test_an_interval_at_another_level_than_printed_is_found(desk: Path) -> None:
    low, high = stats.t.interval(0.95, len(A) - 1, loc=np.mean(A), scale=stats.sem(A))
    claim = f"intervals: [{{at: {{kind: a}}, confidence: 99, printed: [{low:.1f}, {high:.1f}]}}]"
    assert verdicts(desk, claim) == ["contradicted"] * 2


def test_an_interval_by_the_normal_quantile_is_contradicted(desk: Path) -> None:
    half = stats.norm.ppf(0.975) * stats.sem(A)
    claim = f"intervals: [{{at: {{kind: a}}, confidence: 95, plus_minus: {half:.1f}}}]"
    assert found(desk, claim) == [("contradicted", "11.3", "the data give a different value")]


def test_a_confidence_interval_of_the_median_is_of_order_statistics(desk: Path) -> None:
    """Six values: the outermost hold the median with 1 - 2/64 = 96.9 %; 99 % needs eight."""
    claim = "intervals: [{at: {kind: a}, of: median, confidence: %s, printed: [%s]}]"
    assert verdicts(desk, claim % (95, "90, 120")) == ["confirmed", "confirmed"]
    assert verdicts(desk, claim % (75, "95, 110")) == ["confirmed", "confirmed"]
    assert verdicts(desk, claim % (95, "95, 110")) == ["contradicted", "contradicted"]
    ((verdict, _, why),) = found(desk, claim % (99, "90, 120"))
    assert (verdict, why) == ("not checkable", "a 99 % interval of the median needs at least 8 values, found 6")
    eight = {"a": [*A, 91.0, 92.0], "b": B}
    assert verdicts(write(desk, eight), claim % (99, "90, 120")) == ["confirmed", "confirmed"]


def test_one_value_has_no_interval_and_no_standard_error(desk: Path) -> None:
    write(desk, {"a": [100.0], "b": B})
    assert verdicts(desk, "intervals: [{at: {kind: a}, confidence: 95, plus_minus: 1}]") == ["not checkable"]
    assert verdicts(desk, "values: [{at: {kind: a}, statistic: standard_error, printed: 1}]") == ["not checkable"]
    assert verdicts(desk, "intervals: [{at: {kind: x}, percentiles: [5, 95], printed: [1, 2]}]") == ["not checkable"]


SCIPY = {
    "welch": stats.ttest_ind(B, A, equal_var=False),
    "student": stats.ttest_ind(B, A),
    "paired": stats.ttest_rel(B, A),
}


@pytest.mark.parametrize("test", SCIPY)
@pytest.mark.parametrize("confidence", [90, 95, 99])
def test_every_figure_of_every_test(*, test: str, confidence: int, desk: Path) -> None:
    expected = SCIPY[test]
    low, high = expected.confidence_interval(confidence / 100)
    claim = (
        f"cells: [{{test: {test}, confidence: {confidence}, interval: [{low:.3f}, {high:.3f}], "
        f"t: {expected.statistic:.3f}, df: {expected.df:.2f}, p: {expected.pvalue:.5f}, difference: 3.50, "
        f"standard_error: {3.5 / expected.statistic:.4f}, significant: {str(low > 0).lower()}}}]"
    )
    assert verdicts(desk, claim) == ["confirmed"] * 8


@pytest.mark.parametrize("test", SCIPY)
def test_a_test_of_another_name_is_found(test: str, desk: Path) -> None:
    """Figures of one test, called another's: t tells Welch's from none other where sizes are equal, df does."""
    for other in set(SCIPY) - {test}:
        claim = f"cells: [{{test: {other}, p: {SCIPY[test].pvalue:.7f}, df: {SCIPY[test].df:.4f}}}]"
        assert verdicts(desk, claim) == ["contradicted", "contradicted"]


def test_a_planted_significance_is_found(desk: Path) -> None:
    """The arms differ by blocks, and not otherwise."""
    assert verdicts(desk, "cells: [{test: paired, significant: true}]") == ["confirmed"]
    assert verdicts(desk, "cells: [{test: paired, significant: false}]") == ["contradicted"]
    assert verdicts(desk, "cells: [{test: welch, significant: true}]") == ["contradicted"]
    assert verdicts(desk, "cells: [{test: paired, confidence: 99.9999, significant: true}]") == ["contradicted"]


def test_the_sign_of_t_is_not_compared_and_its_size_is(desk: Path) -> None:
    t = SCIPY["paired"].statistic
    assert verdicts(desk, f"cells: [{{test: paired, t: {-t:.2f}}}]") == ["confirmed"]
    assert verdicts(desk, f"cells: [{{test: paired, t: {-t - 0.1:.2f}}}]") == ["contradicted"]


def test_medians_and_a_difference_need_no_test(desk: Path) -> None:
    write(desk, {"a": [5.0, 5, 5], "b": [6.0, 6, 6]})
    assert found(desk, "cells: [{medians: [5, 7], difference: 1.0, ratio: 1.2, p: 0.01}]") == [
        ("confirmed", "5", ""),
        ("contradicted", "6", "the data give a different value"),
        ("confirmed", "1.2", ""),
        ("confirmed", "1.0", ""),
        ("not checkable", "", "no test is possible: an arm has fewer than two values, or neither has any spread"),
    ]


def test_percent_is_of_the_test_and_level_named(desk: Path) -> None:
    low, high = (100 * each / np.mean(A) for each in SCIPY["paired"].confidence_interval(0.9))
    claim = f"cells: [{{test: paired, confidence: %s, percent: ['{low:.2f}', '{high:.2f}']}}]"
    assert verdicts(desk, claim % 90) == ["confirmed", "confirmed"]
    assert verdicts(desk, claim % 95) == ["contradicted", "confirmed"]


def test_percent_of_a_negative_mean_goes_from_low_to_high(desk: Path) -> None:
    write(desk, {kind: [-value for value in every] for kind, every in BLOCKED.items()})
    test = stats.ttest_rel([-value for value in B], [-value for value in A]).confidence_interval(0.95)
    low, high = sorted(100 * end / -np.mean(A) for end in test)
    what = f"cells: [{{test: paired, percent: ['{low:.2f}', '{high:.2f}']}}]"
    assert verdicts(desk, what)[0] == "confirmed"


def test_without_blocks_a_paired_test_is_not_checkable_and_the_rest_is(desk: Path) -> None:
    claim = "cells: [{test: paired, means: ['103.3', '106.8'], difference: 3.5, t: 8.2, significant: true}]"
    every = found(desk, claim, head=HEAD)
    assert [verdict for verdict, _, _ in every] == ["confirmed"] * 2 + ["not checkable"] * 3
    assert all("`block: COLUMN`" in why for _, _, why in every[2:])


def test_a_block_with_two_trials_of_an_arm_makes_no_pairs(desk: Path) -> None:
    write(desk, blocks={"a": list("012234"), "b": list("012345")})
    ((verdict, _, why),) = found(desk, "cells: [{test: paired, t: 8}]")
    assert (verdict, why) == ("not checkable", "expected one trial of a in block 2, found 2")


def test_blocks_that_only_one_arm_has_are_left_out(desk: Path) -> None:
    write(desk, blocks={"a": list("012345"), "b": list("612345")})
    expected = stats.ttest_rel(B[1:], A[1:])
    claim = f"cells: [{{test: paired, t: {expected.statistic:.3f}, df: 4, difference: 3.6}}]"
    assert verdicts(desk, claim) == ["confirmed"] * 3
    write(desk, blocks={"a": list("012345"), "b": list("6789xy")})
    assert verdicts(desk, "cells: [{test: paired, t: 8, difference: 3.5}]") == ["not checkable"] * 2


def test_blocks_are_paired_by_name_and_not_by_order(desk: Path) -> None:
    write(desk, {"a": A, "b": B[::-1]}, blocks={"a": list("012345"), "b": list("543210")})
    assert verdicts(desk, f"cells: [{{test: paired, t: {SCIPY['paired'].statistic:.3f}}}]") == ["confirmed"]


@pytest.mark.parametrize(
    ("what", "expected"),
    [
        ("values: [{statistic: medium, printed: 1}]", "statistic: unknown statistic `medium`; expected one of `mean`"),
        ("values: [{statistic: medium, printed: 1}]", "did you mean `median`?"),
        ("values: [{statistic: p101, printed: 1}]", "or a percentile such as `p95`"),
        ("intervals: [{printed: [1, 2]}]", "expected `percentiles: [5, 95]` or `confidence: 95`, and only one"),
        (
            "intervals: [{percentiles: [5, 95], confidence: 95, printed: [1, 2]}]",
            "expected `percentiles: [5, 95]` or `confidence: 95`, and only one",
        ),
        ("intervals: [{confidence: 95}]", "expected `printed: [LOW, HIGH]` or `plus_minus: HALF`, and only one"),
        ("intervals: [{percentiles: [95, 5], printed: [1, 2]}]", "the lower one first; found 95 and 5"),
        ("intervals: [{percentiles: [5, 95], plus_minus: 2}]", "percentiles need `printed: [LOW, HIGH]`"),
        ("intervals: [{of: median, confidence: 95, plus_minus: 2}]", "`of: median` needs `printed: [LOW, HIGH]`"),
        ("intervals: [{confidence: 0.95, plus_minus: 2}]", "expected a confidence level in percent, from 50 to below"),
        ("cells: [{confidence: 100, p: 0.1}]", "such as 99; found 100"),
        ("cells: [{test: wilcoxon, p: 0.1}]", "cells.0.test: expected 'welch', 'student' or 'paired'"),
        (
            "intervals: [{confidence: 99.99999999999999999, of: median, printed: [1, 2]}]",
            "expected a confidence level in percent, from 50 to below",
        ),
        ("intervals: [{percentiles: [5, many], printed: [1, 2]}]", "expected a figure"),
    ],
)
def test_mistakes_are_named_with_file_line_and_field(what: str, expected: str, desk: Path) -> None:
    with pytest.raises(InputError) as refused:
        found(desk, what)
    assert expected in str(refused.value)
    assert "claims.yaml:5:" in str(refused.value)
    assert "claims.0." in str(refused.value)


def test_a_factor_without_levels_and_data_leaves_claims_not_checkable(tmp_path: Path) -> None:
    claims = tmp_path / "claims.yaml"
    claims.write_text(
        "factors: {a: []}\nmetrics: {speed: {}}\nclaims:\n"
        "- {where: here, metric: speed, contrast: a, values: [{printed: 1}]}\n",
        encoding="utf-8",
    )
    assert [each.verdict for each in publications.audit(claims_file.read(claims)).findings] == ["not checkable"]


def test_a_column_of_blocks_that_is_not_there_is_named_at_its_line(desk: Path) -> None:
    with pytest.raises(InputError) as refused:
        found(desk, "cells: [{test: paired, t: 1}]", head=HEAD + "block: blocks\n")
    assert "claims.yaml:3:1: block: unknown column `blocks`" in str(refused.value)
    assert "did you mean `block`?" in str(refused.value)


def test_the_rest_is_what_cells_do_not_list_level_by_level(tmp_path: Path) -> None:
    desk, head = write(tmp_path, BLOCKED | {"c": [200.0, 210, 195, 205, 220, 190]}), HEAD.replace("[a, b]", "[a, b, c]")

    def rest(*seconds: str) -> list[tuple[str, str]]:
        cells = ", ".join(f"{{second: {second}}}" for second in seconds)
        claim = f"- {{where: here, metric: speed, contrast: kind, cells: [{cells}], rest: not significant}}\n"
        return [(each.what, each.verdict) for each in audited(desk, claim, head=head).findings]

    assert rest("b") == [("c: claim", "contradicted")]
    assert rest("c") == [("b: claim", "confirmed")]
    assert rest("b", "c") == [("the rest", "contradicted")]


def test_intervals_name_their_metric(desk: Path) -> None:
    with pytest.raises(InputError, match="unknown metric `speeds`"):
        audited(desk, "- {where: here, metric: speeds, intervals: [{confidence: 95, plus_minus: 2}]}\n")


def test_a_printed_interval_with_0_inside_claims_no_effect(desk: Path) -> None:
    low, high = (100 * end / np.mean(A) for end in SCIPY["welch"].confidence_interval())
    printed = f"percent: [{low:.2f}, {high:.2f}]"
    assert verdicts(desk, f"cells: [{{{printed}}}]") == ["confirmed"]
    assert verdicts(desk, f"cells: [{{{printed}, significant: false}}]") == ["confirmed"] * 2
    assert verdicts(desk, "cells: [{percent: [0.10, 9.00]}]") == ["contradicted"] * 2


def test_a_change_of_a_trial_that_the_data_lack_is_not_passed_over(desk: Path) -> None:
    write(desk, {"a": [100.0, 200], "b": [110.0, 210, 310]})
    assert [verdict for verdict, _, _ in found(desk, 'cells: [{pairs: ["10", "5", "55"]}]')] == [
        "confirmed",
        "confirmed",
        "not checkable",
    ]


def test_trials_side_by_side_need_no_test(desk: Path) -> None:
    write(desk, {"a": [100.0], "b": [117.0]})
    assert verdicts(desk, 'pair_range: ["17", "17"]') == ["confirmed"] * 2
    assert found(desk, "rest: not significant") == [("not checkable", "", methods.NO_TEST)]


def test_the_rest_has_a_finding_for_every_comparison_of_the_data(desk: Path) -> None:
    write(desk, {"a": [1.0, 2, 3], "b": [1.1, 2.1, 3.2], "c": [7.0]})
    head = HEAD.replace("b]", "b, c, d]")
    assert [verdict for verdict, _, _ in found(desk, "rest: not significant", head=head)] == [
        "confirmed",
        "not checkable",
    ]


def test_rows_of_a_level_that_nobody_named_are_said_to_be_left_out(desk: Path) -> None:
    write(desk, {"a": A, "b": B, "b ": [1.0]})
    problems = audited(desk, "- {where: here, metric: speed, contrast: kind, cells: [{change: 3.4}]}\n").problems
    assert any(each.startswith("1 of 13 rows are left out: kind has `b ` there") for each in problems)
