"""Orders that the data confirm, contradict, or cannot separate: the last are not decided, and no finding."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path

import numpy as np
import pytest

from fairtrial import audit as publications
from fairtrial.audit import Audit
from fairtrial.audit import text as report
from fairtrial.audit.claims import file as claims_file
from fairtrial.cli.reading import audit as command
from fairtrial.errors import InputError

SPEEDS: dict[str, list[float]] = {
    "a": [99, 101, 100, 98, 102],
    "b": [100, 102, 101, 97, 104],  # mean 100.8: not separated from a
    "c": [119, 121, 120, 118, 122],
}


def audited(desk: Path, what: str, *, values: dict[str, list[float]] = SPEEDS, head: str = "") -> Audit:
    rows = [f"{n},{kind},{value}" for kind, every in values.items() for n, value in enumerate(every)]
    (desk / "raw.csv").write_text("block,kind,speed\n" + "\n".join(rows) + "\n", encoding="utf-8")
    kinds = ", ".join(values)
    (desk / "claims.yaml").write_text(
        f"factors: {{kind: [{kinds}]}}\nmetrics: {{speed: {{better: higher}}}}\n{head}claims:\n"
        f"- {{where: here, metric: speed, contrast: kind, {what}}}\n",
        encoding="utf-8",
    )
    return publications.audit(claims_file.read(desk / "claims.yaml", data=desk / "raw.csv"))


def verdict(desk: Path, *best_first: str, values: dict[str, list[float]] = SPEEDS, head: str = "") -> str:
    found = audited(desk, f"orders: [{{best_first: [{', '.join(best_first)}]}}]", values=values, head=head)
    (finding,) = found.findings
    return finding.verdict


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        (["c"], "confirmed"),
        (["c", "a"], "confirmed"),
        (["b", "a"], "not decided"),  # as the means are
        (["a", "b"], "not decided"),  # against the means: contradicted before
        (["c", "b", "a"], "not decided"),
        (["c", "a", "b"], "not decided"),
        (["a"], "contradicted"),
        (["b", "c"], "contradicted"),
        (["b", "a", "c"], "contradicted"),
        (["a", "c", "b"], "contradicted"),  # one step is turned round, the other is right
    ],
)
def test_what_an_order_comes_to(order: list[str], expected: str, tmp_path: Path) -> None:
    assert verdict(tmp_path, *order) == expected


def test_an_order_turned_round_over_two_open_steps_is_contradicted(tmp_path: Path) -> None:
    """a, b and b, c cannot be separated; a and c can, and stand the other way."""
    values = {"a": [100.0, 101, 99, 100], "b": [100.0, 104, 98, 105], "c": [103.0, 104, 102, 103]}
    assert verdict(tmp_path, "a", "b", values=values) == "not decided"
    assert verdict(tmp_path, "b", "c", values=values) == "not decided"
    assert verdict(tmp_path, "a", "b", "c", values=values) == "contradicted"
    assert verdict(tmp_path, "c", "b", "a", values=values) == "not decided"


def test_the_reason_names_both_levels_and_the_p_value(tmp_path: Path) -> None:
    (found,) = audited(tmp_path, "orders: [{best_first: [a, b]}]").findings
    assert found.computed == "b before a"
    assert found.why.startswith("the data do not separate a from b (Holm p = 0.5")
    assert found.why.endswith("their means are in the opposite order")
    (found,) = audited(tmp_path, "orders: [{best_first: [b, a]}]").findings
    assert found.why.endswith("their means are in this order")


def test_several_steps_are_adjusted_together(tmp_path: Path) -> None:
    """Alone, each step is separated, with p = 0.03 and 0.04; as two of one claim neither is."""
    values = {"a": [100.0, 101, 99, 100, 100], "b": [100.5, 101.8, 101, 100.6, 102], "c": [100.0, 101, 99, 100.5, 99.5]}
    assert verdict(tmp_path, "b", "a", values=values) == "confirmed"
    assert verdict(tmp_path, "b", "c", values=values) == "confirmed"
    assert verdict(tmp_path, "b", values=values) == "not decided"


def test_blocks_separate_what_trials_do_not(tmp_path: Path) -> None:
    values = {"a": [100.0, 110, 95, 105, 120, 90], "b": [103.0, 114, 97, 110, 123, 94]}
    assert verdict(tmp_path, "b", "a", values=values) == "not decided"
    assert verdict(tmp_path, "b", "a", values=values, head="block: block\n") == "confirmed"
    assert verdict(tmp_path, "a", "b", values=values, head="block: block\n") == "contradicted"


def test_constant_values_are_separated_by_their_ranks(tmp_path: Path) -> None:
    """Five and five of one value each: no t test, and an exact p of 2/252."""
    constant = {"a": [5.0] * 5, "b": [6.0] * 5}
    assert verdict(tmp_path, "b", "a", values=constant) == "confirmed"
    assert verdict(tmp_path, "a", "b", values=constant) == "contradicted"
    assert verdict(tmp_path, "b", "a", values={"a": [5.0] * 5, "b": [5.0] * 5}) == "not decided"
    assert verdict(tmp_path, "b", "a", values={"a": [5.0] * 2, "b": [6.0] * 2}) == "not decided"


def test_one_value_each_is_not_checkable(tmp_path: Path) -> None:
    (found,) = audited(tmp_path, "orders: [{best_first: [b]}]", values={"a": [1.0, 2], "b": [6.0]}).findings
    assert (found.verdict, found.why) == ("not checkable", "b has only one value: no test is possible")


def test_equal_arms_are_decided_no_more_often_than_the_level_allows(tmp_path: Path) -> None:
    """Three equal arms, 100 times: about 5 % at most; by their means alone it would be every time."""
    rng = np.random.default_rng(4)
    values = ({kind: rng.normal(100, 3, 6).round(3).tolist() for kind in "abc"} for _ in range(100))
    assert sum(verdict(tmp_path, "a", "b", "c", values=each) != "not decided" for each in values) <= 10


@pytest.mark.parametrize("order", ["[]", "[a, a]"])
def test_an_order_names_each_level_once(order: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"claims\.yaml:4:.*best_first: expected one level or more, each once"):
        audited(tmp_path, f"orders: [{{best_first: {order}}}]")


def milder(
    desk: Path, at_y: list[float], *, where: str = "{place: y}", places: str = "x, y", at_x: int = 80
) -> list[str]:
    effects: dict[tuple[str, str], list[float]] = {
        ("x", "a"): [99, 101, 100, 98, 102],
        ("x", "b"): [at_x - 1, at_x + 1, at_x, at_x - 2, at_x + 2],
        ("y", "a"): [99, 101, 100, 98, 102],
        ("y", "b"): at_y,
    }
    rows = [f"{place},{kind},{value}" for (place, kind), every in effects.items() for value in every]
    (desk / "raw.csv").write_text("place,kind,speed\n" + "\n".join(rows) + "\n", encoding="utf-8")
    (desk / "claims.yaml").write_text(
        textwrap.dedent(f"""\
        factors: {{place: [{places}], kind: [a, b]}}
        metrics: {{speed: {{better: higher}}}}
        claims:
        - {{where: here, metric: speed, contrast: kind, milder_at: {where}}}
        """),
        encoding="utf-8",
    )
    return [
        each.verdict
        for each in publications.audit(claims_file.read(desk / "claims.yaml", data=desk / "raw.csv")).findings
    ]


@pytest.mark.parametrize(
    ("at_y", "expected"),
    [
        ([94.0, 96, 95, 93, 97], "confirmed"),
        ([80.0, 82, 81, 79, 83], "not decided"),
        ([78.0, 80, 79, 77, 81], "not decided"),
        ([64.0, 66, 65, 63, 67], "contradicted"),
        ([94.0, 96, 95, 93, 0], "not checkable"),  # no logarithm, and no ratio
        ([95.0], "not checkable"),
    ],
)
def test_effects_said_to_be_smaller_are_separated_too(at_y: list[float], expected: str, tmp_path: Path) -> None:
    assert milder(tmp_path, at_y) == [expected]


@pytest.mark.parametrize(
    ("at_y", "at_x", "expected"),
    [
        ([104.0, 106, 105, 103, 107], 130, "confirmed"),  # gains of 5 % and of 30 %
        ([159.0, 161, 160, 158, 162], 130, "contradicted"),
        ([129.0, 131, 130, 128, 132], 100, "confirmed"),  # a gain costs less than what is none
        ([129.0, 131, 130, 128, 132], 80, "confirmed"),
        ([79.0, 81, 80, 78, 82], 130, "contradicted"),
        ([89.0, 91, 90, 88, 92], 130, "contradicted"),
    ],
)
def test_a_smaller_gain_is_a_smaller_effect(*, at_y: list[float], at_x: int, expected: str, tmp_path: Path) -> None:
    assert milder(tmp_path, at_y, at_x=at_x) == [expected]


def test_a_level_without_data_is_not_checkable(tmp_path: Path) -> None:
    assert milder(tmp_path, [94.0, 96, 95, 93, 97], places="x, y, z") == ["confirmed", "not checkable"]


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("{place: z}", r"milder_at\.place: unknown level `z`; expected one of `x`, `y`"),
        ("{memory: y}", r"milder_at\.memory: unknown factor besides the contrast `memory`; expected one of `place`"),
        ("{kind: b}", r"milder_at\.kind: unknown factor besides the contrast `kind`; expected one of `place`"),
    ],
)
def test_a_smaller_effect_names_a_level_of_another_factor(*, where: str, expected: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"claims\.yaml:4:\d+: claims\.0\." + expected):
        milder(tmp_path, [95.0, 96], where=where)


def test_not_decided_is_counted_shown_and_no_finding_of_the_exit_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = audited(tmp_path, "orders: [{best_first: [a, b]}]")
    assert report.summary(found) == "1 claims: 0 confirmed, 0 contradicted, 1 not decided, 0 not checkable"
    shown = "\n".join(report.text(found))
    assert "not decided (1)" in shown
    assert "the data do not separate a from b" in shown
    assert "## Not decided" in report.page(found, name="x")
    command.audit(tmp_path / "claims.yaml", data=tmp_path / "raw.csv", as_json=True)  # exits with 1 if contradicted
    assert json.loads(capsys.readouterr().out)["findings"][0]["verdict"] == "not decided"
    audited(tmp_path, "orders: [{best_first: [a]}]")
    with pytest.raises(SystemExit) as ended:
        command.audit(tmp_path / "claims.yaml", data=tmp_path / "raw.csv", as_json=True)
    assert ended.value.code == 1
