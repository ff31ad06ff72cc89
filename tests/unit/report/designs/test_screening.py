"""What a report says of a screening: no verdict, and what it cannot tell apart."""

from __future__ import annotations

import csv
import io
import json
import math
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Literal, cast

import pytest
from rich.console import Console
from support.records import RESOLVED, tiny_plan, trial_record
from support.skips import require

from fairtrial.analyse import analyse
from fairtrial.analyse.models import Analysis
from fairtrial.plan import screening as plans
from fairtrial.record.models import Plan, TrialRecord
from fairtrial.record.screening import ROW, Screening
from fairtrial.report.designs import screening, screening_figures, screening_r
from fairtrial.report.scene import Scene
from fairtrial.report.text import console, summary

VERDICTS = ("faster", "slower", "equivalent", "undecided")


@pytest.fixture(scope="module")
def plan() -> Plan:
    """Three options in four rows, three replicates."""
    return planned(
        "plackett_burman", {"cache": ["small", "large"], "flush": ["safe", "fast"], "threads": ["one", "four"]}
    )


@pytest.fixture(scope="module")
def bent() -> Plan:
    """Three options of three levels, three replicates."""
    return planned("definitive", {name: ["low", "middle", "high"] for name in ("cache", "flush", "threads")})


def planned(kind: Literal["plackett_burman", "definitive"], options: dict[str, list[str]]) -> Plan:
    codes = plans.matrix(kind, len(options))
    of = Screening(
        design=kind,
        options=options,
        rows={f"r{n}": row for n, row in enumerate(codes.tolist(), start=1)},
        resolution=3,
        folded=kind == "definitive",
        aliases=plans.aliasing(codes, list(options)),
    )
    tiny = tiny_plan()
    design = tiny.design.model_copy(update={"blocks": 3})
    return tiny.model_copy(
        update={
            "factors": {ROW: list(of.rows)},
            "arm": ROW,
            "resolved": {"all": dict.fromkeys(of.rows, RESOLVED)},
            "screening": of,
            "design": design,
            "trials": plans.trials(design, list(of.rows)),
        }
    )


@pytest.fixture(scope="module")
def analysis(plan: Plan) -> Analysis:
    """`cache` takes a fifth of the time away, `flush` a tenth, and less together, which `threads` gets."""
    return analyse(plan, measured(plan, lambda cache, flush, _: -0.1 * cache - 0.05 * flush + 0.02 * cache * flush))


def measured(plan: Plan, log_seconds: Callable[..., float]) -> list[TrialRecord]:
    """Trials of so much time by the codes of their row, and a little noise."""
    assert plan.screening is not None
    return [
        trial_record(trial).model_copy(
            update={
                "levels": {ROW: trial.arm},
                "scalars": {
                    "elapsed_s": math.exp(log_seconds(*plan.screening.rows[trial.arm]) + 0.001 * (trial.position % 3))
                },
            }
        )
        for trial in plan.trials
    ]


def test_nothing_is_compared_and_no_word_is_a_verdict(plan: Plan, analysis: Analysis) -> None:
    assert not any(each for cell in analysis.cells for each in cell.comparisons.values())
    shown = io.StringIO()
    Console(file=shown, width=120).print(console.render(analysis))
    said = " ".join([*summary.sentences(analysis), shown.getvalue()])
    for section in screening.sections(analysis, plan):
        said += " ".join(
            [section.title, section.note, *section.sentences, *(cell for row in section.rows for cell in row)]
        )
    assert not [word for word in VERDICTS if word in said]
    assert "claims nothing" in said


def test_the_summary_says_what_stands_out_and_what_it_may_be_instead(analysis: Analysis) -> None:
    first, nominated, caution = summary.sentences(analysis)
    assert first.startswith("In wall time 3 of 3 options stand out: cache (large instead of small: 0.818 times as high")
    assert "it cannot be told from cache × flush, whose effects are larger" in first
    assert nominated == "Nominated by wall time for a paired study, strongest first: cache, flush, threads."
    assert "fairtrial screen RUN --confirm 3" in caution
    assert summary.headline(analysis) == "3 of 3 options stand out"


