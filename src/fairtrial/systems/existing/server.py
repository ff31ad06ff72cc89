"""What servers that are there already have in common: reached, held, changed by SQL, restored whatever ends."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shlex
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, Literal

from fairtrial.errors import PlaceError, SystemStartError
from fairtrial.protocol.endpoints import Server
from fairtrial.protocol.generated import (
    ExecuteAction,
    ExecuteInverse,
    OriginalOption,
    Rows,
    ServerOriginals,
    Sql,
    Step,
    Tls,
)
from fairtrial.protocol.subcommands import SQL
from fairtrial.systems.existing.parameters import TABLE, ServerAt
from fairtrial.systems.server import Option, require_in_effect
from fairtrial.systems.system import Identity, Instance
from fairtrial.wire.open_place import OpenPlace

RESTORE: Final = ("fairtrial-agent", "sql-restore")
STATEMENT_S: Final = 3600.0  # a database is copied
RESTART_S: Final = 600.0
EFFECT_S: Final = 5.0  # a reload is heard at once, a buffer pool is resized in pieces
POLL_S: Final = 0.05
# Options whose value may hold a password or a command line with one: they are read back and not recorded.
SECRET: Final = re.compile(r"passw|passphrase|conninfo|secret|_auth$|_command$|provider_options|init_connect")


@dataclass(frozen=True)
class DataMark:
    """What is known of a database.

    Attributes:
        made: whether fairtrial made it.
        key: of the data in it that were loaded whole; empty: none were.
        content_sha256: of these.
    """

    made: bool
    key: str = ""
    content_sha256: str = ""


class ExistingServer(ABC):
    """A server that is there already, with the options that a trial sets.

    Attributes:
        lasting: whether options that are set outlast the server's process.
        after: statements that bring what was set into effect.
        version: asks what it is.
        holder: asks who has the advisory lock.
        maintenance: a database that every server has.
    """

    lasting: ClassVar[bool]
    after: ClassVar[Sequence[str]] = ()
    version: ClassVar[str] = "SELECT version()"
    holder: ClassVar[str]
    maintenance: ClassVar[str]

    def __init__(self, kind: str, at: ServerAt, options: Mapping[str, Option]) -> None:
        self.kind = kind
        self.at = at
        self.options = options

    @abstractmethod
    def endpoint(self, database: str | None = None) -> Server:
        """How it is reached, by the load's database or another one.

        Raises:
            PlaceError: the variable that should hold the password is not set.
        """

    @abstractmethod
    def require_settable(self, place: OpenPlace) -> None:
        """Looks for every option, and changes nothing.

        Raises:
            PlaceError: the server does not have one, or cannot take it while it runs.
        """

    @abstractmethod
    def originals(self, place: OpenPlace) -> list[OriginalOption]:
        """What every option is before it is set, and how it is restored."""

    @abstractmethod
    def setting(self, name: str, value: Option) -> str:
        """The statement that sets an option."""

    @abstractmethod
    def effective(self, place: OpenPlace) -> dict[str, str]:
        """All options that are in effect for the load's sessions."""

    @abstractmethod
    def differences(self, place: OpenPlace) -> list[str]:
        """One sentence per option that is not in effect as asked."""

    @abstractmethod
    def lock(self, holder: str) -> list[str]:
        """Statements that take the server's advisory lock for a session; the last gives whether it has it."""

    def lock_holder(self, place: OpenPlace) -> str:
        """Who has the lock, as far as the server says."""
        return str(self._cell(place, self.holder) or "somebody who has left since")

    @abstractmethod
    def databases(self, place: OpenPlace) -> set[str]:
        """Names of all databases."""

    @abstractmethod
    def recreate(self, place: OpenPlace, database: str, *, template: str | None = None) -> None:
        """Drops a database and everybody's sessions in it, and makes it anew: empty, or as a template is."""

    @abstractmethod
    def has_mark(self, place: OpenPlace, database: str) -> bool:
        """Whether the table of marks is in a database that is there."""

    @abstractmethod
    def settle(self, place: OpenPlace) -> None:
        """Leaves the server as little as possible to do for what was loaded."""

    def facts(self, place: OpenPlace) -> dict[str, str]:
        """Anything else worth recording."""
        del place
        return {}

    @property
    def password(self) -> str:
        """The password, from this process's environment.

        Raises:
            PlaceError: the variable is not set.
        """
        if self.at.password is None:
            return ""
        variable = self.at.password.env
        if variable not in os.environ:
            raise PlaceError(
                f"the environment variable {variable}, which system.{self.kind}.at.password names, is not set",
                hint=f"export {variable} where fairtrial runs; a password never stands in a study",
            )
        return os.environ[variable]

    @property
    def tls(self) -> Tls | None:
        """How connections are encrypted."""
        if self.at.tls in (None, "disable"):
            return None
        return Tls(authorities=self.at.authorities if self.at.tls == "verify-full" else None)

    @property
    def address(self) -> str:
        """Where it is, in words."""
        port = "" if self.at.port is None else f":{self.at.port}"
        return f"{self.at.socket_path or self.at.host}{port}"

    @property
    def restores(self) -> Literal["template", "reload", "command", "none"]:
        """How the database is restored before a trial."""
        restore = getattr(self.at, "restore", "none")
        return restore if isinstance(restore, str) else "command"  # type: ignore[return-value]

    def ask(
        self, place: OpenPlace, *statements: str, database: str | None = None, connect_s: float = 0.0
    ) -> list[tuple[str | None, ...]]:
        """Rows of the last of some statements, run in the maintenance database unless another one is named."""
        request = Sql(
            endpoint=self.endpoint(database or self.maintenance),
            statements=list(statements),
            connect_timeout_ms=int(connect_s * 1000),
        )
        answer: Rows = place.native(SQL, request, timeout_s=STATEMENT_S + connect_s)
        return [tuple(row) for row in answer.rows]

    def identity(self, place: OpenPlace) -> Identity:
        """What the server says of itself: its program may be out of reach."""
        version = str(self.ask(place, self.version)[0][0])
        digest = hashlib.sha256(f"{self.kind} {version}".encode()).hexdigest()
        return Identity(version=version, sha256=digest, facts={"server": self.address, **self.facts(place)})

    def mark(self, place: OpenPlace, database: str) -> DataMark | None:
        """What is known of a database; None if there is none.

        One without our table is somebody else's.
        """
        if database not in self.databases(place):
            return None
        if not self.has_mark(place, database):
            return DataMark(made=False)
        rows = self.ask(place, f"SELECT made, data_key, content FROM {TABLE}", database=database)
        made, key, content = rows[0] if rows else ("0", "", "")
        return DataMark(made=made == "1", key=key or "", content_sha256=content or "")

    def note(self, place: OpenPlace, database: str, mark: DataMark) -> None:
        """Writes down what is known of a database, in it."""
        self.ask(
            place,
            f"CREATE TABLE IF NOT EXISTS {TABLE} (made integer, data_key varchar(64), content varchar(64))",
            f"DELETE FROM {TABLE}",
            f"INSERT INTO {TABLE} VALUES ({int(mark.made)}, '{mark.key}', '{mark.content_sha256}')",
            database=database,
        )

    def require_own(self, place: OpenPlace) -> None:
        """Refuses a database that fairtrial did not make, unless the study names it twice.

        Raises:
            PlaceError: it is somebody else's.
        """
        name = self.at.database
        mark = self.mark(place, name)
        if mark is not None and not mark.made and self.at.may_overwrite != name:
            raise PlaceError(
                f"the database {name} on {self.address} is not one that fairtrial made: nothing was changed",
                hint=f"name a database that does not exist, or allow its loss by `may_overwrite: {name}` beside "
                f"system.{self.kind}.at.database",
            )

    def start(self, place: OpenPlace) -> Instance:
        """Sets every option, each restored when the trial ends or whoever runs it dies, and reads it back.

        Raises:
            SystemStartError: an option is not in effect, or the server does not answer.
        """
        try:
            self._set(place)
        except SystemStartError:
            raise
        except PlaceError as error:
            raise SystemStartError(f"the {self.kind} server on {self.address}: {error}", hint=error.hint) from error
        endpoint = self.endpoint()
        return Instance(
            endpoint=endpoint,
            process=None,
            options=self.effective(place),
            monitoring=endpoint,
            remote=endpoint if self.at.is_remote else None,
            is_at_place=not self.at.is_remote,
        )

    def _set(self, place: OpenPlace) -> None:
        path = ""
        options: list[OriginalOption] = []
        if self.options:
            path = str(place.state_directory / "originals" / f"{secrets.token_hex(8)}.json")
            options = self.originals(place)
            argv = [*RESTORE, path]
            # The way back is in the journal before there is anything to restore; the file, before the first change.
            place.agent.change(
                Step(
                    name=f"options of {self.kind} on {self.address}",
                    action=ExecuteAction(argv=argv),
                    inverse=ExecuteInverse(argv=argv, lasting=True),
                )
            )
            self._keep(place, path, options)
        if not self.lasting:
            self._restart(place)  # it would take back what is set
        statements = [self.setting(name, value) for name, value in self.options.items()]
        if statements:
            self.ask(place, *statements, *self.after)
        if self.lasting:
            self._restart(place)
        if self.options:
            read = [self._cell(place, option.read) for option in options]
            noted = [option.model_copy(update={"set": value}) for option, value in zip(options, read, strict=True)]
            self._keep(place, path, noted)
            self._await_effect(place)

    def _cell(self, place: OpenPlace, query: str) -> str | None:
        rows = self.ask(place, query)
        return rows[0][0] if rows else None

    def _keep(self, place: OpenPlace, path: str, options: list[OriginalOption]) -> None:
        content = ServerOriginals(
            endpoint=self.endpoint(self.maintenance),
            lasting=self.lasting,
            options=options,
            after=list(self.after),
            restart=self.restart_after(place),
        )
        place.agent.put(path, content.model_dump_json().encode(), mode=0o600)

    def restart_after(self, place: OpenPlace) -> list[str]:
        """The command line without which restored options do not come into effect; empty: there is none."""
        del place
        return []

    def _restart(self, place: OpenPlace) -> None:
        if self.at.restart is None:
            return
        place.require(shlex.split(self.at.restart), hint=f"fix system.{self.kind}.at.restart", timeout_s=RESTART_S)
        self.ask(place, "SELECT 1", connect_s=RESTART_S)

    def _await_effect(self, place: OpenPlace) -> None:
        deadline = time.monotonic() + EFFECT_S
        while (wrong := self.differences(place)) and time.monotonic() < deadline:
            time.sleep(POLL_S)
        require_in_effect(wrong)

    def changed(self, place: OpenPlace, instance: Instance) -> list[str]:
        """Options set for a trial that no longer have their value: somebody else has changed them."""
        if not self.options:
            return []
        now = _by_lower_case(self.effective(place))
        then = _by_lower_case(instance.options)
        return [name for name in self.options if now.get(name) != then.get(name)]


def _by_lower_case(options: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in options.items()}


def recorded(options: Mapping[str, str]) -> dict[str, str]:
    """Options without those that may hold a secret."""
    return {name: value for name, value in options.items() if not SECRET.search(name.lower())}


def literal(text: str) -> str:
    """A string of SQL, on servers that take a backslash for itself."""
    return "'" + text.replace("'", "''") + "'"
