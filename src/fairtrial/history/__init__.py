"""Histories: change points and the newest point's alarm, in series of one point per run."""

from fairtrial.history.examining import HistoryOptions, examine
from fairtrial.history.models import Alarm, History, KnownChange, LevelChange, SeriesResult, Spike

__all__ = ["Alarm", "History", "HistoryOptions", "KnownChange", "LevelChange", "SeriesResult", "Spike", "examine"]
