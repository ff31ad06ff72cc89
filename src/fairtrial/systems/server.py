"""What private database servers have in common: started, waited for, quoted."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Final

from fairtrial.errors import PlaceError, StreamLostError, SystemStartError
from fairtrial.protocol.generated import FileOutput
from fairtrial.study.tree.problems import wrong_below
from fairtrial.systems.instance import Launch
from fairtrial.wire.agent import Process
from fairtrial.wire.facts import Facts
from fairtrial.wire.open_place import OpenPlace

Looks = Sequence[str] | Callable[[float], bool]  # whether a server is ready: a command, or asked with a limit, seconds
Option = str | int | float | bool  # of a server, as a study gives its value

HINT: Final = "set a value that this server version accepts unchanged, or leave the option out"
MIB: Final = 1 << 20
CHUNK_MIB: Final = 128  # innodb_buffer_pool_chunk_size
CACHE_ONE_IN: Final = 4  # of a place's memory, for a server that loads: what it writes goes through the page cache, too
AS_SERVERS: Final = ""  # as the user that servers run as at a place
LARGEST_WHOLE: Final = 2.0**63  # of servers' options; larger ones are meant as floating point
POLL_S: Final = 0.1
SHORTEST_LOOK_S: Final = 1.0  # a program takes some time to start, however little is left
PAUSE_LOOKS: Final = 3  # times what the look before took
LONGEST_POLL_S: Final = 1.0
LOG_LINES: Final = 25
PORTS: Final = range(21_306, 21_406)  # below Linux's ephemeral ports (ip_local_port_range begins at 32768)
PASSWORD_BYTES: Final = 16  # of a server that listens: guessing takes longer than a trial


def canonical(
    options: Mapping[str, Option], *, spelling: Callable[[str], str], reserved: Collection[str]
) -> dict[str, Option]:
    """Options by the names that the server lists them by, and numbers as it reads them.

    Raises:
        ValueError: one option under two spellings, one that fairtrial sets itself, or a value of several lines.
    """
    by_name: dict[str, Option] = {}
    written: dict[str, str] = {}
    for name, value in options.items():
        key = spelling(name)
        if (first := written.setdefault(key, name)) != name:
            raise wrong_below(name, message=f"one option is given twice, as {first} and as {name}: keep one")
        if key in reserved:
            raise ValueError(f"{name} is set by fairtrial itself, to keep the instance private: remove it")
        if isinstance(value, str) and not value.isprintable():
            raise ValueError(f"{name}: a value must be one line of printable text")
        by_name[key] = read_number(value)
    return by_name


def read_number(value: Option) -> Option:
    """`1e3`, a float to YAML, as the whole number that it is: servers refuse `1000.0` where they count."""
    is_whole = isinstance(value, float) and value.is_integer() and abs(value) <= LARGEST_WHOLE
    return int(value) if is_whole else value


def cache_mib(facts: Facts, *, most: int) -> int:
    """How large a loading server's cache may be at a place, in MiB: whole chunks, to which MySQL rounds larger ones."""
    mib = min(most, facts.memory_bytes // CACHE_ONE_IN // MIB)
    return mib if mib < CHUNK_MIB else mib - mib % CHUNK_MIB


def spawned(place: OpenPlace, argv: Sequence[str], launch: Launch, *, user: str | None = AS_SERVERS) -> Process:
    """Starts a server in its work directory, with all that it says in its log. `user`: None is the agent's own."""
    log = FileOutput(path=str(launch.log_path))
    return place.agent.spawn(
        name="server",
        argv=argv,
        environment=launch.environment,
        directory=str(launch.work_directory),
        user=place.server_user if user == AS_SERVERS else user,
        processors=launch.processors,
        groups=launch.groups,
        stdout=log,
        stderr=log,
        of_trial=True,
    )


@contextlib.contextmanager
def coming_up(place: OpenPlace, launch: Launch, *, kind: str, stop: Callable[[], object]) -> Iterator[None]:
    """Around all that is asked of a server that starts: where that fails it is stopped, and its last words are told.

    Raises:
        SystemStartError: it does not answer, or what `wait_until_ready` and `require_in_effect` say.
    """
    try:
        yield
    except StreamLostError:
        raise  # the agent stops what it started
    except BaseException as error:
        with contextlib.suppress(PlaceError):  # what went wrong first is the news
            stop()  # a run may go on with other trials: nothing of this one may stay beside them
        if isinstance(error, PlaceError) and not isinstance(error, SystemStartError):
            raise SystemStartError(
                f"the {kind} server started but did not answer: {error}; the end of its log:\n"
                f"{log_tail(place, launch.log_path)}",
                hint=error.hint,
            ) from error
        raise


def wait_until_ready(place: OpenPlace, process: Process, launch: Launch, *, looks: Looks, kind: str) -> None:
    """Waits until a command succeeds at the place, or until what is asked says so.

    Raises:
        SystemStartError: the server, a system of this `kind`, has exited, or is not ready in time.
    """
    limit_s = place.limits.start_s if launch.ready_s is None else launch.ready_s
    deadline = time.monotonic() + limit_s
    while True:
        looked = time.monotonic()
        if process.exited is None and succeeds(place, looks, max(deadline - looked, SHORTEST_LOOK_S)):
            return
        if process.exited is not None or time.monotonic() > deadline:
            happened = "exited during startup" if process.exited is not None else f"did not answer within {limit_s:g} s"
            raise SystemStartError(
                f"the {kind} server {happened}; the end of its log:\n{log_tail(place, launch.log_path)}",
                hint=f"fix system.{kind}.options, or what else the log reports",
            )
        # Where a look takes long, as under emulation, it takes the server's time: at most a quarter of it.
        time.sleep(min(max(POLL_S, PAUSE_LOOKS * (time.monotonic() - looked)), LONGEST_POLL_S))


def succeeds(place: OpenPlace, looks: Looks, limit_s: float) -> bool:
    """Whether a command succeeds in time; one that hangs does not."""
    try:
        return looks(limit_s) if callable(looks) else place.execute(looks, timeout_s=limit_s).code == 0
    except StreamLostError:
        raise
    except PlaceError:
        return False


def free_port(place: OpenPlace) -> int:
    """A port that nobody at the place listens on or is connected from.

    Raises:
        PlaceError: all that are tried are taken.
    """
    return free_ports(place, 1)[0]


def free_ports(place: OpenPlace, count: int, *, among: Sequence[int] = PORTS) -> list[int]:
    """As many ports that nobody at the place listens on or is connected from, the first of those that may be taken.

    Raises:
        PlaceError: too many of those that are tried are taken.
    """
    ports: list[int] = []
    for port in among:
        if len(ports) == count:
            break
        taken = place.execute(["grep", "-qi", f":{port:04X} ", "/proc/net/tcp", "/proc/net/tcp6"])
        if taken.code != 0:
            ports.append(port)
    if len(ports) < count:
        raise PlaceError(
            f"all ports from {min(among)} to {max(among)} are in use at this place",
            hint="stop the programs that listen there",
        )
    return ports


def log_tail(place: OpenPlace, log_path: PurePosixPath) -> str:
    """The server's last log lines."""
    return place.execute(["tail", "-n", str(LOG_LINES), str(log_path)]).output


def require_in_effect(wrong: Sequence[str]) -> None:
    """Raises SystemStartError, unless nothing is `wrong`; each entry says of one option what was asked and found."""
    if wrong:
        raise SystemStartError("options not in effect: " + "; ".join(wrong), hint=HINT)
