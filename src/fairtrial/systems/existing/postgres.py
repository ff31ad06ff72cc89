"""PostgreSQL that is there already: options by `ALTER SYSTEM`, databases copied from templates."""

from __future__ import annotations

import shlex
from typing import Final

from fairtrial.errors import PlaceError
from fairtrial.protocol.endpoints import Server
from fairtrial.protocol.generated import OriginalOption, PostgresEndpoint
from fairtrial.systems import postgres_options
from fairtrial.systems.existing.parameters import TABLE
from fairtrial.systems.existing.server import ExistingServer, literal, recorded
from fairtrial.systems.server import Option
from fairtrial.wire.open_place import OpenPlace

LOCK: Final = 0x6661_6972_7472_6961  # "fairtria": one key of the server, in the database that every server has
SETTINGS: Final = "SELECT name, setting, unit FROM pg_settings"
ENTRY: Final = (
    "SELECT setting FROM pg_file_settings WHERE sourcefile LIKE '%/postgresql.auto.conf' AND lower(name) = {name} "
    "ORDER BY seqno DESC LIMIT 1"
)
IN_EFFECT: Final = "SELECT setting FROM pg_settings WHERE lower(name) = {name}"
# Lists of names, which ALTER SYSTEM would quote as one name.
LISTS: Final = {
    "local_preload_libraries",
    "search_path",
    "session_preload_libraries",
    "shared_preload_libraries",
    "temp_tablespaces",
    "unix_socket_directories",
}
HOLDER: Final = (
    "SELECT concat_ws(' ', nullif(application_name, ''), 'as', usename, 'from', coalesce(host(client_addr), 'its own "
    "machine'), 'since', to_char(backend_start, 'YYYY-MM-DD HH24:MI:SSOF')) FROM pg_locks JOIN pg_stat_activity "
    "USING (pid) WHERE locktype = 'advisory' AND granted AND objsubid = 1 "
    f"AND classid::bigint = {LOCK >> 32} AND objid::bigint = {LOCK & 0xFFFF_FFFF}"
)


class ExistingPostgres(ExistingServer):
    """A PostgreSQL server."""

    lasting = True
    after = ("SELECT pg_reload_conf()",)
    holder = HOLDER
    maintenance = "postgres"

    def endpoint(self, database: str | None = None) -> Server:
        """As the study says."""
        return PostgresEndpoint(
            socket_directory=self.at.socket_path,
            host=self.at.host,
            port=self.at.port,
            user=self.at.user,
            password=self.password,
            tls=self.tls,
            database=database or self.at.database,
        )

    def facts(self, place: OpenPlace) -> dict[str, str]:
        """The data directory, where the user may see it."""
        rows = self.ask(place, IN_EFFECT.format(name="'data_directory'"))
        return {"data_directory": str(rows[0][0])} if rows else {}

    def _contexts(self, place: OpenPlace) -> dict[str, str]:
        names = ", ".join(literal(name) for name in self.options)
        rows = self.ask(place, f"SELECT lower(name), context FROM pg_settings WHERE lower(name) IN ({names})")
        return {str(name): str(context) for name, context in rows}

    def require_settable(self, place: OpenPlace) -> None:
        """By its context in `pg_settings`."""
        if not self.options:
            return
        contexts = self._contexts(place)
        where = f"system.{self.kind}.options"
        if unknown := sorted(set(self.options) - set(contexts)):
            raise PlaceError(f"{', '.join(unknown)}: not an option of {self.address}", hint=f"fix {where}")
        fixed = sorted(name for name, context in contexts.items() if context == "internal" or name in LISTS)
        if fixed:
            raise PlaceError(
                f"{', '.join(fixed)}: cannot be set on a server that is there already", hint=f"leave it out of {where}"
            )
        waiting = sorted(name for name, context in contexts.items() if context == "postmaster")
        if waiting and self.at.restart is None:
            raise PlaceError(
                f"{', '.join(waiting)}: takes effect only when {self.address} is restarted: nothing was changed",
                hint=f"give the command line that restarts it as system.{self.kind}.at.restart, or leave the option "
                "out",
            )

    def restart_after(self, place: OpenPlace) -> list[str]:
        """Where an option needs one."""
        needed = self.at.restart is not None and "postmaster" in self._contexts(place).values()
        return shlex.split(self.at.restart or "") if needed else []

    def originals(self, place: OpenPlace) -> list[OriginalOption]:
        """The entries of `postgresql.auto.conf`, and what is in effect."""
        found: list[OriginalOption] = []
        for name in self.options:
            read, effective = ENTRY.format(name=literal(name)), IN_EFFECT.format(name=literal(name))
            original = self._cell(place, read)
            restore = f"ALTER SYSTEM RESET {name}" if original is None else self.setting(name, original)
            found.append(
                OriginalOption(
                    name=name,
                    read=read,
                    original=original,
                    set=None,
                    restore=restore,
                    effective=effective,
                    in_effect=self._cell(place, effective),
                )
            )
        return found

    def setting(self, name: str, value: Option) -> str:
        """In `postgresql.auto.conf`."""
        return f"ALTER SYSTEM SET {name} = {literal(postgres_options.text(value))}"

    def _settings(self, place: OpenPlace) -> dict[str, tuple[str, str]]:
        rows = self.ask(place, SETTINGS, database=self.at.database)
        return {str(name): (setting or "", unit or "") for name, setting, unit in rows}

    def effective(self, place: OpenPlace) -> dict[str, str]:
        """With units."""
        settings = self._settings(place)
        return recorded({name: f"{setting}{unit and ' ' + unit}" for name, (setting, unit) in settings.items()})

    def differences(self, place: OpenPlace) -> list[str]:
        """Names compare without case, as the server takes them."""
        settings = {name.lower(): value for name, value in self._settings(place).items()}
        return postgres_options.differences(self.options, settings)

    def lock(self, holder: str) -> list[str]:
        """The holder is the session's application name, which others may see; the server cuts it."""
        return [
            f"SELECT set_config('application_name', {literal('fairtrial ' + holder)}, false)",
            f"SELECT pg_try_advisory_lock({LOCK})::int",
        ]

    def databases(self, place: OpenPlace) -> set[str]:
        """From `pg_database`."""
        return {str(name) for (name,) in self.ask(place, "SELECT datname FROM pg_database")}

    def recreate(self, place: OpenPlace, database: str, *, template: str | None = None) -> None:
        """A template may have no sessions either while it is copied. Text compares by bytes, as everywhere here."""
        names = ", ".join(literal(name) for name in (database, template) if name)
        source = f'"{template}"' if template else "template0 ENCODING 'UTF8' LC_COLLATE 'C' LC_CTYPE 'C'"
        self.ask(
            place,
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            f"WHERE datname IN ({names}) AND pid <> pg_backend_pid()",
            f'DROP DATABASE IF EXISTS "{database}"',
            f'CREATE DATABASE "{database}" TEMPLATE {source}',
        )

    def has_mark(self, place: OpenPlace, database: str) -> bool:
        """By the table's name, wherever the path finds it."""
        return self.ask(place, f"SELECT to_regclass('{TABLE}') IS NOT NULL", database=database)[0][0] == "t"

    def settle(self, place: OpenPlace) -> None:
        """A checkpoint, of a user who may."""
        if self.ask(place, "SELECT rolsuper FROM pg_roles WHERE rolname = current_user")[0][0] == "t":
            self.ask(place, "CHECKPOINT")
