"""What servers that are there already have in common: reached, held, changed by SQL, restored whatever ends."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shlex
import time
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, Literal

from fairtrial.errors import PlaceError, StreamLostError, SystemStartError
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
from fairtrial.systems.instance import Identity, Instance
from fairtrial.systems.server import Option, require_in_effect
from fairtrial.wire.open_place import OpenPlace

RESTORE: Final = ("fairtrial-agent", "sql-restore")
STATEMENT_S: Final = 3600.0  # a database is copied
RESTART_S: Final = 600.0
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
        own_name: asks what no other server answers.
        table: of marks, as statements name it.
        database_identity: an expression that no copy of a database has the same value of.
        transactional: what follows the table's columns, so that a mark is changed at once.
        marked: the condition that a row of the table is about the database that it is in.
        strictly: statements after which a session's values are refused that the server would change.
    """

    lasting: ClassVar[bool]
    after: ClassVar[Sequence[str]] = ()
    version: ClassVar[str] = "SELECT version()"
    holder: ClassVar[str]
    maintenance: ClassVar[str]
    own_name: ClassVar[str]
    table: ClassVar[str] = TABLE
    transactional: ClassVar[str] = ""
    database_identity: ClassVar[str]
    marked: ClassVar[str]
    strictly: ClassVar[Sequence[str]] = ()

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
    def queries(self, name: str) -> tuple[str, str]:
        """Queries of one cell each: an option's value where it is set, no row if it is not, and the one in effect."""

    @abstractmethod
    def restoring(self, place: OpenPlace, name: str, original: str | None) -> str:
        """The statement that sets an option to what the first query gave before."""

    @abstractmethod
    def setting(self, name: str, value: Option) -> str:
        """The statement that sets an option."""

    @abstractmethod
    def effective(self, place: OpenPlace) -> dict[str, str]:
        """All options that are in effect for the load's sessions, whatever secrets they hold."""

    @abstractmethod
    def differences(self, place: OpenPlace) -> list[str]:
        """One sentence per option that is not in effect as asked."""

    @abstractmethod
    def lock(self, holder: str) -> list[str]:
        """Statements that take the server's advisory lock for a session; the last gives whether it has it."""

    def others(self, place: OpenPlace) -> list[OriginalOption]:
        """All else that the server may change along with an option."""
        del place
        return []

    def identify(self, place: OpenPlace) -> str:
        """What the server is, by whatever name it is reached."""
        return str(self._cell(place, self.own_name))

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

        One without our table is somebody else's, and so is a copy of ours under whatever name. One that has nothing at
        all is as good as ours: a kill may have come between its creation and the mark.
        """
        if database not in self.databases(place):
            return None
        query = f"SELECT made, data_key, content FROM {self.table} WHERE {self.marked}"
        rows = self.ask(place, query, database=database) if self.has_mark(place, database) else []
        if not rows:
            return DataMark(made=self.at.may_overwrite != database and self.is_bare(place, database))
        made, key, content = rows[0]
        return DataMark(made=made == "1", key=key or "", content_sha256=content or "")

    def is_bare(self, place: OpenPlace, database: str) -> bool:
        """Whether nothing would be lost with a database; False where none is ever without its mark."""
        del place, database
        return False

    def note(self, place: OpenPlace, database: str, mark: DataMark) -> None:
        """Writes down what is known of a database, in it."""
        self.ask(place, *self.noting(mark, self.database_identity), database=database)

    def noting(self, mark: DataMark, identity: str) -> list[str]:
        """The statements that write it down, of the database of an identity."""
        columns = "made integer, data_key varchar(64), content varchar(64), identity varchar(64)"
        return [
            f"CREATE TABLE IF NOT EXISTS {self.table} ({columns}){self.transactional}",
            "BEGIN",
            f"DELETE FROM {self.table}",
            f"INSERT INTO {self.table} SELECT {int(mark.made)}, '{mark.key}', '{mark.content_sha256}', {identity}",
            "COMMIT",
        ]

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
            self.setter(place).set_options(place)
        except SystemStartError:
            raise
        except PlaceError as error:
            raise SystemStartError(f"the {self.kind} server on {self.address}: {error}", hint=error.hint) from error
        endpoint, effective = self.endpoint(), self.effective(place)
        shown = recorded(effective)
        return Instance(
            endpoint=endpoint,
            process=None,
            options=shown,
            unrecorded={name: value for name, value in effective.items() if name not in shown},
            monitoring=endpoint,
            remote=endpoint if self.at.is_remote else None,
            is_at_place=not self.at.is_remote,
        )

    def with_options(self, names: Collection[str]) -> ExistingServer:
        """The same server, with these of its options alone; its database may not be there yet."""
        at = self.at.model_copy(update={"database": self.maintenance})
        return type(self)(self.kind, at, {name: self.options[name] for name in self.options if name in names})

    def setter(self, place: OpenPlace) -> ExistingServer:
        """The same server, as its options have to be set."""
        del place
        return self

    def set_options(self, place: OpenPlace) -> None:
        """Sets every option, restarts the server if the study says how, and waits until all are in effect.

        Raises:
            PlaceError: the server does not answer or refuses, or an option is not in effect.
        """
        if not self.options:
            self._restart(place)
            return
        path, originals = self._journalled(place)
        if not self.lasting and self.at.restart is not None:
            self._restart(place)  # it would take back what is set
            originals = originals.model_copy(update={"others": self.others(place)})
            self._keep(place, path, originals)
        statements = [self.setting(name, value) for name, value in self.options.items()]
        self.ask(place, *statements, *self.after)
        if self.lasting:
            self._restart(place)
        self._await_effect(place)
        self._note_set(place, path, originals)

    def _note_set(self, place: OpenPlace, path: str, originals: ServerOriginals) -> None:
        """Notes what all options are now that they are in effect: any other value is somebody else's from now on."""
        everything = [*originals.options, *originals.others]
        read = self._read(place, [option.read for option in everything])
        noted = [option.model_copy(update={"set": value}) for option, value in zip(everything, read, strict=True)]
        count = len(originals.options)
        others = [option for option in noted[count:] if option.set != option.original]
        self._keep(place, path, originals.model_copy(update={"options": noted[:count], "others": others}))

    def require_restorable(self, place: OpenPlace) -> None:
        """Gives every option the value that it has, by the statement that restores it later.

        Raises:
            PlaceError: the server refuses one, or has another value then.
        """
        if not self.options:
            return
        _, originals = self._journalled(place, rehearsed=True)
        refusals = [refusal for option in originals.options if (refusal := self._refusal(place, option))]
        failed = place.agent.undo().failed
        if failed:
            raise PlaceError("what was tried could not be undone: " + "; ".join(failed), hint="restore it by hand")
        if refusals:
            raise PlaceError(
                f"{'; '.join(refusals)}: nothing was changed",
                hint=f"leave it out of system.{self.kind}.options, or test a private server",
            )

    def _refusal(self, place: OpenPlace, option: OriginalOption) -> str:
        try:
            (value,) = self._read(place, [option.read], after=[*self.strictly, option.restore])
        except StreamLostError:
            raise
        except PlaceError as error:
            reason = str(error)
        else:
            if value == option.original:
                return ""
            reason = f"the server has {value} then"
        before, why = ("", "") if option.secret else (f" {option.in_effect}", f": {reason}")
        return f"{option.name}: its value{before} could not be restored{why}"

    def _journalled(self, place: OpenPlace, *, rehearsed: bool = False) -> tuple[str, ServerOriginals]:
        """The way back, in the journal before there is anything to restore; its file, before the first change."""
        path = str(place.state_directory / "originals" / f"{secrets.token_hex(8)}.json")
        originals = ServerOriginals(
            endpoint=self.endpoint(self.maintenance),
            lasting=self.lasting,
            options=[self._original(place, name) for name in self.options],
            others=self.others(place),
            after=[] if rehearsed else list(self.after),
            restart=[] if rehearsed else self.restart_after(place),
        )
        argv = [*RESTORE, path]
        place.agent.change(
            Step(
                name=f"options of {self.kind} on {self.address}",
                action=ExecuteAction(argv=argv),
                inverse=ExecuteInverse(argv=argv, lasting=True),
            )
        )
        self._keep(place, path, originals)
        return path, originals

    def _original(self, place: OpenPlace, name: str) -> OriginalOption:
        read, effective = self.queries(name)
        original, in_effect = self._read(place, [read, effective])
        return OriginalOption(
            name=name,
            read=read,
            original=original,
            set=None,
            restore=self.restoring(place, name, original),
            effective=effective,
            in_effect=in_effect,
            secret=is_secret(name),
        )

    def _cell(self, place: OpenPlace, query: str) -> str | None:
        rows = self.ask(place, query)
        return rows[0][0] if rows else None

    def _read(self, place: OpenPlace, queries: Sequence[str], *, after: Sequence[str] = ()) -> tuple[str | None, ...]:
        """What queries of one cell each give, all at once, right after some statements; None: no row."""
        (row,) = self.ask(place, *after, "SELECT " + ", ".join(f"({query})" for query in queries))
        return row

    def _keep(self, place: OpenPlace, path: str, originals: ServerOriginals) -> None:
        place.agent.put(path, originals.model_dump_json().encode(), mode=0o600)

    def require_restart(self, names: Sequence[str]) -> None:
        """Refuses options that take effect only when the server is restarted, unless the study says how.

        Raises:
            PlaceError: it does not.
        """
        if self.at.restart is None:
            raise PlaceError(
                f"{', '.join(names)}: takes effect only when {self.address} is restarted: nothing was changed",
                hint=f"give the command line that restarts it as system.{self.kind}.at.restart, or leave the option "
                "out",
            )

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
        """A reload is heard at once, a buffer pool is resized in pieces; the last look begins after the limit."""
        deadline = time.monotonic() + place.limits.start_s
        is_last = False
        while (wrong := self.differences(place)) and not is_last:
            time.sleep(POLL_S)
            is_last = time.monotonic() >= deadline
        require_in_effect([without_secret(difference) for difference in wrong])

    def changed(self, place: OpenPlace, instance: Instance, watched: Collection[str]) -> list[str]:
        """Options that no longer have the value that a trial began with: somebody else has changed them."""
        if not watched:
            return []
        now = _by_lower_case(self.effective(place))
        then = _by_lower_case({**instance.options, **instance.unrecorded})
        return [name for name in sorted(watched) if now.get(name) != then.get(name)]


def _by_lower_case(options: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in options.items()}


def without_secret(difference: str) -> str:
    """What is wrong with an option, by its name alone where its value may hold a secret."""
    name, _, _ = difference.partition(":")
    return f"{name}: another value than expected" if is_secret(name) else difference


def is_secret(name: str) -> bool:
    """Whether an option's value may hold a secret."""
    return SECRET.search(name.lower()) is not None


def recorded(options: Mapping[str, str]) -> dict[str, str]:
    """Options without those that may hold a secret."""
    return {name: value for name, value in options.items() if not is_secret(name)}


def literal(text: str) -> str:
    """A string of SQL, on servers that take a backslash for itself."""
    return "'" + text.replace("'", "''") + "'"
