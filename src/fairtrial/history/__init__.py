"""Histories: change points and the newest point's alarm, in series of one point per run."""

from fairtrial.history.examining import Options, examine
from fairtrial.history.models import Alarm, Change, Examined, History, Known, Spike

__all__ = ["Alarm", "Change", "Examined", "History", "Known", "Options", "Spike", "examine"]
