"""An audit on made data in which every kind of claim is right, wrong, or cannot be checked."""

import math
import statistics
import textwrap
from pathlib import Path

import pytest

from fairtrial import audit as publications
from fairtrial.audit import Audit
from fairtrial.audit.claims import file as claims_file
from fairtrial.errors import InputError

# Speeds with means 100, 110 and 110.2 (cold), 200, 220 and 150 (warm); a and b differ clearly, b and c (cold) do not.
SPEEDS = {
    ("a", "cold"): [99, 101, 100, 98, 102],
    ("b", "cold"): [109, 111, 110, 108, 112],
    ("c", "cold"): [110, 112, 107, 110, 112],
    ("a", "warm"): [199, 201, 200, 198, 202],
    ("b", "warm"): [219, 221, 220, 218, 222],
    ("c", "warm"): [149, 151, 150, 148, 152],
}
HEAD = """\
title: Speeds
factors: {kind: [a, b, c], cache: [cold, warm]}
metrics: {speed: {unit: MB/s, better: higher}}
"""


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    rows = [f"{kind},{cache},{value}" for (kind, cache), values in SPEEDS.items() for value in values]
    (tmp_path / "raw.csv").write_text("kind,cache,speed\n" + "\n".join(rows) + "\n", encoding="utf-8")
    return tmp_path


def audited(desk: Path, claims: str, *, head: str = HEAD) -> Audit:
    path = desk / "claims.yaml"
    path.write_text(head + "claims:\n" + textwrap.dedent(claims), encoding="utf-8")
    return publications.audit(claims_file.read(path, data=desk / "raw.csv"))


def verdicts(desk: Path, claims: str) -> list[tuple[str, str]]:
    return [(each.verdict, each.computed) for each in audited(desk, claims).findings]


def one(desk: Path, what: str, *, metric: str = "speed", contrast: str = "kind") -> list[tuple[str, str]]:
    return verdicts(desk, f"- {{where: here, metric: {metric}, contrast: {contrast}, {what}}}\n")


@pytest.mark.parametrize(
    ("what", "verdict", "computed"),
    [
        ("values: [{at: {kind: a, cache: cold}, printed: 100.0}]", "confirmed", "100.0"),
        ("values: [{at: {kind: a, cache: cold}, printed: 101}]", "contradicted", "100"),
        ("values: [{at: {kind: c, cache: cold}, printed: 110}]", "confirmed", "110"),
        ("values: [{at: {kind: c, cache: cold}, printed: 110.3}]", "contradicted", "110.2"),
        ("values: [{at: {kind: a}, statistic: count, printed: 10}]", "confirmed", "10"),
        ("values: [{at: {kind: a}, statistic: largest, printed: 202}]", "confirmed", "202"),
        ("values: [{at: {kind: a}, statistic: smallest, printed: 99}]", "contradicted", "98"),
        ("values: [{at: {kind: c, cache: cold}, statistic: median, printed: 110}]", "confirmed", "110"),
        ("values: [{at: {kind: a, cache: cold}, statistic: sum, printed: 500}]", "confirmed", "500"),
        ("values: [{at: {kind: a, cache: cold}, statistic: sd, printed: 1.58}]", "confirmed", "1.58"),
        (
            "values: [{at: {kind: a, cache: cold}, statistic: sd, printed: 1.41}]",
            "contradicted",
            "1.58",
        ),  # n, not n - 1
        ("values: [{at: {kind: d}, printed: 1}]", "not checkable", ""),
        ("values: [{at: {size: big}, printed: 1}]", "not checkable", ""),
    ],
)
def test_table_cells(*, what: str, verdict: str, computed: str, desk: Path) -> None:
    assert one(desk, what) == [(verdict, computed)]


