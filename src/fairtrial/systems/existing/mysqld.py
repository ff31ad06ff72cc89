"""MariaDB and MySQL that are there already: options by `SET GLOBAL`, which a restart takes back."""

from __future__ import annotations

from typing import Final

from fairtrial.errors import PlaceError
from fairtrial.protocol.endpoints import Server
from fairtrial.protocol.generated import MysqlEndpoint, OriginalOption
from fairtrial.systems import mysql_options
from fairtrial.systems.existing.parameters import TABLE
from fairtrial.systems.existing.server import ExistingServer, literal, recorded
from fairtrial.systems.server import Option
from fairtrial.wire.open_place import OpenPlace

LOCK: Final = "fairtrial"
NUMERIC: Final = ("INT", "BIGINT", "DOUBLE", "BOOLEAN")  # how types of numbers begin, in MariaDB's own list
HOLDER: Final = (
    "SELECT CONCAT('connection ', ID, ' as ', USER, ' from ', HOST) FROM information_schema.PROCESSLIST "
    f"WHERE ID = IS_USED_LOCK('{LOCK}')"
)


class ExistingMysqld(ExistingServer):
    """A MariaDB or MySQL server."""

    lasting = False
    holder = HOLDER
    maintenance = "information_schema"
    version = "SELECT CONCAT(@@version, ' ', @@version_comment)"

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
        if fixed := [name for name in sorted(self.options) if self._is_fixed(place, name)]:
            raise PlaceError(
                f"{', '.join(fixed)}: read-only, so it takes effect only when {self.address} is restarted with another "
                "configuration: nothing was changed",
                hint=f"set it in the server's own configuration and leave it out of {where}",
            )

    def _is_fixed(self, place: OpenPlace, name: str) -> bool:
        if self.kind == "mariadb":
            return self._listed(place, "READ_ONLY", name) == "YES"
        try:
            self.ask(place, f"SET GLOBAL {name} = @@GLOBAL.{name}")
        except PlaceError as error:
            if "read only" not in str(error):
                raise
            return True
        return False

    def _listed(self, place: OpenPlace, column: str, name: str) -> str:
        query = (
            f"SELECT {column} FROM information_schema.SYSTEM_VARIABLES WHERE VARIABLE_NAME = {literal(name.upper())}"
        )
        return str(self._cell(place, query))

    def originals(self, place: OpenPlace) -> list[OriginalOption]:
        """Global values."""
        found: list[OriginalOption] = []
        for name in self.options:
            read = f"SELECT @@GLOBAL.{name}"
            original = self._cell(place, read)
            found.append(
                OriginalOption(
                    name=name,
                    read=read,
                    original=original,
                    set=None,
                    restore=f"SET GLOBAL {name} = {self._literal(place, name, original)}",
                    effective=read,
                    in_effect=original,
                )
            )
        return found

    def _literal(self, place: OpenPlace, name: str, value: str | None) -> str:
        if value is None:
            return "NULL"
        number = mysql_options.NUMBER.match(value) is not None
        if number and self.kind == "mariadb":
            number = self._listed(place, "VARIABLE_TYPE", name).startswith(NUMERIC)
        return value if number else _quoted(value)

    def setting(self, name: str, value: Option) -> str:
        """Sizes become numbers, which is all that the statement takes."""
        text = mysql_options.text(value)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return f"SET GLOBAL {name} = {text}"
        if size := mysql_options.SIZE.match(text):
            return f"SET GLOBAL {name} = {int(size[1]) * mysql_options.FACTORS[size[2].lower()]}"
        return f"SET GLOBAL {name} = {_quoted(text)}"

    def effective(self, place: OpenPlace) -> dict[str, str]:
        """All global variables."""
        return recorded(self._variables(place))

    def differences(self, place: OpenPlace) -> list[str]:
        """By the rules of options."""
        return mysql_options.differences(self.options, self._variables(place))

    def lock(self, holder: str) -> list[str]:
        """A named lock of the session; the server has no place for who holds it."""
        del holder
        return [f"SELECT GET_LOCK('{LOCK}', 0)"]

    def databases(self, place: OpenPlace) -> set[str]:
        """Those that the user may see."""
        return {str(name) for (name,) in self.ask(place, "SHOW DATABASES")}

    def recreate(self, place: OpenPlace, database: str, *, template: str | None = None) -> None:
        """Empty, with the server's own character set and collation."""
        assert template is None, "no server of this kind copies databases"  # noqa: S101
        self.ask(place, f"DROP DATABASE IF EXISTS `{database}`", f"CREATE DATABASE `{database}`")

    def has_mark(self, place: OpenPlace, database: str) -> bool:
        """By the table's name."""
        query = f"SELECT 1 FROM TABLES WHERE TABLE_SCHEMA = {literal(database)} AND TABLE_NAME = '{TABLE}'"
        return bool(self.ask(place, query))

    def settle(self, place: OpenPlace) -> None:
        """Nothing that a user could ask for."""


def _quoted(text: str) -> str:
    """A string of SQL, whatever a backslash means to the server."""
    return "X'" + text.encode().hex() + "'" if "\\" in text else literal(text)
