"""The lock library: finding it, seeing whether a process has it in effect, reading what it has counted.

Owns the Python side of `crates/locks`. It must not know who preloads it where (`settings`, `run`).
"""

from fairtrial.locks.announced import Announced, announced
from fairtrial.locks.counts import LockCounts, Site, counted
from fairtrial.locks.find import library

__all__ = ["Announced", "LockCounts", "Site", "announced", "counted", "library"]
