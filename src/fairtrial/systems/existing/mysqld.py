"""MariaDB and MySQL that are there already: options by `SET GLOBAL`, which a restart takes back.

Read-only ones need a restart and a value that outlasts it, which MySQL keeps from 8.0 on and MariaDB does not.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Final

from fairtrial.errors import PlaceError, StreamLostError
from fairtrial.protocol.endpoints import Server
from fairtrial.protocol.generated import MysqlEndpoint, OriginalOption
from fairtrial.systems import mysql_options
from fairtrial.systems.existing.parameters import TABLE
from fairtrial.systems.existing.server import ExistingServer, is_secret, literal
from fairtrial.systems.server import Option
from fairtrial.wire.open_place import OpenPlace

LOCK: Final = "fairtrial"
NUMERIC: Final = ("INT", "BIGINT", "DOUBLE", "BOOLEAN")  # how types of numbers begin, in MariaDB's own list
# Variables that move by themselves, as replication goes on, and some that old servers list though they are sessions'.
MOVING: Final = re.compile(
    r"gtid_|rand_seed|pseudo_|timestamp|identity|insert_id|last_insert_id|error_count|warning_count|external_user|proxy_user"
)
PERSISTED: Final = "SELECT VARIABLE_VALUE FROM performance_schema.persisted_variables WHERE VARIABLE_NAME = {name}"
HOLDER: Final = (
    "SELECT CONCAT('connection ', ID, ' as ', USER, ' from ', HOST) FROM information_schema.PROCESSLIST "
    f"WHERE ID = IS_USED_LOCK('{LOCK}')"
)


class ExistingMysqld(ExistingServer):
    """A MariaDB or MySQL server."""

    lasting = False
    scope = "GLOBAL"
    holder = HOLDER
    maintenance = "information_schema"
    version = "SELECT CONCAT(@@version, ' ', @@version_comment)"
    own_name = "SELECT CONCAT_WS(' ', @@hostname, @@port, @@datadir, @@pid_file)"
    database_identity = "MD5(DATABASE())"  # names may differ by case alone
    marked = f"identity = {database_identity}"
    transactional = " ENGINE=InnoDB"  # whatever engine an arm sets
    strictly = ("SET SESSION sql_mode = 'STRICT_ALL_TABLES'",)

    def endpoint(self, database: str | None = None) -> Server:
        """As the study says."""
        return MysqlEndpoint(
            socket=self.at.socket_path,
            host=self.at.host,
            port=self.at.port,
            user=self.at.user,
            password=self.password,
            tls=self.tls,
            database=database or self.at.database,
        )

    def facts(self, place: OpenPlace) -> dict[str, str]:
        """The data directory."""
        return {"data_directory": str(self._cell(place, "SELECT @@datadir"))}

    def _variables(self, place: OpenPlace) -> dict[str, str]:
        return {str(name).lower(): value or "" for name, value in self.ask(place, "SHOW GLOBAL VARIABLES")}

    def require_settable(self, place: OpenPlace) -> None:
        """A server that has no list of what can be set takes its own value, or says no."""
        if not self.options:
            return
        variables = self._variables(place)
        where = f"system.{self.kind}.options"
        if unknown := sorted(set(self.options) - set(variables)):
            raise PlaceError(f"{', '.join(unknown)}: not a global variable of {self.address}", hint=f"fix {where}")
        fixed = [name for name in sorted(self.options) if self._is_fixed(place, name)]
        if not fixed:
            return
        if variables.get("persisted_globals_load") != "ON":  # MariaDB, and MySQL before 8.0, have no such variable
            raise PlaceError(
                f"{', '.join(fixed)}: read-only, so it takes effect only when {self.address} is restarted with a "
                "different configuration, which no statement of this server changes: nothing was changed",
                hint="leave `at` out, because a private server takes any option; or name two servers as arms, each by "
                "its own `at`, and configure them by hand",
            )
        self.require_restart(fixed)

    def _is_fixed(self, place: OpenPlace, name: str) -> bool:
        if self.kind == "mariadb":
            return self._listed(place, "READ_ONLY", name) == "YES"
        try:  # the first that cannot be set is told, and then nothing is
            self.ask(place, f"SET GLOBAL {name} = @@GLOBAL.{name}, SESSION sql_mode = 'none'")
        except StreamLostError:
            raise
        except PlaceError as error:
            return "read only" in str(error)
        return False

    def _listed(self, place: OpenPlace, column: str, name: str) -> str:
        query = (
            f"SELECT {column} FROM information_schema.SYSTEM_VARIABLES WHERE VARIABLE_NAME = {literal(name.upper())}"
        )
        return str(self._cell(place, query))

    def setter(self, place: OpenPlace) -> ExistingMysqld:
        """Where an option is read-only, all of them are kept over the server's restart."""
        if self.at.restart is not None and any(self._is_fixed(place, name) for name in self.options):
            return PersistingMysqld(self.kind, self.at, self.options)
        return self

    def queries(self, name: str) -> tuple[str, str]:
        """Global values."""
        return (f"SELECT @@GLOBAL.{name}",) * 2

    def restoring(self, place: OpenPlace, name: str, original: str | None) -> str:
        """As any value."""
        types = {name: self._listed(place, "VARIABLE_TYPE", name)} if self.kind == "mariadb" else {}
        return f"SET {self.scope} {name} = {_literal(name, original, types)}"

    def others(self, place: OpenPlace) -> list[OriginalOption]:
        """All other variables: one may have a default that depends on an option, or a limit."""
        names = [name for name in self._variables(place) if name not in self.options and not MOVING.match(name)]
        types: dict[str, str] = {}
        if self.kind == "mariadb":
            rows = self.ask(place, "SELECT VARIABLE_NAME, VARIABLE_TYPE FROM SYSTEM_VARIABLES WHERE READ_ONLY = 'NO'")
            types = {str(name).lower(): str(kind) for name, kind in rows}
            names = [name for name in names if name in types]
        reads = [self.queries(name)[0] for name in names]
        return [
            OriginalOption(
                name=name,
                read=read,
                original=value,
                set=None,
                restore=f"SET {self.scope} {name} = {_literal(name, value, types)}",
                effective=read,
                in_effect=value,
                secret=is_secret(name),
            )
            for name, read, value in zip(names, reads, self._read(place, reads), strict=True)
        ]

    def setting(self, name: str, value: Option) -> str:
        """Sizes become numbers, which is all that the statement takes."""
        text = mysql_options.text(value)
        if size := mysql_options.SIZE.match(text):
            text = str(int(size[1]) * mysql_options.FACTORS[size[2].lower()])
        elif isinstance(value, str | bool):
            text = _quoted(text)
        return f"SET {self.scope} {name} = {text}"

    def effective(self, place: OpenPlace) -> dict[str, str]:
        """All global variables."""
        return self._variables(place)

    def differences(self, place: OpenPlace) -> list[str]:
        """By the rules of options."""
        return mysql_options.differences(self.options, self._variables(place))

    def lock(self, holder: str) -> list[str]:
        """A named lock of the session; the server has no place for who holds it."""
        del holder
        return [f"SELECT GET_LOCK('{LOCK}', 0)"]

    def _folds_names(self, place: OpenPlace) -> bool:
        """Whether names of databases that differ by case alone are one."""
        return self._cell(place, "SELECT @@lower_case_table_names") != "0"

    def databases(self, place: OpenPlace) -> set[str]:
        """Those that the user may see; the study's own spelling, too, of one that the server takes for the same."""
        names = {str(name) for (name,) in self.ask(place, "SHOW DATABASES")}
        own = self.at.database
        there = self._folds_names(place) and own.lower() in {name.lower() for name in names}
        return names | ({own} if there else set())

    def recreate(self, place: OpenPlace, database: str, *, template: str | None = None) -> None:
        """Empty, with the server's own character set and collation."""
        assert template is None, "no server of this kind copies databases"  # noqa: S101
        self.ask(place, f"DROP DATABASE IF EXISTS `{database}`", f"CREATE DATABASE `{database}`")

    def has_mark(self, place: OpenPlace, database: str) -> bool:
        """By the table's name."""
        return bool(self._within(place, database, f"TABLES WHERE TABLE_NAME = '{TABLE}'"))

    def is_bare(self, place: OpenPlace, database: str) -> bool:
        """Without tables, views, routines and events; our own table is none, but with another database's mark."""
        others = f"TABLES WHERE TABLE_NAME <> '{TABLE}'", "ROUTINES WHERE TRUE", "EVENTS WHERE TRUE"
        if any(self._within(place, database, each) for each in others):
            return False
        return not self.has_mark(place, database) or not self.ask(place, f"SELECT 1 FROM {TABLE}", database=database)

    def _within(self, place: OpenPlace, database: str, what: str) -> list[tuple[str | None, ...]]:
        """A row for each object of a database in a view of `information_schema`."""
        schema = what.partition("S ")[0] + "_SCHEMA"  # of TABLES, ROUTINES, EVENTS
        if self._folds_names(place):
            schema, database = f"LOWER({schema})", database.lower()
        return self.ask(place, f"SELECT 1 FROM {what} AND {schema} = {literal(database)}")

    def settle(self, place: OpenPlace) -> None:
        """Nothing that a user could ask for."""


