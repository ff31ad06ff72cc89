"""Interactions in every form of a report: sentences, text, page, figure, R, and checked by `verify`."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import shutil
import subprocess
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import altair as alt
import numpy as np
import pytest
from rich.console import Console
from support.inference.analysis_cases import Case
from support.records import RESOLVED, planned, tiny_plan, trial_record
from support.skips import require

from fairtrial import verify
from fairtrial.analyse import analyse
from fairtrial.analyse.models import Analysis
from fairtrial.analyse.result import Verdict
from fairtrial.record import Record, create, read
from fairtrial.record.events import RunFinished
from fairtrial.record.models import Cell
from fairtrial.report import document, page, r_script, text
from fairtrial.report.analysing import analysed
from fairtrial.report.designs import interaction_figures, interactions
from fairtrial.report.scene import Scene
from fairtrial.report.text import console, summary
from fairtrial.workloads import workload_of
from fairtrial.workloads.command import USAGE
from fairtrial.workloads.command.runs import OUTPUT

FACTORS = {"kernel": ("a", "b"), "memory": ("under", "over"), "users": ("low", "mid", "high")}
BLOCKS = 6


def of_effects(
    effects: Mapping[str, float], *, metric: str = "tpm", factors: Mapping[str, tuple[str, ...]] = FACTORS
) -> Analysis:
    """Of an arm whose log ratios depend on memory, or on memory and users (`over+mid`)."""
    case = Case(factors, blocks=BLOCKS, roles={"primary": [metric]})
    random = np.random.default_rng(1)

    def value(levels: Mapping[str, str], block: int) -> float:
        at = "+".join(list(levels.values())[1:])
        moved = effects.get(at, effects.get(levels["memory"], 0.0)) if levels["kernel"] == "b" else 0.0
        return math.exp(8 + 0.1 * math.sin(block) + moved + random.normal(0, 0.005))

    return analyse(case.plan(), case.trials(**{metric: value}))


PAIRS_LEVELS = ("pairs", "levels")
TWO = {"kernel": ("a", "b"), "memory": ("under", "over")}


@pytest.mark.parametrize(
    ("under", "over", "metric", "said"),
    [
        (0.02, 0.2, "tpm", "the gain is larger with memory over than with memory under"),
        (0.2, 0.02, "tpm", "the gain is larger with memory under than with memory over"),
        (-0.02, -0.2, "tpm", "the loss is larger with memory over than with memory under"),
        (-0.1, 0.1, "tpm", "there is a gain with memory over and a loss with memory under"),
        (-0.02, -0.2, "p99", "the gain is larger with memory over than with memory under"),
        (0.02, 0.2, "p99", "the loss is larger with memory over than with memory under"),
        (0.0, 0.1, "p99", "the loss is larger with memory over than with memory under"),
    ],
)
def test_a_claim_says_where_the_arm_does_better_and_by_how_much(
    *, under: float, over: float, metric: str, said: str
) -> None:
    analysis = of_effects({"under": under, "over": over}, metric=metric, factors=TWO)
    (sentence,) = interactions.sentences(analysis)
    label = analysis.metrics[metric].label
    assert sentence.startswith(
        f"The effect of kernel b on {label} differs between levels of memory (adjusted p < 0.0001)"
    )
    first, ratio, second, low, high = re.findall(
        r"the ratio with memory (\w+) is ([\d.]+) times that with memory (\w+) \(95 % interval ([\d.]+) – ([\d.]+)\)",
        sentence,
    )[0]
    assert f"{said}: the ratio with memory {first} is {ratio} times" in sentence
    assert said.index(first) < said.index(second)
    assert float(low) < float(ratio) < float(high)
    effects = {"under": under, "over": over}
    assert float(ratio) == pytest.approx(math.exp(effects[first] - effects[second]), rel=0.02)
    assert sentence in summary.sentences(analysis)


@pytest.mark.parametrize(
    ("under", "over", "words"),
    [
        ("undecided", "undecided", "the effect is more favourable with memory over than with memory under"),
        ("equivalent", "equivalent", "the effect is more favourable with memory over than with memory under"),
        ("none", "faster", "the gain is larger with memory over than with memory under"),
        ("slower", "undecided", "the loss is larger with memory under than with memory over"),
        ("slower", "faster", "there is a gain with memory over and a loss with memory under"),
    ],
)
def test_a_gain_or_a_loss_is_said_only_where_it_is_a_verdict(under: Verdict, over: Verdict, words: str) -> None:
    """Whatever a level's own interval leaves out: it is in no family, and no exact test has seen it."""
    analysis = of_effects({"under": -0.1, "over": 0.1}, factors=TWO)
    verdicts = {"under": under, "over": over}
    cells = [
        cell.model_copy(
            update={
                "comparisons": {
                    "tpm": tuple(
                        each.model_copy(update={"verdict": verdicts[cell.levels["memory"]]})
                        for each in cell.comparisons["tpm"]
                    )
                }
            }
        )
        for cell in analysis.cells
    ]
    (sentence,) = interactions.sentences(analysis.model_copy(update={"cells": tuple(cells)}))
    assert f"{words}: the ratio" in sentence


