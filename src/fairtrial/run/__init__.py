"""Running a plan: places opened, trials carried out, everything undone, the record written."""

from fairtrial.run.loop import Decision, Run, StoppingRule
from fairtrial.run.opening import opened
from fairtrial.run.progress import LiveFile, Progress

__all__ = ["Decision", "LiveFile", "Progress", "Run", "StoppingRule", "opened"]
