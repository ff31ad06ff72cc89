"""An exporter that goes wrong after so many answers: `python exporter.py PORT FAULT AFTER`, by any Python.

It prints its port, and a line whenever it is asked from then on.
"""

from __future__ import annotations

import itertools
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

FAULTS = {
    "silent": "no whole answer within 360 ms",
    "slow": "no whole answer within 360 ms",
    "large": "its answer is larger than 8 MiB",
    "binary": "its answer is not text",
    "html": "line 1 is not a sample",
    "error": "it answers with HTTP status 500",
}


def answer(fault: str, seconds: float) -> bytes:
    """What is sent, after what the fault waits for; a counter of 100 in a second otherwise."""
    if fault == "silent":
        time.sleep(60)
    if fault == "slow":
        time.sleep(0.6)
    bodies = {"large": b"x 1\n" * (10 << 18), "binary": bytes(range(256)), "html": b"<html>\n"}
    own = f'# TYPE ticks_total counter\nticks_total{{kind="a"}} {100 * seconds:.3f}\n# TYPE level gauge\nlevel 7\n'
    return bodies.get(fault, own.encode())


def serve(port: int, fault: str, after: int) -> None:
    began = time.monotonic()
    asked = itertools.count()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seconds = time.monotonic() - began
            now = fault if next(asked) >= after else ""
            if now:
                say("wrong")
            try:
                body = answer(now, seconds)
                self.send_response(500 if now == "error" else 200)
                self.end_headers()
                self.wfile.write(body)
            except OSError:
                pass  # nobody waited for it

        def log_message(self, *_words: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    say(server.server_port)
    server.serve_forever()


def say(what: object) -> None:
    sys.stdout.write(f"{what}\n")
    sys.stdout.flush()


@contextmanager
def exporter(fault: str = "", after: int = 0) -> Iterator[tuple[str, Callable[[], str]]]:
    """Its URL, and what waits until it goes wrong once more."""
    command = [sys.executable, __file__, "0", fault, str(after)]
    # As the sampler, in a session of its own: where tests stand still, it goes wrong no earlier than it shall.
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        try:
            assert process.stdout is not None
            yield f"http://127.0.0.1:{int(process.stdout.readline())}/metrics", process.stdout.readline
        finally:
            process.kill()


if __name__ == "__main__":
    serve(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
