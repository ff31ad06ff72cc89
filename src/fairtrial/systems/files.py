"""Plain files: what `fio` and `file_access` read and write. Nothing is started; the system is the file system."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, TypeAdapter

from fairtrial.study.catalogue import Kind
from fairtrial.systems.system import Identity, Instance, Launch
from fairtrial.wire.open_place import OpenPlace


class FilesParameters(BaseModel):
    """Files in the trial's data directory; where that lies, place and settings say."""

    model_config = ConfigDict(frozen=True, extra="forbid")


KIND = Kind(
    name="files",
    summary="Plain files, for workloads that read and write some.",
    parameters=TypeAdapter(FilesParameters),
)


def has_server(_parameters: Mapping[str, Any]) -> bool:
    """There is none."""
    return False


def has_data_directory(_parameters: Mapping[str, Any]) -> bool:
    """The loader makes the files."""
    return False


def identity(_place: OpenPlace, _parameters: Mapping[str, Any]) -> Identity:
    """The kernel is what is tested here, and every trial's subject names it; files have no binary."""
    return Identity(version="", sha256="")


def initial(_parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    """Nothing but what the workload says of its files."""
    return {}


def for_loading(parameters: Mapping[str, Any], _facts: Mapping[str, Any]) -> Mapping[str, Any]:
    """The same."""
    return parameters


def create(_place: OpenPlace, _parameters: Mapping[str, Any], _launch: Launch) -> None:
    """Nothing: the loader writes the files."""


def create_database(_place: OpenPlace, _endpoint: Mapping[str, Any]) -> None:
    """There is none to make."""


def start(_place: OpenPlace, _parameters: Mapping[str, Any], launch: Launch) -> Instance:
    """No process: the endpoint is the directory."""
    return Instance(endpoint={"kind": "files", "directory": str(launch.data_directory)}, process=None)


def stop(_place: OpenPlace, _instance: Instance, *, settled: bool) -> None:
    """Nothing: whoever loaded the files closed them."""
    del settled
