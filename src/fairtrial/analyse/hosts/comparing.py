"""Each comparison by the hosts of its blocks: how far they differ, and a verdict for hosts like these.

The comparison itself stays what it is: an estimate and a verdict over blocks, for these hosts.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import numpy as np
from scipy import special

from fairtrial.analyse.hosts.models import Heterogeneity, HostEffect, HostsReason, OverHosts
from fairtrial.analyse.inference import confirming, families, ranks, t_tests
from fairtrial.analyse.inference.comparing import ADJUSTED_LOGS, CENSORED, PAIRED_LOGS, ComparisonOptions, arm_pair
from fairtrial.analyse.inference.hosts import FEWEST_DIFFERING, HostMeans, host_means
from fairtrial.analyse.inference.t_tests import Values
from fairtrial.analyse.measured import ArmValues
from fairtrial.analyse.models import Comparison, Role
from fairtrial.analyse.result import Verdict
from fairtrial.analyse.sequential.rule import LookTest, Rule, reach
from fairtrial.study.catalogue import MetricDefinition

FEWEST_HOSTS: Final = 5  # of which something can be said of others like them
FEWEST_AHEAD: Final = 2  # blocks of a further host: a single one is slow now and then, which no t foretells
_ADJUSTED: Final[Mapping[Role, Callable[[Values], Values]]] = MappingProxyType(
    {"primary": families.holm, "secondary": families.benjamini_hochberg}
)

Arms = Mapping[str, ArmValues]


def over_hosts(
    comparisons: Sequence[Comparison],
    table: Mapping[tuple[str, str], Arms],
    *,
    metrics: Mapping[str, MetricDefinition],
    setting: ComparisonOptions,
    rule: Rule | None = None,
) -> list[Comparison]:
    """The same comparisons, judged before, in order, each with what it says of its hosts.

    `rule` is that of a run that could stop early. Claims about hosts like these are judged together like those about
    these hosts: by Holm over the primary comparisons, by Benjamini-Hochberg over the secondary ones.
    """
    found = [_of(each, table[each.cell, each.metric], setting=setting, rule=rule) for each in comparisons]
    for role in _ADJUSTED:
        own = [over if each.role == role else None for each, over in zip(comparisons, found, strict=True)]
        for index, over in _adjusted(own, size=setting.size(role), role=role).items():
            compared = comparisons[index]
            verdict = _verdict(compared, over, better=metrics[compared.metric].better, alpha=setting.alpha)
            found[index] = over.model_copy(update={"verdict": verdict})
    return [each.model_copy(update={"over_hosts": over}) for each, over in zip(comparisons, found, strict=True)]


def _of(comparison: Comparison, arms: Arms, *, setting: ComparisonOptions, rule: Rule | None) -> OverHosts | None:
    baseline, arm = arms[comparison.baseline], arms[comparison.arm]
    if not (baseline.hosts and arm.hosts):
        return None
    blocks = baseline.common(arm) if setting.paired else []
    pairs = list(zip(baseline.hosts_at(blocks), arm.hosts_at(blocks), strict=True)) if setting.paired else []
    mixed = sum(first != second for first, second in pairs)
    reason = _reason(comparison, pairs, paired=setting.paired)
    if reason not in ("", "few_hosts", "guardrail", "adjusted"):
        return OverHosts(hosts=_counted(baseline, arm, pairs, mixed=mixed), mixed=mixed, reason=reason)
    ratios = arm_pair(baseline, arm, paired=True).logarithms.differences
    return _Hosts.of([host for host, _ in pairs], ratios, comparison, rule=rule).over(reason, setting)


def _reason(comparison: Comparison, pairs: Sequence[tuple[str, str]], *, paired: bool) -> HostsReason:
    hosts = {host for pair in pairs for host in pair}
    if not paired:
        return "not_paired"
    if any(first != second for first, second in pairs):
        return "between_hosts"
    if len(hosts) < FEWEST_DIFFERING:
        return "one_host"
    if not comparison.method.startswith(PAIRED_LOGS) or CENSORED in comparison.method:
        return "no_ratio"
    if len(hosts) < FEWEST_HOSTS:
        return "few_hosts"
    adjusted = comparison.method.startswith(ADJUSTED_LOGS)
    return "adjusted" if adjusted else "guardrail" if comparison.role == "guardrail" else ""


def _counted(
    baseline: ArmValues, arm: ArmValues, pairs: Sequence[tuple[str, str]], *, mixed: int
) -> tuple[HostEffect, ...]:
    """How much each host gave: pairs where every pair is of one host, else trials of the arm that has fewer there."""
    if pairs and not mixed:
        counts = Counter(host for host, _ in pairs)
        return tuple(HostEffect(host=host, blocks=counts[host]) for host in sorted(counts))
    first, second = Counter(baseline.hosts), Counter(arm.hosts)
    names = sorted(first.keys() | second.keys())
    return tuple(HostEffect(host=host, blocks=min(first[host], second[host])) for host in names)


@dataclass(frozen=True)
class _Hosts:
    """A comparison's log ratios by host, names in order."""

    names: tuple[str, ...]
    ratios: tuple[Values, ...]
    comparison: Comparison
    rule: Rule | None

    @classmethod
    def of(cls, hosts: Sequence[str], ratios: Values, comparison: Comparison, *, rule: Rule | None) -> _Hosts:
        names = tuple(sorted(set(hosts)))
        each = tuple(ratios[[host == name for host in hosts]] for name in names)
        return cls(names, each, comparison, rule)

    def over(self, reason: HostsReason, setting: ComparisonOptions) -> OverHosts:
        """What they say; claims are not judged yet."""
        means = host_means(list(self.ratios))
        confidence = self.comparison.confidence
        known = bool((means.variances > 0).all())
        blocks = math.floor(np.median([len(each) for each in self.ratios]))
        looked = self._confidence(confidence)
        low, high = _ends(means, float(means.reach(looked)))
        below, above = None, None
        if known and blocks >= FEWEST_AHEAD:
            noise = float(means.variances[0]) * len(self.ratios[0]) / blocks
            below, above = _ends(means, float(means.prediction_reach(looked, noise=noise)))
        return OverHosts(
            hosts=self._effects(means, confidence=confidence if known else None),
            heterogeneity=_heterogeneity(means, confidence=confidence) if known else None,
            ratio=_ratio(float(means.mean)),
            low=low,
            high=high,
            prediction_low=below,
            prediction_high=above,
            prediction_blocks=None if below is None else blocks,
            p=None if reason else self._p(means, setting),
            p_equivalence=None if reason else self._p_equivalence(means, setting),
            reason=reason,
        )

    def _confidence(self, confidence: float) -> float:
        """Of an interval that holds at all looks: as far out as the looks' own, by the tails of its own t.

        A run stops when its spread looks small, so a prediction made as if nobody had looked is right too rarely.
        """
        if self.rule is None:
            return confidence
        n = self.comparison.n
        away = reach(n, level=self.rule.alpha, rule=self.rule)
        return 1 - 2 * float(special.stdtr(n - 1, -away))

    def _effects(self, means: HostMeans, *, confidence: float | None) -> tuple[HostEffect, ...]:
        away = np.full(means.hosts, np.nan)
        if confidence is not None:
            away = t_tests.quantile((1 + confidence) / 2, means.df) * np.sqrt(means.variances)
        return tuple(
            HostEffect(
                host=name, blocks=len(ratios), ratio=_ratio(mean), low=_ratio(mean - reach), high=_ratio(mean + reach)
            )
            for name, ratios, mean, reach in zip(
                self.names, self.ratios, means.means.tolist(), away.tolist(), strict=True
            )
        )

    def _p(self, means: HostMeans, setting: ComparisonOptions) -> float:
        """Of no effect on average, held against exact tests of the hosts as that of blocks is.

        Never smaller than the comparison's: what is not shown of these hosts is not shown of others, and exact tests of
        a few hosts can object to nothing.
        """
        nominal = 2 * special.stdtr(means.hosts - 1, -np.abs(means.mean / means.error))
        if not np.isfinite(nominal):
            return 1.0
        level = setting.level(self.comparison.role)
        if self.rule is None:
            p = confirming.paired(nominal, means.means, level=level, alpha=setting.alpha)
        else:
            looks = LookTest(self.rule, sides=2, level=level, units=means.hosts)
            p = looks.p_after(nominal, confirming.signed_ranks(means.means), self.comparison.n)
        return max(float(p), self.comparison.p)

    def _p_equivalence(self, means: HostMeans, setting: ComparisonOptions) -> float | None:
        """Of an average outside the margin, likewise; None where the comparison has none."""
        over_blocks = self.comparison.p_equivalence
        if over_blocks is None or not np.isfinite(means.error):
            return None
        bound = math.log1p(self.comparison.margin)
        nominal = special.stdtr(means.hosts - 1, (np.abs(means.mean) - bound) / means.error)
        near = bound - np.where(means.mean >= 0, 1.0, -1.0) * means.means
        level = setting.level(self.comparison.role)
        if self.rule is None:
            p = confirming.paired_beyond(nominal, near, level=level, alpha=setting.alpha)
        else:
            looks = LookTest(self.rule, sides=1, level=level, units=means.hosts)
            p = looks.p_after(nominal, ranks.signed_rank_above(near), self.comparison.n)
        return max(float(p), over_blocks)


