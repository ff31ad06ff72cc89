"""MySQL, 5.5 to 8: a private instance per trial."""

from __future__ import annotations

import re
from collections.abc import Sequence
from types import MappingProxyType

from fairtrial.systems import mysql_bootstrap
from fairtrial.systems.installation import VERSION, Installation
from fairtrial.systems.instance import Launch
from fairtrial.systems.mysqld import DATABASE, REMOTE_USER, Mysqld, MysqldParameters
from fairtrial.wire.open_place import OpenPlace

MODERN = (5, 7)
# Accounts without a name come before root's where a client's host matches both.
NO_ANONYMOUS = "DELETE FROM mysql.user WHERE User = '';\n"


class MysqlParameters(MysqldParameters):
    """A private MySQL server."""


class Mysql(Mysqld):
    """A private MySQL server."""

    name = "mysql"
    summary = "A private MySQL server, 5.5 to 8."
    model = MysqlParameters
    binaries = ("mysqld",)
    # The log's size is fixed before 5.6.8, which refuses files of another one.
    fixed = (
        "innodb_page_size",
        "innodb_undo_tablespaces",
        "innodb_log_file_size",
        "innodb_log_files_in_group",
        "innodb_data_file_path",
        "innodb_default_row_format",
        "innodb_file_per_table",
        "lower_case_table_names",
        "character_set_server",
        "collation_server",
    )
    # MySQL 8 listens for its other protocol too, wants files below a directory that Debian's package would make, and
    # refuses what loads fastest.
    implied = MappingProxyType({"loose_mysqlx": 0, "loose_secure_file_priv": "", "loose_local_infile": 1})

    def is_own(self, version: str) -> bool:
        """MariaDB's, which may be called `mysqld` too, names itself."""
        return "mariadb" not in version.lower()

    def fill(self, place: OpenPlace, installation: Installation, program: str, *, launch: Launch) -> None:
        """By the server itself, or from its scripts where it cannot yet."""
        argv = installation.command(program, "--no-defaults", "--version")
        match = VERSION.search(place.require(argv, hint="the server binary must run", user=place.server_user))
        initial = self.creating()
        if _is_modern(match[1] if match else ""):
            mysql_bootstrap.initialised(place, installation, program, initial=initial, launch=launch)
        else:
            mysql_bootstrap.from_scripts(
                place, installation, program, initial=initial, launch=launch, epilogue=NO_ANONYMOUS
            )

    def opening(self, version: str, password: str) -> Sequence[str]:
        """One statement, or three where accounts are kept apart from what they may."""
        if not _is_modern(version):
            return (f"GRANT ALL PRIVILEGES ON {DATABASE}.* TO {REMOTE_USER}@'%' IDENTIFIED BY '{password}'",)
        return (
            f"CREATE USER IF NOT EXISTS {REMOTE_USER}@'%'",
            f"ALTER USER {REMOTE_USER}@'%' IDENTIFIED BY '{password}'",
            f"GRANT ALL PRIVILEGES ON {DATABASE}.* TO {REMOTE_USER}@'%'",
        )


def _is_modern(version: str) -> bool:
    """Whether it creates its data itself and keeps accounts apart from what they may."""
    return tuple(map(int, re.findall(r"\d+", version)[:2])) >= MODERN