def test_what_is_not_shown_is_not_called_larger() -> None:
    analysis = of_effects({"under": 0.1, "over": 0.1})
    (sentence,) = interactions.sentences(analysis)
    assert sentence.startswith(
        "The effect of kernel b on throughput is not shown to differ between levels of memory (ratio"
    )
    assert "users (ratios of ratios within " in sentence
    assert sentence.endswith(" and memory and users together.")
    assert "larger" not in sentence


def test_cells_of_few_blocks_are_not_said_to_show_nothing() -> None:
    analysis = of_effects({"under": 0.1, "over": 0.1})
    one, *others = analysis.interactions
    few = (*others, one.model_copy(update={"reason": "few_blocks"}))
    _, said = interactions.sentences(analysis.model_copy(update={"interactions": few}))
    assert said == (
        "The effect of kernel b on throughput has too few blocks in a cell to be compared between levels of memory."
    )


@pytest.mark.parametrize("over", [0.1, 0.2])
def test_a_ratio_has_as_many_decimals_as_its_interval(over: float) -> None:
    """Of pairs that are claimed and of such that are not; a sentence may have the pair the other way round."""
    analysis = of_effects({"under": 0.1, "over": over}, factors=TWO)
    (found,) = analysis.interactions
    narrow = {"ratio": 1.00009, "low": 1.00008, "high": 1.0001}
    effects = {name: tuple(each.model_copy(update=narrow) for each in getattr(found, name)) for name in PAIRS_LEVELS}
    changed = analysis.model_copy(update={"interactions": (found.model_copy(update=effects),)})
    for rows in (interactions.pairs(changed), interactions.levels(changed)):
        assert rows.rows[0][2:4] == ["1.00009", "1.00008 – 1.00010"]
    (sentence,) = interactions.sentences(changed)
    forward, backward = (("1.00009", "1.00008 – 1.00010"), ("0.99991", "0.99990 – 0.99992"))
    assert any(ratio in sentence and interval in sentence for ratio, interval in (forward, backward))


def test_of_several_levels_the_pairs_that_differ_are_named() -> None:
    analysis = of_effects({"under+high": 0.1, "over+high": 0.1})
    said = " ".join(interactions.sentences(analysis))
    assert "larger with users high than with users low" in said
    assert "larger with users high than with users mid" in said
    assert "users mid than" not in said
    both = of_effects({"over+high": 0.1})
    assert "depends on memory and users together" in " ".join(interactions.sentences(both))


@pytest.mark.parametrize(
    ("growth", "said"),
    [
        (0.05, "differs between levels of users (adjusted p < 0.0001): so many"),
        (0.0, "is not shown to differ between levels of users."),
    ],
)
def test_of_more_levels_than_are_compared_in_pairs_the_factor_is_named(growth: float, said: str) -> None:
    users = [str(number) for number in range(9)]
    case = Case({"kernel": ("a", "b"), "users": tuple(users)}, blocks=BLOCKS, roles={"primary": ["tpm"]})
    random = np.random.default_rng(1)

    def tpm(levels: Mapping[str, str], block: int) -> float:
        moved = growth * users.index(levels["users"]) if levels["kernel"] == "b" else 0.0
        return math.exp(8 + 0.1 * math.sin(block) + moved + random.normal(0, 0.005))

    analysis = analyse(case.plan(), case.trials(tpm=tpm))
    (sentence,) = interactions.sentences(analysis)
    assert said in sentence
    assert sentence in summary.sentences(analysis)


def test_a_run_without_a_verdict_says_nothing() -> None:
    case = Case(TWO, blocks=BLOCKS)
    trials = case.trials(tpm=lambda levels, block: 100 + block * (2 if levels["kernel"] == "b" else 3) % 5)
    analysis = analyse(case.plan(), trials, finished=False)
    assert interactions.sentences(analysis) == ()
    assert interactions.tests(analysis).rows[0][-1] == "no verdict"


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    """A command's run under two loads: arm `b` takes 20 % longer with the heavy one alone."""
    base = tiny_plan()
    (cell,) = base.cells
    cells = [Cell(name=load, levels={"load": load}) for load in ("light", "heavy")]
    definitions = dict(workload_of(RESOLVED.workload).metrics())
    trials = [
        planned(block, arm).model_copy(update={"id": f"{load}-{block}-{arm}", "cell": load})
        for block in range(1, BLOCKS + 1)
        for load in ("light", "heavy")
        for arm in "ab"
    ]
    trials = [each.model_copy(update={"position": at}) for at, each in enumerate(trials)]
    plan = base.model_copy(
        update={
            "cells": cells,
            "factors": {**base.factors, "load": ["light", "heavy"]},
            "resolved": {each.name: base.resolved[cell.name] for each in cells},
            "metrics": base.metrics.model_copy(update={"definitions": definitions}),
            "trials": trials,
            "design": base.design.model_copy(update={"blocks": BLOCKS}),
        }
    )
    with closing(create(tmp_path_factory.mktemp("loads") / "run", plan=plan, sources={"study.yaml": ""})) as writer:
        for trial in trials:
            slower = 1.2 if (trial.cell, trial.arm) == ("heavy", "b") else 1.0
            scalars = dict.fromkeys(definitions, slower * (1 + trial.position * 37 % 11 / 1000))
            raw_files = writer.begin(trial.id)
            (raw_files / USAGE).write_text(json.dumps(scalars), encoding="utf-8")
            (raw_files / OUTPUT).parent.mkdir(exist_ok=True)
            (raw_files / OUTPUT).touch()
            made = trial_record(trial)
            levels = {plan.arm: trial.arm, "load": trial.cell}
            writer.commit(made.model_copy(update={"scalars": scalars, "levels": levels}))
        writer.append(RunFinished())
        record: Record = writer.record()
    return Scene(record=record, analysis=analysed(record))


