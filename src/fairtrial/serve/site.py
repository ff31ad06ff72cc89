"""The page's addresses."""

from __future__ import annotations

import asyncio
import hashlib
import mimetypes
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from fairtrial.errors import FairtrialError, RecordError
from fairtrial.serve.guard import POLICY
from fairtrial.serve.loading import load
from fairtrial.serve.overview.pages import Overview

if TYPE_CHECKING:
    from fairtrial.serve.following import Following
    from fairtrial.serve.steering import Control

NOT_FOUND: Final = 404
FIGURE_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; sandbox"  # whoever opens it by itself
DIGITS: Final = 12  # of an asset's hash in its name: it may be kept for ever
FOR_EVER: Final = {"cache-control": "public, max-age=31536000, immutable"}
ROOM: Final = Path(__file__).parent
ASSETS: Final = (
    ROOM.parent / "report/page/templates/report.css",  # by path: the report's package takes a second to load
    *sorted(path for path in (ROOM / "assets").iterdir() if path.suffix in (".css", ".js")),
)


class Assets:
    """Files that never change under their name: it has their hash."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.contents: dict[str, tuple[str, bytes]] = {}
        for path in ASSETS:
            content = path.read_bytes()
            hashed = f"{path.stem}.{hashlib.sha256(content).hexdigest()[:DIGITS]}{path.suffix}"
            self.names[path.name] = hashed
            self.contents[hashed] = (mimetypes.guess_type(path.name)[0] or "application/octet-stream", content)

    async def serve(self, request: Request) -> Response:
        """One file."""
        known = self.contents.get(request.path_params["name"])
        if known is None:
            return PlainTextResponse("There is no such file.\n", status_code=NOT_FOUND)
        return Response(known[1], media_type=known[0], headers=FOR_EVER)


class Site:
    """All pages. What they are made from is loaded while the first one is awaited: the address is there at once."""

    def __init__(self, runs: Path, *, epoch: str, control: Control | None = None, root: str = "") -> None:
        self.runs, self.epoch, self.control, self.root = runs, epoch, control, root
        self.assets = Assets()
        self._following: Following | None = None
        self._loading = asyncio.Lock()

    async def following(self) -> Following:
        """The runs looked at."""
        async with self._loading:
            if self._following is None:
                self._following = await asyncio.to_thread(_following, self)
            return self._following

    def name(self, request: Request) -> str:
        """The run that an address names: a directory right below `runs`.

        Raises:
            RecordError: it is not one.
        """
        name: str = request.path_params["name"]
        directory = self.runs / name
        if name in ("", ".", "..") or "/" in name or "\0" in name or directory.is_symlink() or not directory.is_dir():
            raise RecordError("there is no such run", hint="go back to the list of runs")
        return name

    async def run(self, request: Request) -> Response:
        """A run's page."""
        following = await self.following()
        name = self.name(request)
        page = await following.page(name)
        asked = request.query_params.get("trial", "")
        number = int(asked) if asked.isascii() and asked.isdigit() else None
        since = following.seen(page)
        return HTMLResponse(page.page(name, since=since, assets=self.assets.names, number=number))

    async def refused(self, _request: Request, error: Exception) -> Response:
        """What went wrong, as a page."""
        following = await self.following()
        hint = error.hint if isinstance(error, FairtrialError) else ""
        message = str(error) if isinstance(error, FairtrialError) else "There is no such page."
        template = following.templates.get_template("refused.html.jinja")
        html = template.render(message=message, hint=hint, assets=self.assets.names, scripts=("page.js",))
        return HTMLResponse(html, status_code=NOT_FOUND)

    async def report(self, request: Request) -> Response:
        """A run's report."""
        await self.following()
        from fairtrial.serve import reports  # noqa: PLC0415 - see the class

        html = await asyncio.to_thread(reports.page, self.runs, self.name(request))
        policy = POLICY.replace("style-src 'self'", reports.POLICY_WITH_STYLE)
        return HTMLResponse(html, headers={"content-security-policy": policy})

    async def figure(self, request: Request) -> Response:
        """A drawing of a report."""
        await self.following()
        from fairtrial.serve import reports  # noqa: PLC0415 - see the class

        file = request.path_params["file"]
        content = await asyncio.to_thread(reports.figure, self.runs, self.name(request), file)
        if content is None:
            return PlainTextResponse("There is no such figure.\n", status_code=NOT_FOUND)
        return Response(content, media_type="image/svg+xml", headers={"content-security-policy": FIGURE_POLICY})

    async def series(self, request: Request) -> Response:
        """A finished trial's numbers over time."""
        page = await (await self.following()).page(self.name(request))
        found = await asyncio.to_thread(page.series, request.path_params["number"])
        if found is None:
            return PlainTextResponse("There is no such trial, or it has not ended.\n", status_code=NOT_FOUND)
        return JSONResponse(found)

    async def events(self, request: Request) -> Response:
        """What is new of a run."""
        following = await self.following()
        name = self.name(request)
        await following.page(name)
        last = request.headers.get("last-event-id") or request.query_params.get("since", "")
        return StreamingResponse(following.events(name, last), media_type="text/event-stream")


def _following(site: Site) -> Following:
    load()
    from fairtrial.serve.following import Following  # noqa: PLC0415 - see `Site`
    from fairtrial.serve.rendering import environment  # noqa: PLC0415

    templates = environment(site.root)
    if site.control is not None:
        templates = templates.overlay()
        templates.globals = {**templates.globals, "control": site.control}
    return Following(site.runs, templates, site.epoch)


def _steering(site: Site, control: Control) -> list[Route]:
    from fairtrial.serve.steering import Steering  # noqa: PLC0415 - see `Site`

    return Steering(site.runs, control, assets=site.assets.names, root=site.root).routes(site.name)


def application(runs: Path, *, epoch: str, control: Control | None = None, root: str = "") -> Starlette:
    """The page as an ASGI application below `root`, without its guard; without `control` it changes nothing."""
    site = Site(runs, epoch=epoch, control=control, root=root)
    handlers: Mapping[type[Exception] | int, object] = {FairtrialError: site.refused, NOT_FOUND: site.refused}
    return Starlette(
        routes=[
            *Overview(runs, assets=site.assets.names, control=control, root=root).routes(),
            *([] if control is None else _steering(site, control)),
            Route("/assets/{name}", site.assets.serve),
            Route("/runs/{name}", site.run),
            Route("/runs/{name}/events", site.events),
            Route("/runs/{name}/report", site.report),
            Route("/runs/{name}/report/figures/{file}", site.figure),
            Route("/runs/{name}/trials/{number:int}/series", site.series),
        ],
        exception_handlers=handlers,  # type: ignore[arg-type]
    )
