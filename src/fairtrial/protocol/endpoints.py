"""How a system is reached: a database that the load generator connects to, plain files, or a service's ports."""

from __future__ import annotations

import ipaddress
from typing import Literal

from pydantic import BaseModel, ConfigDict

from fairtrial.errors import PlaceError
from fairtrial.protocol.generated import MysqlEndpoint, PostgresEndpoint, SqliteEndpoint


class FilesEndpoint(BaseModel):
    """Plain files."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    directory: str
    """Where they are."""
    kind: Literal["files"] = "files"


class ServiceEndpoint(BaseModel):
    """What a service was handed in: by that, what loads it finds it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    handed_in: dict[str, str]
    """Directories, addresses and ports, by the names that its command lines have for them."""
    ports: tuple[str, ...] = ()
    """Which of these are ports, in the study's order."""
    kind: Literal["service"] = "service"


Server = MysqlEndpoint | PostgresEndpoint
Database = Server | SqliteEndpoint
Endpoint = Database | FilesEndpoint | ServiceEndpoint


def is_loopback(host: str) -> bool:
    """Whether a host's name or address is a machine's own."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def database(endpoint: Endpoint | None) -> Database:
    """The endpoint of a system that is a database.

    Raises:
        PlaceError: it is none.
    """
    if endpoint is None or isinstance(endpoint, FilesEndpoint | ServiceEndpoint):
        raise PlaceError("this workload needs a database, and the system is not one", hint="name one under `system`")
    return endpoint


def server(endpoint: Endpoint | None) -> Server:
    """The endpoint of a database with a server of its own.

    Raises:
        PlaceError: the system has none.
    """
    found = database(endpoint)
    if isinstance(found, SqliteEndpoint):
        raise PlaceError("this needs a database server, and SQLite has none", hint="name one under `system`")
    return found
