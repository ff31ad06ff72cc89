"""MariaDB, from 10.1 on: a private instance per trial."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic import TypeAdapter

from fairtrial.study.catalogue import Kind
from fairtrial.systems import mysql_bootstrap
from fairtrial.systems.installation import Installation
from fairtrial.systems.mysqld import EMPTY_BYTES, Mysqld, MysqldParameters
from fairtrial.systems.system import Launch
from fairtrial.wire.open_place import OpenPlace

# Fixed in the data directory at creation (mariadb.com/kb: InnoDB system variables); a database's character set is, too.
FIXED = (
    "innodb_page_size",
    "innodb_undo_tablespaces",
    "innodb_checksum_algorithm",
    "lower_case_table_names",
    "character_set_server",
    "collation_server",
)


class MariadbParameters(MysqldParameters):
    """A private MariaDB server."""


def _create(
    place: OpenPlace, installation: Installation, program: str, *, initial: Mapping[str, str], launch: Launch
) -> None:
    mysql_bootstrap.from_scripts(place, installation, program, initial=initial, launch=launch)


def _opening(_version: str, user: str, password: str) -> Sequence[str]:
    return (f"GRANT ALL PRIVILEGES ON *.* TO {user}@'%' IDENTIFIED BY '{password}'",)


SYSTEM = Mysqld(
    KIND=Kind(
        name="mariadb",
        summary="A private MariaDB server, 10.1 or newer.",
        parameters=TypeAdapter(MariadbParameters),
        disk_bytes=lambda _parameters: 2 * EMPTY_BYTES,  # as prepared, and a trial's own
    ),
    is_own=lambda version: "mariadb" in version.lower(),
    creator=_create,
    fixed=FIXED,
    implied={},
    opening=_opening,
)