def _heterogeneity(means: HostMeans, *, confidence: float) -> Heterogeneity:
    low, high = means.tau2_interval(confidence=confidence)
    return Heterogeneity(
        tau=math.sqrt(means.tau2),
        tau_low=math.sqrt(low),
        tau_high=math.sqrt(high),
        q=float(means.q()),
        df_between=means.hosts - 1,
        df_within=int(means.df),
        p=float(means.p),
        i2=float(means.i2),
        p_one_sign=float(means.crossing_p),
    )


def _ends(means: HostMeans, reach: float) -> tuple[float | None, float | None]:
    ends = _ratio(float(means.mean) - reach), _ratio(float(means.mean) + reach)
    return (None, None) if None in ends else ends


def _ratio(logarithm: float) -> float | None:
    held = math.isfinite(logarithm) and logarithm <= t_tests.LARGEST_LOGARITHM
    return math.exp(logarithm) if held else None


def _adjusted(found: Sequence[OverHosts | None], *, size: int, role: Role) -> dict[int, OverHosts]:
    """Those that have a p, by index, adjusted for one another; the rest of their family counts as p = 1."""
    tested = {index: over for index, over in enumerate(found) if over is not None and over.p is not None}
    rest = [1.0] * (max(size, len(tested)) - len(tested))
    differs, same = (
        _ADJUSTED[role](np.array([1.0 if p is None else p for p in each] + rest)).tolist() if tested else []
        for each in ([over.p for over in tested.values()], [over.p_equivalence for over in tested.values()])
    )
    return {
        index: over.model_copy(
            update={"p_adjusted": p, "p_equivalence_adjusted": None if over.p_equivalence is None else equal}
        )
        for (index, over), p, equal in zip(tested.items(), differs, same, strict=False)  # the rest is nobody's
    }


def _verdict(comparison: Comparison, over: OverHosts, *, better: str, alpha: float) -> Verdict:
    """By the rule of comparisons: equivalent comes first, and what may claim nothing of these hosts may of no other."""
    if comparison.verdict == "none":
        return "none"
    if not comparison.claimable or over.ratio is None:
        return "undecided"
    if over.p_equivalence_adjusted is not None and over.p_equivalence_adjusted < alpha:
        return "equivalent"
    if over.p_adjusted is None or over.p_adjusted >= alpha:
        return "undecided"
    return "faster" if (over.ratio > 1) == (better == "higher") else "slower"
