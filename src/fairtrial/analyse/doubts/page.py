"""A doubt about a run whose live page took processor time from its trials."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from fairtrial.analyse.models import Doubt
from fairtrial.record.events import Event, PageServed

MOST: Final = 0.005  # of one processor


def about(events: Iterable[Event]) -> Iterator[Doubt]:
    """One, if the page used more than `MOST` where trials may have run, in any process of the run."""
    pages = [event for event in events if isinstance(event, PageServed) and event.shared and event.elapsed_s > 0]
    most = max(pages, key=lambda page: page.processor_s / page.elapsed_s, default=None)
    if most is not None and (share := most.processor_s / most.elapsed_s) > MOST:
        yield Doubt(
            code="page_shared",
            message=f"the live page used {share:.2%} of a processor that trials could use, {most.processor_s:.1f} s in "
            f"{most.elapsed_s:.0f} s".replace("%", " %"),
            advice="leave a processor free by `affinity`, or look at the run after its end",
        )
