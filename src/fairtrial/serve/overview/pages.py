"""Addresses of the pages about many runs. What is slow comes behind what is there, in the same answer."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from fairtrial.errors import FairtrialError
from fairtrial.serve.overview import runs_list
from fairtrial.serve.overview.index import Index
from fairtrial.serve.overview.run_summary import RunSummary
from fairtrial.serve.overview.runs_list import Query

if TYPE_CHECKING:
    import jinja2

    from fairtrial.serve.overview.machine import ThisMachine

LATER: Final = Markup("<!-- later -->")  # where the first part of an answer ends: others' `<` is escaped
SEE_OTHER: Final = 303
NOT_FOUND: Final = 404
FEWEST: Final = 2
MOST: Final = 8  # columns that anybody reads beside each other
KEPT_S: Final = 600  # that what was seen of this machine is shown again
ACKNOWLEDGED: Final = "acknowledged.yaml"


class Overview:
    """Pages about the runs below a directory.

    Attributes:
        index: what is known of them.
    """

    def __init__(self, runs: Path, *, assets: Mapping[str, str], control: object = None, root: str = "") -> None:
        self.runs, self._root = runs, root
        self.index = Index(runs)
        self._shared: dict[str, object] = {"assets": assets, "scripts": ("page.js",), "control": control}
        self._machine: tuple[float, ThisMachine] | None = None
        self._wanted = False
        self._looking = asyncio.Lock()

    def routes(self) -> list[Route]:
        """All of them."""
        return [
            Route("/", self.all_runs),
            Route("/studies", self.studies),
            Route("/studies", self.examine, methods=["POST"]),
            Route("/side-by-side", self.side_by_side),
            Route("/history", self.history),
        ]

    async def all_runs(self, request: Request) -> Response:
        """The list. What a form says at length gets its short address."""
        query = Query.parsed(request.query_params)
        if request.url.query and any(not value for value in request.query_params.values()):
            return RedirectResponse(self._root + query.address(page=query.page), status_code=SEE_OTHER)
        return HTMLResponse(await asyncio.to_thread(self._list, query))

    def _list(self, query: Query) -> str:
        self.index.look()
        summaries = self.index.summaries()
        found = runs_list.select(summaries, query, running=self.index.running(summaries))
        return self._template("runs.html.jinja").render(
            **self._shared,
            runs=self.runs,
            list=found,
            query=found.query,
            columns=runs_list.COLUMNS,
            verdicts=runs_list.VERDICTS,
            states=runs_list.STATES,
            left=self.index.left,
            links=self.index.links,
        )

    async def studies(self, _request: Request) -> Response:
        """Ready studies, and what this machine has and lacks. Looking at it takes seconds of a processor."""
        return self._in_two("studies.html.jinja", {}, self._looked_at)

    async def examine(self, _request: Request) -> Response:
        """Looks at this machine anew, also while a run goes on; only on a request from our own page."""
        self._wanted = True
        return RedirectResponse(f"{self._root}/studies", status_code=SEE_OTHER)

    async def _looked_at(self) -> str:
        async with self._looking:
            kept, wanted, self._wanted = self._machine, self._wanted, False
            if wanted or kept is None or time.monotonic() - kept[0] > KEPT_S:
                busy = await asyncio.to_thread(self._busy)
                if kept is None or wanted or not busy:
                    kept = await asyncio.to_thread(self._look_at_machine, busy=busy and not wanted)
                    self._machine = kept if kept[1].observed else None
            return self._macro("machine", kept[1])

    def _busy(self) -> bool:
        """Whether a run goes on that looking would disturb."""
        self.index.look()
        return bool(self.index.running(self.index.summaries()))

    @staticmethod
    def _look_at_machine(*, busy: bool) -> tuple[float, ThisMachine]:
        from fairtrial.serve.overview import machine  # noqa: PLC0415 - as below

        at = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        return time.monotonic(), machine.described(at) if busy else machine.looked_at(at)

    async def side_by_side(self, request: Request) -> Response:
        """Runs of one study beside each other."""
        names = list(dict.fromkeys(request.query_params.getlist("run")))
        known = {each.name: each for each in await asyncio.to_thread(self._summaries)}
        problem = _unlike(names, known)
        context = {"names": names, "study": "" if problem else known[names[0]].study, "problem": problem}
        if problem:
            return HTMLResponse(
                self._template("side_by_side.html.jinja").render(**self._shared, later="", **context), NOT_FOUND
            )

        def work() -> str:
            from fairtrial.serve.overview.side_by_side import side_by_side  # noqa: PLC0415 - as above

            return self._macro("beside", side_by_side([self.runs / name for name in names]), context["study"])

        return self._in_two("side_by_side.html.jinja", context, lambda: asyncio.to_thread(work))

    async def history(self, request: Request) -> Response:
        """Series over the runs of one study."""
        study, metric = request.query_params.get("study", ""), request.query_params.get("metric", "")
        every = await asyncio.to_thread(self._summaries)
        own = sorted((each for each in every if each.study == study), key=lambda each: each.started, reverse=True)
        names = sorted({each.study for each in every if each.study})
        if not own:
            page = self._template("history.html.jinja").render(**self._shared, later="", study="", names=names, count=0)
            return HTMLResponse(page, NOT_FOUND if study else 200)

        def work() -> str:
            from fairtrial.serve.overview import histories  # noqa: PLC0415 - as above

            newest = [self.runs / each.name for each in own if each.state == "finished"][: histories.MOST_RUNS]
            files = [self.runs / ACKNOWLEDGED, self.runs.resolve().parent / ACKNOWLEDGED]
            found = histories.study_history(newest, metric=metric, acknowledged=files)
            return self._macro("series", found, study, len(newest), len(own))

        context = {"study": study, "names": names, "count": len(own)}
        return self._in_two("history.html.jinja", context, lambda: asyncio.to_thread(work))

    def _summaries(self) -> Sequence[RunSummary]:
        self.index.look()
        return self.index.summaries()

    def _template(self, name: str) -> jinja2.Template:
        from fairtrial.serve.rendering import environment  # noqa: PLC0415 - the address is there before this is loaded

        return environment(self._root).get_template(name)

    def _macro(self, name: str, *arguments: object) -> str:
        return str(getattr(self._template(f"{name}.html.jinja").module, name)(*arguments))

    def _in_two(self, template: str, context: Mapping[str, Any], later: Callable[[], Any]) -> Response:
        """A page whose first part is sent at once; the rest when it is there."""

        async def parts() -> AsyncIterator[str]:
            page = self._template(template).render(**self._shared, **context, later=LATER)
            before, after = page.split(str(LATER))
            yield before
            try:
                yield await later()
            except FairtrialError as error:
                yield self._macro("problem", str(error), error.hint)
            yield after

        return StreamingResponse(parts(), media_type="text/html")


def _unlike(names: Sequence[str], known: Mapping[str, RunSummary]) -> str:
    """Why runs cannot be put beside each other; empty if they can."""
    if not FEWEST <= len(names) <= MOST:
        return f"Choose {FEWEST} to {MOST} runs of one study in the list of runs."
    for name in names:
        if name not in known:
            return f"There is no run {name}."
        if known[name].state == "damaged":
            return f"{name} is damaged: {known[name].reason}"
    studies = dict.fromkeys(known[name].study for name in names)
    if len(studies) > 1:
        return f"These are runs of different studies: {', '.join(studies)}. Only runs of one study share their metrics."
    return ""
