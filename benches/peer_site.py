"""Where TPC-C's peers work: a private MariaDB with a user for them, and what it counts of their transactions."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from private_mariadb import sql

USER, PASSWORD = "peer", "peer"


@dataclass(frozen=True)
class Site:
    """A server with a user `USER`, and what a peer is to do there. `seconds` of a drive, `port` of the loopback."""

    socket: Path
    port: int
    directory: Path
    warehouses: int
    seconds: float


def admit(socket: Path) -> None:
    sql(socket, f"CREATE USER {USER} IDENTIFIED BY '{PASSWORD}'; GRANT ALL ON *.* TO {USER}")


def endpoint(site: Site, database: str) -> dict[str, object]:
    """`Endpoint` of crates/protocol over TCP, as the peers that know no sockets."""
    server = {"kind": "mysql", "host": "127.0.0.1", "port": site.port}
    return {**server, "user": USER, "password": PASSWORD, "database": database}


def counters(socket: Path) -> dict[str, int]:
    """What clients and procedures have asked for so far."""
    rows = sql(socket, "SHOW GLOBAL STATUS WHERE Variable_name IN ('Com_commit', 'Com_rollback')").splitlines()[1:]
    return {name: int(value) for name, value in (row.split("\t") for row in rows)}
