"""A Maven repository on this machine, and archives of servers small enough to make for a test."""

from __future__ import annotations

import hashlib
import http.server
import io
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

PROGRAM = '#!/bin/sh\necho "$0  Ver 10.11.99-MariaDB for Linux on x86_64 (a test\'s)"\n'


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None: ...


@contextmanager
def served(directory: Path) -> Iterator[str]:
    """Serves a directory over HTTP; its address."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=directory)) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def publish(repository: Path, path: str, content: bytes) -> str:
    """Puts an artefact with its sha1 into a repository; its sha256."""
    file = repository / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    file.with_name(file.name + ".sha1").write_text(hashlib.sha1(content).hexdigest() + "\n", encoding="ascii")
    return hashlib.sha256(content).hexdigest()


def zipped(files: dict[str, str]) -> bytes:
    """A zip or jar, without permissions, as careless packers make them."""
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w") as file:
        for name, text in files.items():
            file.writestr(zipfile.ZipInfo(name), text)
    return memory.getvalue()


def tarred(files: dict[str, str], *, mode: str = "w:xz") -> bytes:
    """A tarball whose files nobody but their owner may read."""
    memory = io.BytesIO()
    with tarfile.open(fileobj=memory, mode=mode) as file:  # type: ignore[call-overload]
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(text.encode()), 0o600
            file.addfile(member, io.BytesIO(text.encode()))
    return memory.getvalue()
