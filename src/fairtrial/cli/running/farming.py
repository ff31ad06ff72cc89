"""Which hosts run the blocks of a run: this machine one after the other, or those of a farm side by side."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from fairtrial.errors import InputError, PlaceError, Problem
from fairtrial.record.models import Plan
from fairtrial.run import Conductor, Run
from fairtrial.run.conducting import written_levels
from fairtrial.study import Study, located

DUET: Final = "duet"

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

    def require_fits(self, plan: Plan) -> None:
        """Refuses a farm for a run of duets, and for a screening.

        Raises:
            InputError: they are named together.
        """
        if plan.screening is not None and (self.places is not None or self.cluster is not None):
            problem = Problem(
                message="the rows of a screening are compared with each other, so one host must run them all",
                file="--places, --farm",
                field="trials.design",
            )
            raise InputError([problem], hint="leave the farm out; confirm on it")
        if plan.design.order == DUET and (self.places is not None or self.cluster is not None):
            problem = Problem(
                message="`order: duet` runs both arms of a block on this machine",
                file="--places, --farm",
                field="trials.order",
            )
            raise InputError([problem], hint="leave the farm out, or write `order: randomised_blocks`")

    def require_takes(self, plan: Plan, *, study: Study) -> None:
        """Refuses what its hosts would refuse, before there is a record.

        Raises:
            InputError: with where the study says it; or as `require_fits` does.
        """
        self.require_fits(plan)
        if self.places is None and self.cluster is None:
            return
        from fairtrial.farm import fitting
        from fairtrial.farm.cluster import Cluster
        from fairtrial.farm.leases import Leases

        kinds = Cluster.kinds if self.places is None else Leases.kinds
        for trial, refused in fitting.refusals(plan, kinds=kinds, has_places=self.places is not None):
            raise located(refused, study, written_levels(plan, trial))

    def conductor_of(self, plan: Plan) -> Callable[..., Conductor]:
        """Makes the run of a plan; raises as `conductor` and `require_fits` do."""
        self.require_fits(plan)
        if plan.design.order != DUET:
            return self.conductor()
        from fairtrial.farm.duet import DuetRun

        return DuetRun

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
