"""An empty data directory for a MariaDB or MySQL of any version: what its installer would do, by the server alone.

Archives bring the server's SQL scripts and often no installer, or one whose helper programs do not run here. The order
of the scripts is that of `mariadb-install-db`; help texts and time zones are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath

from fairtrial.errors import PlaceError
from fairtrial.systems.installation import Installation
from fairtrial.systems.instance import Launch
from fairtrial.wire.open_place import OpenPlace

CREATE_S = 300.0
# Two lines: servers before 10.4 take what follows a database's creation on the same line for part of it.
PROLOGUE = """\
CREATE DATABASE IF NOT EXISTS mysql;
USE mysql;
SET @auth_root_socket=NULL;
SET @skip_auth_anonymous=1;
"""
SCRIPTS = ("system_tables", "performance_tables", "system_tables_data", "sys_schema")
# Prints the beginning of the scripts' names below a base directory.
LOOK = """\
for folder in "$1/share" "$1/share/mysql" "$1/share/mariadb"; do
    for family in mariadb mysql; do
        if [ -e "$folder/${family}_system_tables.sql" ]; then echo "$folder/$family"; exit 0; fi
    done
done
exit 1
"""
JOIN = 'into=$1; shift; for each; do if [ -e "$each" ]; then cat -- "$each"; fi; done > "$into"'
FROM_FILE = 'from=$1; shift; exec "$@" < "$from"'


def from_scripts(  # noqa: PLR0913 - a server is created from all of these
    place: OpenPlace,
    installation: Installation,
    program: str,
    *,
    initial: Mapping[str, str],
    launch: Launch,
    epilogue: str = "",
) -> None:
    """Feeds the server's own scripts to it.

    Args:
        place: where it is.
        installation: its own.
        program: the server's program.
        initial: options that matter when data are created.
        launch: its directories.
        epilogue: SQL after the scripts.

    Raises:
        PlaceError: the scripts are not there, or the server refuses them; with its own words.
    """
    scripts = _scripts(place, installation, program)
    begin, text, end = (str(launch.work_directory / f"bootstrap{part}.sql") for part in ("-begin", "", "-end"))
    place.agent.put(begin, PROLOGUE.encode())
    place.agent.put(end, epilogue.encode())
    parts = [f"{scripts}_{name}.sql" for name in SCRIPTS]
    # Not as root: the directory is the server's user's, and what it left there may be a link.
    join = ["sh", "-c", JOIN, "sh", text, begin, *parts, end]
    place.require(join, hint="check the disk of the place", user=place.server_user)
    argv = _server(installation, program, initial=initial, launch=launch)
    run = ["sh", "-c", FROM_FILE, "sh", text, *argv, "--bootstrap", "--max-allowed-packet=16M"]
    place.require(run, hint="see the server's output above", timeout_s=CREATE_S, user=place.server_user)


def initialised(
    place: OpenPlace, installation: Installation, program: str, *, initial: Mapping[str, str], launch: Launch
) -> None:
    """Has the server do it: MySQL from 5.7 on.

    Raises:
        PlaceError: it fails, with its own words.
    """
    argv = [*_server(installation, program, initial=initial, launch=launch), "--initialize-insecure"]
    place.require(argv, hint="see the server's output above", timeout_s=CREATE_S, user=place.server_user)


def _server(installation: Installation, program: str, *, initial: Mapping[str, str], launch: Launch) -> list[str]:
    base = installation.base_directory
    return installation.command(
        program,
        "--no-defaults",
        f"--datadir={launch.data_directory}",
        # In a shared directory every start removes the temporary tables of the other servers of its user.
        f"--tmpdir={launch.work_directory}",
        *([f"--basedir={base}"] if base else []),
        *(f"--{name}={value}" for name, value in initial.items()),
    )


def _scripts(place: OpenPlace, installation: Installation, program: str) -> str:
    base = installation.base_directory
    if base is None:
        real = place.require(["readlink", "-f", program], hint="the server binary must be readable").strip()
        base = PurePosixPath(real).parent.parent
    result = place.execute(["sh", "-c", LOOK, "sh", str(base)])
    if result.code != 0:
        raise PlaceError(
            f"{base}/share has no …_system_tables.sql, which a new data directory needs",
            hint=f"name a complete installation under system.{installation.system}",
        )
    return result.output.strip()
