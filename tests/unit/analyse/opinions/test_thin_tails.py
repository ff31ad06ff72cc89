"""A comparison whose p exact tests raised: where it is done, what is said of it, and that R does the same."""

from __future__ import annotations

import csv
import io
import math
import subprocess
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from support.inference.analysis_cases import Case
from support.inference.exchanged import by_t, raised, raised_unpaired
from support.skips import require

from fairtrial import report
from fairtrial.analyse import analyse
from fairtrial.analyse.inference.t_tests import Values
from fairtrial.analyse.models import Analysis, Comparison
from fairtrial.report import r_script

ALPHA = 0.05
TWO = {"kernel": ["a", "b"]}
# Eight blocks up and two down by nearly the same: t gives p = 0.0493, all choices of signs 0.0586.
EIGHT_OF_TEN = [0.0297, -0.0298, -0.0294, 0.0304, 0.031, 0.0297, 0.0291, 0.0294, 0.0286, 0.0317]


def study(log_ratios: list[float], *, order: str = "randomised_blocks", role: str = "primary") -> tuple[Case, Analysis]:
    """Two arms in one cell whose blocks differ by just these log ratios."""
    roles = {role: ["tpm"]} if role == "primary" else {"primary": ["p99"], role: ["tpm"]}
    case = Case(TWO, blocks=len(log_ratios), order=order, roles=roles)

    def value(levels: Mapping[str, str], block: int) -> float:
        return 100.0 * block * math.exp(log_ratios[block - 1] if levels["kernel"] == "b" else 0.0)

    def latency(levels: Mapping[str, str], block: int) -> float:
        return 5.0 + 0.01 * ((block * 7) % 5) + 0.001 * (levels["kernel"] == "b") * block

    return case, analyse(case.plan(), case.trials(tpm=value, p99=latency))


def only(analysis: Analysis) -> Comparison:
    return analysis.cells[0].comparisons["tpm"][0]


def codes(found: Comparison) -> list[str]:
    return [doubt.code for doubt in found.doubts]


def test_eight_equal_differences_of_ten_are_a_claim_of_t_and_no_verdict() -> None:
    found = only(study(EIGHT_OF_TEN)[1])
    assert found.p_by_t is not None
    assert found.p_by_t < ALPHA < found.p
    assert found.p == pytest.approx(raised(found.p_by_t, EIGHT_OF_TEN, family=1))
    assert found.verdict == "undecided"
    assert found.ratio.low is not None
    assert found.ratio.low > 1  # Student's interval still leaves out 1, which is why it must be said
    (doubt,) = [doubt for doubt in found.doubts if doubt.code == "thin_tails"]
    assert f"p = {found.p_by_t:.3g}" in doubt.message
    assert f"{found.p:.3g}" in doubt.message
    assert (doubt.metric, doubt.arm) == ("tpm", "b")


def test_the_text_of_the_report_says_so() -> None:
    console = Console(width=120, record=True, file=io.StringIO())
    console.print(report.terminal(study(EIGHT_OF_TEN)[1]))
    printed = " ".join(console.export_text().split())
    assert "exact tests of the same trials give" in printed
    assert "undecided" in printed


def test_a_claim_that_stands_says_nothing_but_keeps_ts_own_p() -> None:
    ratios = np.random.default_rng(1).normal(0.03, 0.01, 10).tolist()
    found = only(study(ratios)[1])
    assert found.verdict == "faster"
    assert found.p_by_t is not None
    assert found.p_by_t < found.p < ALPHA
    assert "thin_tails" not in codes(found)


def test_a_p_that_claims_nothing_is_students() -> None:
    ratios = np.random.default_rng(4).normal(0.0, 0.03, 10).tolist()
    found = only(study(ratios)[1])
    assert found.p > ALPHA
    assert found.p_by_t is None


def test_the_larger_the_family_the_less_its_coarse_exact_p_counts() -> None:
    """One cell of ten blocks has 25 choices of signs at its level, one of six cells has four."""
    wide = Case({"kernel": ["a", "b"], "load": ["1", "2", "3", "4", "5", "6"]}, blocks=10)

    def value(levels: Mapping[str, str], block: int) -> float:
        return 100.0 * block * math.exp(EIGHT_OF_TEN[block - 1] if levels["kernel"] == "b" else 0.0)

    cells = analyse(wide.plan(), wide.trials(tpm=value)).cells
    alone = only(study(EIGHT_OF_TEN)[1])
    assert len(cells) == 6
    for cell in cells:
        (found,) = cell.comparisons["tpm"]
        assert by_t(found) == by_t(alone)
        assert by_t(found) < found.p < alone.p
        assert found.p == pytest.approx(raised(by_t(found), EIGHT_OF_TEN, family=6))


