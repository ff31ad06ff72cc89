"""R, knowing only the raw data, comes to the figures of report.json."""

from __future__ import annotations

import csv
import io
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from support.inference.analysis_cases import Case
from support.skips import require

from fairtrial.analyse import analyse
from fairtrial.analyse.inference.comparing import PAIRED_FLIPS
from fairtrial.analyse.models import Analysis, Comparison
from fairtrial.record import Record
from fairtrial.report import r_script

TOLERANCE = 1e-6


def _rscript(script: str, directory: Path) -> list[dict[str, str]]:
    require("Rscript")
    path = directory / "raw_data.r"
    path.write_text(script, encoding="utf-8")
    ran = subprocess.run(["Rscript", "--vanilla", str(path)], capture_output=True, text=True, check=False, timeout=120)
    assert ran.returncode == 0, ran.stderr
    return read_table(ran.stdout)


def read_table(printed: str, number: int = 0) -> list[dict[str, str]]:
    """Of one of the tables that a script prints: comparisons first."""
    return list(csv.DictReader(io.StringIO(printed.split("\n\n")[number]), delimiter="\t"))


def _expected(analysis: Analysis, comparison: Comparison) -> dict[str, float | None]:
    cell = next(cell for cell in analysis.cells if cell.cell == comparison.cell)
    means = {summary.arm: summary.mean for summary in cell.summaries[comparison.metric]}
    assert comparison.welch is not None
    rank = comparison.rank
    return {
        "n": comparison.n,
        "mean_baseline": means[comparison.baseline],
        "mean_arm": means[comparison.arm],
        "ratio": comparison.ratio.estimate,
        "ratio_low": comparison.ratio.low,
        "ratio_high": comparison.ratio.high,
        "p": comparison.p,
        "p_adjusted": comparison.p_adjusted,
        **({"shift": rank.shift.estimate, "p_exact": rank.p} if rank is not None and not rank.tied else {}),
        "difference": comparison.difference.estimate,
        "difference_low": comparison.difference.low,
        "difference_high": comparison.difference.high,
        "welch_t": comparison.welch.t,
        "welch_df": comparison.welch.df,
        "welch_p": comparison.welch.p,
        "welch_low": comparison.welch.difference.low,
        "welch_high": comparison.welch.difference.high,
    }


@pytest.mark.servers
@pytest.mark.parametrize("contrast", ["journal", "users"])
@pytest.mark.parametrize("order", ["randomised_blocks", "sequential"])
def test_r_recomputes_every_figure(record: Record, tmp_path: Path, *, contrast: str, order: str) -> None:
    design = record.plan.design.model_copy(update={"order": order})  # sequential is analysed without pairs
    plan = record.plan.model_copy(update={"design": design})
    analysis = analyse(plan, record.trials, contrast=contrast)
    rows = _rscript(r_script.render(analysis), tmp_path)
    comparisons = [one for cell in analysis.cells for found in cell.comparisons.values() for one in found]
    assert [(row["metric"], row["cell"], row["arm"]) for row in rows] == [
        (one.metric, one.cell, one.arm) for one in comparisons
    ]
    for row, comparison in zip(rows, comparisons, strict=True):
        for name, expected in _expected(analysis, comparison).items():
            if expected is None:
                assert row[name] == "NA", name
            else:
                assert float(row[name]) == pytest.approx(expected, rel=TOLERANCE), (comparison.metric, name)


@pytest.mark.servers
@pytest.mark.parametrize("order", ["randomised_blocks", "sequential"])
def test_r_takes_as_ties_what_only_rounding_tells_apart(tmp_path: Path, *, order: str) -> None:
    ratios = [4, 2, 2, 0.5, 4, 2, 3, 3, 5, 1]
    case = Case({"kernel": ["a", "b"]}, blocks=10, order=order)
    trials = case.trials(
        tpm=lambda levels, block: (ratios[block - 1] if levels["kernel"] == "b" else 1) * (2 + block % 3) / 3
    )
    analysis = analyse(case.plan(), trials)
    (comparison,) = analysis.cells[0].comparisons["tpm"]
    assert comparison.rank is not None
    assert comparison.rank.tied > 0
    assert comparison.p_by_t is not None  # ranks had a say
    (row,) = _rscript(r_script.render(analysis), tmp_path)
    assert float(row["p"]) == pytest.approx(comparison.p, rel=TOLERANCE)


