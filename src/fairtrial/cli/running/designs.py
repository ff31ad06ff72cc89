"""What `fairtrial plan` and `fairtrial power` say of covariates, layouts and curves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from fairtrial.analyse.inference.sensitivity import POWER
from fairtrial.report.designs.curves import number
from fairtrial.report.numbers import ABSENT
from fairtrial.words import counted

if TYPE_CHECKING:
    from fairtrial.analyse.designs.detecting import Detectable
    from fairtrial.record import Record
    from fairtrial.record.models import Plan

BLOCKS: Final = (6, 8, 10, 15, 20, 30)
LAYOUTS: Final = (5, 8, 12, 20)
PILOT: Final = "name a run of this study with --from for what they can show"


def heading(plan: Plan) -> Iterator[str]:
    """Lines of `fairtrial plan`."""
    if plan.metrics.covariates:
        whose = "adjusted" if plan.metrics.adjust else "plain"
        yield f"covariates   {', '.join(plan.metrics.covariates)}; verdicts are of the {whose} estimates"
    if plan.builds is not None:
        yield f"layouts      {counted(plan.builds.link_orders, 'order')} of linking, the same for all arms of a block"


def power(plan: Plan, pilot: Record | None) -> Iterator[RenderableType]:
    """A table for each of a study's designs that the pilot run has as well, or what is missing for it."""
    from fairtrial.analyse.designs import curves, detecting
    from fairtrial.analyse.sequential import last_look
    from fairtrial.report.analysing import analysed

    analysis = None if pilot is None else analysed(pilot)
    planned_, fewest = plan.design.blocks, last_look.fewest_blocks(plan)
    blocks = sorted({*BLOCKS, planned_})
    if plan.metrics.covariates:
        found = [] if analysis is None else [*detecting.adjusted(analysis)]
        effects = {
            n: [None if n < fewest else each.at(n, alpha=last_look.level(plan, blocks=n)) for each in found]
            for n in blocks
        }
        yield from _table("estimates adjusted for covariates", "blocks", found, effects)
    if plan.builds is not None:
        found = [] if analysis is None else [*detecting.layouts(analysis)]
        counts = sorted({*LAYOUTS, plan.builds.link_orders})
        run = {n: max(n, planned_) for n in counts}
        alphas = {n: last_look.level(plan, blocks=run[n]) for n in counts if run[n] >= fewest}
        effects = {
            n: [each.at(run[n], alpha=alphas[n], layouts=n) if n in alphas else None for each in found] for n in counts
        }
        yield from _table(f"layouts like these, {counted(planned_, 'block')} or more", "layouts", found, effects)
    if plan.curve is not None and plan.curve.model != "loess":
        found = [] if analysis is None else [*detecting.curves(analysis)]
        alpha = (1 - plan.design.confidence) / max(len(found), 1)
        effects = {n: [None if n < curves.FEWEST_BLOCKS else each.at(n, alpha=alpha) for each in found] for n in blocks}
        yield from _table("differences between curves, a family of their own", "blocks", found, effects)


def _table(
    title: str, first: str, found: Sequence[Detectable], effects: Mapping[int, Sequence[float | None]]
) -> Iterator[RenderableType]:
    if not found:
        yield Text(f"\n{title}: {PILOT}")
        return
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for name in (first, *(", ".join(each.of) for each in found)):
        table.add_column(name, justify="right")
    for n, row in effects.items():
        table.add_row(str(n), *(_shown(each, effect) for each, effect in zip(found, row, strict=True)))
    yield Text(f"\n{title}: the smallest that is found with power {POWER:g}, by the pilot's own noise")
    yield table


def _shown(of: Detectable, effect: float | None) -> str:
    if effect is None:
        return ABSENT
    return f"± {effect * 100:.1f} %" if of.scale == "ratio" else f"± {number(effect)}"
