"""pgbench's report is read to its last figure: what `outputs/` holds is what pgbench 15 printed."""

from __future__ import annotations

import pytest
from support.pgbench import OUTPUTS

from fairtrial.errors import PlaceError
from fairtrial.workloads.pgbench import output
from fairtrial.workloads.pgbench.output import Lag, Moments, PgbenchCounts


def report(name: str) -> output.PgbenchReport:
    return output.report((OUTPUTS / f"{name}.txt").read_text(encoding="utf-8"))


def test_a_plain_run_has_its_counts_and_its_own_time() -> None:
    told = report("plain")
    assert told.whole.processed == 60
    assert (told.whole.serialization, told.whole.deadlock, told.whole.retries, told.whole.skipped) == (0, 0, 0, 0)
    assert told.whole_us == round(60 / told.tps * 1e6)
    assert (told.lag, told.late, told.scripts, told.threads) == (None, 0, [], 2)


def test_several_scripts_are_told_apart_with_their_failures_and_retries() -> None:
    told = report("mixed")
    assert told.whole == PgbenchCounts(
        processed=114,
        serialization=5,
        deadlock=1,
        retries=46,
        latency=Moments(mean_ms=3.723, deviation_ms=5.754),
    )
    assert [(each.processed, each.serialization, each.deadlock, each.retries) for each in told.scripts] == [
        (39, 5, 0, 30),
        (29, 0, 1, 16),
        (46, 0, 0, 0),
    ]
    assert told.scripts[2].latency == Moments(mean_ms=0.337, deviation_ms=0.67)


def test_transactions_given_up_are_no_processed_ones() -> None:
    told = report("failing")
    assert (told.whole.processed, told.whole.serialization) == (21, 39)


def test_an_open_loop_tells_its_lag_what_it_skipped_and_what_was_late() -> None:
    told = report("rated")
    assert (told.whole.processed, told.whole.skipped, told.late) == (151, 147, 67)
    assert told.lag == Lag(mean_ms=1.5, max_ms=11.224)
    assert (told.connecting_ms, told.tps) == (14.423, 149.119455)


def test_a_report_of_18_counts_a_scripts_processed_transactions_on_a_line_of_their_own() -> None:
    text = (OUTPUTS / "mixed.txt").read_text(encoding="utf-8")
    newer = text.replace(
        " - 39 transactions (34.2% of total, tps = 272.103148)\n",
        " - 44 transactions (36.7% of total)\n - number of transactions actually processed: 39 (tps = 272.103148)\n",
    )
    assert newer != text
    assert output.report(newer) == output.report(text)


def test_connections_for_each_transaction_are_in_the_rate() -> None:
    text = (OUTPUTS / "plain.txt").read_text(encoding="utf-8")
    head = text[: text.index("initial connection time")]
    told = output.report(f"{head}average connection time = 1.234 ms\ntps = 12.5 (including reconnection times)\n")
    assert (told.tps, told.connecting_ms, told.whole_us) == (12.5, 0.0, 4_800_000)


@pytest.mark.parametrize("name", ["bad", "syn", "wrong"])
def test_an_output_without_a_report_is_refused_with_what_there_is(name: str) -> None:
    with pytest.raises(PlaceError, match=r"(?s)pgbench did not print a report: .*pgbench"):
        report(name)


def test_nothing_processed_has_no_length() -> None:
    text = (OUTPUTS / "rated.txt").read_text(encoding="utf-8")
    nothing = text.replace("processed: 151", "processed: 0").replace("tps = 149.119455", "tps = 0.000000")
    assert output.report(nothing.replace("avg 1.500 (max 11.224)", "avg -nan (max 0.000)")).whole_us == 0