def test_an_adjusted_p_starts_from_the_raised_one() -> None:
    case = Case({"kernel": ["a", "b"], "load": ["1", "2"]}, blocks=10)

    def value(levels: Mapping[str, str], block: int) -> float:
        gain = EIGHT_OF_TEN[block - 1] * (1.0 if levels["load"] == "1" else 1.2) + (levels["load"] == "2") * 0.004
        return 100.0 * block * math.exp(gain if levels["kernel"] == "b" else 0.0)

    found = [cell.comparisons["tpm"][0] for cell in analyse(case.plan(), case.trials(tpm=value)).cells]
    p = [each.p for each in found]
    assert found[0].p_by_t is not None
    assert found[0].p_by_t < found[0].p
    first, second = sorted(range(2), key=lambda each: p[each])
    assert found[first].p_adjusted == pytest.approx(2 * p[first])
    assert found[second].p_adjusted == pytest.approx(max(2 * p[first], p[second]))


@pytest.mark.parametrize("role", ["secondary", "guardrails"])
def test_every_role_is_held_against_it(role: str) -> None:
    found = only(study(EIGHT_OF_TEN, role=role)[1])
    assert found.p == pytest.approx(raised(by_t(found), EIGHT_OF_TEN, family=1))
    assert "thin_tails" in codes(found)


def test_trials_without_blocks_are_held_against_their_ranks() -> None:
    case = Case(TWO, blocks=6, order="sequential", roles={"primary": ["tpm"]})
    values = {"a": [100.0, 100.1, 99.9, 100.2, 99.8, 100.05], "b": [103, 103.1, 102.9, 103.2, 100.15, 103.05]}
    (found,) = (
        analyse(case.plan(), case.trials(tpm=lambda levels, block: values[levels["kernel"]][block - 1]))
        .cells[0]
        .comparisons["tpm"]
    )
    assert found.method == "Welch on logs"
    logs = [[math.log(each) for each in values[arm]] for arm in "ab"]
    assert found.p_by_t is not None
    assert found.p == pytest.approx(raised_unpaired(found.p_by_t, (logs[0], logs[1]), sides=2, family=1))


def test_a_run_that_could_stop_early_has_boundaries_of_its_own() -> None:
    case, _ = study(EIGHT_OF_TEN)
    plan = case.plan()
    early = {"stop": "sequential", "min_blocks": 4, "spending": "pocock", "futility": True, "equivalence": True}
    plan = plan.model_copy(update={"design": plan.design.model_copy(update=early)})
    trials = case.trials(
        tpm=lambda levels, block: 100.0 * block * math.exp(EIGHT_OF_TEN[block - 1] if levels["kernel"] == "b" else 0.0)
    )
    found = only(analyse(plan, trials))
    fixed = only(analyse(case.plan(), trials))
    assert found.p_by_t is None
    assert found.p_once == fixed.p_by_t
    assert "thin_tails" not in codes(found)


def test_heaps_of_zeros_have_their_own_exchange() -> None:
    base, other = [0.0] * 10, [3.0, 2, 4, 3, 5, 2, 3, 6, 2, 3]
    case = Case(TWO, blocks=10)
    values = {"a": base, "b": other}
    trials = case.trials(tpm=lambda levels, block: values[levels["kernel"]][block - 1])
    found = only(analyse(case.plan(), trials))
    assert found.method == "paired permutation of differences over blocks"
    assert (found.p, found.p_by_t) == (pytest.approx(2 / 2**10), None)


def test_values_known_by_class_have_the_largest_p_their_classes_allow() -> None:
    classes = [1000, 1001, 1000, 1002, 1000, 1001, 1000, 1001]
    case = Case(TWO, blocks=8, roles={"primary": ["latency_p99_ns"]})
    metrics = case.plan().metrics.definitions
    name = next(name for name, each in metrics.items() if each.resolution > 0)
    case = Case(TWO, blocks=8, roles={"primary": [name]})
    trials = case.trials(
        **{name: lambda levels, block: classes[block - 1] * (1.05 if levels["kernel"] == "b" else 1.0)}
    )
    (found,) = analyse(case.plan(), trials).cells[0].comparisons[name]
    assert found.method.endswith("values known by class")
    assert found.rank is not None
    assert by_t(found) <= found.p <= max(by_t(found), found.rank.p)