def test_sections_name_the_error_the_better_level_and_the_rows(plan: Plan, analysis: Analysis) -> None:
    effects, mixed, options, rows = screening.sections(analysis, plan)
    assert effects.title == "Effects on wall time, s, lower is better (primary)"
    assert effects.sentences[0].startswith(
        "12 trials, judged by replicates (6 degrees of freedom; one trial varies by "
    )
    assert [row[0] for row in effects.rows] == ["* cache", "* flush", "* threads"]
    assert [row[-1] for row in effects.rows] == ["large", "fast", "four"]
    assert "The effect of threads cannot be told from -cache × flush." in mixed.sentences
    assert options.rows[1] == ("2", "flush", "safe, fast")
    assert rows.rows[-1][:2] == ("r4", "− − −")
    assert rows.rows[-1][2].count(",") == 2


def test_a_ratio_has_as_many_decimals_as_its_interval(plan: Plan, analysis: Analysis) -> None:
    assert analysis.screening is not None
    (metric,) = analysis.screening.metrics
    narrow = {"ratio": 1.00009, "interval": (1.00008, 1.0001)}
    effects = tuple(each.model_copy(update=narrow) for each in metric.effects)
    metrics = (metric.model_copy(update={"effects": effects}),)
    changed = analysis.model_copy(update={"screening": analysis.screening.model_copy(update={"metrics": metrics})})
    section, *_ = screening.sections(changed, plan)
    assert section.rows[0][2:4] == ("1.00009", "1.00008 – 1.00010")
    assert "1.00009 times as high, 95 % interval 1.00008 – 1.00010" in summary.sentences(changed)[0]


def test_a_level_in_the_middle_that_is_better_than_both_ends_is_shown(bent: Plan) -> None:
    found = analyse(bent, measured(bent, lambda cache, flush, _: -0.1 * cache - 0.2 * (flush == 0)))
    standing, middle, nominated, _ = summary.sentences(found)
    assert standing.startswith("In wall time 1 of 3 options stands out: cache (high instead of low: 0.8")
    assert middle.startswith(
        "In wall time the middle level differs from its ends: flush (middle instead of low, high: 0.8"
    )
    assert ": cache, " in nominated  # whose ends differ
    curvature = next(each for each in screening.sections(found, bent) if each.title == "Curvature in wall time")
    assert (curvature.rows[0][:2], curvature.rows[0][-1]) == (("* flush", "middle / low, high"), "middle")


def by_r(found: Analysis, plan: Plan, trials: list[TrialRecord], *, directory: Path) -> list[dict[str, str]]:
    """The rows that raw_data.r prints."""
    require("Rscript")
    assert plan.screening is not None
    assert found.screening is not None
    used = [SimpleNamespace(used=True, trial=each, arm=each.trial.arm) for each in trials]
    path = directory / "raw_data.r"
    scene = cast("Scene", SimpleNamespace(analysis=found, trials=used))
    path.write_text(screening_r.render(scene, plan.screening, found.screening), encoding="utf-8")
    printed = subprocess.run(["Rscript", str(path)], check=True, capture_output=True, text=True).stdout
    return list(csv.DictReader(io.StringIO(printed), delimiter="\t"))


@pytest.mark.servers
def test_r_finds_the_same_effects_and_the_same_curvature(bent: Plan, tmp_path: Path) -> None:
    trials = measured(bent, lambda cache, flush, threads: -0.1 * cache - 0.01 * (flush == 0) + 0.002 * threads)
    found = analyse(bent, trials)
    assert found.screening is not None
    told = {(row["compared"], row["option"]): row for row in by_r(found, bent, trials, directory=tmp_path)}
    (metric,) = found.screening.metrics
    for compared, effects in (("high/low", metric.effects), ("middle/ends", metric.curvature)):
        for each in effects:
            row = told.pop((compared, each.option))
            assert each.interval is not None
            expected = {"ratio": each.ratio, "low": each.interval[0], "high": each.interval[1], "p": each.p}
            assert {name: float(row[name]) for name in expected} == pytest.approx(expected, rel=1e-6)
            if not each.stands_out:  # exchanged trials, which R does not have, only raise what would stand out
                assert float(row["p_adjusted"]) == pytest.approx(each.p_adjusted, rel=1e-5)
    assert not told


