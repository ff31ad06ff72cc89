"""An exporter that goes wrong after a while: `python exporter.py PORT FAULT AFTER_S`. Any Python runs it by itself."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
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


def serve(port: int, fault: str, after_s: float) -> None:
    began = time.monotonic()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seconds = time.monotonic() - began
            now = fault if seconds > after_s else ""
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
    sys.stdout.write(f"{server.server_port}\n")
    sys.stdout.flush()
    server.serve_forever()


@contextmanager
def exporter(fault: str = "", after_s: float = 3600.0) -> Iterator[str]:
    """Its URL."""
    command = [sys.executable, __file__, "0", fault, str(after_s)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield f"http://127.0.0.1:{int(process.stdout.readline())}/metrics"
        finally:
            process.kill()


if __name__ == "__main__":
    serve(int(sys.argv[1]), sys.argv[2], float(sys.argv[3]))
