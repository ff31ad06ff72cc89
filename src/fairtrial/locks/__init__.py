"""The lock library: finding it, seeing whether a process has it in effect, reading what it has counted.

Owns the Python side of `crates/locks`. It must not know who preloads it where (`settings`, `run`).
"""

from fairtrial.locks.announced import Announcement, announcement_in
from fairtrial.locks.counts import LockCounts, Site, counted
from fairtrial.locks.find import library

__all__ = ["Announcement", "LockCounts", "Site", "announcement_in", "counted", "library"]
