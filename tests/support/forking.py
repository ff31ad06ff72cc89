"""The `fairtrial` command without the seconds that its imports take: forked from a process that has imported it.

A test process starts one such process when it first needs it. A command is a fork of it: a process of its own, with its
own arguments, environment, working directory and descriptors, that calls the same `main` as the installed script and
leaves by the same exit codes. What only a true start shows (a command that is killed, what `--help` imports, the wheel,
the README's lines) is started truly.
"""

from __future__ import annotations

import array
import atexit
import contextlib
import importlib
import json
import os
import pkgutil
import select
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NoReturn

LONGEST_REQUEST = 1 << 20  # bytes of arguments and environment
DESCRIPTORS = 3  # standard input, output and error
READ_BYTES = 1 << 16


def forked(
    arguments: Sequence[str], *, cwd: Path, environment: Mapping[str, str], program: Path
) -> subprocess.CompletedProcess[str]:
    """Runs the command to its end, as `subprocess.run(..., capture_output=True, text=True)` does."""
    request = {"argv": [str(program), *arguments], "cwd": str(cwd), "environment": dict(environment)}
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.connect(_origin()[0])
        output, error = _send(client, json.dumps(request).encode())
        written = _read_all([output, error])
        status = json.loads(client.makefile().readline())  # closing the socket early ends the command
    stdout, stderr = (part.decode().replace("\r\n", "\n") for part in written)
    return subprocess.CompletedProcess(request["argv"], status, stdout, stderr)


@lru_cache(maxsize=1)
def _origin() -> tuple[str, subprocess.Popen[bytes]]:
    """This test process's origin of commands: its socket, in the abstract namespace, and its process."""
    name = f"fairtrial-commands-{os.getpid()}"
    process = subprocess.Popen([sys.executable, __file__, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n", "the origin of commands did not start"
    return f"\0{name}", process


def end_origin() -> None:
    """Ends the origin of commands, if this test process has one."""
    if _origin.cache_info().currsize:
        _, process = _origin()
        process.communicate()  # closes its standard input, which ends it


def _send(client: socket.socket, request: bytes) -> tuple[int, int]:
    """Sends a request with its descriptors; gives the reading ends of output and error."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    (output, written), (error, complained) = os.pipe(), os.pipe()
    descriptors = array.array("i", [nothing, written, complained])
    try:
        client.sendmsg([len(request).to_bytes(4, "big")], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, descriptors)])
        client.sendall(request)
    finally:
        for descriptor in descriptors:
            os.close(descriptor)
    return output, error


def _read_all(descriptors: Sequence[int]) -> list[bytes]:
    """What every descriptor gives until its end, all at once."""
    read = {descriptor: bytearray() for descriptor in descriptors}
    waiting = set(descriptors)
    try:
        while waiting:
            for descriptor in select.select(list(waiting), [], [])[0]:
                part = os.read(descriptor, READ_BYTES)
                read[descriptor] += part
                if not part:
                    waiting.remove(descriptor)
    finally:
        for descriptor in descriptors:
            os.close(descriptor)
    return [bytes(part) for part in read.values()]


def _serve(name: str) -> None:
    """Imports everything, then forks for each connection until the test process is gone."""
    import_all()
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listening.bind(f"\0{name}")
    listening.listen(64)
    signal.signal(signal.SIGCHLD, lambda *_: reap())
    os.write(1, b"ready\n")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    while True:
        ready, _, _ = select.select([listening, sys.stdin], [], [])
        if sys.stdin in ready:
            return  # the test process is gone
        connection, _ = listening.accept()
        if os.fork() == 0:
            listening.close()
            _wait_for_command(connection)
        connection.close()


def import_all() -> None:
    """Imports every module of fairtrial once, for the forks of this process."""
    import fairtrial  # noqa: PLC0415 - the test process asks for none of this

    for module in pkgutil.walk_packages(fairtrial.__path__, "fairtrial."):
        if not module.name.startswith("fairtrial.locks.lib"):  # what servers preload is no module of Python's
            importlib.import_module(module.name)
    importlib.import_module("scipy.stats")


def reap() -> None:
    """Waits for children that have ended: what nobody waits for is in nobody's costs (wait(2), NOTES)."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _wait_for_command(connection: socket.socket) -> NoReturn:
    """Forks the command, ends it when nobody waits for it any more, and tells its exit code."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    head, descriptors, _, _ = socket.recv_fds(connection, 4, DESCRIPTORS)
    request = json.loads(connection.makefile("rb").read(int.from_bytes(head, "big")))
    command = os.fork()
    if command == 0:
        connection.close()
        _become(request, descriptors)
    for descriptor in descriptors:
        os.close(descriptor)
    ended = os.pidfd_open(command)
    if connection in select.select([ended, connection], [], [])[0]:
        os.kill(command, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(command, 0)[1])
    try:
        connection.sendall(f"{status}\n".encode())
    except OSError:
        os._exit(1)
    os._exit(0)


def _become(request: dict[str, object], descriptors: Sequence[int]) -> NoReturn:
    """Is the command from here on."""
    for descriptor, standard in zip(descriptors, range(DESCRIPTORS), strict=True):
        os.dup2(descriptor, standard)
        os.close(descriptor)

    def set_up() -> None:
        os.environ.clear()
        os.environ.update(request["environment"])  # type: ignore[call-overload]
        time.tzset()
        os.chdir(str(request["cwd"]))
        sys.argv = list(request["argv"])  # type: ignore[call-overload]

    be_fairtrial(set_up)


def be_fairtrial(set_up: Callable[[], None]) -> NoReturn:
    """Sets this process up, and is the command `fairtrial` from there to its end, as the interpreter would be."""
    code = 1
    try:
        set_up()
        from fairtrial.cli import main  # noqa: PLC0415 - imported long ago

        main()
    except SystemExit as leaving:
        code = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
    except BaseException:  # noqa: BLE001 - as the interpreter does
        traceback.print_exc()
    finally:
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    _serve(sys.argv[1])
