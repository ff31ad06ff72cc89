"""A doubt about services whose arms start from data of their own: only a database's contents are compared."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from fairtrial.analyse.models import Doubt
from fairtrial.record.models import TrialRecord

SERVICE: Final = "service"
DATA: Final = "data"


def about(used: Sequence[TrialRecord]) -> Iterator[Doubt]:
    """It, if arms of a cell start from data that were made more than once, which only the service can read."""
    made: dict[str, dict[str, str]] = defaultdict(dict)
    for trial in used:
        parameters = trial.resolved.system.parameters
        has_data = trial.resolved.system.kind == SERVICE and isinstance(parameters, dict) and parameters.get(DATA)
        if has_data and trial.data.key is not None:
            made[trial.trial.cell][trial.trial.arm] = trial.data.key
    apart = {cell: sorted(keys) for cell, keys in made.items() if len(set(keys.values())) > 1}
    if apart:
        cell, arms = next(iter(apart.items()))
        yield Doubt(
            code="data_not_compared",
            message=f"in {len(apart)} of {len(made)} cells arms start from service data that were made separately "
            f"({', '.join(arms)} in {cell}), and fairtrial does not compare their contents",
            advice="check them yourself: a command of `system.service.data.load` that counts or sums what the service "
            "holds, and fails if that is wrong, ends the run before a trial",
        )
