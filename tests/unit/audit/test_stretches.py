"""Configurations measured again, apart in time: recognised without being told, and held against claims beside them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from scipy import stats

from fairtrial import audit as publications
from fairtrial.audit import Audit
from fairtrial.audit import text as report
from fairtrial.audit.claims import file as claims_file
from fairtrial.audit.noise_floor import percent
from fairtrial.errors import InputError

HEAD = "factors: {kind: [a, b], cache: [cold, warm]}\nmetrics: {speed: {better: higher}}\n"
FIRST = [99.0, 101, 100, 98, 102]
AGAIN = [105.0, 106, 104, 103, 107]  # 5 % above
OTHER = [103.0, 102, 104, 101, 105]  # b: 3 % above the first stretch of a, 0.5 % above both
FAR = [120.0, 121, 119, 118, 122]
CLAIM = "- {where: here, metric: speed, contrast: kind, cells: [{at: {cache: cold}, change: %s}]}\n"

Row = tuple[str, str, float]


def rows(kind: str, values: Sequence[float], *, cache: str = "cold") -> list[Row]:
    return [(kind, cache, value) for value in values]


def audited(
    desk: Path,
    data: Sequence[Row],
    claims: str = CLAIM % "1",
    *,
    extra: dict[str, Sequence[str]] | None = None,
    head: str = HEAD,
) -> Audit:
    more = extra or {}
    lines = [",".join(["kind,cache,speed", *more])]
    lines += [
        ",".join([*map(str, row), *(values[number] for values in more.values())]) for number, row in enumerate(data)
    ]
    (desk / "raw.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (desk / "claims.yaml").write_text(head + "claims:\n" + claims, encoding="utf-8")
    return publications.audit(claims_file.read(desk / "claims.yaml", data=desk / "raw.csv"))


ABA = [*rows("a", FIRST), *rows("b", OTHER), *rows("a", AGAIN)]


def test_a_baseline_measured_again_at_the_end_is_recognised(tmp_path: Path) -> None:
    (found,) = audited(tmp_path, ABA).repeated
    assert (found.metric, found.levels, found.by) == ("speed", "a, cold", "order of rows")
    assert (found.counts, found.means, found.percent) == ((5, 5), (100.0, 105.0), pytest.approx(5.0))


def test_how_much_comes_from_chance_is_said(tmp_path: Path) -> None:
    """Welch's test of the two stretches, in percent of the first; SciPy's figures."""
    (found,) = audited(tmp_path, ABA).repeated
    expected = stats.ttest_ind(AGAIN, FIRST, equal_var=False)
    interval = expected.confidence_interval()
    assert (found.low, found.high, found.p) == pytest.approx((interval.low, interval.high, expected.pvalue))


def test_three_stretches_count_every_pair(tmp_path: Path) -> None:
    data = [*ABA, *rows("b", OTHER, cache="warm"), *rows("a", FAR)]
    (found,) = audited(tmp_path, data).repeated
    expected = stats.ttest_ind(FAR, FIRST, equal_var=False)
    assert found.counts == (5, 5, 5)
    assert found.percent == pytest.approx(20)
    assert found.p == pytest.approx(3 * expected.pvalue)
    assert (found.low, found.high) == pytest.approx(tuple(expected.confidence_interval(1 - 0.05 / 3)))


def test_a_claim_below_the_floor_carries_a_note_and_keeps_its_verdict(tmp_path: Path) -> None:
    (found,) = audited(tmp_path, ABA, CLAIM % "0.5").findings
    assert found.verdict == "confirmed"
    assert found.note == ("the difference of 0.49 % is not above the noise floor of 5 % (a, cold, measured 2 times)")


def test_a_claim_above_the_floor_carries_none(tmp_path: Path) -> None:
    (found,) = audited(tmp_path, [*rows("a", FIRST), *rows("b", FAR), *rows("a", AGAIN)], CLAIM % "17").findings
    assert (found.verdict, found.note) == ("confirmed", "")


def test_claims_beside_it_are_held_against_the_largest_floor_of_the_metric(tmp_path: Path) -> None:
    data = [*ABA, *rows("a", FIRST, cache="warm"), *rows("b", OTHER, cache="warm")]
    warm = "- {where: here, metric: speed, contrast: kind, cells: [{at: {cache: warm}, change: 3}]}\n"
    (found,) = audited(tmp_path, data, warm).findings
    assert "3 % is not above the noise floor of 5 % (a, cold, measured 2 times)" in found.note


def test_every_kind_of_claimed_difference_is_held_against_it(tmp_path: Path) -> None:
    claims = """\