@pytest.mark.parametrize(
    ("cell", "verdict", "computed"),
    [
        ("at: {cache: cold}, second: b, change: 10", "confirmed", "10"),
        ("at: {cache: cold}, second: b, change: 12", "contradicted", "10"),
        ("at: {cache: warm}, second: c, change: -25.0", "confirmed", "-25.0"),
        ("at: {cache: cold}, second: b, ratio: 1.10", "confirmed", "1.10"),
        ("at: {cache: cold}, second: b, ratio: 1.11", "contradicted", "1.10"),
        ("at: {cache: hot}, second: b, ratio: 1.11", "not checkable", ""),
        ("at: {cache: cold}, second: d, ratio: 1.11", "not checkable", ""),
    ],
)
def test_changes_and_ratios(*, cell: str, verdict: str, computed: str, desk: Path) -> None:
    assert one(desk, f"cells: [{{{cell}}}]") == [(verdict, computed)]


def test_an_interval_is_welchs(desk: Path) -> None:
    """By hand: both sds are √2.5, so the standard error is 1 and there are 8 degrees of freedom: t = 2.306."""
    assert statistics.stdev(SPEEDS["a", "cold"]) == math.sqrt(2.5)
    cell = "cells: [{at: {cache: cold}, second: b, interval: [7.69, 12.31], means: [100, 110]}]"
    assert [verdict for verdict, _ in one(desk, cell)] == ["confirmed"] * 4
    wrong = one(desk, "cells: [{at: {cache: cold}, second: b, interval: [7.5, 12.31]}]")
    assert wrong == [("contradicted", "7.7"), ("confirmed", "12.31")]


def test_an_interval_in_percent_is_found_even_where_it_belongs_elsewhere(desk: Path) -> None:
    claim = "cells: [{at: {cache: %s}, second: b, percent: ['7.69', '12.31']}]"
    assert [verdict for verdict, _ in one(desk, claim % "cold")] == ["confirmed", "confirmed"]
    (percent, _) = one(desk, claim % "warm")
    assert percent == ("contradicted", "[8.85, 11.15] %; the printed interval is that of cold")


@pytest.mark.parametrize(
    ("second", "claimed", "verdict"),
    [("b", "true", "confirmed"), ("b", "false", "contradicted"), ("c", "true", "confirmed")],
)
def test_significance(*, second: str, claimed: str, verdict: str, desk: Path) -> None:
    found = one(desk, f"cells: [{{at: {{cache: cold}}, second: {second}, significant: {claimed}}}]")
    assert [each for each, _ in found] == [verdict]


def test_no_significant_difference_is_confirmed_where_there_is_none(desk: Path) -> None:
    head = HEAD.replace("kind: [a, b, c]", "kind: [b, c]")
    raw = (desk / "raw.csv").read_text(encoding="utf-8").splitlines()
    (desk / "raw.csv").write_text("\n".join(line for line in raw if line[:2] != "a,") + "\n", encoding="utf-8")
    claims = """\
    - {where: here, metric: speed, contrast: kind, cells: [{at: {cache: cold}, significant: false}]}
    - {where: here, metric: speed, contrast: kind, cells: [{at: {cache: warm}, significant: false}]}
    - {where: there, metric: speed, contrast: kind, rest: not significant}
    """
    found = audited(desk, claims, head=head).findings
    assert [each.verdict for each in found] == ["confirmed", "contradicted", "confirmed", "contradicted"]
    assert "interval excludes 0" in found[1].why


@pytest.mark.parametrize(
    ("order", "verdict"),
    [
        ("at: {cache: warm}, best_first: [b, a, c]", "confirmed"),
        ("at: {cache: warm}, best_first: [b]", "confirmed"),
        ("at: {cache: warm}, best_first: [a]", "contradicted"),
        ("at: {cache: warm}, best_first: [b, c, a]", "contradicted"),
        ("at: {cache: cold}, best_first: [c]", "not decided"),  # by means, but not separated from b
        ("at: {cache: cold}, best_first: [b]", "not decided"),  # nor c from b
        ("at: {cache: cold}, best_first: [b, a]", "confirmed"),
        ("at: {cache: hot}, best_first: [a]", "not checkable"),
    ],
)
def test_orders(order: str, verdict: str, desk: Path) -> None:
    assert [found for found, _ in one(desk, f"orders: [{{{order}}}]")] == [verdict]


