"""What a comparison over several hosts says of them.

Owns the shape that stands in `report.json` beside each comparison. Ratios are treatment / baseline.
"""

from __future__ import annotations

from typing import Literal

from fairtrial.analyse.result import Result, Verdict

# Why there is no estimate over hosts, or no verdict for hosts like these.
HostsReason = Literal["", "one_host", "few_hosts", "not_paired", "between_hosts", "no_ratio", "guardrail", "adjusted"]


class HostEffect(Result):
    """The arm's effect on one host.

    Attributes:
        blocks: pairs that the comparison uses from it; trials of the smaller arm where they are not paired.
        ratio: of geometric means; None where there is no estimate over hosts.
        low, high: at the comparison's confidence, by the spread of blocks within all hosts; descriptive, and None if no
            host has two blocks, or blocks of a host do not vary.
    """

    host: str
    blocks: int
    ratio: float | None = None
    low: float | None = None
    high: float | None = None


class Heterogeneity(Result):
    """How much the arm's effect differs between hosts, by random effects on log ratios.

    Attributes:
        tau: standard deviation of the true log ratios over hosts (Paule-Mandel).
        tau_low, tau_high: its interval at the comparison's confidence (Q profile).
        q: Cochran's, with the spread of blocks within all hosts.
        df_between, df_within: degrees of freedom of the hosts and of that spread.
        p: of equal effects on all hosts, by F.
        i2: share of the scatter of the hosts' estimates that is not noise of their blocks.
        p_one_sign: of one sign of the effect on all hosts (Gail and Simon).
    """

    tau: float
    tau_low: float
    tau_high: float
    q: float
    df_between: int
    df_within: int
    p: float
    i2: float
    p_one_sign: float


class OverHosts(Result):
    """One comparison's blocks by host, and what they say of hosts like these.

    The comparison's own verdict holds for these hosts.

    Attributes:
        hosts: by name.
        mixed: pairs whose two trials ran on different hosts, so that the ratio contains the hosts' own speeds.
        heterogeneity: None if no host has two blocks, or blocks of a host do not vary: no noise is known to hold
            differences between hosts against.
        ratio, low, high: of hosts like these, with Hartung and Knapp's interval, never narrower than if hosts did not
            differ; in a run that could stop early it holds for all looks together, and so does the prediction.
        prediction_low, prediction_high: what a further host would measure with `prediction_blocks` blocks; its true
            effect lies in there at least as often. None if half of the hosts have one block, or without
            `heterogeneity`.
        p: of no effect on average over hosts like these, unadjusted, and never smaller than the comparison's; 1 if it
            cannot be computed.
        p_equivalence: the larger p of two one-sided tests against the comparison's margin, likewise.
        p_adjusted, p_equivalence_adjusted: over the family of the comparison's role, by Holm or Benjamini-Hochberg.
        verdict: for hosts like these; None if there is none.
        reason: why there is no estimate or no verdict; `adjusted`: the comparison's verdict is of ratios adjusted for
            covariates, those of hosts are plain.
    """

    hosts: tuple[HostEffect, ...]
    mixed: int = 0
    heterogeneity: Heterogeneity | None = None
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    prediction_low: float | None = None
    prediction_high: float | None = None
    prediction_blocks: int | None = None
    p: float | None = None
    p_equivalence: float | None = None
    p_adjusted: float | None = None
    p_equivalence_adjusted: float | None = None
    verdict: Verdict | None = None
    reason: HostsReason = ""
