"""What `fairtrial plan` and `fairtrial power` say of a screening: its matrix, and the effects that it can show."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from fairtrial.analyse.designs.screening_power import MOST_REPLICATES, POWER, detectable, replicates_for
from fairtrial.errors import RecordError
from fairtrial.words import counted, duration

if TYPE_CHECKING:
    from fairtrial.record import Record
    from fairtrial.record.models import Plan
    from fairtrial.record.screening import Screening

REPLICATES: Final = (1, 2, 3, 4, 6, 8)
USUAL_NOISES: Final = (0.01, 0.02, 0.03, 0.05, 0.1)
_CODES: Final = {-1: "−", 0: "0", 1: "+"}


def matrix(of: Screening) -> Iterator[RenderableType]:
    """Options with their levels, what the design cannot tell apart, and its rows."""
    from fairtrial.plan import screening

    options = _table("column", "option", "low to high")
    for number, (option, levels) in enumerate(of.options.items(), start=1):
        options.add_row(str(number), Text(option), Text(", ".join(levels)))
    yield Text("\noptions, screened together; no one of them is compared alone")
    yield options
    yield from (Text(sentence) for sentence in screening.sentences(of))
    rows = _table("row", "levels in the order of columns: − low, + high")
    for row, codes in of.rows.items():
        rows.add_row(row, " ".join(_CODES[code] for code in codes))
    yield Text("\nrows, each one trial")
    yield rows


def costs(plan: Plan) -> str:
    """How many trials, and how their names come about."""
    replicates = counted(plan.design.blocks, "replicate")
    return (
        f"{len(plan.trials)} trials ({len(plan.factors[plan.arm])} rows × {replicates}), named all.bNUMBER.ROW; the "
        f"first is {plan.trials[0].id}; a row that is lost is run again, up to {plan.design.voided_limit} of them"
    )


def sentence(plan: Plan) -> str:
    """What the planned replicates show, in a line of `fairtrial plan`; nothing where nothing can."""
    noise, of = USUAL_NOISES[len(USUAL_NOISES) // 2], plan.screening
    confidence, replicates = plan.design.confidence, plan.design.blocks
    if of is None:
        return ""
    shown = detectable(of, replicates=replicates, noise=noise, confidence=confidence)
    if shown is None:
        trials = counted(replicates * len(of.rows), "trial")
        return f"detectable   nothing: no effect of one option can stand out in {trials}; add replicates"
    return (
        f"detectable   {_percent(shown)} stands out among {len(of.options)} options with power {POWER:g} where a trial "
        f"varies by {noise * 100:g} %; `fairtrial power` has the table"
    )


def power(plan: Plan, pilot: Record | None, *, effect: float | None) -> Iterator[RenderableType]:
    """The effects that stand out with so many replicates under so much noise, and the replicates that one needs.

    Args:
        plan: of a screening.
        pilot: a run of a screening with the plan's metrics, whose noise is taken; None: noise of usual sizes.
        effect: as a share, to find the replicates for.
    """
    of = plan.screening
    if of is None:
        return
    noises = _noises(plan, pilot)
    each_s, confidence = plan.duration_s / plan.design.blocks, plan.design.confidence
    yield Text(
        f"{plan.study}: {len(of.options)} options in {len(of.rows)} rows; the effect that stands out among them with "
        f"power {POWER:g}, by how much one trial varies\n"
    )
    table = _table("replicates", "trials", *noises, "duration")
    for replicates in sorted({*REPLICATES, plan.design.blocks}):
        shown = [
            _percent(detectable(of, replicates=replicates, noise=noise, confidence=confidence))
            for noise in noises.values()
        ]
        here = " *" if replicates == plan.design.blocks else ""
        trials = str(replicates * len(of.rows))
        table.add_row(f"{replicates}{here}", trials, *shown, duration(each_s * replicates))
    table.caption = "* as in the study"
    yield table
    for name, noise in noises.items() if effect is not None else ():
        found = replicates_for(of, effect=effect or 0.0, noise=noise, confidence=confidence)
        most = f"more than {MOST_REPLICATES} replicates"
        takes = most if found is None else f"{counted(found, 'replicate')}: {duration(each_s * found)}"
        yield Text(f"at {name}, an effect of {(effect or 0) * 100:g} % needs {takes}", style="bold")


def _noises(plan: Plan, pilot: Record | None) -> dict[str, float]:
    if pilot is None:
        return {f"{noise * 100:g} %": noise for noise in USUAL_NOISES}
    from fairtrial.report.analysing import analysed

    result = analysed(pilot).screening
    noises = {
        f"{each.metric} ({each.sd * 100:.2g} %)": each.sd
        for each in (result.metrics if result is not None else ())
        if each.sd and each.metric in plan.metrics.primary
    }
    if not noises:
        raise RecordError(
            f"{pilot.directory} does not say how much a trial varies: expected a screening with replicates or columns "
            f"without an option, of {', '.join(plan.metrics.primary)}",
            hint="leave --from out: the table then has noise of usual sizes",
        )
    return noises


def _percent(effect: float | None) -> str:
    return "–" if effect is None else f"± {effect * 100:.1f} %"


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(Text(column), overflow="fold")
    return table