def test_an_order_without_levels_is_claimed_everywhere(desk: Path) -> None:
    assert [found for found, _ in one(desk, "orders: [{best_first: [b, a]}]")] == ["confirmed", "confirmed"]


def test_lower_is_better_where_the_file_says_so(desk: Path) -> None:
    head = HEAD.replace("better: higher", "better: lower")
    claim = "- {where: here, metric: speed, contrast: kind, orders: [{at: {cache: warm}, best_first: [c]}]}\n"
    assert audited(desk, claim, head=head).findings[0].verdict == "confirmed"


@pytest.mark.parametrize(
    ("figure", "verdict", "computed"),
    [
        ("printed: 25.0, is: [125, '% over', 100]", "confirmed", "25.0"),
        ("printed: 26, is: [125, '% over', 100]", "contradicted", "25"),
        ("printed: 40, is: [2, '% of', 5]", "confirmed", "40"),
        ("printed: 3, is: [5, '-', 2]", "confirmed", "3"),
        ("printed: 7, is: [27, '*', 0.25], than: more", "contradicted", "6.75"),
        ("printed: 7, is: [27, '*', 0.25], than: less", "confirmed", "6.75"),
        ("printed: 5, is: [10, '/', 2], than: less", "contradicted", "5"),
        ("printed: 7, is: [27, '/', 0]", "not checkable", ""),
        ("printed: 7, is: [1e308, '*', 1e10]", "not checkable", ""),
        ("printed: 7, is: [1e308, '*', 1e10], than: more", "not checkable", ""),
    ],
)
def test_arithmetic_needs_no_data(*, figure: str, verdict: str, computed: str, desk: Path) -> None:
    assert verdicts(desk, f"- {{where: here, arithmetic: [{{{figure}}}]}}\n") == [(verdict, computed)]


def test_a_range_of_changes_from_0_is_not_checkable(desk: Path) -> None:
    (desk / "raw.csv").write_text("kind,cache,speed\na,cold,0\na,cold,2\nb,cold,3\nb,cold,4\n", encoding="utf-8")
    found = audited(desk, "- {where: here, metric: speed, contrast: kind, pair_range: [1, 2]}\n").findings
    assert [(each.verdict, each.why) for each in found] == [("not checkable", "the first value of a pair is 0")] * 2


@pytest.mark.parametrize(
    ("head", "what", "why"),
    [
        ("title: t\n", "configurations: 12", "no factors are described"),
        ("title: t\n", "values_each: 12", "no metric is described"),
        (HEAD, "values_each: 3", "the publication has no raw data"),
        (HEAD, "metric: speed, values_each: 3", "the publication has no raw data"),
    ],
)
def test_the_size_of_a_design_is_not_contradicted_by_what_is_not_there(
    head: str, what: str, *, why: str, tmp_path: Path
) -> None:
    (tmp_path / "claims.yaml").write_text(f"{head}claims:\n- {{where: here, {what}}}\n", encoding="utf-8")
    found = publications.audit(claims_file.read(tmp_path / "claims.yaml")).findings
    assert [(each.verdict, each.why) for each in found] == [("not checkable", why)]


def test_a_count_of_values_of_an_unknown_metric_is_a_mistake_at_its_line(desk: Path) -> None:
    with pytest.raises(InputError, match=r"unknown metric `sped`; expected one of `speed`"):
        audited(desk, "- {where: here, metric: sped, values_each: 3}\n")


