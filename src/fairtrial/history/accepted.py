"""fairtrial-accepted.yaml: regressions that a project accepts for a while, in a ledger that its repository holds.

Owns its reading, and what it excuses at a gate. It must not know how a gate finds a regression.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Annotated, Final

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, TypeAdapter

from fairtrial.history.gating import AcceptedRegression, Gate, GateCheck, LedgerState
from fairtrial.record.acknowledgements import entries
from fairtrial.report import numbers
from fairtrial.study.tree.quantities import parse_share

NAME: Final = "fairtrial-accepted.yaml"
_HINT: Final = "write a list of `{metric: NAME, worse_by: 5 %, because: TEXT, by: WHO, until: 2030-01-31}`"


def _day(value: object) -> date:
    try:
        return date.fromisoformat(value if isinstance(value, str) else "")
    except ValueError as error:
        raise ValueError(f"expected a day such as 2030-01-31, found {value!r}") from error


def _share(value: object) -> float:
    share = parse_share(value)
    if share >= 1 and "%" not in str(value):
        raise ValueError(f"write a percentage with its sign: {value} %, not {value}")
    return share


_Words = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=1000),
    AfterValidator(lambda text: " ".join(text.split())),
]


class LedgerEntry(BaseModel):
    """What is accepted, how much of it, why, by whom and until when.

    Attributes:
        metric, series: of the checks that it excuses; without a series, all of the metric.
        worse_by: largest share by which the metric may be worse.
        until: last day on which it counts (UTC).
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    metric: _Words
    worse_by: Annotated[float, BeforeValidator(_share), Field(gt=0)]
    because: _Words
    by: _Words
    until: Annotated[date, BeforeValidator(_day)]
    series: str = ""

    def covers(self, check: GateCheck) -> bool:
        """Whether it is about what a check looked at."""
        return self.metric == check.metric and self.series in ("", check.series)


_LEDGER: Final = TypeAdapter(list[LedgerEntry])


def read(path: Path) -> dict[str, LedgerEntry]:
    """Reads a ledger: where each entry stands (`file:line`) → entry; an empty file has none.

    Raises:
        InputError: it cannot be read, or an entry is wrong, with its line and field.
    """
    return {f"{path}:{at.line}": entry for entry, at in entries(path, _LEDGER, hint=_HINT)}


def applied(gate: Gate, ledger: dict[str, LedgerEntry], *, today: date) -> Gate:
    """The gate with what the ledger excuses: failed checks no worse than an entry accepts become `accepted`.

    An entry that expired excuses nothing and fails the gate, whether its metric is worse or not: it is either removed
    or renewed by somebody.
    """
    valid = {at: entry for at, entry in ledger.items() if today <= entry.until}
    checks = [_excused(check, list(valid.values())) for check in gate.checks]
    checks += [
        GateCheck(
            series=at,
            metric=entry.metric,
            status="failed",
            message=f"accepted by {entry.by} until {entry.until}, which is over: remove the entry or renew it",
        )
        for at, entry in ledger.items()
        if at not in valid
    ]
    return gate.model_copy(
        update={
            "checks": tuple(checks),
            "ledger": tuple(
                AcceptedRegression(at=at, state=_state(entry, gate.checks, today=today), **entry.model_dump())
                for at, entry in ledger.items()
            ),
        }
    )


def _excused(check: GateCheck, ledger: Sequence[LedgerEntry]) -> GateCheck:
    about = [entry for entry in ledger if entry.covers(check)]
    if check.status != "failed" or not about:
        return check
    if check.worse_by is None:
        return check.model_copy(update={"message": f"{check.message}, which no entry excuses"})
    most = max(about, key=lambda entry: entry.worse_by)
    said = f"{numbers.percent(most.worse_by)} until {most.until} by {most.by}: {most.because}"
    if _accepts(most, check):
        return check.model_copy(update={"status": "accepted", "message": f"{check.message}; accepted up to {said}"})
    return check.model_copy(update={"message": f"{check.message}; more than the accepted {said}"})


def _accepts(entry: LedgerEntry, check: GateCheck) -> bool:
    return check.worse_by is not None and check.worse_by <= entry.worse_by


def _state(entry: LedgerEntry, checks: Sequence[GateCheck], *, today: date) -> LedgerState:
    if entry.until < today:
        return "expired"
    failed = [each for each in checks if each.status == "failed" and each.worse_by is not None and entry.covers(each)]
    if not failed:
        return "unused"
    return "used" if all(_accepts(entry, check) for check in failed) else "exceeded"
