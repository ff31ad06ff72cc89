"""Deciding while a study runs: boundaries, always-valid tests, giving up, and what a rule would have done. Pure."""

from fairtrial.analyse.sequential.adjusting import adjusted, rests_on_normality, stopping
from fairtrial.analyse.sequential.following import Following, SequentialRun, follow, in_time, rule_of
from fairtrial.analyse.sequential.rule import Rule
from fairtrial.analyse.sequential.simulating import SimulatedOutcomes, simulate

__all__ = [
    "Following",
    "Rule",
    "SequentialRun",
    "SimulatedOutcomes",
    "adjusted",
    "follow",
    "in_time",
    "rests_on_normality",
    "rule_of",
    "simulate",
    "stopping",
]
