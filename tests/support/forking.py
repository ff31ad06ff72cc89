"""The `fairtrial` command without the seconds that its imports take: forked from a process that has imported it.

The first test process that needs it starts one such process for all. A command is a fork of it: a process of its own,
with its own arguments, environment, working directory and descriptors, that calls the same `main` as the installed
script and leaves by the same exit codes. What only a true start shows (a command that is killed, what `--help` imports,
the wheel, the README's lines) is started truly.
"""

from __future__ import annotations

import array
import atexit
import contextlib
import ctypes
import gc
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
from typing import NoReturn, Self

LONGEST_REQUEST = 1 << 20  # bytes of arguments and environment
DESCRIPTORS = 3  # standard input, output and error
READ_BYTES = 1 << 16
LOOK_EVERY_S = 0.05
OWNER = "FAIRTRIAL_TESTS_OWNER"  # process id of the one whose workers share an origin of commands
STARTED: list[subprocess.Popen[bytes]] = []
ROOM = "-" * (1 << 15)  # of an origin's arguments and environment, for those of its commands


def forked(
    arguments: Sequence[str], *, cwd: Path, environment: Mapping[str, str], program: Path
) -> subprocess.CompletedProcess[str]:
    """Runs the command to its end, as `subprocess.run(..., capture_output=True, text=True)` does."""
    argv = [str(program), *arguments]
    (output, written), (error, complained) = os.pipe(), os.pipe()
    with _asked(argv, cwd=cwd, environment=environment, written=[written, complained], session=False) as client:
        _line(client)
        found = _read_all([output, error])
        status = int(_line(client))  # closing the socket early ends the command
    stdout, stderr = (part.decode().replace("\r\n", "\n") for part in found)
    return subprocess.CompletedProcess(argv, status, stdout, stderr)


