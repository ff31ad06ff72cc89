"""From a plan and its trials, or from anyone's table, to verdicts: summaries, comparisons, doubts. Pure."""

from fairtrial.analyse.analysis import analyse, analyse_table

__all__ = ["analyse", "analyse_table"]