def test_figures_have_every_option(analysis: Analysis) -> None:
    effects, half_normal = screening_figures.figures(analysis)
    assert effects.name == "effects-elapsed_s"
    for figure in (effects, half_normal):
        rows = next(iter(rows for rows in figure.spec["datasets"].values() if len(rows) == 3))
        assert len({row.get("label") or row.get("option") for row in rows}) == 3


def test_without_an_effect_nothing_stands_out(plan: Plan) -> None:
    trials = [
        trial_record(trial).model_copy(
            update={"levels": {ROW: trial.arm}, "scalars": {"elapsed_s": 1 + 0.01 * math.sin(17 * trial.position)}}
        )
        for trial in plan.trials
    ]
    analysis = analyse(plan, trials)
    assert summary.sentences(analysis)[0] == "None of 3 options stands out in wall time."
    assert summary.headline(analysis) == "0 of 3 options stand out"


@pytest.mark.servers
def test_without_noise_nothing_is_judged_and_r_judges_nothing_either(plan: Plan, tmp_path: Path) -> None:
    assert plan.screening is not None
    trials = [
        trial_record(trial).model_copy(
            update={"levels": {ROW: trial.arm}, "scalars": {"elapsed_s": 4 * 2.0 ** plan.screening.rows[trial.arm][0]}}
        )
        for trial in plan.trials
    ]
    found = analyse(plan, trials)
    judged, nominated, _ = summary.sentences(found)
    assert judged == "Effects on wall time cannot be judged: replicates of a row do not vary."
    assert "strongest first: cache, " in nominated
    section, *_ = screening.sections(found, plan)
    assert section.sentences == ("12 trials; effects cannot be judged: replicates of a row do not vary.",)
    for row in by_r(found, plan, trials, directory=tmp_path):
        assert [row[name] for name in ("judged_by", "low", "high", "p_adjusted")] == ["none", "NA", "NA", "NA"]


def test_the_first_metric_that_has_effects_nominates(analysis: Analysis) -> None:
    assert analysis.screening is not None
    (metric,) = analysis.screening.metrics
    more = {"bytes": analysis.metrics["elapsed_s"].model_copy(update={"name": "bytes", "label": "bytes"})}
    result = analysis.screening.model_copy(
        update={"metrics": (metric.model_copy(update={"metric": "bytes"}),), "absent": ("elapsed_s",)}
    )
    roles = {"elapsed_s": "primary", "bytes": "primary"}
    changed = analysis.model_copy(update={"screening": result, "metrics": analysis.metrics | more, "roles": roles})
    said = summary.sentences(changed)
    assert said[1:3] == (
        "Nominated by bytes for a paired study, strongest first: cache, flush, threads.",
        "Without effects, for lack of rows or of logarithms: elapsed_s.",
    )
    assert summary.headline(changed) == "3 of 3 options stand out"


def test_an_invalid_row_is_left_out_alone(plan: Plan) -> None:
    trials = [
        trial_record(trial, valid=trial.position != 2).model_copy(update={"levels": {ROW: trial.arm}})
        for trial in plan.trials
    ]
    analysis = analyse(plan, trials)
    assert (analysis.counts.used, analysis.counts.blocks_voided) == (11, 1)


def test_no_name_of_a_row_is_code_in_r(plan: Plan, analysis: Analysis) -> None:
    assert plan.screening is not None
    assert analysis.screening is not None
    hostile = 'r = c(1)), system("touch ran"), x'
    of = plan.screening.model_copy(update={"rows": {hostile: [1, 1, 1], "r2": [-1, 1, 1]}})
    scene = cast("Scene", SimpleNamespace(analysis=analysis, trials=[]))
    script = screening_r.render(scene, of, analysis.screening)
    assert f"  {json.dumps(hostile)} = c(1, 1, 1),\n  r2 = c(-1, 1, 1)" in script
