"""What `benches/load.py` makes of its clients' output and of their runs."""

import pytest
from ratios import Run, of_benchbase, of_engine, of_floor, of_go_tpc, of_hammerdb, of_sysbench, orders, paired

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

GO_TPC = """\
Finished
[Summary] DELIVERY - Takes(s): 9.9, Count: 334, TPM: 2008.9, Sum(ms): 3877.2, Avg(ms): 11.6
[Summary] NEW_ORDER - Takes(s): 10.0, Count: 4231, TPM: 25422.5, Sum(ms): 22630.9, Avg(ms): 5.4
[Summary] NEW_ORDER_ERR - Takes(s): 10.0, Count: 4, TPM: 24.0, Sum(ms): 9.8, Avg(ms): 2.5
tpmC: 25422.1, tpmTotal: 55343.4, efficiency: 19768.4%
"""
BENCHBASE = """\
Results(state=EXIT, nanoSeconds=10000000000, measuredRequests=3000) = 300.0 requests/sec (throughput)

\x1b[0;1mCompleted Transactions:\x1b[0;0m
com.oltpbenchmark.benchmarks.tpcc.procedures.NewOrder/01                         [1617] ********
com.oltpbenchmark.benchmarks.tpcc.procedures.Delivery/04                         [ 117] *

\x1b[0;1mAborted Transactions:\x1b[0;0m
com.oltpbenchmark.benchmarks.tpcc.procedures.NewOrder/01                         [  16] ********

\x1b[0;1mRejected Transactions (Server Retry):\x1b[0;0m
com.oltpbenchmark.benchmarks.tpcc.procedures.NewOrder/01                         [   9] ********
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


def test_go_tpc_counts_what_ended_and_not_what_failed() -> None:
    assert of_go_tpc(GO_TPC, 2.5) == Run(units=4565, wall_s=10.0, cpu_s=2.5)


def test_go_tpc_without_a_summary_is_shown() -> None:
    with pytest.raises(ValueError, match="connection refused"):
        of_go_tpc("connection refused", 0.1)


def test_benchbase_counts_rolled_back_orders_and_not_what_it_tries_again() -> None:
    run = of_benchbase(BENCHBASE, 7.0)
    assert (run.units, run.cpu_s) == (1750, 7.0)
    assert run.per_s == pytest.approx(300)


def test_hammerdb_counts_by_the_minute() -> None:
    said = "Vuser 1:TEST RESULT : System achieved 17771 NOPM from 41270 MySQL TPM"
    assert of_hammerdb(said, 6.0, minutes=2) == Run(units=82_540, wall_s=120.0, cpu_s=6.0)


def test_floor_is_charged_for_its_whole_process() -> None:
    assert of_floor('{"units": 5, "wall_s": 2.0, "cpu_s": 0.5}', 0.75) == Run(units=5, wall_s=2.0, cpu_s=0.75)


@pytest.mark.parametrize(("unit", "units"), [("transactions", 100), ("queries", 2000)])
def test_engine_result_is_read(unit: str, units: int) -> None:
    assert of_engine(result(), 1.0, unit=unit) == Run(units=units, wall_s=2.0, cpu_s=1.0)


def test_an_engine_that_failed_is_no_faster() -> None:
    with pytest.raises(ValueError, match=r"3 transactions failed: \['why'\]"):
        of_engine(result(failed=3), 1.0, unit="transactions")
