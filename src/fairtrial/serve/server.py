"""The page's process: listening, the address, the browser, the end."""

from __future__ import annotations

import asyncio
import math
import os
import socket
import tempfile
import threading
import time
import webbrowser
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Final

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send

from fairtrial.errors import PlaceError
from fairtrial.serve.guard import Guard, new_root, new_secret
from fairtrial.serve.loading import load
from fairtrial.serve.site import application

if TYPE_CHECKING:
    from fairtrial.serve.steering import Control

HOST: Final = "127.0.0.1"
NICENESS: Final = 19  # whoever measures goes first
GRACE_S: Final = 1
TICK_S: Final = 5.0  # between two looks whether the page is still needed
REDIRECT: Final = """<!doctype html><meta charset="utf-8"><title>fairtrial</title>
<meta http-equiv="refresh" content="0; url={address}"><p><a href="{address}">Open the page</a></p>
"""


@dataclass
class Presence:
    """Whether anybody looks: a browser that shows a run keeps a request open.

    Attributes:
        open: requests that are being answered.
        seen_s: when the last one ended, on the monotonic clock.
    """

    app: ASGIApp
    open: int = 0
    seen_s: float = field(default_factory=time.monotonic)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes a request on."""
        self.open += 1
        try:
            await self.app(scope, receive, send)
        finally:
            self.open -= 1
            self.seen_s = time.monotonic()

    @property
    def absent_s(self) -> float:
        """How long nobody has looked."""
        return 0.0 if self.open else time.monotonic() - self.seen_s


class Listening:
    """A page that accepts connections; `serve` answers them until it is interrupted.

    Args:
        runs: directory of runs.
        port: 0 for a free one.
        names: allowed names beside those of loopback.
        control: what the page may do; None if it only shows.

    Raises:
        PlaceError: the port is in use.
    """

    def __init__(self, runs: Path, *, port: int = 0, names: Sequence[str] = (), control: Control | None = None) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind((HOST, port))
        except OSError as error:
            self._socket.close()
            raise PlaceError(
                f"cannot listen on port {port}: {error.strerror}", hint="name a different one with --port"
            ) from error
        self._socket.listen()
        self.port: int = self._socket.getsockname()[1]
        self._secret, self._root = new_secret(), new_root()
        page = application(runs, epoch=new_secret(), control=control, root=self._root)
        self._presence = Presence(Guard(page, self._secret, self.port, names, self._root))

    def address(self, path: str = "/") -> str:
        """Where a browser goes, with the token."""
        return f"http://{HOST}:{self.port}{self._root}{path}?token={self._secret}"

    def serve(self, *, kept_s: float = math.inf, needed: Callable[[], bool] = lambda: True) -> None:
        """Answers until SIGINT or SIGTERM, or until it is no longer needed and nobody has looked for `kept_s`."""
        os.nice(NICENESS)
        threading.Thread(target=load, daemon=True).start()  # the address is there at once, its page soon after
        config = uvicorn.Config(
            self._presence,
            log_level="error",
            access_log=False,
            server_header=False,
            date_header=False,
            lifespan="off",
            timeout_graceful_shutdown=GRACE_S,
        )
        server = _Calm(config)
        if math.isinf(kept_s):
            server.run(sockets=[self._socket])
        else:
            asyncio.run(self._serve(server, kept_s=kept_s, needed=needed))

    async def _serve(self, server: _Calm, *, kept_s: float, needed: Callable[[], bool]) -> None:
        serving = asyncio.create_task(server.serve(sockets=[self._socket]))
        while not serving.done():
            await asyncio.wait({serving}, timeout=min(TICK_S, kept_s))
            if needed():
                self._presence.seen_s = time.monotonic()
            elif self._presence.absent_s >= kept_s:
                server.end()
        await serving


class _Calm(uvicorn.Server):
    """Sleeps until it shall end, where uvicorn wakes ten times a second to see whether it shall."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ending = asyncio.Event()

    async def main_loop(self) -> None:
        """Until it shall end."""
        self._loop = asyncio.get_running_loop()
        while not await self.on_tick(0):
            await self._ending.wait()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Ends on a signal."""
        super().handle_exit(sig, frame)
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._ending.set)

    def end(self) -> None:
        """Ends."""
        self.should_exit = True
        self._ending.set()


def open_browser(address: str, *, opened: Callable[[str], bool] = webbrowser.open) -> Path:
    """Opens the browser on a file of this user's alone that leads to the address: command lines are for all to read."""
    descriptor, name = tempfile.mkstemp(prefix="fairtrial-", suffix=".html")
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(REDIRECT.format(address=address))
    opened(Path(name).as_uri())
    return Path(name)
