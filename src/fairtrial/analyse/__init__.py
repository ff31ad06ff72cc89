"""From a plan and its trials to verdicts: summaries, comparisons, doubts. Pure."""

from fairtrial.analyse.analysis import analyse

__all__ = ["analyse"]
