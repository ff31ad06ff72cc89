"""Which trial runs when, with which seed, and what differs between the arms; pure."""

from fairtrial.plan.against_itself import against_itself
from fairtrial.plan.making import extension, make, replacement

__all__ = ["against_itself", "extension", "make", "replacement"]