@pytest.mark.parametrize("what", ["rest: not significant", "pair_range: [1, 2]", "milder_at: {cache: warm}"])
def test_without_raw_data_nothing_is_contradicted(what: str, desk: Path) -> None:
    path = desk / "claims.yaml"
    path.write_text(HEAD + f"claims:\n- {{where: here, metric: speed, contrast: kind, {what}}}\n", encoding="utf-8")
    found = publications.audit(claims_file.read(path)).findings
    assert {(each.verdict, each.why) for each in found} == {("not checkable", "the publication has no raw data")}


def test_what_nothing_can_be_held_against_says_why(desk: Path) -> None:
    found = audited(desk, "- {where: here, unchecked: [{what: smoother, because: only a graph}]}\n").findings
    assert [(each.verdict, each.why) for each in found] == [("not checkable", "only a graph")]


def test_printed_figures_keep_their_digits_without_quotes(desk: Path) -> None:
    """5.20 is another claim than 5.2."""
    found = audited(desk, "- {where: here, metric: speed, values: [{at: {kind: a, cache: cold}, printed: 100.00}]}\n")
    assert found.findings[0].printed == found.findings[0].computed == "100.00"


def test_constant_values_cannot_be_tested(desk: Path) -> None:
    (desk / "raw.csv").write_text("kind,cache,speed\n" + "a,cold,5\na,cold,5\nb,cold,5\nb,cold,5\n", encoding="utf-8")
    found = one(
        desk, "cells: [{at: {cache: cold}, second: b, ratio: 1.0, p: 0.5, interval: [0, 0], significant: true}]"
    )
    assert found == [("confirmed", "1.0"), *[("not checkable", "")] * 3]


def problems(desk: Path, *, order: str = "rows", extra: str = "") -> str:
    claim = "- {where: here, metric: speed, contrast: kind, cells: [{at: {cache: cold}, second: b, change: 10}]}\n"
    if extra:
        lines = (desk / "raw.csv").read_text(encoding="utf-8").splitlines()
        rows = [f"{line},{'x' if line[0] == 'a' else extra}" for line in lines[1:]]
        (desk / "raw.csv").write_text("\n".join([f"{lines[0]},machine", *rows]) + "\n", encoding="utf-8")
    return "\n".join(audited(desk, claim, head=HEAD + f"order: {order}\n").problems)


def test_arms_that_were_never_interleaved_are_named(desk: Path) -> None:
    assert "never interleaved" in problems(desk)
    assert "never interleaved" in problems(desk, order="sequential")
    assert "never interleaved" not in problems(desk, order="unknown")


def test_interleaved_arms_are_fine(desk: Path) -> None:
    lines = (desk / "raw.csv").read_text(encoding="utf-8").splitlines()
    (desk / "raw.csv").write_text("\n".join([lines[0], *lines[1::2], *lines[2::2]]) + "\n", encoding="utf-8")
    assert "never interleaved" not in problems(desk)


def test_a_factor_that_changed_together_is_named(desk: Path) -> None:
    assert "machine changed together with kind" in problems(desk, extra="y")


def test_a_column_that_never_changed_is_fine(desk: Path) -> None:
    assert "machine" not in problems(desk, extra="x")


def test_unadjusted_tests_are_counted(desk: Path) -> None:
    """Two levels against the first in two cells: four tests, 1 - 0.95⁴ = 0.19."""
    found = problems(desk)
    assert "4 tests at 5 % without adjustment" in found
    assert "probability 0.19" in found


def test_sorted_values_are_named(desk: Path) -> None:
    rows = [f"{kind},{cache},{value}" for (kind, cache), every in SPEEDS.items() for value in sorted(every)]
    (desk / "raw.csv").write_text("kind,cache,speed\n" + "\n".join(rows) + "\n", encoding="utf-8")
    assert "values of 6 of 6 groups ascend" in problems(desk)


