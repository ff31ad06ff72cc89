"""An agent whose streams are cut: everything passes until so many bytes went one way.

    relay.py AGENT to|from BYTES ends|hangs FILE

Then both streams end, or stay open and carry nothing more, as a line that is dead; and the file is made.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

CHUNK = 1 << 16


def main() -> None:
    """Relays until the cut or the end."""
    agent, which, most, how = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
    process = subprocess.Popen([agent, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    assert process.stdin is not None
    assert process.stdout is not None
    cut = threading.Event()

    def pass_on(source: int, target: int, left: float) -> None:
        while data := os.read(source, CHUNK):
            passed = b"" if cut.is_set() else data[: int(min(left, len(data)))]
            while passed:
                passed = passed[os.write(target, passed) :]
            left -= len(data)
            if left <= 0 and not cut.is_set():
                cut.set()
                Path(sys.argv[5]).touch()
            if cut.is_set() and how == "ends":
                os._exit(0)
        if cut.is_set():
            os._exit(0)
        os.close(target)

    to, back = process.stdin.fileno(), process.stdout.fileno()
    endless = float("inf")
    there = (0, to, most if which == "to" else endless)
    threading.Thread(target=pass_on, args=there, daemon=True).start()
    pass_on(back, 1, most if which == "from" else endless)


if __name__ == "__main__":
    main()
