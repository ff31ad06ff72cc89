"""Where a server is that fairtrial has not started, and what may be done to it."""

from __future__ import annotations

import re
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from fairtrial.protocol.endpoints import is_loopback
from fairtrial.study.service_counters import AUTHORITIES
from fairtrial.study.tree.quantities import CommandLine

TABLE = "fairtrial_made"  # the mark of a database that fairtrial made
SYSTEM_DATABASES = {
    "information_schema",
    "mysql",
    "performance_schema",
    "postgres",
    "sys",
    "template0",
    "template1",
}
Name = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,47}$")]
_VARIABLE: Final = r"^[A-Za-z_][A-Za-z0-9_]*$"


def _is_variable(value: object) -> bool:
    return isinstance(value, str) and re.fullmatch(_VARIABLE, value) is not None


class Password(BaseModel):
    """Where a password is: never in the study."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    env: str = Field(pattern=_VARIABLE, description="Environment variable that holds it.")

    @model_validator(mode="before")
    @classmethod
    def _names_a_variable(cls, value: Any) -> Any:
        """A password in its place is not shown: what a message shows, logs keep."""
        if isinstance(value, Password) or (isinstance(value, dict) and _is_variable(value.get("env", "_"))):
            return value
        raise ValueError(
            "expected the environment variable that holds it, as `password: {env: NAME}`; what was found is not shown, "
            "as it may be the password itself"
        )


class RestoreCommand(BaseModel):
    """A command that restores the database."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    command: CommandLine = Field(
        description="Command line at the place that brings the database into the state that every trial starts from."
    )


class ServerAt(BaseModel):
    """A server that is there already: it is neither started nor stopped, and its options are restored."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    host: str | None = Field(None, description="Host name or address, as the place sees it.")
    port: int | None = Field(None, ge=1, le=65535, description="Port (default: the system's own).")
    user: str = Field(min_length=1, description="User that may set the options and make databases.")
    database: Name = Field(
        description="Database of the load: one that fairtrial made or makes, unless `may_overwrite`."
    )
    password: Password | None = Field(
        None, description="Password of the user (default: none). A `restore` command gets it, too."
    )
    tls: Literal["disable", "require", "verify-full"] | None = Field(
        None,
        description="Encryption: `require` takes any certificate, `verify-full` one of `authorities` with the host's "
        "name. Must be said for a host that is not this machine's loopback (default there: `disable`).",
    )
    authorities: str = Field(
        AUTHORITIES, pattern="^/", description="PEM file at the place, with the authorities for `verify-full`."
    )
    may_overwrite: Name | None = Field(
        None, description="The database's name again: it may be overwritten although fairtrial did not make it."
    )
    restart: CommandLine | None = Field(
        None,
        description="Command line at the place that restarts the server, which every trial then does after its "
        "options are set (default: it is never restarted).",
    )

    @field_validator("database")
    @classmethod
    def _is_no_part_of_the_server(cls, name: str) -> str:
        if name.lower() in SYSTEM_DATABASES:
            raise ValueError(f"{name} is a database of the server itself: expected one for the load")
        return name

    @field_validator("may_overwrite")
    @classmethod
    def _is_the_database(cls, name: str | None, info: Any) -> str | None:
        if name is not None and name != info.data.get("database"):
            raise ValueError(f"expected the database's name {info.data.get('database')!r} again: nothing else may be")
        return name

    @property
    def socket_path(self) -> str | None:
        """What is reached without a network; None: nothing is."""
        raise NotImplementedError

    @property
    def is_remote(self) -> bool:
        """Whether the server is on another machine than the place, as far as its address tells."""
        return self.socket_path is None and not is_loopback(self.host or "")

    @model_validator(mode="after")
    def _one_address(self) -> Self:
        if (self.host is None) == (self.socket_path is None):
            raise ValueError("expected either a host or a Unix socket")
        if self.is_remote and self.tls is None:
            raise ValueError(f"tls: say how the connection to {self.host} is encrypted, or `disable`")
        if self.socket_path is not None and self.tls not in (None, "disable"):
            raise ValueError("tls: a Unix socket is not encrypted; leave it out, or name the host")
        return self


class PostgresAt(ServerAt):
    """A PostgreSQL server that is there already."""

    socket_directory: str | None = Field(
        None, pattern="^/", description="Directory of its Unix socket at the place, instead of a host."
    )
    restore: Literal["template", "reload", "none"] | RestoreCommand = Field(
        "template",
        description="State before every trial: a copy of a template database, the load again, a command's, or `none`: "
        "what the trial before left.",
    )

    @property
    def socket_path(self) -> str | None:
        """The directory."""
        return self.socket_directory


class MysqldAt(ServerAt):
    """A MariaDB or MySQL server that is there already."""

    socket: str | None = Field(None, pattern="^/", description="Its Unix socket at the place, instead of a host.")
    restore: Literal["reload", "none"] | RestoreCommand = Field(
        "reload",
        description="State before every trial: the load again, a command's, or `none`: what the trial before left.",
    )

    @property
    def socket_path(self) -> str | None:
        """The socket."""
        return self.socket
