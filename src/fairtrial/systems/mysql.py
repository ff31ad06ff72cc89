"""MySQL, 5.5 to 8: a private instance per trial."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from pydantic import TypeAdapter

from fairtrial.study.catalogue import Kind
from fairtrial.systems import mysql_bootstrap
from fairtrial.systems.installation import VERSION, Installation
from fairtrial.systems.mysqld import EMPTY_BYTES, Mysqld, MysqldParameters
from fairtrial.systems.system import Launch
from fairtrial.wire.open_place import OpenPlace

MODERN = (5, 7)
# The log's size is fixed before 5.6.8, which refuses files of another one.
FIXED = (
    "innodb_page_size",
    "innodb_undo_tablespaces",
    "innodb_log_file_size",
    "innodb_log_files_in_group",
    "lower_case_table_names",
    "character_set_server",
    "collation_server",
)
# Accounts without a name come before root's where a client's host matches both.
NO_ANONYMOUS = "DELETE FROM mysql.user WHERE User = '';\n"


class MysqlParameters(MysqldParameters):
    """A private MySQL server."""


def _create(
    place: OpenPlace, installation: Installation, program: str, *, initial: Mapping[str, str], launch: Launch
) -> None:
    said = place.require(installation.command(program, "--no-defaults", "--version"), hint="the server binary must run")
    found = VERSION.search(said)
    if _is_modern(found[1] if found else ""):
        mysql_bootstrap.initialised(place, installation, program, initial=initial, launch=launch)
    else:
        mysql_bootstrap.from_scripts(
            place, installation, program, initial=initial, launch=launch, epilogue=NO_ANONYMOUS
        )


def _opening(version: str, user: str, password: str) -> Sequence[str]:
    if not _is_modern(version):
        return (f"GRANT ALL PRIVILEGES ON *.* TO {user}@'%' IDENTIFIED BY '{password}'",)
    return (
        f"CREATE USER IF NOT EXISTS {user}@'%'",
        f"ALTER USER {user}@'%' IDENTIFIED BY '{password}'",
        f"GRANT ALL PRIVILEGES ON *.* TO {user}@'%'",
    )


def _is_modern(version: str) -> bool:
    """Whether it creates its data itself and keeps accounts apart from what they may."""
    numbers = re.findall(r"\d+", version)[:2]
    return tuple(map(int, numbers)) >= MODERN


SYSTEM = Mysqld(
    KIND=Kind(
        name="mysql",
        summary="A private MySQL server, 5.5 to 8.",
        parameters=TypeAdapter(MysqlParameters),
        disk_bytes=lambda _parameters: 2 * EMPTY_BYTES,  # as prepared, and a trial's own
    ),
    is_own=lambda version: "mariadb" not in version.lower(),
    creator=_create,
    fixed=FIXED,
    # MySQL 8 listens for its other protocol too, wants files below a directory that Debian's package would make, and
    # refuses what loads fastest.
    implied={"loose_mysqlx": 0, "loose_secure_file_priv": "", "loose_local_infile": 1},
    opening=_opening,
)
