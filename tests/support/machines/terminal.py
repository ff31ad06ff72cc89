"""The installed command on a terminal of its own, as a person sees it: live lines, in the order they were drawn."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.command_line import FAIRTRIAL, Desk, desk_in, eventually

COLUMNS = 200  # no line of progress is cut
ROWS = 200  # nor is any cut off at the end: on a busy machine, doubts take many
# It outranks the terminal's own: a test's worker has inherited what readline thought its terminal was (24 lines).
SIZE = {"COLUMNS": str(COLUMNS), "LINES": str(ROWS)}
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")


class Terminal:
    """A command that runs on a terminal, and all that it has drawn so far."""

    def __init__(self, process: subprocess.Popen[bytes], screen: int) -> None:
        self.process = process
        self._screen = screen
        self._drawn = bytearray()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        try:
            while piece := os.read(self._screen, 1 << 16):
                self._drawn += piece
        except OSError:
            return  # EIO: nobody has the terminal open any more (pty(7))

    @property
    def text(self) -> str:
        """What was drawn, without what moves the cursor."""
        return _CONTROL.sub("", self._drawn.decode("utf-8", "ignore"))

    def end(self, limit_s: float = 300.0) -> int:
        """Waits for the command; its exit code, negative for a signal. All it has drawn is in `text` then."""
        code = self.process.wait(limit_s)
        self._reader.join(limit_s)
        return code


@contextmanager
def on_terminal(here: Desk, *arguments: str | Path) -> Iterator[Terminal]:
    """A command on a terminal, killed at the end if it still runs."""
    screen, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    process = subprocess.Popen(
        [FAIRTRIAL, *map(str, arguments)],
        cwd=here.directory,
        env={**here.environment, **SIZE, "TERM": "xterm"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    terminal = Terminal(process, screen)
    try:
        yield terminal
    finally:
        if process.poll() is None:
            process.kill()
        terminal.end()
        os.close(screen)


def numbers(text: str, pattern: str) -> list[int]:
    """What a pattern's one group found, in the order drawn."""
    return [int(found.replace(",", "")) for found in re.findall(pattern, text)]


def killed_once_drawn(directory: str, pattern: str, least: int, *arguments: str) -> None:
    """Runs a command on a terminal and kills it as soon as a number that it draws is large enough; for `apart`."""
    with on_terminal(desk_in(directory), *arguments) as terminal:
        eventually(lambda: max(numbers(terminal.text, pattern), default=0) >= least, f"{least} were never drawn")
        terminal.process.kill()
