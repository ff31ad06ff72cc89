"""What a row of a table says, and what stands above it, for every kind of comparison."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fairtrial.analyse.models import Analysis, Guardrail, Interval, RankOpinion, Stopping
from fairtrial.analyse.result import Verdict
from fairtrial.report import numbers, tables, words
from fairtrial.report.tables import MetricTable, metric_tables


def changed(analysis: Analysis, metric: str, **update: Any) -> Analysis:
    """The analysis with every comparison of a metric updated so."""
    cells = [
        cell.model_copy(
            update={
                "comparisons": cell.comparisons
                | {metric: tuple(each.model_copy(update=update) for each in cell.comparisons[metric])}
            }
        )
        for cell in analysis.cells
    ]
    return analysis.model_copy(update={"cells": tuple(cells)})


def table(analysis: Analysis, metric: str = "throughput_tpm") -> MetricTable:
    (found,) = [each for each in metric_tables(analysis) if each.definition.name == metric]
    return found


def rail(**update: Any) -> Guardrail:
    given = {"margin": 0.05, "outcome": "kept", "bound": 1.0234, "difference_bound": None}
    return Guardrail.model_validate({**given, "p_kept": 0.5, "p_breached": 0.5, **update})


def test_tables_come_by_role_and_within_a_role_as_the_study_names_them(analysis: Analysis) -> None:
    assert [each.definition.name for each in metric_tables(analysis)] == [
        "throughput_tpm",
        "throughput_nopm",
        "latency_ns_p99",
    ]
    turned = analysis.model_copy(update={"roles": {**analysis.roles, "latency_ns_p99": "primary"}})
    assert [each.definition.name for each in metric_tables(turned)] == [
        "throughput_tpm",
        "latency_ns_p99",
        "throughput_nopm",
    ]


def test_a_metric_of_no_role_is_not_taken_for_primary(analysis: Analysis) -> None:
    found = metric_tables(analysis.model_copy(update={"roles": {"throughput_nopm": "primary"}}))
    assert [each.role for each in found] == ["primary", "secondary", "secondary"]
    assert found[0].definition.name == "throughput_nopm"


def test_a_row_has_the_two_summaries_that_it_compares(analysis: Analysis) -> None:
    for row in table(analysis).rows:
        assert (row.baseline.arm, row.arm.arm) == (row.comparison.baseline, row.comparison.arm) == ("delete", "wal")
        assert row.levels == {"users": row.cell}


def test_a_comparison_of_arms_that_have_no_trials_has_no_row(analysis: Analysis) -> None:
    (cell, *others) = analysis.cells
    summaries = {**cell.summaries, "throughput_tpm": cell.summaries["throughput_tpm"][:1]}
    less = analysis.model_copy(update={"cells": (cell.model_copy(update={"summaries": summaries}), *others)})
    assert [row.cell for row in table(less).rows] == [each.cell for each in others]


def test_one_scale_fits_all_cells_of_a_metric(analysis: Analysis) -> None:
    found = table(analysis, "latency_ns_p99")
    assert found.scale.unit == "ms"
    assert found.title == "p99 latency, ms, lower is better"
    printed = [found.scale.value(row.arm.mean) for row in found.rows]
    assert len({len(each.partition(".")[2]) for each in printed}) == 1


def test_a_column_without_a_unit_has_no_empty_part_in_its_title(analysis: Analysis) -> None:
    bare = analysis.metrics["throughput_tpm"].model_copy(update={"unit": ""})
    named = analysis.model_copy(update={"metrics": {**analysis.metrics, "throughput_tpm": bare}})
    assert table(named).title == "throughput, higher is better"


@pytest.mark.parametrize(
    ("size", "adjustment", "said"),
    [
        (1, "holm", "one comparison"),
        (1, "none", "one comparison"),
        (2, "holm", "family of 2, Holm"),
        (6, "dunnett", "family of 6, Dunnett over arms, Holm over cells and metrics"),
        (40, "benjamini_hochberg", "family of 40, Benjamini-Hochberg, exploratory"),
    ],
)
def test_the_family_is_said_with_its_size_and_adjustment(
    analysis: Analysis, *, size: int, adjustment: str, said: str
) -> None:
    found = changed(analysis, "throughput_tpm", family_size=size, adjustment=adjustment)
    assert tables.procedure(found, table(found)) == f"paired over blocks · {said} · margin 2 %"


def test_no_family_is_no_word(analysis: Analysis) -> None:
    found = changed(analysis, "throughput_tpm", family_size=0)
    assert tables.procedure(found, table(found)) == "paired over blocks · margin 2 %"


def test_unpaired_arms_are_said_to_be_independent(analysis: Analysis) -> None:
    found = analysis.model_copy(update={"paired": False})
    assert tables.procedure(found, table(found)).startswith("arms independent · ")


def test_a_share_near_its_total_does_not_stand_under_the_margin_of_others(analysis: Analysis) -> None:
    narrow = changed(analysis, "throughput_tpm", margin=0.0002)
    wide = changed(analysis, "throughput_tpm", margin=0.02 * (1 - 1e-12))
    said = "margin 2 %, of the share and of what is left of its total"
    assert tables.procedure(narrow, table(narrow)).endswith(said)
    assert tables.procedure(wide, table(wide)).endswith("margin 2 %")
    assert tables.equivalence_margin(narrow, table(narrow).rows) == said.removeprefix("margin ")
    assert tables.band_note(wide, table(wide)) == "the grey band is the equivalence margin, ± 2 %"
    assert tables.band_note(narrow, table(narrow)).startswith("no band: ")
    assert tables.band(narrow, table(narrow)) is None


def test_a_share_that_leaves_nothing_of_its_total_has_no_margin_but_a_difference_without_a_ratio_has_the_studys(
    analysis: Analysis,
) -> None:
    whole = changed(analysis, "throughput_tpm", margin=0.0)
    without = changed(whole, "throughput_tpm", ratio=Interval(estimate=None, low=None, high=None))
    assert tables.procedure(whole, table(whole)).endswith("margin 2 %, of the share and of what is left of its total")
    assert tables.band_note(whole, table(whole)).startswith("no band: ")
    assert tables.procedure(without, table(without)).endswith("margin 2 %")


def test_a_guardrails_margin_is_its_own(analysis: Analysis) -> None:
    found = changed(analysis, "latency_ns_p99", guardrail=rail(margin=0.125), family_size=0)
    guarded = table(found, "latency_ns_p99")
    assert tables.procedure(found, guarded).endswith("margin 12.5 %")
    assert tables.procedure(found, table(found)).endswith("margin 2 %")
    higher = replace(guarded, definition=guarded.definition.model_copy(update={"better": "higher"}))
    assert (tables.band(found, guarded), tables.band(found, higher)) == ((1.0, 1.125), (1 / 1.125, 1.0))
    assert tables.band_note(found, guarded) == "the grey band is the guardrail's margin, 12.5 %"


@pytest.mark.parametrize(
    ("update", "said", "kind"),
    [
        ({"verdict": "faster"}, "faster", "faster"),
        ({"verdict": "slower"}, "slower", "slower"),
        ({"verdict": "equivalent"}, "equivalent (within 2 %)", "equivalent"),
        ({"verdict": "undecided"}, "undecided", "undecided"),
        ({"verdict": "none"}, "no verdict", "none"),
        ({"verdict": "slower", "guardrail": rail()}, "kept (at worst 1.023)", "equivalent"),
        (
            {"verdict": "faster", "guardrail": rail(outcome="breached", bound=1.5)},
            "breached (at worst 1.500)",
            "slower",
        ),
        ({"verdict": "faster", "guardrail": rail(outcome="unclear")}, "unclear (at worst 1.023)", "undecided"),
        ({"verdict": "faster", "guardrail": rail(outcome="kept", bound=None)}, "kept", "equivalent"),
        ({"verdict": "faster", "guardrail": rail(outcome="none")}, "no verdict", "none"),
    ],
)
def test_a_verdict_is_said_and_a_guardrails_is_whether_it_is_kept(
    analysis: Analysis, *, update: dict[str, Any], said: str, kind: str
) -> None:
    of = table(changed(analysis, "throughput_tpm", **update))
    compared = of.rows[0].comparison
    assert tables.verdict(compared, of.definition, margin=0.02) == said
    assert tables.kind(compared) == kind


def test_equivalence_stands_beside_the_interval_that_decided_it(analysis: Analysis) -> None:
    within = Interval(estimate=1.0, low=0.99, high=1.01)
    for verdict, said in (("equivalent", "0.990 – 1.010 at 90 %"), ("undecided", None)):
        found = changed(analysis, "throughput_tpm", verdict=verdict, equivalence_interval=within)
        compared = table(found).rows[0].comparison
        plain = numbers.ratio_interval(compared.ratio.low, compared.ratio.high)
        assert tables.ratio_interval(compared) == (said or plain)
        guarded = compared.model_copy(update={"guardrail": rail()})
        assert tables.ratio_interval(guarded) == plain  # decided by its own margin


@pytest.mark.parametrize(
    ("unit", "said"),
    [("share of time", "difference +8.00 pp of time"), ("s", "difference +0.08 s"), ("", "difference +0.08")],
)
def test_a_difference_says_that_it_is_one_and_of_shares_in_points(analysis: Analysis, *, unit: str, said: str) -> None:
    ratio, difference = (Interval(estimate=value, low=value, high=value) for value in (None, 0.08))
    compared = table(changed(analysis, "throughput_tpm", ratio=ratio, difference=difference)).rows[0].comparison
    printed = replace(numbers.scale(unit, [0.15]), decimals=2)
    assert tables.change(compared, printed) == (said, printed.interval(0.08, 0.08))


def test_a_single_trial_of_each_arm_has_no_p(analysis: Analysis) -> None:
    two = table(analysis).rows[0].comparison.model_copy(update={"n": 2, "p": 0.5, "p_adjusted": 1.0})
    assert tables.tested(two) == ("0.5000", "1.0000")
    assert tables.tested(two.model_copy(update={"n": 1})) == (numbers.ABSENT, numbers.ABSENT)


@pytest.mark.parametrize(
    ("verdict", "said"), [("faster", "better"), ("slower", "worse"), ("undecided", "undecided"), ("none", "no verdict")]
)
def test_what_is_counted_is_not_called_fast(analysis: Analysis, *, verdict: Verdict, said: str) -> None:
    definition = table(analysis).definition
    assert definition.kind == "wall_clock"
    assert tables.word(verdict, definition.model_copy(update={"kind": "count"})) == said


@pytest.mark.parametrize(
    ("levels", "label"),
    [({}, "all"), ({"users": "low"}, "low"), ({"memory": "over", "users": "high"}, "over · high")],
)
def test_cells_are_labelled_by_their_levels_in_the_studys_order(levels: dict[str, str], label: str) -> None:
    assert tables.cell_label(levels) == label


def test_conditions_are_the_factors_of_the_cells(analysis: Analysis) -> None:
    assert tables.conditions(analysis) == ("users",)
    assert tables.conditions(analysis.model_copy(update={"cells": ()})) == ()


def ranked(analysis: Analysis, **update: Any) -> Analysis:
    rank = {
        "method": "Wilcoxon signed rank over blocks",
        "scale": "ratio",
        "shift": Interval(estimate=1.3, low=1.2, high=1.4),
        "p": 0.03125,
        "smallest_p": 0.03125,
        "exact": True,
        "tied": 2,
        **update,
    }
    left = Interval(estimate=1.3, low=1.1, high=1.5)
    return changed(analysis, "throughput_tpm", rank=RankOpinion.model_validate(rank), mean=left)


def opinion(analysis: Analysis) -> dict[str, str]:
    return tables.opinion(table(analysis), table(analysis).rows[0], confidence=0.95)


def test_the_rank_test_beside_is_printed_by_column(analysis: Analysis) -> None:
    assert opinion(ranked(analysis)) == {
        "shift": "1.300",
        "exact 95 % interval": "1.200 – 1.400",
        "exact p": "0.0312",
        "smallest p": "0.0312",
        "ties": "2",
        "mean with unseen stalls": "1.100 – 1.500",
    }


def test_a_rank_test_that_is_not_exact_says_so(analysis: Analysis) -> None:
    assert opinion(ranked(analysis, exact=False))["exact p"] == "≈ 0.0312"


def test_a_shift_has_as_many_decimals_as_its_interval(analysis: Analysis) -> None:
    narrow = opinion(ranked(analysis, shift=Interval(estimate=1.00009, low=1.00008, high=1.0001)))
    assert list(narrow.values())[:2] == ["1.00009", "1.00008 – 1.00010"]


def test_shifts_of_differences_are_in_the_metrics_unit(analysis: Analysis) -> None:
    shift = Interval(estimate=-1200.4, low=-1500.0, high=None)
    found = opinion(ranked(analysis, scale="difference", shift=shift))
    assert found["shift"] == "-1,200"
    assert found["exact 95 % interval"] == "–", "one end of it is not there"


def test_no_rank_test_is_a_row_of_dashes(analysis: Analysis) -> None:
    found = opinion(changed(analysis, "throughput_tpm", rank=None))
    assert set(found.values()) == {"–"}
    assert list(found) == list(opinion(ranked(analysis)))


def test_methods_of_rank_tests_are_named_once(analysis: Analysis) -> None:
    assert tables.opinions(table(ranked(analysis))) == "Wilcoxon signed rank over blocks"
    assert tables.opinions(table(changed(analysis, "throughput_tpm", rank=None))) == ""


def test_every_count_is_named(analysis: Analysis) -> None:
    assert dict(words.counted(analysis)) == {
        "planned": 24,
        "finished": 26,
        "valid": 25,
        "invalid": 1,
        "used": 24,
        "blocks voided": 1,
        "blocks replaced": 1,
    }
    every = analysis.counts.model_dump()
    assert list(dict(words.counted(analysis)).values()) == [
        every[name] for name in every if name not in {"diagnostic", "late", "rows"}
    ]
    probed = analysis.model_copy(update={"counts": analysis.counts.model_copy(update={"diagnostic": 4})})
    assert dict(words.counted(probed))["diagnostic, not included above"] == 4
    clustered = analysis.model_copy(update={"counts": analysis.counts.model_copy(update={"rows": 600})})
    assert dict(words.counted(clustered))["rows, averaged into trials"] == 600


def test_a_run_of_all_its_blocks_says_nothing_about_stopping(analysis: Analysis) -> None:
    assert words.stopping(analysis) == []
    assert words.share_of_blocks(analysis) == ""


def test_blocks_that_a_run_may_stop_before_are_counted_where_they_were_compared(analysis: Analysis) -> None:
    """A late or a voided block was run, too."""
    stopped = Stopping(rule="looks from 3 to 20 blocks", first=3, last=20, cells=(), share=0.35)
    found = analysis.model_copy(update={"stopping": stopped})
    assert words.stopping(found)[1] == "35 % of the planned blocks were compared."
