"""Systems under test: one file per kind.

A module, or the object `SYSTEM` in it, offers `KIND`, `identity`, `initial`, `create`, `start` and `stop` (see
`system.System`). It reaches its place only through `OpenPlace`, starts what it starts private and unprivileged, and
must not know what loads it.
"""

from __future__ import annotations

from collections.abc import Mapping

from fairtrial.systems import command, files, mariadb, mysql, postgres, sqlite
from fairtrial.systems.system import Identity, Instance, Launch, System

__all__ = ["SYSTEMS", "Identity", "Instance", "Launch", "System"]

SYSTEMS: Mapping[str, System] = {
    system.KIND.name: system for system in (command, files, mariadb.SYSTEM, mysql.SYSTEM, postgres, sqlite)
}
