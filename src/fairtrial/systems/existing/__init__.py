"""Servers that are there already: fairtrial changes their options by SQL and one database, and nothing else of them."""

from fairtrial.systems.existing.mysqld import ExistingMysqld
from fairtrial.systems.existing.parameters import MysqldAt, PostgresAt, ServerAt
from fairtrial.systems.existing.postgres import ExistingPostgres
from fairtrial.systems.existing.server import DataMark, ExistingServer

__all__ = ["DataMark", "ExistingMysqld", "ExistingPostgres", "ExistingServer", "MysqldAt", "PostgresAt", "ServerAt"]