def _agrees(analysis: Analysis, directory: Path) -> list[Comparison]:
    """R's p values are those of the comparisons, which are returned."""
    compared = [one for cell in analysis.cells for found in cell.comparisons.values() for one in found]
    rows = _rscript(r_script.render(analysis), directory)
    for name in ("p", "p_adjusted"):
        expected = [getattr(one, name) for one in compared]
        assert [float(row[name]) for row in rows] == pytest.approx(expected, rel=TOLERANCE), name
    return compared


@pytest.mark.servers
@pytest.mark.parametrize("arms", ["ab", "abc"])
def test_r_counts_comparisons_without_data_in_their_family(tmp_path: Path, *, arms: str) -> None:
    roles = {"primary": ["tpm"], "secondary": ["p99"]}
    case = Case({"kernel": arms, "users": ["1", "2", "3"]}, blocks=9, roles=roles)

    def value(levels: Mapping[str, str], block: int) -> float:
        return 100 + block * 7 % 13 + (6 + block % 4) * "abc".index(levels["kernel"])

    trials = [
        each.model_copy(update={"scalars": {}}) if (each.trial.cell, each.trial.arm) == ("2", "b") else each
        for each in case.trials(tpm=value, p99=value)
    ]
    compared = _agrees(analyse(case.plan(), trials), tmp_path)
    assert {one.adjustment for one in compared} == {"holm" if arms == "ab" else "dunnett", "benjamini_hochberg"}
    assert all(one.family_size == 3 * len(arms[1:]) for one in compared)
    assert len(compared) == 2 * (3 * len(arms[1:]) - 1)


@pytest.mark.servers
@pytest.mark.parametrize("ups", [[100] * 9, [0, 0, 0, 0, 4, 3, 9, 3, 8, 5, 7, 6]])
def test_r_exchanges_arms_where_no_t_test_is_made_of_blocks(tmp_path: Path, *, ups: list[int]) -> None:
    case = Case({"kernel": ["a", "b"]}, blocks=len(ups))
    constant = 100 if ups[0] else 0
    trials = case.trials(tpm=lambda levels, block: constant + (ups[block - 1] if levels["kernel"] == "b" else 0))
    (comparison,) = _agrees(analyse(case.plan(), trials), tmp_path)
    assert comparison.method == PAIRED_FLIPS
    assert comparison.p < 0.05


@pytest.mark.servers
def test_r_exchanges_arms_where_the_run_could_stop_early(tmp_path: Path) -> None:
    case = Case({"kernel": ["a", "b"]}, blocks=10)
    plan = case.plan()
    design = plan.design.model_copy(update={"stop": "sequential", "min_blocks": 3})
    trials = case.trials(tpm=lambda levels, block: 0.0 if levels["kernel"] == "a" or block % 3 == 0 else float(block))
    analysis = analyse(plan.model_copy(update={"design": design}), trials)
    (comparison,) = analysis.cells[0].comparisons["tpm"]
    assert comparison.method.startswith(PAIRED_FLIPS)
    assert comparison.p_once == 2 / 2**7  # of the seven blocks that differ
    (row,) = _rscript(r_script.render(analysis), tmp_path)
    assert float(row["p"]) == pytest.approx(comparison.p_once, rel=TOLERANCE)


