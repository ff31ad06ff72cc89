"""What a report says of curves: every kind of peak and crossing in the words a reader wants."""

import csv
import io
import subprocess
from pathlib import Path

import numpy as np
import pytest
from support.skips import require

from fairtrial.analyse import analyse_table
from fairtrial.analyse.designs import usl
from fairtrial.analyse.designs.curve_models import (
    ArmCurve,
    Crossing,
    CurvePair,
    CurvePoint,
    Curves,
    Estimate,
    Misfit,
    ParameterComparison,
    Peak,
    PeakPosition,
)
from fairtrial.analyse.measured import ArmValues
from fairtrial.analyse.models import Analysis, Counts
from fairtrial.analyse.tidy import Course, CurveRequest, Request
from fairtrial.report import r_script
from fairtrial.report.designs import curves, curves_in_r
from fairtrial.study.catalogue import MetricDefinition


def peak(position: PeakPosition, low: float | None, high: float | None, *, at: float | None = 41.0) -> Peak:
    there = Estimate(estimate=1277.3, low=1250.0, high=1300.0) if position == "within" else None
    return Peak(position=position, at=Estimate(estimate=at, low=low, high=high), throughput=there)


def arm(name: str, top: Peak) -> ArmCurve:
    return ArmCurve(
        arm=name,
        parameters={
            "lambda": Estimate(estimate=99.9, low=98.8, high=2e12),
            "sigma": Estimate(estimate=0.0302, low=0.0266, high=0.0338),
            "kappa": Estimate(estimate=0.0, low=0.0, high=0.00002),
        },
        free={"lambda": 99.9, "sigma": 0.0302, "kappa": -0.00001},
        peak=top,
        misfit=Misfit(f=1.2, df=2.1, df_error=11.0, p=0.34),
        line=tuple(CurvePoint(value=n, estimate=50.0 * n, low=None, high=None) for n in (1.0, 64.0)),
    )


def analysis(top: Peak, *, crossings: tuple[Crossing, ...] = (), shown: bool = False) -> Analysis:
    compared = ParameterComparison(
        parameter="sigma",
        scale="difference",
        change=Estimate(estimate=-0.0197, low=-0.0227, high=-0.0168),
        p=0.0001,
        p_adjusted=0.0003,
        family_size=3,
        verdict="differs" if shown else "undecided",
    )
    found = Curves(
        metric="tpm",
        cell="all",
        levels={},
        over="users",
        model="usl",
        values=(1.0, 8.0, 64.0),
        cells=("1", "8", "64"),
        n=6,
        confidence=0.95,
        arms=(arm("A", top), arm("B", peak("none", 70.0, None, at=None))),
        pairs=(CurvePair(arm="B", parameters=(compared,), crossings=crossings, shown=shown),),
    )
    return Analysis(
        study="growth",
        question="",
        contrast="lock",
        levels=("A", "B"),
        finished=True,
        paired=True,
        margin=0.02,
        confidence=0.95,
        metrics={
            "tpm": MetricDefinition(
                name="tpm", label="throughput", unit="transactions/min", better="higher", kind="wall_clock"
            )
        },
        roles={"tpm": "primary"},
        cells=(),
        counts=Counts(planned=1, finished=1, valid=1, invalid=0, used=1, blocks_voided=0, blocks_replaced=0),
        curves=(found,),
    )


@pytest.mark.parametrize(
    ("top", "said"),
    [
        (peak("within", 36.0, 48.2), "With A, throughput peaks at 41 users (36 to 48.2): 1,277 transactions/min."),
        (
            peak("beyond", 70.0, 120.0, at=93.0),
            "With A, throughput peaks nowhere up to 64 users: by extrapolation at 93 (70 to 120).",
        ),
        (peak("before", None, 0.7, at=0.5), "With A, throughput falls from the smallest value on, 1."),
        (peak("excluded", None, None, at=None), "With A, throughput has no peak up to 64 users."),
        (peak("none", 70.0, None), "With A, throughput has no peak up to 64 users."),
        (
            peak("none", 30.0, None),
            "With A, throughput has no peak that these trials show up to 64 users; one at 30 or more is not excluded.",
        ),
        (
            peak("none", None, None),
            "With A, throughput has no peak that these trials show up to 64 users; one anywhere is not excluded.",
        ),
        (
            peak("open", 50.0, 90.0, at=63.0),
            "With A, throughput peaks at 63 users (50 to 90), which is not all within 1 to 64.",
        ),
    ],
)
def test_every_kind_of_peak_is_told(top: Peak, said: str) -> None:
    found = analysis(top)
    assert next(curves.sentences(found, found.curves[0])) == said