@pytest.mark.parametrize(
    ("claims", "expected"),
    [
        (
            "- {where: here, metric: sped, values: [{printed: 1}]}\n",
            "claims.yaml:5:17: claims.0.metric: unknown metric `sped`",
        ),
        ("- {where: here, metric: speed, contrast: kid, rest: not significant}\n", "did you mean `kind`?"),
        ("- {where: here, colour: red}\n", "unknown key"),
        (
            "- {where: here, metric: speed, values: [{printed: fast}]}\n",
            "claims.yaml:5:51: claims.0.values.0.printed: expected a figure",
        ),
        ("- {metric: speed}\n", "where: required but missing"),
        ("- {where: here, arithmetic: [{printed: 1, is: [1, '^', 2]}]}\n", "expected"),
        (
            "- {where: here, arithmetic: [{printed: 1, is: [nan, '+', 2]}]}\n",
            "arithmetic.0.is.0: expected a finite number, found 'nan'",
        ),
        ("- {where: here, arithmetic: [{printed: '', is: [1, '+', 2]}]}\n", "printed: expected a figure"),
        ("- {where: here, metric: speed, values: [{printed: ''}]}\n", "printed: expected a figure"),
        (
            "- {where: here, metric: speed, contrast: kind, cells: [{pairs: ['']}]}\n",
            "pairs.0: expected a figure",
        ),
    ],
)
def test_mistakes_in_the_claims_are_named_with_their_place(claims: str, expected: str, desk: Path) -> None:
    with pytest.raises(InputError) as refused:
        audited(desk, claims)
    assert expected in str(refused.value)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("kind,cache,sped\na,cold,1\n", "expected a column `speed`, found `kind`, `cache`, `sped`"),
        ("kind,cache,speed\na,cold,1\nb,cold,fast\n", "raw.csv:3:1: speed: expected a number, found `fast`"),
        ('kind,cache,speed\n\n"a",cold,1\n\nb,cold,NA\n', "raw.csv:5:1: speed: expected a number, found `NA`"),
        ("kind,cache,speed\na,cold\n", "raw.csv:2:1: expected 3 fields"),
        ("kind,cache,speed,speed\na,cold,1,2\n", "raw.csv:1:1: two columns have the name `speed`"),
    ],
)
def test_mistakes_in_the_data_are_named_with_their_line(raw: str, expected: str, desk: Path) -> None:
    (desk / "raw.csv").write_text(raw, encoding="utf-8")
    with pytest.raises(InputError) as refused:
        audited(desk, "- {where: here, metric: speed, values: [{printed: 1}]}\n")
    assert expected in str(refused.value)


def test_the_hint_is_about_the_claims_file(desk: Path) -> None:
    with pytest.raises(InputError) as refused:
        audited(desk, "- {where: here, colour: red}\n")
    assert refused.value.hint == "fix the lines listed above; see docs/guides/auditing.md for the format of the file"


def test_a_claim_of_the_only_contrast_has_no_empty_place(tmp_path: Path) -> None:
    (tmp_path / "raw.csv").write_text("kind,speed\na,1\na,2\nb,2\nb,3\n", encoding="utf-8")
    claim = "- {where: here, metric: speed, contrast: kind, cells: [{ratio: 1.7}]}\n"
    (found,) = audited(tmp_path, claim, head=HEAD.replace(", cache: [cold, warm]", "")).findings
    assert found.what == "ratio"


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read the file"):
        claims_file.read(tmp_path / "none.yaml")


def test_a_contrast_that_is_no_factor_does_not_end_the_audit(desk: Path) -> None:
    value = "values: [{at: {kind: a, cache: cold}, printed: 100}]"
    (found,) = audited(desk, f"- {{where: here, metric: speed, contrast: king, {value}}}\n").findings
    assert found.verdict == "confirmed"


def test_data_without_factors_have_no_problems_of_a_design(desk: Path) -> None:
    head = HEAD.replace("factors: {kind: [a, b, c], cache: [cold, warm]}\n", "")
    found = audited(desk, "- {where: here, metric: speed, values: [{at: {}, printed: 148.4}]}\n", head=head)
    assert (found.problems, [each.verdict for each in found.findings]) == ((), ["confirmed"])
