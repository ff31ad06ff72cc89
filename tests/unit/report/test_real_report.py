"""The report of a real record: its figures against SciPy on raw_data.csv, its print against its own JSON."""

from __future__ import annotations

import json
import math
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests
from support.real_record import COLUMNS, terminal

Values = npt.NDArray[np.float64]
EXACT = 1e-9
METRICS = ("throughput_tpm", "latency_ns_p99", "failed_share")
DIVISORS = {"transactions/min": 1.0, "µs": 1e3, "ms": 1e6, "s": 1e9, "%": 0.01}  # of the units a table may say


@pytest.fixture(scope="module")
def analysis(real_run: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((real_run / "report" / "report.json").read_bytes())["analysis"]
    return found


@pytest.fixture(scope="module")
def csv(real_run: Path) -> pl.DataFrame:
    return pl.read_csv(real_run / "report" / "raw_data.csv")


def measured(csv: pl.DataFrame, metric: str, *, users: str, journal: str) -> Values:
    """Values by block."""
    chosen = csv.filter(used=True, users=users, journal=journal).sort("block")
    return chosen[metric].to_numpy().astype(np.float64)


def comparisons(analysis: dict[str, Any], metric: str) -> list[tuple[str, dict[str, Any]]]:
    return [(cell["levels"]["users"], cell["comparisons"][metric][0]) for cell in analysis["cells"]]


def agrees(interval: dict[str, float], test: Any, *, transformed: Any = float) -> None:
    low, high = test.confidence_interval(0.95)
    assert interval["low"] == pytest.approx(transformed(low), rel=EXACT)
    assert interval["high"] == pytest.approx(transformed(high), rel=EXACT)


def test_raw_data_are_the_scalars_of_every_trial_to_the_last_digit(real_run: Path, csv: pl.DataFrame) -> None:
    for row in csv.iter_rows(named=True):
        trial = json.loads((real_run / "trials" / row["id"] / "trial.json").read_bytes())
        assert {factor: row[factor] for factor in ("journal", "users")} == trial["levels"]
        assert {name: row[name] for name in trial["scalars"]} == trial["scalars"]
    assert csv.height == len(list((real_run / "trials").iterdir()))


@pytest.mark.parametrize("metric", ["throughput_tpm", "latency_ns_p99"])
def test_paired_ratios_and_differences_are_those_of_scipy(
    analysis: dict[str, Any], csv: pl.DataFrame, metric: str
) -> None:
    for users, compared in comparisons(analysis, metric):
        baseline, arm = (measured(csv, metric, users=users, journal=journal) for journal in ("delete", "wal"))
        logs = stats.ttest_rel(np.log(arm), np.log(baseline))
        assert compared["n"] == len(baseline) == 3
        assert compared["p"] == pytest.approx(logs.pvalue, rel=EXACT)
        assert compared["ratio"]["estimate"] == pytest.approx(np.exp(np.mean(np.log(arm / baseline))), rel=EXACT)
        agrees(compared["ratio"], logs, transformed=math.exp)
        assert compared["difference"]["estimate"] == pytest.approx(np.mean(arm - baseline), rel=EXACT)
        agrees(compared["difference"], stats.ttest_rel(arm, baseline))


@pytest.mark.parametrize("metric", ["throughput_tpm", "latency_ns_p99"])
def test_welchs_figures_are_those_of_scipy(analysis: dict[str, Any], csv: pl.DataFrame, metric: str) -> None:
    for users, compared in comparisons(analysis, metric):
        baseline, arm = (measured(csv, metric, users=users, journal=journal) for journal in ("delete", "wal"))
        welch = stats.ttest_ind(arm, baseline, equal_var=False)
        stored = compared["welch"]
        assert stored["t"] == pytest.approx(welch.statistic, rel=EXACT)
        assert stored["df"] == pytest.approx(welch.df, rel=EXACT)
        assert stored["p"] == pytest.approx(welch.pvalue, rel=EXACT)
        agrees(stored["difference"], welch)


def test_the_primary_family_is_adjusted_as_statsmodels_does(analysis: dict[str, Any]) -> None:
    found = [compared for _, compared in comparisons(analysis, "throughput_tpm")]
    adjusted = multipletests([each["p"] for each in found], method="holm")[1]
    assert [each["p_adjusted"] for each in found] == pytest.approx(list(adjusted), rel=EXACT)
    beside = {each["adjustment"] for _, each in comparisons(analysis, "latency_ns_p99")}
    assert beside == {"benjamini_hochberg"}


def test_summaries_are_those_of_numpy_and_scipy(analysis: dict[str, Any], csv: pl.DataFrame) -> None:
    seen = 0
    for cell in analysis["cells"]:
        for metric, summaries in cell["summaries"].items():
            for summary in summaries:
                values = measured(csv, metric, users=cell["levels"]["users"], journal=summary["arm"])
                assert sorted(summary["values"]) == sorted(values)
                assert summary["mean"] == pytest.approx(values.mean(), rel=EXACT)
                assert summary["median"] == pytest.approx(float(np.median(values)), rel=EXACT)
                assert summary["sd"] == pytest.approx(values.std(ddof=1), rel=EXACT)
                if values.std():
                    expected = stats.t.interval(0.95, len(values) - 1, values.mean(), stats.sem(values))
                    assert (summary["low"], summary["high"]) == pytest.approx(expected, rel=EXACT)
                seen += 1
    assert seen == 2 * 2 * 3


def test_a_metric_without_spread_has_no_claim_and_says_why(analysis: dict[str, Any]) -> None:
    for _, compared in comparisons(analysis, "failed_share"):
        assert compared["verdict"] == "undecided"
        assert compared["ratio"]["estimate"] is None
        assert "zero_variance" in {doubt["code"] for doubt in compared["doubts"]}


def verdict_rows(text: str) -> dict[tuple[int, str], str]:
    """Rows of the verdict tables in order of appearance: (table, users) → the rest of the line."""
    found: dict[tuple[int, str], str] = {}
    tables = re.split(r"(?m)^users +arm +baseline +mean +ratio .*$", text)[1:]
    for number, table in enumerate(tables):
        for line in table.splitlines()[2:4]:
            users, rest = line.split(maxsplit=1)
            found[number, users] = rest
    return found


def units(text: str) -> list[str]:
    """The unit that each verdict table says its means are in."""
    return re.findall(r"(?m)^Means of delete / wal in ([^,]+), and the", text)


def p_printed(p: float | None) -> str:
    if p is None:
        return "–"
    return "< 0.0001" if p < 0.0001 else f"{p:.4f}"


def is_rounded(word: str, value: float | None, *, fewest: int) -> bool:
    """Whether `word` is `value` to its last digit, with so many decimals at least; `7.6e-5` where it is tiny or huge.

    There are up to three more for what is much smaller beside it, and for an interval whose ends would look alike.
    """
    if value is None or word == "–":
        return value is None and word == "–"
    if "e" in word:
        return not 1e-4 < value < 1e6 and float(word) == float(f"{value:.1e}")
    decimals = len(word.partition(".")[2])
    return fewest <= decimals <= fewest + 3 and word == f"{value:,.{decimals}f}"


def decimals_of(largest: float) -> int:
    """Four significant digits of the largest mean."""
    return 0 if largest == 0 else max(0, 3 - math.floor(math.log10(largest)))


def decimals_of_ratio(ratio: float | None) -> int:
    if ratio is not None and 1e-4 < ratio < 0.1:
        return 2 - math.floor(math.log10(ratio))
    return 0 if ratio is not None and ratio >= 100 else 3


def assert_printed(row: str, cell: dict[str, Any], metric: str, *, divisor: float, decimals: int) -> None:
    """A verdict table's row says report.json's means, ratio, interval, p, Holm's p and verdict, and nothing else."""
    (compared,) = cell["comparisons"][metric]
    ratio, rail = compared["ratio"], compared["guardrail"]
    arm, baseline, mean, estimate, interval, *rest = re.split(" {2,}", row.strip())
    ends = interval.split(" – ") if ratio["low"] is not None else [interval, interval]
    means = [summary["mean"] / divisor for summary in cell["summaries"][metric]]
    for word, value in zip((baseline, mean), means, strict=True):
        assert is_rounded(word, value, fewest=decimals), (row, value)
    for word, value in zip((estimate, *ends), (ratio["estimate"], ratio["low"], ratio["high"]), strict=True):
        assert is_rounded(word, value, fewest=decimals_of_ratio(value)), (row, value)
    said = compared["verdict"] if rail is None else rail["outcome"]
    assert [arm, *rest] == ["wal", p_printed(compared["p"]), p_printed(compared["p_adjusted"]), said]


def test_every_number_of_the_verdict_tables_is_the_jsons_rounded(real_run: Path, analysis: dict[str, Any]) -> None:
    text = (real_run / "report" / "report.txt").read_text(encoding="utf-8")
    rows = verdict_rows(text)
    assert len(rows) == 2 * 3
    for number, (metric, unit) in enumerate(zip(METRICS, units(text), strict=True)):
        divisor = DIVISORS[unit]
        decimals = decimals_of(
            max(s["mean"] for cell in analysis["cells"] for s in cell["summaries"][metric]) / divisor
        )
        for cell in analysis["cells"]:
            row = rows[number, cell["levels"]["users"]]
            assert_printed(row, cell, metric, divisor=divisor, decimals=decimals)


def test_the_terminal_says_what_the_report_says(real_run: Path, analysis: dict[str, Any]) -> None:
    said = terminal(real_run)
    for cell in analysis["cells"]:
        users = cell["levels"]["users"]
        (compared,) = cell["comparisons"]["throughput_tpm"]
        (line, *_) = [line for line in said.splitlines() if line.startswith(users)]
        _users, _baseline, _arm, ratio, *_ = re.split(" {2,}", line)
        estimate = compared["ratio"]["estimate"]
        assert is_rounded(ratio, estimate, fewest=decimals_of_ratio(estimate)), line
        assert line.split()[-1] in (compared["verdict"], "%)")  # `equivalent (within 2 %)`
    assert said.rstrip().endswith("report.html")


def test_the_terminal_says_each_kind_of_doubt_once_within_its_width(real_run: Path) -> None:
    said = terminal(real_run)
    assert max(map(len, said.splitlines()[:-1])) <= COLUMNS
    doubts = [line for line in said.splitlines() if line.startswith("doubt ")]
    assert len(doubts) == len(set(doubts))
    assert len([line for line in doubts if "failed_share" in line]) <= 3
    for line, after in pairwise(said.splitlines()):
        if line.startswith("doubt "):
            assert after.startswith((" " * 6, "doubt ")), after


def test_the_raw_data_at_the_end_of_the_text_are_the_values_analysed(real_run: Path, analysis: dict[str, Any]) -> None:
    appendix = (real_run / "report" / "report.txt").read_text(encoding="utf-8").split("Appendix: raw data")[1]
    numbers = [float(word) for line in appendix.splitlines() if line[:1].isdigit() for word in line.split(", ")]
    expected = [
        value
        for metric in METRICS
        for cell in analysis["cells"]
        for summary in cell["summaries"][metric]
        for value in summary["values"]
    ]
    assert numbers == pytest.approx(expected, rel=1e-9)
