"""Files that can end the process that reads them are read by another one first, in a command that opens records.

Two processes are forked before this one reads anything, as a fork of a process whose reader has threads would hang. One
reads; the other waits beside it, and forks the next when a file has ended it. A run, which reads what it wrote itself,
begins none. It must not know a format.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import resource
import select
import signal
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final, NoReturn

MOST_BYTES: Final = 1 << 16  # of a path, and of what is said about a file
MOST_SAID: Final = 4000
FINE: Final = b"+"
WRONG: Final = b"-"
ENDED: Final = "it ends the program that reads it"

Read = Callable[[Path], object]


class FirstReader:
    """The processes beside this one."""

    def __init__(self, read: Read) -> None:
        self._lock = threading.Lock()
        self._keeper, theirs = _pair()
        self._process = os.fork()
        if self._process == 0:
            self._keeper.close()
            _keep(theirs, read)
        theirs.close()
        atexit.register(self.end)

    @functools.lru_cache(maxsize=64)  # noqa: B019 - it lives as long as the process
    def fault(self, path: Path, *_identity: int) -> str:
        """What is wrong with a file; empty if it can be read."""
        with self._lock:
            self._keeper.send(os.fsencode(path.absolute()))
            said = self._keeper.recv(MOST_BYTES)
        return said.removeprefix(WRONG).decode(errors="replace") if said != FINE else ""

    def end(self) -> None:
        """Ends the processes."""
        self._keeper.close()
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self._process, 0)


_begun: list[FirstReader] = []


def begin(read: Read) -> None:
    """From here on every file is read by another process first. Before this one reads any, and has threads.

    Args:
        read: what a file is read by; OSError, ValueError and MemoryError are its words about one that is damaged.
    """
    if not _begun:
        _begun.append(FirstReader(read))


def has_begun() -> bool:
    """Whether files are read by another process first."""
    return bool(_begun)


def fault(path: Path) -> str:
    """What is wrong with a file; empty if another process could read it, or if none has begun.

    Raises:
        OSError: it is not there.
    """
    if not _begun:
        return ""
    status = path.stat()
    return _begun[0].fault(path, status.st_ino, status.st_mtime_ns, status.st_size)


def _pair() -> tuple[socket.socket, socket.socket]:
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)  # which keeps messages apart


def _keep(asked: socket.socket, read: Read) -> NoReturn:
    """Hands paths to a reader, and the answers back, until nobody asks."""
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the command's, which ends these as well
        nowhere = os.open(os.devnull, os.O_RDWR)
        for standard in range(3):
            os.dup2(nowhere, standard)
        process, reader = 0, asked
        while path := asked.recv(MOST_BYTES):
            if not process:
                process, reader = _reader(asked, read)
            reader.send(path)
            if reader not in select.select([asked, reader], [], [])[0]:
                os.kill(process, signal.SIGKILL)  # nobody waits any more
                break
            said = reader.recv(MOST_BYTES)
            if not said:
                reader.close()
                said = WRONG + f"{ENDED} ({os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])})".encode()
                process = 0
            asked.send(said)
    finally:
        os._exit(0)


def _reader(asked: socket.socket, read: Read) -> tuple[int, socket.socket]:
    ours, theirs = _pair()
    command = os.getppid()
    process = os.fork()
    if process == 0:
        asked.close()
        ours.close()
        _answer(theirs, read, command=command)
    theirs.close()
    return process, ours


def _answer(asked: socket.socket, read: Read, *, command: int) -> NoReturn:
    """Reads every file that is asked about, in no more memory than the machine has.

    It runs where and as urgently as the command by now: one that watches a run goes last.
    """
    try:
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, os.sched_getaffinity(command))
            os.setpriority(os.PRIO_PROCESS, 0, os.getpriority(os.PRIO_PROCESS, command))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        page = os.sysconf("SC_PAGE_SIZE")
        own = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        most = (own + os.sysconf("SC_PHYS_PAGES")) * page
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
        while path := asked.recv(MOST_BYTES):
            asked.send(_outcome(Path(os.fsdecode(path)), read))
    finally:
        os._exit(0)


def _outcome(path: Path, read: Read) -> bytes:
    try:
        read(path)
    except (OSError, ValueError, MemoryError) as error:
        return WRONG + str(error).encode(errors="replace")[:MOST_SAID]
    return FINE
