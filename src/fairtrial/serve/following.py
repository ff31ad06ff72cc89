"""Runs that somebody looks at, each read once a second at most, however many look."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import jinja2

from fairtrial.errors import FairtrialError
from fairtrial.live.followed import FollowedRun
from fairtrial.serve.run_page import RunPage, as_json

TICK_S: Final = 1.0
SHARED: Final = 0.9  # of a tick, for which what one browser had read is read for all
HEARTBEAT_S: Final = 15.0  # silence that proxies and sleeping laptops cut
KEPT: Final = 20  # runs whose pages stay rendered; the one longest unseen goes first


@dataclass
class Seen:
    """What a browser has: of which process of ours, up to which version, and how much of how many charts of a trial."""

    epoch: str = ""
    version: int = 0
    trial: str = ""
    width: int = 0
    charts: int = 0
    stretches: int = 0

    @classmethod
    def parsed(cls, text: str) -> Seen:
        """From an event's id; nothing seen where it is none of ours."""
        parts = text.split(".")
        with contextlib.suppress(ValueError):
            epoch, version, trial, width, charts, stretches = parts
            return cls(epoch, int(version), trial, int(width), int(charts), int(stretches))
        return cls()

    def __str__(self) -> str:
        """As an event's id."""
        return f"{self.epoch}.{self.version}.{self.trial}.{self.width}.{self.charts}.{self.stretches}"


@dataclass
class Followed:
    """A run's page with the lock of its readers.

    Attributes:
        page: None until it was read once.
        said: since it was read last, to browsers that had seen the same: what they lacked, and what they have now.
    """

    page: RunPage | None = None
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    read_at: float = 0.0
    said: dict[str, tuple[str, str]] = field(default_factory=dict)
    analysing: asyncio.Task[None] | None = None


@dataclass
class Following:
    """All runs below a directory that anybody has looked at.

    Attributes:
        runs: the directory.
        epoch: of this process: versions of another say nothing.
    """

    runs: Path
    templates: jinja2.Environment
    epoch: str
    known: dict[str, Followed] = field(default_factory=dict)

    async def page(self, name: str) -> RunPage:
        """A run's page as it is now, at most `TICK_S` old.

        Raises:
            FairtrialError: not a record, or a damaged one.
        """
        page, _followed = await self._read(name)
        return page

    async def _read(self, name: str) -> tuple[RunPage, Followed]:
        if name not in self.known:
            self.known[name] = Followed()
            self._forget(besides=name)
        followed = self.known[name]
        async with followed.lock:
            if followed.page is None:
                followed.page = await asyncio.to_thread(self._page, name)
            page = followed.page
            if time.monotonic() - followed.read_at >= TICK_S * SHARED:
                await asyncio.to_thread(page.refresh)
                followed.read_at = time.monotonic()
                followed.said.clear()
        if page.doubts.is_due and (followed.analysing is None or followed.analysing.done()):
            followed.analysing = asyncio.create_task(_analysed(page))
        return page, followed

    def _page(self, name: str) -> RunPage:
        """Slow, for a thread: a record may be large."""
        return RunPage(FollowedRun(self.runs / name), self.templates)

    def _forget(self, *, besides: str) -> None:
        others = sorted((each.read_at, name) for name, each in self.known.items() if name != besides)
        for _at, name in others[: max(0, len(self.known) - KEPT)]:
            del self.known[name]

    def seen(self, page: RunPage) -> str:
        """What a browser has once it has the page as it is now: no chart."""
        return str(Seen(epoch=self.epoch, version=page.parts.version))

    async def events(self, name: str, last: str) -> AsyncIterator[str]:
        """A stream of events (server-sent): all that is new since `last`, and whatever becomes new."""
        known = Seen.parsed(last)
        seen = str(known if known.epoch == self.epoch else Seen(epoch=self.epoch))
        quiet_since = time.monotonic()
        yield "retry: 1000\n\n"
        while True:
            try:
                page, followed = await self._read(name)
            except FairtrialError as error:  # damaged under our eyes, or taken away
                yield f"data: {as_json({'refused': str(error)})}\n\n"
                return
            said, seen = self._said(page, followed, seen)
            if said:
                yield said
                quiet_since = time.monotonic()
            elif time.monotonic() - quiet_since > HEARTBEAT_S:
                yield ": still here\n\n"
                quiet_since = time.monotonic()
            await asyncio.sleep(TICK_S - time.monotonic() % TICK_S)  # all browsers at once: one waking instead of many

    def _said(self, page: RunPage, followed: Followed, seen: str) -> tuple[str, str]:
        """The event for a browser, empty if it lacks nothing, and what it has then."""
        if seen not in followed.said:
            after = Seen.parsed(seen)
            news = self._news(page, after)
            followed.said[seen] = (f"id: {after}\ndata: {as_json(news)}\n\n" if news else "", str(after))
        return followed.said[seen]

    @staticmethod
    def _news(page: RunPage, seen: Seen) -> dict[str, object]:
        """What a browser lacks; `seen` then says that it has it."""
        said: dict[str, object] = {}
        if html := page.parts.since(seen.version):
            said["html"] = html
            seen.version = page.parts.version
        load = page.run.activity
        if load is None or load.trial not in page.run.slots.planned:
            if seen.trial:
                said["charts"] = None
                seen.trial = ""
            return said
        trial = str(page.run.slots.number(load.trial))
        has_all = seen.trial == trial and seen.charts == len(load.charts)  # one that is new began before now
        charts = page.charts(load, width=seen.width if has_all else 0, first=seen.stretches)
        if charts["charts"]:
            said["charts"] = charts
        seen.trial, seen.width, seen.charts = trial, charts["width"], len(load.charts)
        seen.stretches = load.settled_s // seen.width
        return said


async def _analysed(page: RunPage) -> None:
    await asyncio.to_thread(page.doubts.look)
    page.show_analysis()
