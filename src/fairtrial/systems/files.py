"""Plain files: what `fio` and `file_access` read and write. Nothing is started; the system is the file system."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import BaseModel, ConfigDict

from fairtrial.programs import Act
from fairtrial.protocol.endpoints import FilesEndpoint
from fairtrial.systems.instance import Identity, Instance, Launch
from fairtrial.systems.system import System
from fairtrial.wire.open_place import OpenPlace


class FilesParameters(BaseModel):
    """Files in the trial's data directory; where that lies, place and settings say."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Files(System[FilesParameters]):
    """Plain files: the loader makes them, and closes them."""

    name = "files"
    summary = "Plain files, for workloads that read and write some."
    model = FilesParameters

    def user(self, place: OpenPlace) -> None:
        """The agent's own, as there is no server: nobody else may leave a link where the load writes."""

    def acts(self) -> Iterator[Act]:
        """Nothing runs."""
        yield from ()

    def identity(self, place: OpenPlace) -> Identity:
        """The kernel is what is tested here, and every trial's subject names it; files have no binary."""
        del place
        return Identity(version="", sha256="")

    def start(self, place: OpenPlace, launch: Launch) -> Instance:
        """No process: the endpoint is the directory."""
        del place
        return Instance(endpoint=FilesEndpoint(directory=str(launch.data_directory)), process=None)