def modes(random: np.random.Generator, n: int) -> Values:
    first, second = (random.normal(0, 0.003, n) + 0.03 * (random.random(n) < 0.5) for _ in range(2))
    return second - first


def test_it_cries_wolf_in_about_three_of_a_thousand_comparisons_of_ten_blocks() -> None:
    random = np.random.default_rng(11)
    replicates = 1500
    case = Case({"kernel": ["a", "b"], "load": [str(each) for each in range(replicates)]}, blocks=10)
    noise = random.normal(0, 0.01, (replicates, 2, 10))

    def value(levels: Mapping[str, str], block: int) -> float:
        return math.exp(noise[int(levels["load"]), int(levels["kernel"] == "b"), block - 1])

    # As secondary metrics of one place each would be a family of 1,500: by guardrails each stands for itself.
    guarded = Case(case.factors, blocks=10, roles={"primary": ["p99"], "guardrails": ["tpm"]})
    analysis = analyse(guarded.plan(), guarded.trials(tpm=value, p99=lambda _levels, block: 1.0 + block))
    doubted = sum("thin_tails" in codes(cell.comparisons["tpm"][0]) for cell in analysis.cells)
    assert doubted <= 12
    assert doubted / replicates == pytest.approx(0.003, abs=0.004)


def rscript(script: str, directory: Path) -> list[dict[str, str]]:
    require("Rscript")
    path = directory / "raw_data.r"
    path.write_text(script, encoding="utf-8")
    ran = subprocess.run(["Rscript", "--vanilla", str(path)], capture_output=True, text=True, check=True, timeout=120)
    return list(csv.DictReader(io.StringIO(ran.stdout.split("\n\n")[0]), delimiter="\t"))  # comparisons come first


@pytest.mark.servers
@pytest.mark.parametrize("n", [6, 9, 20, 21, 33])
def test_r_exchanges_the_same_arms_exactly_and_by_saddle_point(n: int, tmp_path: Path) -> None:
    """Several cells of two modes with an effect: some claims are raised over the level, some are not."""
    random = np.random.default_rng(n)
    loads = [str(each) for each in range(8)]
    noise = np.stack([modes(random, n) + (0.02 if n > 9 else 0.03) for _ in loads])
    case = Case({"kernel": ["a", "b"], "load": loads}, blocks=n, roles={"primary": ["tpm"], "guardrails": ["p99"]})

    def value(levels: Mapping[str, str], block: int) -> float:
        gain = noise[int(levels["load"]), block - 1] if levels["kernel"] == "b" else 0.0
        return 1000 * math.exp(gain + block / 100)

    def crossing(levels: Mapping[str, str], block: int) -> float:
        """Differences whose values have no logarithm."""
        return value(levels, block) - 1000 * math.exp(block / 100) - 1e-3 * block

    analysis = analyse(case.plan(), case.trials(tpm=value, p99=crossing))
    found = [each for cell in analysis.cells for all_ in cell.comparisons.values() for each in all_]
    rows = rscript(r_script.render(analysis), tmp_path)
    assert len(rows) == len(found) == 16
    assert sum(each.p_by_t is not None for each in found) >= (3 if n > 6 else 1)
    for row, each in zip(rows, found, strict=True):
        assert float(row["p"]) == pytest.approx(each.p, rel=1e-6), (each.cell, each.metric)
        if each.p_adjusted is not None:
            assert float(row["p_adjusted"]) == pytest.approx(each.p_adjusted, rel=1e-6)


@pytest.mark.servers
def test_r_ranks_trials_without_blocks_ties_included(tmp_path: Path) -> None:
    random = np.random.default_rng(2)
    loads = [str(each) for each in range(10)]
    case = Case({"kernel": ["a", "b"], "load": loads}, blocks=7, order="sequential")
    noise = np.round(random.normal(0, 1, (10, 2, 7)), 1)  # tenths: most cells have a tie

    def value(levels: Mapping[str, str], block: int) -> float:
        return (
            100.0 + noise[int(levels["load"]), int(levels["kernel"] == "b"), block - 1] + 2 * (levels["kernel"] == "b")
        )

    analysis = analyse(case.plan(), case.trials(tpm=value))
    found = [each for cell in analysis.cells for each in cell.comparisons["tpm"]]
    rows = rscript(r_script.render(analysis), tmp_path)
    assert sum(each.p_by_t is not None for each in found) > 3
    for row, each in zip(rows, found, strict=True):
        assert float(row["p"]) == pytest.approx(each.p, rel=1e-6), each.cell
