"""The scripts of Tcl that HammerDB's CLI is given; the password is in them, and in no list of processes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath
from typing import Final

from fairtrial.errors import PlaceError
from fairtrial.protocol.endpoints import Server
from fairtrial.protocol.generated import PostgresEndpoint
from fairtrial.workloads.hammerdb.parameters import MINUTE_S, SETTABLE, HammerdbParameters

HERE: Final = "127.0.0.1"  # with this host, and a socket that is not `null`, HammerDB takes the socket
ENDLESS: Final = 2_000_000_000  # transactions of a user, which the end of the window ends before
START_DELAY_MS: Final = 500  # between the starts of two users: HammerDB's default, and the most
# Its kind `mysql` would take the word after an empty password for it; read as Tcl twice, this is an empty word. `maria`
# has a word for none. On PostgreSQL a password counts only where the server asks for one.
NO_PASSWORD: Final = {"mysql": r"\"\"", "maria": "null", "pg": "none"}
PROFILE_S: Final = 600  # for users to hand over what they have timed
END_S: Final = 120  # for users to see the end

DELAYS: Final = ("delay", "repeat")  # before 6.0 each of them sets the other; users run once, so neither does harm

Setting = tuple[str, str, object]


def prefix(parameters: HammerdbParameters, endpoint: Server) -> str:
    """What HammerDB calls the server."""
    return "pg" if isinstance(endpoint, PostgresEndpoint) else parameters.db or "mysql"


def building(parameters: HammerdbParameters, endpoint: Server, *, observer: PurePosixPath) -> str:
    """Fills an empty database."""
    settings = _settings(prefix(parameters, endpoint), _common(parameters, endpoint))
    return _script(observer, settings, ["buildschema", f"fairtrial_end {END_S}"])


def driving(parameters: HammerdbParameters, endpoint: Server, *, observer: PurePosixPath) -> str:
    """Ramps up, counts, waits for the window, counts again, and ends."""
    users = parameters.virtual_users
    chosen = {
        "driver": "timed",
        "rampup": int(parameters.ramp_up) // MINUTE_S,
        "duration": int(parameters.duration) // MINUTE_S,
        "total_iterations": ENDLESS,
        "allwarehouse": parameters.all_warehouses,
        "keyandthink": parameters.key_and_think,
        "raiseerror": parameters.raise_error,
        "timeprofile": parameters.time_profile,
        **({"prepared": True} if parameters.prepared else {}),
        **parameters.options,
    }
    settings = [*_common(parameters, endpoint), *(("tpcc", name, value) for name, value in chosen.items())]
    commands = [
        "print dict",
        "loadscript",
        *(f"vuset {each} {start_delay_ms(parameters.ramp_up, users)}" for each in DELAYS),
        f"vuset vu {users}",
        "vucreate",
        f"tcset refreshrate {int(parameters.interval)}",
        'set jobid ""',
        "tcstart",
        "vurun",
        f"fairtrial_end {PROFILE_S if parameters.time_profile else END_S}",
    ]
    return _script(observer, _settings(prefix(parameters, endpoint), settings), commands)


def start_delay_ms(ramp_up_s: float, users: int) -> int:
    """So that all users run before half of the ramp-up is over."""
    return max(1, min(START_DELAY_MS, int(ramp_up_s * 1000 / 2 / users)))


def _common(parameters: HammerdbParameters, endpoint: Server) -> list[Setting]:
    """Where the server is, and what both the build and the run are told."""
    name = prefix(parameters, endpoint)
    own = {
        "dbase": endpoint.database,
        "user": endpoint.user,
        "pass": endpoint.password or NO_PASSWORD[name],
        "count_ware": parameters.warehouses,
        "num_vu": min(parameters.load_users, parameters.warehouses),
    }
    if name == "pg":
        own |= {"superuser": own["user"], "superuserpass": own["pass"], "defaultdbase": "postgres"}
    if parameters.procedures is not None:
        called = parameters.procedures
        own |= {"storedprocs": called} if name == "pg" else {"no_stored_procs": not called}
    reached = [("connection", key, value) for key, value in _server(endpoint).items()]
    return [*reached, *(("tpcc", key, value) for key, value in {**own, **parameters.data}.items())]


def _server(endpoint: Server) -> dict[str, object]:
    if isinstance(endpoint, PostgresEndpoint):
        return {"host": endpoint.host or endpoint.socket_directory, "port": endpoint.port}
    if endpoint.socket:
        return {"host": HERE, "socket": endpoint.socket}
    return {"host": endpoint.host, "port": endpoint.port, "socket": "null"}


def _script(observer: PurePosixPath, settings: Iterable[str], commands: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in (f"source {{{observer}}}", *settings, *commands))


def _settings(name: str, settings: Iterable[Setting]) -> Iterator[str]:
    yield f"dbset db {name}"
    yield "dbset bm TPC-C"
    for dictionary, key, value in settings:
        text = str(value).lower() if isinstance(value, bool) else str(value)
        if text not in NO_PASSWORD.values() and not re.fullmatch(SETTABLE, text):
            shown = "a password" if key.endswith("pass") else f"`{text}`"
            raise PlaceError(
                f"HammerDB does not accept {shown} as `{name}_{key}`: its scripts treat some characters as commands",
                hint="use letters, digits and . / : @ % + = , - _ only",
            )
        yield f"diset {dictionary} {name}_{key} {{{text}}}"
