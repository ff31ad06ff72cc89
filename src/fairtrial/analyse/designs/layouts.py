"""Each comparison over the layouts that its programs were linked in: a random factor, as hosts are.

A block runs both arms in one order of linking, and an arm's effect differs between orders. What the comparison says of
its blocks holds for these layouts; here it is said of others.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from fairtrial.analyse.designs.layout_models import OverLayouts
from fairtrial.analyse.hosts.comparing import Arms, over_hosts
from fairtrial.analyse.hosts.models import OverHosts
from fairtrial.analyse.inference import t_tests
from fairtrial.analyse.inference.comparing import ComparisonOptions
from fairtrial.analyse.models import Comparison
from fairtrial.analyse.sequential.rule import Rule
from fairtrial.study.catalogue import MetricDefinition


def over_layouts(
    comparisons: Sequence[Comparison],
    table: Mapping[tuple[str, str], Arms],
    *,
    metrics: Mapping[str, MetricDefinition],
    setting: ComparisonOptions,
    rule: Rule | None = None,
) -> list[Comparison]:
    """The same comparisons, judged before, each with what it says of layouts; untouched where trials have none."""
    if not any(values.layouts for arms in table.values() for values in arms.values()):
        return list(comparisons)
    by_layout = {
        key: {level: replace(values, hosts=values.layouts) for level, values in arms.items()}
        for key, arms in table.items()
    }
    found = over_hosts(comparisons, by_layout, metrics=metrics, setting=setting, rule=rule)
    return [each.model_copy(update={"over_layouts": _of(over)}) for each, over in zip(comparisons, found, strict=True)]


def _of(comparison: Comparison) -> OverLayouts | None:
    over = comparison.over_hosts
    return None if over is None else OverLayouts(**dict(over), share=_share(over, comparison.confidence))


def _share(over: OverHosts, confidence: float) -> float | None:
    """Of the variance of a single block's log ratio that is layout: tau² / (tau² + noise²), both as estimated."""
    known, noise = over.heterogeneity, noise_of(over, confidence)
    return None if known is None or noise is None else known.tau**2 / (known.tau**2 + noise**2)


def noise_of(over: OverHosts, confidence: float) -> float | None:
    """Standard deviation of a block's log ratio within layouts; None where no layout has two blocks."""
    known, first = over.heterogeneity, over.hosts[0]
    if known is None or first.low is None or first.high is None:
        return None
    reach = (math.log(first.high) - math.log(first.low)) / 2
    return reach / t_tests.quantile((1 + confidence) / 2, known.df_within) * math.sqrt(first.blocks)
