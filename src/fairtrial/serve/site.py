"""The page's addresses."""

from __future__ import annotations

import asyncio
import hashlib
import mimetypes
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from fairtrial.errors import FairtrialError

if TYPE_CHECKING:
    from fairtrial.serve.following import Following

NOT_FOUND: Final = 404
DIGITS: Final = 12  # of an asset's hash in its name: it may be kept for ever
FOR_EVER: Final = {"cache-control": "public, max-age=31536000, immutable"}
ASSETS: Final = {
    "report.css": "fairtrial.report.page/templates",
    "page.css": "fairtrial.serve/assets",
    "page.js": "fairtrial.serve/assets",
    "uPlot.min.css": "fairtrial.serve/assets",
    "uPlot.iife.min.js": "fairtrial.serve/assets",
    "idiomorph.min.js": "fairtrial.serve/assets",
}


class Assets:
    """Files that never change under their name: it has their hash."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.contents: dict[str, tuple[str, bytes]] = {}
        for name, where in ASSETS.items():
            package, _, folder = where.partition("/")
            content = (resources.files(package) / folder / name).read_bytes()
            stem, _, suffix = name.rpartition(".")
            hashed = f"{stem}.{hashlib.sha256(content).hexdigest()[:DIGITS]}.{suffix}"
            self.names[name] = hashed
            self.contents[hashed] = (mimetypes.guess_type(name)[0] or "application/octet-stream", content)

    async def serve(self, request: Request) -> Response:
        """One file."""
        known = self.contents.get(request.path_params["name"])
        if known is None:
            return PlainTextResponse("There is no such file.\n", status_code=NOT_FOUND)
        return Response(known[1], media_type=known[0], headers=FOR_EVER)


class Site:
    """All pages. What they are made from is loaded while the first one is awaited: the address is there at once."""

    def __init__(self, runs: Path, *, epoch: str) -> None:
        self.runs, self.epoch = runs, epoch
        self.assets = Assets()
        self._following: Following | None = None
        self._loading = asyncio.Lock()

    async def following(self) -> Following:
        """The runs looked at."""
        async with self._loading:
            if self._following is None:
                self._following = await asyncio.to_thread(_following, self.runs, self.epoch)
            return self._following

    async def run(self, request: Request) -> Response:
        """A run's page."""
        following = await self.following()
        name = request.path_params["name"]
        page = await following.page(name)
        return HTMLResponse(page.page(name, since=following.seen(page), assets=self.assets.names))

    async def events(self, request: Request) -> Response:
        """What is new of a run."""
        following = await self.following()
        name = request.path_params["name"]
        await following.page(name)
        last = request.headers.get("last-event-id") or request.query_params.get("since", "")
        return StreamingResponse(following.events(name, last), media_type="text/event-stream")


def _following(runs: Path, epoch: str) -> Following:
    import jinja2  # noqa: PLC0415 - see `Site`

    from fairtrial.serve.following import Following  # noqa: PLC0415

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("fairtrial.serve"), autoescape=True, undefined=jinja2.StrictUndefined
    )
    return Following(runs, environment, epoch)


async def _refused(_request: Request, error: Exception) -> Response:
    hint = f"\n{error.hint}" if isinstance(error, FairtrialError) and error.hint else ""
    return PlainTextResponse(f"{error}{hint}\n", status_code=NOT_FOUND)


def application(runs: Path, *, epoch: str) -> Starlette:
    """The page as an ASGI application, without its guard."""
    site = Site(runs, epoch=epoch)
    handlers: Mapping[type[Exception], object] = {FairtrialError: _refused}
    return Starlette(
        routes=[
            Route("/assets/{name}", site.assets.serve),
            Route("/runs/{name}", site.run),
            Route("/runs/{name}/events", site.events),
        ],
        exception_handlers=handlers,  # type: ignore[arg-type]
    )
