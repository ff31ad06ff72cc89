"""Programs linked in several orders: a verdict for layouts like these, a doubt where a claim is about these alone."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from support.inference.analysis_cases import Case

from fairtrial.analyse import analyse
from fairtrial.analyse.designs.layout_models import OverLayouts
from fairtrial.analyse.doubts import layouts as layout_doubts
from fairtrial.analyse.hosts.models import HostsReason
from fairtrial.analyse.models import Analysis, Comparison
from fairtrial.report import r_script, tables
from fairtrial.report.designs import layouts
from fairtrial.report.text import summary

BLOCKS = 20


def compared(count: int, apart: float) -> Comparison:
    """Of so many layouts whose effects lie so far apart, 3 % on average."""
    (comparison,) = analysed(count, apart).cells[0].comparisons["tpm"]
    return comparison


def analysed(count: int, apart: float, *, as_hosts: bool = False, zero: bool = False) -> Analysis:
    case = Case({"kernel": ("a", "b")}, blocks=BLOCKS)

    def value(levels: Mapping[str, str], block: int) -> float:
        if zero and block == 1:
            return 0.0
        noise = block * 7 % 11 - 5
        gain = 1.03 + apart * (block % count - (count - 1) / 2) if levels["kernel"] == "b" else 1.0
        return 1000 * gain + noise * (1 if levels["kernel"] == "a" else -1) * 0.5

    field = "host" if as_hosts else "layout"
    trials = [
        each.model_copy(update={field: f"order-{each.trial.block % count:04d}"} if count > 1 else {})
        for each in case.trials(tpm=value)
    ]
    return analyse(case.plan(), trials)


def test_layouts_are_a_random_factor_as_hosts_are() -> None:
    by_layout = analysed(5, 0.01).cells[0].comparisons["tpm"][0]
    by_host = analysed(5, 0.01, as_hosts=True).cells[0].comparisons["tpm"][0]
    assert by_layout.over_hosts is None
    assert by_layout.over_layouts is not None
    assert by_host.over_hosts is not None
    assert by_layout.over_layouts.model_dump(exclude={"share"}) == by_host.over_hosts.model_dump()


def test_the_share_of_the_variance_that_is_layout() -> None:
    close, far = compared(5, 0.0).over_layouts, compared(5, 0.01).over_layouts
    assert isinstance(close, OverLayouts)
    assert isinstance(far, OverLayouts)
    assert close.share == 0.0
    baseline, arm = analysed(5, 0.01).cells[0].summaries["tpm"]
    ratios = np.log(np.array(arm.values) / np.array(baseline.values)).reshape(-1, 5)  # blocks take layouts in turn
    noise = np.square(ratios - ratios.mean(axis=0)).sum() / (ratios.size - 5)
    assert far.heterogeneity is not None
    tau2 = far.heterogeneity.tau**2
    assert far.share == pytest.approx(tau2 / (tau2 + noise))
    assert far.share > 0.9


@pytest.mark.parametrize(("count", "apart", "doubted"), [(5, 0.0, False), (5, 0.02, True), (4, 0.0, True)])
def test_a_claim_about_these_layouts_alone_is_doubted(count: int, apart: float, *, doubted: bool) -> None:
    comparison = compared(count, apart)
    assert comparison.verdict == "faster"
    assert ("bound_to_layout" in [doubt.code for doubt in comparison.doubts]) is doubted


@pytest.mark.parametrize(
    ("reason", "way_out"), [("adjusted", "leave `metrics.adjust` out, and"), ("few_hosts", "raise builds.link_orders ")]
)
def test_the_way_out_is_one_that_leads_to_a_verdict_for_other_layouts(reason: HostsReason, way_out: str) -> None:
    comparison = compared(5, 0.0)
    assert comparison.over_layouts is not None
    over = comparison.over_layouts.model_copy(update={"verdict": None, "reason": reason})
    (doubt,) = layout_doubts.about(comparison.model_copy(update={"over_layouts": over}))
    assert doubt.advice.startswith(way_out)


def test_the_summary_says_what_verdicts_hold_for() -> None:
    def said(count: int, *, zero: bool = False) -> tuple[str, ...]:
        analysis = analysed(count, 0.0, zero=zero)
        found = layouts.sentences(summary.judged_tables(analysis))
        assert set(found) <= set(summary.sentences(analysis))
        return found

    here = "Verdicts hold for the {} layouts that each program was linked in. 0 % of the variance of a block's ratio"
    assert said(5) == (f"{here.format(5)} lies between layouts. For layouts like these: better.",)
    (few,) = said(4)
    assert few.endswith("They say nothing of others: that takes at least 5.")
    (without,) = said(8, zero=True)
    assert without.endswith("They say nothing of others."), "a value has no logarithm; there are layouts enough"
    assert said(1) == ()


def test_a_row_names_layouts() -> None:
    (table,) = tables.metric_tables(analysed(4, 0.01))
    columns = layouts.columns(table, table.rows[0], confidence=0.95)
    assert next(iter(columns)) == "layouts"
    assert columns["verdict"] == "none: fewer than 5 layouts"
    assert layouts.by_layout(table.rows, several=False)[0][1] == "order-0000"


def test_r_has_layouts_in_the_place_of_hosts_and_other_records_none() -> None:
    assert "# hosts are layouts here" in r_script.render(analysed(5, 0.0))
    without = analysed(1, 0.0)
    assert "layout" not in r_script.render(without) + without.model_dump_json()