class PersistingMysqld(ExistingMysqld):
    """A MySQL server whose options are set in its `mysqld-auto.cnf`, which it reads when it starts."""

    lasting = True
    scope = "PERSIST_ONLY"

    def queries(self, name: str) -> tuple[str, str]:
        """The entry of the file, and the global value."""
        return PERSISTED.format(name=literal(name)), f"SELECT @@GLOBAL.{name}"

    def restoring(self, place: OpenPlace, name: str, original: str | None) -> str:
        """Without an entry where there was none."""
        return super().restoring(place, name, original) if original is not None else f"RESET PERSIST IF EXISTS {name}"

    def others(self, place: OpenPlace) -> list[OriginalOption]:
        """None: nothing but the file changes."""
        del place
        return []

    def restart_after(self, place: OpenPlace) -> list[str]:
        """In any case."""
        del place
        return shlex.split(self.at.restart or "")


def _literal(name: str, value: str | None, types: Mapping[str, str]) -> str:
    """A value as a statement takes it, by MariaDB's own list of types where there is one."""
    if value is None:
        return "NULL"
    number = mysql_options.NUMBER.match(value) and types.get(name, NUMERIC[0]).startswith(NUMERIC)
    return value if number else _quoted(value)


def _quoted(text: str) -> str:
    """A string of SQL, whatever a backslash means to the server."""
    return "X'" + text.encode().hex() + "'" if "\\" in text else literal(text)
