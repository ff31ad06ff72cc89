"""Systems: one class per kind (see `system.System`), and others' by entry points of the group `fairtrial.systems`.

A system reaches its place only through `OpenPlace`, starts what it starts private and unprivileged, and must not know
what loads it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from pydantic import JsonValue, TypeAdapter

from fairtrial.plugins import Kinds, chosen
from fairtrial.study.catalogue import Kind
from fairtrial.study.resolved import Section
from fairtrial.systems.command import CommandSystem
from fairtrial.systems.files import Files
from fairtrial.systems.installation import ServerSource
from fairtrial.systems.instance import Certificate, Identity, Instance, Launch, ServerAddress, changed_meanwhile
from fairtrial.systems.mariadb import Mariadb
from fairtrial.systems.mysql import Mysql
from fairtrial.systems.postgres import Postgres
from fairtrial.systems.service import Service
from fairtrial.systems.sqlite import Sqlite
from fairtrial.systems.system import System

__all__ = [
    "SYSTEMS",
    "Certificate",
    "Identity",
    "Instance",
    "Launch",
    "ServerAddress",
    "System",
    "changed_meanwhile",
    "kind_of",
    "system_of",
]

_OWN = (CommandSystem, Files, Mariadb, Mysql, Postgres, Service, Sqlite)
SYSTEMS: Mapping[str, type[System[Any]]] = Kinds(_OWN, base=System, group="fairtrial.systems")


@cache
def system_of(section: Section) -> System[Any]:
    """The system of a resolved trial's section, validated once.

    Raises:
        RecordError: this version has no such kind, or different parameters of it.
    """
    return chosen(SYSTEMS, section, what="system")


def kind_of(system: type[System[Any]]) -> Kind:
    """A system as the study language sees it."""

    def of(parameters: JsonValue) -> System[Any]:
        return system(system.model.model_validate(parameters))

    return Kind(
        name=system.name,
        summary=system.summary,
        parameters=TypeAdapter(system.model),
        disk_bytes=lambda parameters: of(parameters).disk_bytes(),
        determines_data=lambda parameters: _determines_data(of(parameters)),
        handed_in=lambda parameters: of(parameters).handed_in(),
        has_server=lambda parameters: of(parameters).has_server(),
    )


def _determines_data(system: System[Any]) -> str:
    """Where its server comes from, which stands for its binary, and what is fixed when data are made."""
    source = set(ServerSource.model_fields) - {"at"}
    server = system.parameters.model_dump(mode="json", include=source)
    return json.dumps([server, dict(system.initial())], sort_keys=True)
