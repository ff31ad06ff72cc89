"""What a table is asked: arms, conditions, blocks and time, and that the answer is the one a run would get."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.inference.analysis_cases import Case
from support.inference.tables import judged, only_comparison

from fairtrial.analyse import analyse
from fairtrial.errors import InputError
from fairtrial.study.catalogue import Better

HEADER = "kernel,memory,block,tpm,p99\n"
CASE = Case(
    {"kernel": ["old", "new"], "memory": ["low", "high"]},
    blocks=7,
    roles={"primary": ["tpm"], "secondary": ["p99"]},
)


def measured(levels: dict[str, str], block: int) -> float:
    noise = np.random.default_rng([block, len(levels["memory"]), len(levels["kernel"] * 2)]).normal(0, 0.02)
    return 1000.0 * float(np.exp(noise)) * (1.05 if levels["kernel"] == "new" else 1.0)


def as_table(trials: list[object]) -> str:
    lines = [
        f"{each.levels['kernel']},{each.levels['memory']},{each.trial.block},{each.scalars['tpm']!r},{each.scalars['p99']!r}"
        for each in trials
    ]
    return HEADER + "\n".join(lines) + "\n"


def test_a_table_of_a_runs_trials_gives_the_runs_own_results() -> None:
    trials = CASE.trials(tpm=measured, p99=lambda levels, block: 3e6 / measured(levels, block))
    of_run = analyse(CASE.plan(), trials)
    of_table = judged(
        as_table(trials),
        values=("tpm", "p99"),
        arm="kernel",
        baseline="old",
        by=("memory",),
        block="block",
        better=("higher", "lower"),
    )
    assert of_table.cells == of_run.cells
    assert of_table.doubts == of_run.doubts
    assert of_table.counts == of_run.counts


def table(*rows: tuple[object, ...]) -> str:
    return HEADER + "".join(",".join(map(str, row)) + "\n" for row in rows)


ROWS = [
    (kernel, memory, block, 100 + 10 * (kernel == "new") + block + 5 * (memory == "high"), 1)
    for block, memory, kernel in itertools.product(range(1, 7), ["low", "high"], ["old", "new"])
]


@pytest.mark.parametrize("option", ["value", "arm", "by", "block"])
def test_a_column_called_like_one_of_ours_is_refused(option: str) -> None:
    columns = {"value": "tpm", "arm": "kernel", "by": "memory", "block": "block"}
    text = table(*ROWS).replace(columns[option], "·row", 1)
    columns[option] = "·row"
    with pytest.raises(InputError, match="·row: the name begins with `·`") as refused:
        judged(text, values=(columns["value"],), arm=columns["arm"], by=(columns["by"],), block=columns["block"])
    assert "rename the column" in str(refused.value.hint)


def test_a_column_called_curve_is_what_it_is_where_a_curve_has_one_arm() -> None:
    text = "users,curve\n" + "".join(f"{users},{100 * users + block}\n" for block in range(3) for users in (1, 2, 4, 8))
    analysis = judged(text, values=("curve",), curve=("users", "linear"))
    (curve,) = analysis.curves
    assert (curve.metric, curve.over) == ("curve", "users")


@pytest.mark.parametrize(
    ("better", "values", "fitting"),
    [
        (("higher",), (1, 2), "of 2 values: `linear`"),
        (("lower",), (1, 2, 4, 8), "of 4 values: `linear`, `loess`"),
        (("higher",), (1,), "of 1 value: nothing"),
    ],
)
def test_a_curve_that_does_not_fit_is_answered_with_those_that_do(
    better: tuple[Better, ...], values: tuple[int, ...], fitting: str
) -> None:
    text = "users,tpm\n" + "".join(f"{users},{100 + block}\n" for block in range(3) for users in values)
    with pytest.raises(InputError) as refused:
        judged(text, values=("tpm",), curve=("users", "usl"), better=better)
    assert refused.value.hint == f"name a column of numbers, and a model that fits it; {fitting}"


def test_the_first_rows_level_is_the_baseline_unless_one_is_named() -> None:
    assert judged(table(*ROWS), values=("tpm",), arm="kernel", by=("memory",), block="block").levels == ("old", "new")
    turned = judged(table(*ROWS), values=("tpm",), arm="kernel", by=("memory",), block="block", baseline="new")
    assert turned.levels == ("new", "old")
    assert only_comparison(turned, "tpm", "low").verdict == "slower"


def test_arms_in_random_order_need_a_baseline_named() -> None:
    mixed = table(*(row for block in range(1, 7) for row in ROWS if row[2] == block and row[1] == "low"))
    shuffled = [*mixed.splitlines()[:3], *mixed.splitlines()[:2:-1]]
    with pytest.raises(InputError, match="no baseline is named") as refused:
        judged("\n".join(shuffled), values=("tpm",), arm="kernel", block="block")
    assert "--baseline old" in str(refused.value.hint)
    found = judged("\n".join(shuffled), values=("tpm",), arm="kernel", block="block", baseline="new")
    assert found.levels == ("new", "old")


def arms_in_order(order: str, *, memory: str = "low") -> list[tuple[object, ...]]:
    return [({"o": "old", "n": "new"}[arm], memory, at, 100 + at, 1) for at, arm in enumerate(order)]


@pytest.mark.parametrize(
    ("rows", "by"),
    [
        (arms_in_order("onnoon"), ()),
        (arms_in_order("onononon"), ()),
        ([*arms_in_order("ooonnn"), *arms_in_order("nnnooo", memory="high")], ("memory",)),
        ([*arms_in_order("ooonnn"), *arms_in_order("onnnoo", memory="high")], ("memory",)),
    ],
)
def test_arms_that_take_turns_need_a_baseline_without_blocks_as_well(
    rows: list[tuple[object, ...]], by: tuple[str, ...]
) -> None:
    asked = {"values": ("tpm",), "arm": "kernel", "by": by}
    with pytest.raises(InputError, match="no baseline is named"):
        judged(table(*rows), **asked)
    assert judged(table(*rows), **asked, baseline="new").levels == ("new", "old")


def test_one_stretch_of_rows_per_arm_begins_with_the_baseline() -> None:
    rows = [*arms_in_order("nnnooo"), *arms_in_order("nnnooo", memory="high")]
    assert judged(table(*rows), values=("tpm",), arm="kernel", by=("memory",)).levels == ("new", "old")


def test_conditions_are_judged_apart_and_in_the_order_in_which_they_come() -> None:
    found = judged(table(*ROWS), values=("tpm",), arm="kernel", by=("memory",), block="block")
    assert [cell.levels for cell in found.cells] == [{"memory": "low"}, {"memory": "high"}]
    assert only_comparison(found, "tpm", "low").family_size == 2


def test_no_two_cells_have_one_name() -> None:
    conditions = [("p+q", "r"), ("p", "q+r"), ("p\\", "+r")]
    rows = [
        f"{x},{y},{arm},{block},{block + (arm == 'b')}" for x, y in conditions for arm in "ab" for block in range(6)
    ]
    found = judged("x,y,arm,block,tpm\n" + "\n".join(rows), values=("tpm",), arm="arm", by=("x", "y"), block="block")
    assert [cell.cell for cell in found.cells] == [r"p\+q+r", r"p+q\+r", r"p\\+\+r"]
    assert [tuple(cell.levels.values()) for cell in found.cells] == conditions


@pytest.mark.parametrize("names", [("1700000000000000000", "1700000000000000050"), ("12e4567", "3e99999")])
def test_blocks_whose_names_no_number_holds_are_two(names: tuple[str, str]) -> None:
    rows = [f"{arm},{name},{value}" for value, name in enumerate(names, start=1) for arm in "ab"]
    found = judged("arm,block,tpm\n" + "\n".join(rows), values=("tpm",), arm="arm", block="block")
    assert only_comparison(found, "tpm").n == 2


def test_trials_that_no_rule_stopped_get_their_verdict() -> None:
    rows = [f"{arm},{block},NA,{block + 9 * (arm == 'b')}" for block in range(1, 8) for arm in "ab"]
    asked = {"values": ("tpm",), "arm": "arm", "block": "block"}
    assert only_comparison(judged("arm,block,stopped_by,tpm\n" + "\n".join(rows), **asked), "tpm").verdict == "faster"


def test_names_of_blocks_pair_as_well_as_numbers() -> None:
    days = [(kernel, memory, f"day {block}", value, p99) for kernel, memory, block, value, p99 in ROWS]
    asked = {"values": ("tpm",), "arm": "kernel", "by": ("memory",), "block": "block"}
    assert judged(table(*days), **asked).cells == judged(table(*ROWS), **asked).cells


def test_without_blocks_trials_are_independent() -> None:
    found = judged(table(*ROWS), values=("tpm",), arm="kernel", by=("memory",), baseline="old")
    assert not found.paired
    assert only_comparison(found, "tpm", "low").method == "Welch on logs"


@pytest.mark.parametrize("written", ["", "NA", "nan", "null"])
def test_a_missing_value_is_counted_and_its_block_left_out(written: str) -> None:
    rows = [(*row[:3], written if row[:3] == ("new", "low", 3) else row[3], 1) for row in ROWS]
    found = only_comparison(
        judged(table(*rows), values=("tpm",), arm="kernel", by=("memory",), block="block"), "tpm", "low"
    )
    assert found.n == 5
    assert {doubt.code for doubt in found.doubts} >= {"missing", "unequal_n"}


def test_a_cell_with_one_arm_is_said_to_be_missing_and_keeps_its_place_in_the_family() -> None:
    rows = [row for row in ROWS if row[:2] != ("new", "high")]
    found = judged(table(*rows), values=("tpm",), arm="kernel", by=("memory",), block="block")
    assert only_comparison(found, "tpm", "low").family_size == 2
    assert "missing" in {doubt.code for doubt in found.doubts}


def test_time_puts_rows_in_order_numbers_by_size_and_dates_by_their_text() -> None:
    lines = ["kernel,when,tpm"] + [f"{'ab'[n % 2]},{n},{100 + n}" for n in range(12)]
    sideways = "\n".join([lines[0], *sorted(lines[1:])]) + "\n"
    asked = {"values": ("tpm",), "arm": "kernel", "baseline": "a"}
    assert judged(sideways, time="when", **asked).cells == judged("\n".join(lines) + "\n", **asked).cells
    dated = sideways.replace("a,", "a,2026-01-").replace("b,", "b,2026-01-")
    padded = "\n".join(
        line
        if index == 0
        else ",".join(
            [line.split(",")[0], f"2026-01-{int(line.split('-')[-1].split(',')[0]) + 1:02d}", line.split(",")[2]]
        )
        for index, line in enumerate(dated.splitlines())
    )
    assert judged(padded + "\n", time="when", **asked).cells == judged("\n".join(lines) + "\n", **asked).cells


@pytest.mark.parametrize(
    ("times", "line", "found"),
    [
        (["10", "9", "", "11"], 4, "''"),
        (["10", "9", "NA", "11"], 4, "'NA'"),
        (["10", "9", "8", "noon"], 5, "'noon'"),
        (["2026-01-01", "2026-01-03", "2026-01-02", "null"], 5, "'null'"),
    ],
)
def test_a_row_without_a_time_has_no_place(times: list[str], line: int, found: str) -> None:
    rows = [f"{'ab'[at % 2]},{time},{100 + at}" for at, time in enumerate(times)]
    with pytest.raises(InputError) as refused:
        judged("kernel,when,tpm\n" + "\n".join(rows), values=("tpm",), arm="kernel", baseline="a", time="when")
    assert [str(problem) for problem in refused.value.problems] == [
        f"standard input:{line}:3: when: expected a time, found {found}"
    ]


@settings(max_examples=10, deadline=None)
@given(st.permutations(range(len(ROWS))))
def test_the_order_of_rows_changes_no_comparison(order: list[int]) -> None:
    asked = {"values": ("tpm",), "arm": "kernel", "by": ("memory",), "block": "block", "baseline": "old"}
    first = judged(table(*ROWS), **asked)
    second = judged(table(*(ROWS[index] for index in order)), **asked)
    for cell in ("low", "high"):
        one, other = only_comparison(first, "tpm", cell), only_comparison(second, "tpm", cell)
        assert other.p == pytest.approx(one.p, rel=1e-9)
        assert other.ratio.low == pytest.approx(one.ratio.low, rel=1e-9)
        assert other.verdict == one.verdict


@settings(max_examples=10, deadline=None)
@given(st.floats(1e-6, 1e6))
def test_the_unit_changes_no_ratio(factor: float) -> None:
    asked = {"values": ("tpm",), "arm": "kernel", "by": ("memory",), "block": "block"}
    scaled = [(*row[:3], repr(row[3] * factor), 1) for row in ROWS]
    one = only_comparison(judged(table(*ROWS), **asked), "tpm", "low")
    other = only_comparison(judged(table(*scaled), **asked), "tpm", "low")
    assert other.ratio.estimate == pytest.approx(one.ratio.estimate, rel=1e-9)
    assert other.verdict == one.verdict
