"""PostgreSQL that is there already: options by `ALTER SYSTEM`, databases copied from templates."""

from __future__ import annotations

import shlex
from typing import Final

from fairtrial.errors import PlaceError
from fairtrial.protocol.endpoints import Server
from fairtrial.protocol.generated import PostgresEndpoint
from fairtrial.systems import postgres_options
from fairtrial.systems.existing.parameters import TABLE
from fairtrial.systems.existing.server import DataMark, ExistingServer, literal
from fairtrial.systems.server import Option
from fairtrial.wire.open_place import OpenPlace

LOCK: Final = 0x6661_6972_7472_6961  # "fairtria": one key of the server, in the database that every server has
SETTINGS: Final = "SELECT name, setting, unit FROM pg_settings"
ENTRY: Final = (
    "SELECT setting FROM pg_file_settings WHERE sourcefile LIKE '%/postgresql.auto.conf' AND lower(name) = {name} "
    "ORDER BY seqno DESC LIMIT 1"
)
IN_EFFECT: Final = "SELECT setting FROM pg_settings WHERE lower(name) = {name}"
# What each file's last entry says of an option, and what is in effect; of sessions' own nothing can be told.
ENTRIES: Final = (
    "SELECT lower(s.name), f.setting, s.setting, s.unit, s.source, s.context FROM pg_settings s LEFT JOIN "
    "(SELECT DISTINCT ON (lower(name)) name, setting FROM pg_file_settings ORDER BY lower(name), seqno DESC) f "
    "ON lower(f.name) = lower(s.name) WHERE s.source IN ('default', 'environment variable', 'configuration file')"
)
# Whether a file is younger than what was read from it; times of files are of whole seconds.
EDITED: Final = (
    "SELECT max((pg_stat_file(path, true)).modification) >= date_trunc('second', pg_conf_load_time()) FROM "
    "(SELECT sourcefile FROM pg_file_settings UNION SELECT sourcefile FROM pg_settings "
    "WHERE sourcefile IS NOT NULL) AS files (path)"
)
NEW: Final = "fairtrial_new_"  # and the name that a database gets once its mark is in it; the next replaces it
IS_SUPERUSER: Final = "SELECT rolsuper FROM pg_roles WHERE rolname = current_user"
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
    own_name = "SELECT pg_postmaster_start_time()"
    table = f"public.{TABLE}"
    database_identity = "(SELECT datname || ' ' || oid FROM pg_database WHERE datname = current_database())"
    marked = f"identity IN (current_database(), {database_identity})"

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
        if waiting:
            self.require_restart(waiting)
        self._require_loaded(place)

    def _require_loaded(self, place: OpenPlace) -> None:
        """Refuses edits of configuration files that the server has not read yet: a reload would bring them into effect.

        Raises:
            PlaceError: there are, or the user may not see them.
        """
        try:
            rows = self.ask(place, ENTRIES)
        except PlaceError as error:
            if "permission denied" not in str(error):
                raise
            user = self.at.user
            raise PlaceError(
                f"{self.address}: {error}",
                hint=f"as a superuser: GRANT SELECT ON pg_file_settings TO {user}; "
                f"GRANT EXECUTE ON FUNCTION pg_show_all_file_settings() TO {user}",
            ) from error
        pending = [
            str(name)
            for name, entry, setting, unit, source, context in rows
            if (context != "postmaster" or self.at.restart is not None)
            and (source == "configuration file" if entry is None else _differs(entry, setting or "", unit or ""))
        ]
        if pending and not (self._is_superuser(place) and self._cell(place, EDITED) == "f"):
            raise PlaceError(
                f"{', '.join(pending)}: edited in a configuration file of {self.address} and not reloaded, which "
                "setting an option would do: nothing was changed",
                hint="reload it yourself first (SELECT pg_reload_conf()), or take the edit back",
            )

    def _is_superuser(self, place: OpenPlace) -> bool:
        return self._cell(place, IS_SUPERUSER) == "t"

    def restart_after(self, place: OpenPlace) -> list[str]:
        """Where an option needs one."""
        needed = self.at.restart is not None and "postmaster" in self._contexts(place).values()
        return shlex.split(self.at.restart or "") if needed else []

    def queries(self, name: str) -> tuple[str, str]:
        """The entry of `postgresql.auto.conf`, and what is in effect."""
        return ENTRY.format(name=literal(name)), IN_EFFECT.format(name=literal(name))

    def restoring(self, place: OpenPlace, name: str, original: str | None) -> str:
        """Without an entry where there was none."""
        del place
        return f"ALTER SYSTEM RESET {name}" if original is None else self.setting(name, original)

    def setting(self, name: str, value: Option) -> str:
        """In `postgresql.auto.conf`."""
        return f"ALTER SYSTEM SET {name} = {literal(postgres_options.text(value))}"

    def _settings(self, place: OpenPlace) -> dict[str, tuple[str, str]]:
        rows = self.ask(place, SETTINGS, database=self.at.database)
        return {str(name): (setting or "", unit or "") for name, setting, unit in rows}

    def effective(self, place: OpenPlace) -> dict[str, str]:
        """With units."""
        settings = self._settings(place)
        return {name: f"{setting}{unit and ' ' + unit}" for name, (setting, unit) in settings.items()}

    def differences(self, place: OpenPlace) -> list[str]:
        """By the rules of options."""
        return postgres_options.differences(self.options, self._settings(place))

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
        """A template may have no sessions either while it is copied. Text compares by bytes, as everywhere here.

        A template says beforehand whose copy is ours, and an empty database gets its mark before its name: at no
        instant is there one without.
        """
        if template is not None:
            copied = f"SELECT made, data_key, content, {literal(database)} FROM {self.table} WHERE {self.marked}"
            unless = f"NOT EXISTS (SELECT FROM {self.table} WHERE identity = {literal(database)})"
            self.ask(place, f"INSERT INTO {self.table} {copied} AND {unless}", database=template)
            self._dropped(place, database, template, then=f'CREATE DATABASE "{database}" TEMPLATE "{template}"')
            return
        new, empty = f"{NEW}{database}", "TEMPLATE template0 ENCODING 'UTF8' LC_COLLATE 'C' LC_CTYPE 'C'"
        self._dropped(place, new, then=f'CREATE DATABASE "{new}" {empty}')
        identity = self.database_identity.replace("datname ||", f"{literal(database)} ||", 1)
        self.ask(place, *self.noting(DataMark(made=True), identity), database=new)
        self._dropped(place, database, new, then=f'ALTER DATABASE "{new}" RENAME TO "{database}"')

    def _dropped(self, place: OpenPlace, database: str, *others: str, then: str) -> None:
        """Drops a database, and everybody's sessions in it and in others, and does something with its name."""
        names = ", ".join(literal(name) for name in (database, *others))
        self.ask(
            place,
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            f"WHERE datname IN ({names}) AND pid <> pg_backend_pid()",
            f'DROP DATABASE IF EXISTS "{database}"',
            then,
        )

    def has_mark(self, place: OpenPlace, database: str) -> bool:
        """By the table's name."""
        return self.ask(place, f"SELECT to_regclass('{self.table}') IS NOT NULL", database=database)[0][0] == "t"

    def settle(self, place: OpenPlace) -> None:
        """A checkpoint, of a user who may."""
        if self._is_superuser(place):
            self.ask(place, "CHECKPOINT")


def _differs(entry: str, setting: str, unit: str) -> bool:
    return bool(postgres_options.differences({"": entry}, {"": (setting, unit)}))
