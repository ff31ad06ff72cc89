"""Which trial runs when, with which seed, and what differs between the arms; pure."""

from fairtrial.plan.making import make, replacement

__all__ = ["make", "replacement"]
