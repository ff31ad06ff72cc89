"""MariaDB, from 10.1 on: a private instance per trial."""

from __future__ import annotations

from collections.abc import Sequence

from fairtrial.programs import Program
from fairtrial.systems import mysql_bootstrap
from fairtrial.systems.installation import Installation
from fairtrial.systems.instance import Launch
from fairtrial.systems.mysqld import DATABASE, REMOTE_USER, Mysqld, MysqldParameters
from fairtrial.wire.open_place import OpenPlace


class MariadbParameters(MysqldParameters):
    """A private MariaDB server."""


class Mariadb(Mysqld):
    """A private MariaDB server; its main program had MySQL's name before 10.5."""

    name = "mariadb"
    summary = "A private MariaDB server, 10.1 or newer."
    model = MariadbParameters
    programs = (Program("mariadbd", "the system `mariadb` runs it", "mariadb-server", "--no-defaults --version"),)
    binaries = ("mariadbd", "mysqld")
    # Of the server or a table, at creation (mariadb.com/kb: InnoDB system variables); character sets, of a database.
    fixed = (
        "innodb_page_size",
        "innodb_undo_tablespaces",
        "innodb_checksum_algorithm",
        "innodb_compression_default",
        "innodb_data_file_path",
        "innodb_default_row_format",
        "innodb_file_per_table",
        "lower_case_table_names",
        "character_set_server",
        "collation_server",
    )

    def is_own(self, version: str) -> bool:
        """It names itself."""
        return "mariadb" in version.lower()

    def fill(self, place: OpenPlace, installation: Installation, program: str, *, launch: Launch) -> None:
        """From the server's own scripts."""
        mysql_bootstrap.from_scripts(place, installation, program, initial=self.creating(), launch=launch)

    def opening(self, version: str, password: str) -> Sequence[str]:
        """One statement, on any version."""
        del version
        return (f"GRANT ALL PRIVILEGES ON {DATABASE}.* TO {REMOTE_USER}@'%' IDENTIFIED BY '{password}'",)