@pytest.mark.parametrize(
    ("crossings", "shown", "said"),
    [
        ((), False, "The fitted curves of A and B do not cross from 1 to 64 users."),
        ((Crossing(at=12.0, low=9.0, high=15.0),), True, "A and B cross at 12 (9 to 15) users."),
        (
            (Crossing(at=12.0, low=9.0, high=15.0), Crossing(at=50.0, low=40.0, high=None)),
            True,
            "A and B cross at 12 (9 to 15) and 50 (40 to above 64) users.",
        ),
        (
            (Crossing(at=2.0, low=None, high=15.0),),
            False,
            "The fitted curves of A and B cross at 2 (below 1 to 15) users, which these trials do not show.",
        ),
    ],
)
def test_every_kind_of_crossing_is_told(crossings: tuple[Crossing, ...], said: str, *, shown: bool) -> None:
    found = analysis(peak("within", 36.0, 48.0), crossings=crossings, shown=shown)
    sentences = [*curves.sentences(found, found.curves[0])]
    assert said in sentences
    claim = "Curves differ with B instead of A: contention (sigma) by -0.0197 (-0.0227 to -0.0168)."
    assert (claim in sentences) is shown


def test_tables_have_every_parameter_and_a_rate_that_is_hardly_known_has_few_digits() -> None:
    (section,) = curves.sections(analysis(peak("within", 36.0, 48.0)))
    assert section.header[:3] == ("arm", "one user's rate", "95 % interval")
    assert section.arms[0] == (
        "A",
        *("100", "99 – 2.0e12"),
        *("0.0302", "0.0266 – 0.0338"),
        *("0", "0 – 2e-05"),
        *("41", "36 to 48"),
        "0.3400",
    )
    assert section.pairs[0][1:] == (
        "contention (sigma)",
        "-0.0197",
        "-0.0227 – -0.0168",
        "0.0001",
        "0.0003",
        "undecided",
    )
    assert "extrapolation, not evidence" in section.notes[0]
    assert (
        "changes and misfit are of the fit without the bound: kappa -1e-05 of A, kappa -1e-05 of B." in section.notes[0]
    )


def test_a_peak_that_is_excluded_has_no_interval() -> None:
    for position, interval in (("excluded", "none"), ("none", "any number")):
        (section,) = curves.sections(analysis(peak(position, None, None, at=None)))
        assert section.arms[0][-3:-1] == ("–", interval)


def test_nothing_is_said_of_a_bound_that_no_fit_reaches() -> None:
    found = analysis(peak("within", 36.0, 48.0))
    arms = tuple(each.model_copy(update={"free": {"lambda": 99.9, "kappa": 0.0}}) for each in found.curves[0].arms)
    within = found.model_copy(update={"curves": (found.curves[0].model_copy(update={"arms": arms}),)})
    assert "without the bound" not in curves.sections(within)[0].notes[0]


def test_r_gets_curves_whose_errors_come_from_blocks_only() -> None:
    found = analysis(peak("within", 36.0, 48.0))
    assert 'list("tpm", "usl", c(1.0, 8.0, 64.0), c("1", "8", "64"), c("A", "B"), "all")' in curves_in_r.lines(found)[2]
    assert curves_in_r.lines(found)[0] == "curve_family <- 3"
    scattered = found.model_copy(update={"curves": (found.curves[0].model_copy(update={"spread": "scatter"}),)})
    assert curves_in_r.lines(scattered) == []