def test_text_page_and_terminal_say_it(scene: Scene) -> None:
    (test,) = scene.analysis.interactions
    assert test.verdict == "differs"
    (sentence,) = interactions.sentences(scene.analysis)
    assert "the loss is larger with load heavy than with load light" in sentence
    said = text.render(scene)
    assert interactions.TITLE in said
    assert "heavy / light" in said
    assert interactions.PLAIN not in said
    printed = Console(width=300, record=True, file=io.StringIO())
    printed.print(console.render(scene.analysis))
    assert sentence in printed.export_text()
    html = page.render(scene, ratios=[], cells=[])
    assert f"<h2>{interactions.TITLE}</h2>" in html
    assert "heavy / light" in html


def test_the_figure_has_a_point_per_cell(scene: Scene) -> None:
    (figure,) = (each for table in scene.tables for each in interaction_figures.by_condition(scene, table))
    alt.LayerChart.from_dict(figure.spec, validate=True)
    rows = max(figure.spec["datasets"].values(), key=len)
    assert [row["level"] for row in rows] == ["light", "heavy"]
    assert rows[1]["low"] > 1.15
    assert figure.name in [each.name for each in page.ratio_figures(scene)]


def test_verify_finds_a_changed_figure(scene: Scene, tmp_path: Path) -> None:
    directory = shutil.copytree(scene.record.directory, tmp_path / "run")
    path = directory / "report" / verify.REPORT
    path.parent.mkdir()
    path.write_text(document.render(scene), encoding="utf-8")
    before = verify.recompute(read(directory))
    report = json.loads(path.read_bytes())
    report["analysis"]["interactions"][0]["pairs"][0]["low"] = 1.0
    path.write_text(json.dumps(report), encoding="utf-8")
    (named,) = set(verify.recompute(read(directory))) - set(before)
    assert "interactions[0].pairs[0].low is 1.0 but recomputed" in named


@pytest.mark.servers
@pytest.mark.parametrize("contrast", ["kernel", "memory"])
@pytest.mark.parametrize("order", ["randomised_blocks", "sequential"])
def test_r_recomputes_them(tmp_path: Path, *, contrast: str, order: str) -> None:
    require("Rscript")
    case = Case(FACTORS, blocks=BLOCKS, order=order)
    random = np.random.default_rng(2)
    lost = {"under": 4, "over": BLOCKS}  # unequal blocks

    def value(levels: Mapping[str, str], block: int) -> float:
        if block > lost[levels["memory"]]:
            return math.nan
        moved = 0.05 if levels["memory"] == "over" and levels["kernel"] == "b" else 0.0
        return math.exp(8 + moved + random.normal(0, 0.02))

    analysis = analyse(case.plan(), case.trials(tpm=value), contrast=contrast)
    script = tmp_path / "raw_data.r"
    script.write_text(r_script.render(analysis), encoding="utf-8")
    ran = subprocess.run(["Rscript", "--vanilla", script], capture_output=True, text=True, check=True, timeout=120)
    tables = [list(csv.DictReader(io.StringIO(each), delimiter="\t")) for each in ran.stdout.split("\n\n")]
    _, tests, pairs = tables
    assert len(tests) == len(analysis.interactions) == 3
    for row, test in zip(tests, analysis.interactions, strict=True):
        assert row["factors"] == " x ".join(test.factors)
        for name in ("f", "df_between", "df_within", "p", "p_adjusted", "p_pooled"):
            expected = getattr(test, name)
            assert row[name] == "NA" if expected is None else float(row[name]) == pytest.approx(expected, rel=1e-6)
    found = [pair for test in analysis.interactions for pair in test.pairs]
    for row, pair in zip(pairs, found, strict=True):
        assert (row["first"], row["second"]) == (pair.first, pair.second)
        for name, expected in {"ratio_of_ratios": pair.ratio, "low": pair.low, "high": pair.high, "p": pair.p}.items():
            assert float(row[name]) == pytest.approx(expected, rel=1e-6)