class Started:
    """A command in a session of its own that runs on: what tests use of `subprocess.Popen`, errors among its output.

    It is killed at the end of the process that started it.
    """

    def __init__(self, arguments: Sequence[str], *, cwd: Path, environment: Mapping[str, str], program: Path) -> None:
        self.args = [str(program), *arguments]
        self.returncode: int | None = None
        output, written = os.pipe()
        self.stdout = os.fdopen(output, encoding="utf-8")
        self._client = _asked(
            self.args, cwd=cwd, environment=environment, written=[written, os.dup(written)], session=True
        )
        self.pid = int(_line(self._client))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stdout.close()
        self.wait()

    def poll(self) -> int | None:
        if self.returncode is None and select.select([self._client], [], [], 0)[0]:
            self.returncode = int(_line(self._client))
            self._client.close()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code, negative for a signal.

        Raises:
            subprocess.TimeoutExpired: it still runs.
        """
        if self.returncode is None:
            select.select([self._client], [], [], timeout)
        if (code := self.poll()) is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        return code

    def communicate(self, timeout: float | None = None) -> tuple[str, None]:
        """All that it printed and was not read yet, at its end; raises as `wait` does."""
        if self.stdout.closed:
            return "", None
        deadline = None if timeout is None else time.monotonic() + timeout
        reading = threading.Thread(target=lambda: read.append(self.stdout.read()), daemon=True)
        read: list[str] = []
        reading.start()
        reading.join(timeout)
        self.wait(None if deadline is None else max(deadline - time.monotonic(), 0))
        reading.join()
        self.stdout.close()
        return read[0], None

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def share_origin() -> None:
    """Has this process and the workers it starts use one origin of commands, which ends with this process."""
    os.environ[OWNER] = str(os.getpid())


@lru_cache(maxsize=1)
def _origin() -> str:
    """The socket of the origin of commands, in the abstract namespace; starts it if nobody has."""
    owner = os.environ.get(OWNER, str(os.getpid()))
    name = f"\0fairtrial-commands-{owner}"
    with socket.socket(socket.AF_UNIX) as starting:
        while not _listens(name):
            try:
                starting.bind(f"{name}-starting")  # a lock: one process at a time can have this address
            except OSError:
                time.sleep(LOOK_EVERY_S)
            else:
                if not _listens(name):
                    _start(owner)
    return name


def _listens(name: str) -> bool:
    with socket.socket(socket.AF_UNIX) as client:
        return client.connect_ex(name) == 0


def _start(owner: str) -> None:
    process = subprocess.Popen(
        [sys.executable, __file__, owner, ROOM],
        env={**os.environ, "ROOM": ROOM},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
    )
    STARTED.append(process)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n", "the origin of commands did not start"


def end_origin() -> None:
    """Ends the origin of commands, if this process has started it and shares it with nobody."""
    if os.environ.get(OWNER, str(os.getpid())) == str(os.getpid()):
        for process in STARTED:
            process.terminate()
            process.communicate()


def _asked(
    argv: Sequence[str], *, cwd: Path, environment: Mapping[str, str], written: Sequence[int], session: bool
) -> socket.socket:
    """A connection that tells the process id of a new command, and its exit code; its descriptors are closed here."""
    asked = {"argv": list(argv), "cwd": str(cwd), "environment": dict(environment), "session": session}
    request = json.dumps(asked).encode()
    descriptors = array.array("i", [os.open(os.devnull, os.O_RDONLY), *written])
    client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        client.connect(_origin())
        client.sendmsg([len(request).to_bytes(4, "big")], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, descriptors)])
        client.sendall(request)
    finally:
        for descriptor in descriptors:
            os.close(descriptor)
    return client


def _line(client: socket.socket) -> bytes:
    """The next, and nothing behind it."""
    read = b""
    while not read.endswith(b"\n"):
        part = client.recv(1)
        assert part, "the origin of commands has ended"
        read += part
    return read


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


def _serve(owner: str) -> NoReturn:
    """Imports everything, then forks for each connection until its owner is gone."""
    alive = os.pidfd_open(int(owner))
    import_all()
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listening.bind(f"\0fairtrial-commands-{owner}")
    listening.listen(64)
    signal.signal(signal.SIGCHLD, lambda *_: reap())
    os.write(1, b"ready\n")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    while True:
        ready, _, _ = select.select([listening, alive], [], [])
        if alive in ready:
            os._exit(0)  # there is nothing of worth to tidy up
        connection, _ = listening.accept()
        if os.fork() == 0:
            listening.close()
            os.close(alive)
            _wait_for_command(connection)
        connection.close()


def import_all() -> None:
    """Imports every module of fairtrial once, for the forks of this process."""
    gc.disable()
    import fairtrial  # noqa: PLC0415 - the test process asks for none of this

    for module in pkgutil.walk_packages(fairtrial.__path__, "fairtrial."):
        if not module.name.startswith("fairtrial.locks.lib"):  # what servers preload is no module of Python's
            importlib.import_module(module.name)
    importlib.import_module("scipy.stats")
    fairtrial.cli.command()
    gc.enable()
    freeze()  # a search for garbage writes to what it sees, and forks would copy it


def freeze() -> None:
    """No search for garbage looks through what there is now, until the interpreter ends and would call it leaked."""
    gc.freeze()
    atexit.register(gc.unfreeze)


def reap() -> None:
    """Waits for children that have ended: what nobody waits for is in nobody's costs (wait(2), NOTES)."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _wait_for_command(connection: socket.socket) -> NoReturn:
    """Forks the command, ends it when nobody waits for it any more, and tells its exit code."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    head, descriptors, _, _ = socket.recv_fds(connection, 4, DESCRIPTORS)
    if not head:
        os._exit(0)  # somebody asked only whether there is an origin
    request = json.loads(connection.makefile("rb").read(int.from_bytes(head, "big")))
    command = os.fork()
    if command == 0:
        connection.close()
        _become(request, descriptors)
    for descriptor in descriptors:
        os.close(descriptor)
    connection.sendall(f"{command}\n".encode())
    ended = os.pidfd_open(command)
    if connection in select.select([ended, connection], [], [])[0]:
        os.kill(command, signal.SIGKILL)
    found = os.waitid(os.P_PID, command, os.WEXITED | os.WNOWAIT)
    assert found is not None
    status = found.si_status if found.si_code == os.CLD_EXITED else -found.si_status
    with contextlib.suppress(OSError):  # nobody waits for it any more
        connection.sendall(f"{status}\n".encode())
        connection.recv(1)  # its id is no other process's until somebody has read how it ended, as that of a child
    os.waitpid(command, 0)
    os._exit(0)


def _become(request: dict[str, object], descriptors: Sequence[int]) -> NoReturn:
    """Is the command from here on."""
    if request["session"]:
        os.setsid()
    for descriptor, standard in zip(descriptors, range(DESCRIPTORS), strict=True):
        os.dup2(descriptor, standard)
        os.close(descriptor)

    def set_up() -> None:
        os.environ.clear()
        os.environ.update(request["environment"])  # type: ignore[call-overload]
        _show(request["argv"], request["environment"])  # type: ignore[arg-type]
        time.tzset()
        os.chdir(str(request["cwd"]))
        sys.argv = list(request["argv"])  # type: ignore[call-overload]

    be_fairtrial(set_up)


def _show(argv: Sequence[str], environment: Mapping[str, str]) -> None:
    """Has /proc tell the command's arguments and environment, as of one that was started: written over the origin's."""
    fields = Path("/proc/self/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    bounds = [int(field) for field in fields[45:49]]  # of the arguments and of the environment: proc(5), 48 to 51
    variables = [f"{name}={value}" for name, value in environment.items()]
    for start, end, words in ((*bounds[:2], argv), (*bounds[2:], variables)):
        text = b"".join(os.fsencode(word) + b"\0" for word in words)
        if len(text) <= end - start:
            ctypes.memmove(start, text.ljust(end - start, b"\0"), end - start)


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
