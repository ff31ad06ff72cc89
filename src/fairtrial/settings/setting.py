"""What every setting offers to the run."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Generic, TypeVar

from fairtrial.settings.steps.context import TrialContext
from fairtrial.settings.steps.effect import Effect
from fairtrial.wire.facts import Facts

V = TypeVar("V")


def shorthand(key: str) -> Callable[[object], object]:
    """What makes a mapping of a value that stands alone for its most used key."""
    return lambda value: value if isinstance(value, Mapping) else {key: value}


class Setting(ABC, Generic[V]):
    """A setting with its value. A subclass is a kind: what any other room must know of it is said here.

    Attributes:
        name: its key in the study file.
        summary: one sentence for the reference page.
        model: validates and documents its value: a pydantic model, or any annotated type.
        example: a value, as a study file gives it, that shows each way it acts; the reference page shows it.
        systems: kinds of system that it works on; empty: any.
        privilege: what of root's the agent takes for it: `none`, capabilities (capabilities(7)), or `user 0`, which
            alone may write a file below /proc/sys, capabilities or not (kernel/sysctl: `test_perm`).
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    model: ClassVar[Any]
    example: ClassVar[Any]
    systems: ClassVar[frozenset[str]] = frozenset()
    privilege: ClassVar[str]

    def __init__(self, value: V) -> None:
        self.value = value

    def disk_bytes(self) -> int:
        """What it takes of the place's disk while a trial runs, bytes."""
        return 0

    @abstractmethod
    def effect(self, facts: Facts, trial: TrialContext) -> Effect:
        """What the value means at a place with these facts, as its agent tells them, for a trial there.

        Pure: it must not touch the place. The run applies the effect through the agent, which reads back, records and
        undoes. It is asked for an imagined place, too, when a study is read.

        Raises:
            PlaceError: the place cannot do it, by its facts.
        """