USERS = (64, 96, 128, 192, 256)
BLOCKS = 6


def many(noise: dict[str, float], *, seed: int) -> Analysis:
    """Two arms' curves over many users, a metric for each size of noise."""
    random, at, made = np.random.default_rng(seed), np.array(USERS, dtype=float), {}
    each = MetricDefinition(name="", label="rate", unit="/s", better="higher", kind="wall_clock")
    for metric, sd in noise.items():
        for arm, rate in (("A", 100.0), ("B", 90.0)):
            logs = usl.logs(np.array([np.log(rate), 0.03, 0.0006]), at) + random.normal(0, sd, (BLOCKS, len(at)))
            for n, own in zip(USERS, np.exp(logs).T, strict=True):
                order = tuple(range(BLOCKS))
                made.setdefault((str(n), metric), {})[arm] = ArmValues(arm, own, order, positions=order, absent=0)
    asked = Request(
        study="growth",
        question="",
        contrast="lock",
        levels=("A", "B"),
        cells={str(n): {"users": str(n)} for n in USERS},
        metrics={name: each.model_copy(update={"name": name}) for name in noise},
        roles=dict.fromkeys(noise, "primary"),
        paired=True,
        confidence=0.95,
        margin=0.02,
        curve=CurveRequest("users", "usl", {str(n): n for n in USERS}),
    )
    counts = Counts(planned=0, finished=0, valid=0, invalid=0, used=0, blocks_voided=0, blocks_replaced=0)
    return analyse_table(made, asked, Course(counts=counts))


@pytest.mark.servers
def test_r_says_where_it_finds_no_curve_and_goes_on(tmp_path: Path) -> None:
    require("Rscript")
    found = many({"noisy": 0.05, "same": 0.0, "steady": 0.001}, seed=12)
    script = tmp_path / "raw_data.r"
    script.write_text(r_script.render(found), encoding="utf-8")
    printed = subprocess.run(["Rscript", str(script)], check=True, capture_output=True, text=True).stdout
    rows = list(csv.DictReader(io.StringIO(printed.rpartition("\n\n")[2]), delimiter="\t"))
    assert [(row["arm"], row["what"], row["estimate"]) for row in rows if row["metric"] == "noisy"] == [
        ("A", "no fit", "NA"),
        ("B", "no fit", "NA"),
    ]
    for curve in found.curves[1:]:
        told = {(row["arm"], row["what"]): row for row in rows if row["metric"] == curve.metric}
        (pair,) = curve.pairs
        for each in pair.parameters:
            row = told["B", f"change of {each.parameter}"]
            expected = [each.change.low, each.change.high, each.p if each.change.low else None]
            for name, value in zip(("low", "high", "p"), expected, strict=True):
                assert row[name] == "NA" if value is None else float(row[name]) == pytest.approx(value, rel=1e-4)
        for arm in curve.arms:
            assert arm.peak is not None
            for name, value in (("low", arm.peak.at.low), ("high", arm.peak.at.high)):
                row = told[arm.arm, "peak"]
                assert row[name] == "NA" if value is None else float(row[name]) == pytest.approx(value, rel=1e-4)
            assert (arm.misfit is not None) == ((arm.arm, "misfit") in told)


def test_a_curve_that_is_none_says_why() -> None:
    found = analysis(peak("within", 36.0, 48.0))
    none = Curves(
        metric="tpm",
        cell="all",
        levels={},
        over="users",
        model="usl",
        values=(1.0, 8.0),
        cells=("1", "8"),
        confidence=0.95,
        reason="2 values, of 3 that the model needs",
    )
    (section,) = curves.sections(found.model_copy(update={"curves": (none,)}))
    assert section.sentences == ("No curve of throughput: 2 values, of 3 that the model needs.",)
    assert section.arms == ()


def test_an_analysis_without_curves_has_no_word_of_them() -> None:
    found = analysis(peak("within", 36.0, 48.0)).model_copy(update={"curves": ()})
    assert "curves" not in found.model_dump()
    assert curves.sections(found) == []
