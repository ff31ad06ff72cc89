"""The page's process: listening, the address, the browser, the end."""

from __future__ import annotations

import os
import socket
import tempfile
import webbrowser
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import uvicorn

from fairtrial.errors import PlaceError
from fairtrial.serve.guard import Guard, new_secret
from fairtrial.serve.site import application

HOST: Final = "127.0.0.1"
NICENESS: Final = 19  # whoever measures goes first
GRACE_S: Final = 1
REDIRECT: Final = """<!doctype html><meta charset="utf-8"><title>fairtrial</title>
<meta http-equiv="refresh" content="0; url={address}"><p><a href="{address}">Open the page</a></p>
"""


class Listening:
    """A page that accepts connections; `serve` answers them until it is interrupted.

    Args:
        runs: directory of runs.
        port: 0 for a free one.
        names: allowed names beside those of loopback.

    Raises:
        PlaceError: the port is in use.
    """

    def __init__(self, runs: Path, *, port: int = 0, names: Sequence[str] = ()) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind((HOST, port))
        except OSError as error:
            self._socket.close()
            raise PlaceError(
                f"port {port} cannot be listened on: {error.strerror}", hint="name a different one with --port"
            ) from error
        self._socket.listen()
        self.port: int = self._socket.getsockname()[1]
        self._secret = new_secret()
        self._guard = Guard(application(runs, epoch=new_secret()), self._secret, self.port, names)

    def address(self, path: str = "/") -> str:
        """Where a browser goes, with the token."""
        return f"http://{HOST}:{self.port}{path}?token={self._secret}"

    def serve(self) -> None:
        """Answers until SIGINT or SIGTERM."""
        os.nice(NICENESS)
        config = uvicorn.Config(
            self._guard,
            log_level="error",
            access_log=False,
            server_header=False,
            lifespan="off",
            timeout_graceful_shutdown=GRACE_S,
        )
        uvicorn.Server(config).run(sockets=[self._socket])


def open_browser(address: str, *, opened: Callable[[str], bool] = webbrowser.open) -> Path:
    """Opens the browser on a file of this user's alone that leads to the address: command lines are for all to read."""
    descriptor, name = tempfile.mkstemp(prefix="fairtrial-", suffix=".html")
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(REDIRECT.format(address=address))
    opened(Path(name).as_uri())
    return Path(name)
