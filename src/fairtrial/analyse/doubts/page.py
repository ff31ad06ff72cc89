"""Doubts about what ran beside the trials for our own sake: the live page, the processes of a farm."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, TypeVar

from fairtrial.analyse.models import Doubt
from fairtrial.record.events import Event, FarmServed, PageServed

Served = TypeVar("Served", PageServed, FarmServed)
MOST: Final = 0.005  # of one processor
MOST_OF_FARM: Final = 0.01  # of one processor


def about(events: Iterable[Event]) -> Iterator[Doubt]:
    """Of each kind one, about where it used most."""
    known = list(events)
    yield from _page(known)
    yield from _farm(known)


def _farm(events: Iterable[Event]) -> Iterator[Doubt]:
    """One, if the farm's own processes used more than `MOST_OF_FARM` on a host while its trials ran."""
    most = _most(event for event in events if isinstance(event, FarmServed))
    if most is not None and (share := most.processor_s / most.elapsed_s) > MOST_OF_FARM:
        yield Doubt(
            code="farm_shared",
            message=f"the farm's own processes used {share:.2%} of a processor on {most.host} while its trials "
            f"ran, {most.processor_s:.1f} s in {most.elapsed_s:.0f} s".replace("%", " %"),
            advice="name housekeeping processors in FAIRTRIAL_FARM_PROCESSORS where the node is started, and keep "
            "trials off them by `affinity`; or use --places, which starts nothing on hosts",
        )


def _page(events: Iterable[Event]) -> Iterator[Doubt]:
    """One, if the page used more than `MOST` where trials may have run, averaged over any process of the run."""
    most = _most(event for event in events if isinstance(event, PageServed) and event.shared)
    if most is not None and (share := most.processor_s / most.elapsed_s) > MOST:
        yield Doubt(
            code="page_shared",
            message=f"the live page used {share:.2%} of a processor that trials could use, {most.processor_s:.1f} s in "
            f"{most.elapsed_s:.0f} s".replace("%", " %"),
            advice="leave a processor free by `affinity`, or look at the run after its end",
        )


def _most(served: Iterable[Served]) -> Served | None:
    """What used the largest share of a processor."""
    return max(
        (each for each in served if each.elapsed_s > 0),
        key=lambda each: each.processor_s / each.elapsed_s,
        default=None,
    )