- where: here
  metric: speed
  contrast: kind
  cells:
  - {at: {cache: cold}, means: ['102.5', '103.0'], change: 0.5, ratio: 1.005, difference: 0.5, interval: [-2, 3]}
  - {at: {cache: cold}, p: 0.7, significant: true}
  - {at: {cache: cold}, significant: false}
  orders: [{at: {cache: cold}, best_first: [b]}]
"""
    findings = audited(tmp_path, ABA, claims).findings
    assert [each.what.rpartition(": ")[2] for each in findings if not each.note] == ["mean", "mean", "claim"]
    assert {each.what.rpartition(": ")[2] for each in findings if each.note} == {
        *("change", "ratio", "difference", "interval", "p", "claim", "best by speed"),
    }


def test_arms_that_share_their_stretches_share_what_passed_between_them(tmp_path: Path) -> None:
    """Both rise by about 5 % on the second day; their ratio moves by 1 %, and 1 % is the floor of their difference."""
    shift = [value * 1.05 for value in FAR]
    day = [*rows("a", FIRST), *rows("b", FAR), *rows("a", [value * 1.06 for value in FIRST]), *rows("b", shift)]
    days = ["1"] * 10 + ["2"] * 10
    found = audited(tmp_path, day, CLAIM % "19.4", extra={"day": days})
    assert [each.percent for each in found.repeated] == pytest.approx([6.0, 5.0])
    assert [each.note for each in found.findings] == [""]
    close = [*rows("a", FIRST), *rows("b", FIRST), *rows("a", AGAIN), *rows("b", [v * 1.056 for v in FIRST])]
    (claim,) = audited(tmp_path, close, CLAIM % "0.3", extra={"day": days}).findings
    assert "0.29 % is not above the noise floor of 0.5" in claim.note
    assert "over" in claim.note


@pytest.mark.parametrize("column", ["day", "session", "run", "Date", "batch"])
def test_a_column_of_sessions_is_recognised(column: str, tmp_path: Path) -> None:
    mixed = [each for pair in zip(rows("a", FIRST), rows("b", OTHER), strict=True) for each in pair] * 2
    found = audited(tmp_path, mixed, extra={column: ["x"] * 10 + ["y"] * 10})
    assert [each.by for each in found.repeated] == [f"column `{column}`"] * 2


def test_a_long_pause_is_recognised_and_an_even_pace_is_not(tmp_path: Path) -> None:
    mixed = [each for pair in zip(rows("a", FIRST), rows("b", OTHER), strict=True) for each in pair] * 2
    night = [f"2026-03-0{day}T10:{minute:02}:00+01:00" for day in (1, 2) for minute in range(10)]
    assert [each.by for each in audited(tmp_path, mixed, extra={"started": night}).repeated] == [
        "pauses in `started`"
    ] * 2
    assert audited(tmp_path, mixed, extra={"started": [str(60 * each) for each in range(20)]}).repeated == ()
    uneven = random.Random(5)
    times = [str(uneven.expovariate(1) + 3 * each) for each in range(20)]
    assert audited(tmp_path, mixed, extra={"time": times}).repeated == ()


def test_times_order_the_rows(tmp_path: Path) -> None:
    """The file is sorted by arm; the clock says that b ran between the two stretches of a."""
    data = [*rows("a", FIRST), *rows("a", AGAIN), *rows("b", OTHER)]
    times = [str(each) for each in (*range(5), *range(10, 15), *range(5, 10))]
    assert audited(tmp_path, data).repeated == ()
    (found,) = audited(tmp_path, data, extra={"time": times}).repeated
    assert (found.levels, found.means) == ("a, cold", (100.0, 105.0))


def test_files_with_the_same_conditions_are_recognised(tmp_path: Path) -> None:
    audited(tmp_path, [*rows("a", FIRST), *rows("b", OTHER)])
    (tmp_path / "raw.csv").rename(tmp_path / "monday.csv")
    audited(tmp_path, [*rows("a", AGAIN), *rows("b", OTHER)])
    (tmp_path / "claims.yaml").write_text(
        f"data: [monday.csv, raw.csv]\n{HEAD}claims:\n{CLAIM % '0.5'}", encoding="utf-8"
    )
    found = publications.audit(claims_file.read(tmp_path / "claims.yaml"))
    assert [(each.levels, each.by, each.means) for each in found.repeated] == [
        ("a, cold", "files", (100.0, 105.0)),
        ("b, cold", "files", (103.0, 103.0)),
    ]
    (tmp_path / "raw.csv").write_text("kind,cache,speed\na,cold,fast\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"raw.csv:2:1: speed: expected a number"):
        claims_file.read(tmp_path / "claims.yaml")


def test_files_need_the_same_columns(tmp_path: Path) -> None:
    audited(tmp_path, ABA, extra={"day": ["1"] * 15})
    (tmp_path / "raw.csv").rename(tmp_path / "monday.csv")
    audited(tmp_path, ABA)
    (tmp_path / "claims.yaml").write_text(f"data: [monday.csv, raw.csv]\n{HEAD}claims:\n{CLAIM % 1}", encoding="utf-8")
    with pytest.raises(
        InputError, match=r"raw.csv:1:1: columns differ from those of .*monday.csv: `day` in only one file"
    ):
        claims_file.read(tmp_path / "claims.yaml")


@pytest.mark.parametrize(
    ("value", "expected"), [(0.294, "0.29 %"), (9.96, "10 %"), (12.4, "12 %"), (120.3, "120 %"), (1234.0, "1234 %")]
)
def test_percentages_have_two_digits_and_no_exponent(value: float, expected: str) -> None:
    assert percent(value) == expected
    assert percent(-value, sign="+") == f"-{expected}"


def test_cells_with_interleaved_arms_that_come_back_are_recognised(tmp_path: Path) -> None:
    def cell(cache: str) -> list[Row]:
        return [each for a, b in zip(FIRST, OTHER, strict=True) for each in (("a", cache, a), ("b", cache, b))]

    found = audited(tmp_path, [*cell("cold"), *cell("warm"), *cell("cold")]).repeated
    assert [each.levels for each in found] == ["a, cold", "b, cold"]


@pytest.mark.parametrize("seed", range(5))
def test_interleaved_trials_are_no_stretches(seed: int, tmp_path: Path) -> None:
    """Blocks, random order, alternation, ABBA, blocks of two: none is a configuration measured again."""
    order = random.Random(seed)
    cells = [("a", "cold"), ("b", "cold"), ("a", "warm"), ("b", "warm")]
    blocked = [each for _ in range(8) for each in order.sample(cells, 4)]
    shuffled = order.sample(cells * 8, 32)
    cellwise = [each for pair in (cells[:2], cells[2:]) for each in order.sample(pair * 8, 16)]
    for design in (
        blocked,
        shuffled,
        cellwise,
        cells[:2] * 8,
        [*cells[:2], *cells[1::-1]] * 4,
        [cells[0]] * 2 + [cells[1]] * 2,
    ):
        data = [(kind, cache, order.gauss(100, 2)) for kind, cache in design * (5 if len(design) == 4 else 1)]
        assert audited(tmp_path, data).repeated == ()


def test_each_configuration_once_is_no_repetition(tmp_path: Path) -> None:
    assert audited(tmp_path, [*rows("a", FIRST), *rows("b", OTHER), *rows("a", AGAIN, cache="warm")]).repeated == ()


def test_stretches_that_are_blocks_are_none(tmp_path: Path) -> None:
    """Three trials of an arm in each block, and as many blocks as trials: interleaving."""
    data = [*rows("a", FIRST[:3]), *rows("b", OTHER[:3])] * 3
    assert audited(tmp_path, data).repeated == ()
    two = [*rows("a", FIRST[:3]), *rows("b", OTHER[:3])] * 2
    assert len(audited(tmp_path, two).repeated) == 2
    block = ["1"] * 6 + ["2"] * 6
    assert audited(tmp_path, two, extra={"block": block}, head=HEAD + "block: block\n").repeated == ()


def test_what_changed_between_stretches_makes_another_configuration(tmp_path: Path) -> None:
    kernels = ["6.1"] * 5 + ["6.1"] * 5 + ["6.2"] * 5
    assert audited(tmp_path, ABA, extra={"kernel": kernels}).repeated == ()
    assert len(audited(tmp_path, ABA, extra={"kernel": ["6.1"] * 15}).repeated) == 1


def test_rows_sorted_by_value_show_no_time(tmp_path: Path) -> None:
    data = [*rows("a", [1.0, 2, 3]), *rows("b", [4.0, 5, 6]), *rows("a", [7.0, 8, 9])]
    assert audited(tmp_path, data).repeated == ()
    (found,) = audited(tmp_path, data, extra={"time": [*"123456789"]}).repeated
    assert (found.levels, found.by) == ("a, cold", "order of times")


def test_a_metric_that_never_changes_does_not_say_that_rows_are_sorted(tmp_path: Path) -> None:
    head = HEAD.replace("}}", "}, errors: {better: lower}}")
    (found,) = audited(tmp_path, ABA, extra={"errors": ["0"] * len(ABA)}, head=head).repeated
    assert found.by == "order of rows"


def test_one_stray_trial_is_no_stretch(tmp_path: Path) -> None:
    assert audited(tmp_path, [*rows("a", FIRST), *rows("b", OTHER), *rows("a", AGAIN[:2])]).repeated == ()


def test_two_trials_in_a_row_are_no_stretch(tmp_path: Path) -> None:
    for first, other in ((2, 2), (2, 3), (3, 2)):
        data = [*rows("a", FIRST[:first]), *rows("b", OTHER[:other]), *rows("a", AGAIN[:first])]
        assert audited(tmp_path, data).repeated == ()
    assert len(audited(tmp_path, [*rows("a", FIRST[:3]), *rows("b", OTHER[:3]), *rows("a", AGAIN[:3])]).repeated) == 1


def test_one_other_trial_between_makes_no_two_stretches(tmp_path: Path) -> None:
    assert audited(tmp_path, [*rows("a", FIRST), *rows("b", OTHER[:1]), *rows("a", AGAIN)]).repeated == ()


@pytest.mark.parametrize(("pause", "expected"), [(5, 0), (15, 0), (25, 2)])
def test_how_long_a_pause_has_to_be(pause: int, expected: int, tmp_path: Path) -> None:
    """In median pauses: a break for coffee is none."""
    mixed = [each for pair in zip(rows("a", FIRST), rows("b", OTHER), strict=True) for each in pair] * 2
    times = [str(each + (pause if each > 9 else 0)) for each in range(20)]
    assert len(audited(tmp_path, mixed, extra={"time": times}).repeated) == expected


def test_the_audit_prints_the_floor_and_the_claims_below_it(tmp_path: Path) -> None:
    found = audited(tmp_path, ABA, CLAIM % "0.5")
    shown = "\n".join(report.text(found))
    assert "noise floor: configurations measured in more than one stretch" in shown
    assert "5 + 5" in shown
    assert "+5 % [+2.7 %, +7.3 %]" in shown
    assert "claimed differences not above it (1)" in shown
    assert "is not above the noise floor of 5 %" in shown
    page = report.page(found, name="x")
    assert "## Noise floor" in page
    assert "| confirmed; the difference of 0.49 % is not above" in page
    assert "noise floor" not in "\n".join(report.text(audited(tmp_path, ABA[:10])))


def test_a_mean_of_zero_and_constant_stretches_do_no_harm(tmp_path: Path) -> None:
    assert audited(tmp_path, [*rows("a", [0.0] * 3), *rows("b", OTHER), *rows("a", AGAIN)]).repeated == ()
    (found,) = audited(tmp_path, [*rows("a", [4.0] * 3), *rows("b", OTHER), *rows("a", [5.0] * 3)]).repeated
    assert (found.percent, found.low, found.p) == (25.0, None, None)
    assert "+25 %" in "\n".join(
        report.text(audited(tmp_path, [*rows("a", [4.0] * 3), *rows("b", OTHER), *rows("a", [5.0] * 3)]))
    )
