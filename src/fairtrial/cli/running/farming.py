"""Which hosts run the blocks of a run: this machine one after the other, or those of a farm side by side."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from fairtrial.errors import InputError, PlaceError, Problem
from fairtrial.run import Conductor, Run

if TYPE_CHECKING:
    from fairtrial.farm.executor import Executor


@dataclass(frozen=True)
class Farm:
    """What the command line says of a farm.

    Attributes:
        places: file of hosts that places reach; None for none.
        cluster: address of a Ray cluster; None for none.
        insecure: whether a cluster may do without a token.
    """

    places: Path | None = None
    cluster: str | None = None
    insecure: bool = False

    def conductor(self) -> Callable[..., Conductor]:
        """Makes the run.

        Raises:
            InputError: the file of hosts is wrong, or two farms are named.
            PlaceError: Ray is not installed, or its cluster asks for no token.
        """
        if self.places is not None and self.cluster is not None:
            problem = Problem(message="a run has one farm, found two", file="--places, --farm")
            raise InputError([problem], hint="leave one of them out")
        back_end = _hosts(self.places) if self.places is not None else self._cluster()
        if back_end is None:
            return Run
        from fairtrial.farm.controller import FarmRun

        return partial(FarmRun, farm=back_end)

    def _cluster(self) -> Callable[[Path], Executor] | None:
        if self.cluster is None:
            return None
        if find_spec("ray") is None:
            raise PlaceError("Ray is not installed", hint="install fairtrial with its extra: fairtrial[farm]")
        from fairtrial.farm.cluster import Cluster, require_token

        if not self.insecure:
            require_token(self.cluster)
        return partial(Cluster, self.cluster)


def _hosts(path: Path) -> Callable[[Path], Executor]:
    from fairtrial.farm import hosts
    from fairtrial.farm.leases import Leases

    return partial(Leases, hosts.read(path))


ALONE: Final = Farm()
