"""What `benches/load.py` makes of its clients' output and of their runs."""

import pytest
from ratios import Run, of_engine, of_floor, of_sysbench, orders, paired

SYSBENCH = """\
SQL statistics:
    queries performed:
        read:                            197400
        total:                           282000
    transactions:                        14100  (2819.46 per sec.)
    queries:                             282000 (56389.19 per sec.)
    ignored errors:                      0      (0.00 per sec.)

General statistics:
    total time:                          5.0008s
"""


def result(*, failed: int = 0) -> dict[str, object]:
    """`result.json` as far as the bench reads it."""
    outcomes = {"committed": 90, "rolled_back": 10, "failed": failed, "statements": 2000}
    return {"window": {"start_ns": 10**9, "end_ns": 3 * 10**9}, "transactions": {"a": outcomes}, "errors": ["why"]}


def test_a_run_gives_processor_time_and_rate_per_unit() -> None:
    run = Run(units=200_000, wall_s=4.0, cpu_s=1.5)
    assert run.cpu_per_unit_us == pytest.approx(7.5)
    assert run.per_s == 50_000


def test_ratios_are_taken_round_by_round() -> None:
    """The machine was half as fast in the second round: each ratio is 2, whatever the clients' medians say."""
    ratio = paired([2.0, 4.0, 6.0], [1.0, 2.0, 2.0])
    assert (ratio.middle, ratio.low, ratio.high) == (2.0, 2.0, 3.0)
    assert str(ratio) == "2.00 (2.00-3.00)"


def test_rounds_that_do_not_pair_are_refused() -> None:
    with pytest.raises(ValueError, match="shorter"):
        paired([1.0, 2.0], [1.0])


def test_a_steady_drift_cancels_out() -> None:
    assert ["".join(order) for order in orders("ab", 6)] == ["ab", "ba", "ba", "ab", "ab", "ba"]


@pytest.mark.parametrize(("unit", "units"), [("transactions", 14_100), ("queries", 282_000)])
def test_sysbench_report_is_read(unit: str, units: int) -> None:
    assert of_sysbench(SYSBENCH, 2.5, unit=unit) == Run(units=units, wall_s=5.0008, cpu_s=2.5)


def test_a_report_without_its_figures_is_shown() -> None:
    with pytest.raises(ValueError, match="FATAL: no such table"):
        of_sysbench("FATAL: no such table", 0.1, unit="queries")


def test_floor_is_charged_for_its_whole_process() -> None:
    assert of_floor('{"units": 5, "wall_s": 2.0, "cpu_s": 0.5}', 0.75) == Run(units=5, wall_s=2.0, cpu_s=0.75)


@pytest.mark.parametrize(("unit", "units"), [("transactions", 100), ("queries", 2000)])
def test_engine_result_is_read(unit: str, units: int) -> None:
    assert of_engine(result(), 1.0, unit=unit) == Run(units=units, wall_s=2.0, cpu_s=1.0)


def test_an_engine_that_failed_is_no_faster() -> None:
    with pytest.raises(ValueError, match=r"3 transactions failed: \['why'\]"):
        of_engine(result(failed=3), 1.0, unit="transactions")