def test_a_report_by_another_factor_says_that_the_run_could_stop_early() -> None:
    case = Case({"kernel": ["a", "b"], "users": ["1", "2"]}, blocks=10)
    plan = case.plan()
    trials = case.trials(tpm=lambda levels, block: 100.0 + block * 7 % 13 + 3 * int(levels["users"]))
    assert "could stop early" not in r_script.render(analyse(plan, trials, contrast="users"))
    design = plan.design.model_copy(update={"stop": "sequential", "min_blocks": 3})
    analysis = analyse(plan.model_copy(update={"design": design}), trials, contrast="users")
    assert analysis.cells[0].comparisons["tpm"][0].p_once is not None
    assert "# The run could stop early." in r_script.render(analysis)


@pytest.mark.servers
def test_r_survives_values_no_test_can_be_made_of_and_names_with_quotes(analysis: Analysis, tmp_path: Path) -> None:
    cell = analysis.cells[0]
    constant = tuple(
        summary.model_copy(update={"values": (5.0,) * summary.n}) for summary in cell.summaries["throughput_tpm"]
    )
    zero = tuple(
        summary.model_copy(update={"values": (0.0,) * summary.n}) for summary in cell.summaries["throughput_nopm"]
    )
    changed = cell.model_copy(
        update={
            "cell": 'a "quoted" \\ name',
            "summaries": cell.summaries | {"throughput_tpm": constant, "throughput_nopm": zero},
            "comparisons": {
                metric: tuple(one.model_copy(update={"cell": 'a "quoted" \\ name'}) for one in found)
                for metric, found in cell.comparisons.items()
            },
        }
    )
    tricky = analysis.model_copy(update={"cells": (changed,), "question": "two\nlines"})
    rows = {row["metric"]: row for row in _rscript(r_script.render(tricky), tmp_path)}
    assert float(rows["throughput_tpm"]["p"]) == float(rows["throughput_tpm"]["p_adjusted"]) == 1.0
    assert float(rows["throughput_tpm"]["ratio"]) == 1.0
    assert rows["throughput_nopm"]["ratio"] == "NA"


def test_values_are_written_so_that_they_read_back_exactly(analysis: Analysis) -> None:
    script = r_script.render(analysis)
    for cell in analysis.cells:
        for summaries in cell.summaries.values():
            assert all(repr(float(value)) in script for summary in summaries for value in summary.values)


@pytest.mark.servers
@pytest.mark.parametrize(("hosts", "blocks", "lost"), [(5, 17, 0), (3, 9, 0), (6, 6, 0), (6, 18, 1), (2, 8, 1)])
def test_r_recomputes_what_hosts_say(tmp_path: Path, *, hosts: int, blocks: int, lost: int) -> None:
    case = Case({"kernel": ["a", "b"]}, blocks=blocks)
    of_one_arm = {f"node-{number}" for number in range(lost)}
    trials = [
        each.model_copy(update={"host": f"node-{each.trial.block % hosts}"})
        for each in case.trials(
            tpm=lambda levels, block: (
                100 + block * 7 % 13 + (8 + block % hosts + block % 7 if levels["kernel"] == "b" else 0)
            )
        )
    ]
    trials = [
        each.model_copy(update={"scalars": {}}) if each.host in of_one_arm and each.trial.arm == "b" else each
        for each in trials
    ]
    (comparison,) = (analysis := analyse(case.plan(), trials)).cells[0].comparisons["tpm"]
    over = comparison.over_hosts
    assert over is not None
    (row,) = _rscript(r_script.render(analysis), tmp_path)
    assert float(row["hosts"]) == hosts - lost
    known = over.heterogeneity
    assert (known is None) == (over.prediction_low is None) == (hosts == blocks or hosts - lost == 1)
    for name, expected in {
        "tau": None if known is None else known.tau,
        "p_equal_hosts": None if known is None else known.p,
        "like_ratio": over.ratio,
        "like_low": over.low,
        "like_high": over.high,
        "further_low": over.prediction_low,
        "further_high": over.prediction_high,
    }.items():
        assert (row[name] == "NA") if expected is None else float(row[name]) == pytest.approx(expected, rel=TOLERANCE)
    if over.p is not None:
        assert float(row["like_p"]) == pytest.approx(over.p, rel=TOLERANCE)
