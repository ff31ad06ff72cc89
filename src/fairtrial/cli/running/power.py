"""`fairtrial power`: how many blocks, how small an effect, how many hours, from a pilot run or the place's own A/A."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from pydantic import ValidationError
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from fairtrial import plan as planning
from fairtrial import record
from fairtrial import study as language
from fairtrial.analyse.inference import power as planned
from fairtrial.analyse.inference.power import Pilot
from fairtrial.analyse.inference.sensitivity import POWER
from fairtrial.analyse.noise.models import NoiseProfile
from fairtrial.analyse.noise.profile import PILOT_CONFIDENCE
from fairtrial.analyse.sequential import last_look
from fairtrial.catalogue import catalogue
from fairtrial.cli.running import designs, screening
from fairtrial.cli.terminal import Console
from fairtrial.errors import FairtrialError, InputError, Problem, RecordError
from fairtrial.metrics.frames import used_trials
from fairtrial.places import is_fresh
from fairtrial.record import Record
from fairtrial.record.models import Plan
from fairtrial.run import noise
from fairtrial.study.duets import DUET
from fairtrial.study.resolved import Section
from fairtrial.study.tree.quantities import format_share, parse_share
from fairtrial.words import counted, duration


@dataclass(frozen=True)
class PilotSpreads:
    """A pilot's spreads, in which words to name it, and what a block of every cell takes, seconds."""

    pilots: tuple[Pilot, ...]
    source: str
    block_s: float


def power(study: Path, *, size: str | None, overrides: Sequence[str], pilot: Path | None, effect: str | None) -> None:
    """Prints what a number of blocks can show.

    Raises:
        InputError: the study or the effect is wrong.
        RecordError: there is no pilot, or none with the study's metrics.
    """
    kinds = catalogue()
    plan = planning.make(language.load(study, catalogue=kinds, size=size, overrides=overrides), catalogue=kinds)
    factor = None if effect is None else share(effect)
    before = None if pilot is None else record.read(pilot)
    if plan.screening is not None:
        Console(highlight=False).print(Group(*screening.power(plan, before, effect=factor)))
        return
    known = at_place(plan) if before is None else of_run(before, plan)
    if known is None or not known.pilots:
        where = "the place of this study" if pilot is None else str(pilot)
        in_size = f" --size {size}" if size else ""
        keeps_none = is_fresh(_place(plan)) or plan.design.order == DUET
        then = ", then name that run" if keeps_none else ", or name a run of the study"
        raise RecordError(
            f"{where} has no pilot run: expected at least {planned.FEWEST_BLOCKS} complete blocks with positive values "
            f"of {', '.join(plan.metrics.primary)}",
            hint=f"run `fairtrial run {study}{in_size} --aa`{then} with --from",
        )
    Console(highlight=False).print(Group(render(plan, known, effect=factor), *designs.power(plan, before)))


def share(text: str) -> float:
    """`3%` or `0.03` as 0.03.

    Raises:
        InputError: neither, or not above 0.
    """
    try:
        value, cause = parse_share(text), None
    except ValueError as error:
        value, cause = 0.0, error
    if not 0 < value < 1:
        problem = Problem(message=f"expected a share above 0 and below 100 %, found {text!r}", file="--effect")
        raise InputError([problem], hint="for example --effect 3%") from cause
    return value


def of_run(pilot_run: Record, plan: Plan) -> PilotSpreads:
    """A run's spreads of the plan's primary metrics, in the plan's cells."""
    cells = {cell.name for cell in plan.cells}
    pilots = tuple(
        pilot
        for pilot in planned.of_run(
            pilot_run.plan, used_trials(pilot_run), voided=pilot_run.voided_blocks, paired=planned.is_paired(plan)
        )
        if pilot.cell in cells and pilot.metric in plan.metrics.primary
    )
    kind = "A/A run" if pilot_run.plan.against_itself else "run"
    return PilotSpreads(pilots=pilots, source=f"{kind} {pilot_run.directory.name}", block_s=_block_s(pilot_run, plan))


def at_place(plan: Plan) -> PilotSpreads | None:
    """The A/A of this study and size that the first place keeps; None without one or if the place cannot be reached.

    A guest or a container is not booted to ask it, and a duet's noise is not that of blocks.
    """
    if plan.design.order == DUET:
        return None
    with contextlib.suppress(FairtrialError, ValidationError):
        kept = noise.kept(_place(plan), study=plan.study, size=plan.size)
        if kept is not None:
            profile = NoiseProfile.model_validate(kept)
            source = f"A/A run of this place, {profile.date[:10]}, {counted(profile.blocks, 'block')}"
            return PilotSpreads(planned.of_profile(profile, plan), source, block_s=plan.duration_s / plan.design.blocks)
    return None


def _place(plan: Plan) -> Section:
    """Of the first cell's baseline."""
    return next(iter(plan.resolved.values()))[plan.factors[plan.arm][0]].place


def _block_s(pilot_run: Record, plan: Plan) -> float:
    """What a block of every cell took in a run, for as many trials as the plan's blocks have."""
    taken = [
        (datetime.fromisoformat(trial.finished) - datetime.fromisoformat(trial.started)).total_seconds()
        - trial.phases_s.get("prepare", 0.0)
        for trial in pilot_run.trials
        if trial.valid
    ]
    together = 2 if plan.design.order == DUET else 1  # trials at a time
    per_block = len(plan.trials) / plan.design.blocks / together
    return sum(taken) / len(taken) * per_block if taken else plan.duration_s / plan.design.blocks


def sentence(plan: Plan, known: PilotSpreads) -> str:
    """What the planned blocks can show, in a line of `fairtrial plan`."""
    hardest, fewest = planned.hardest(known.pilots), last_look.fewest_blocks(plan)
    source = "; ".join([known.source, *_missing(plan, known)])
    if plan.design.blocks < fewest:
        return f"detectable   unknown: needs at least {fewest} blocks ({source})"
    effect = last_look.detectable(plan, hardest.upper, blocks=plan.design.blocks)
    where = f"{hardest.metric}, cell {hardest.cell}"
    runs_all = " if all blocks run" if plan.design.stop == "precision" else ""
    return f"detectable   {_percent(effect)} in {where}, with power {POWER:g}{runs_all} ({source})"


def _missing(plan: Plan, known: PilotSpreads) -> list[str]:
    """What the pilot says nothing of, by metric."""
    piloted = {(pilot.cell, pilot.metric) for pilot in known.pilots}
    cells = {
        metric: [cell.name for cell in plan.cells if (cell.name, metric) not in piloted]
        for metric in plan.metrics.primary
    }
    return [f"no pilot of {metric} in {', '.join(names)}" for metric, names in cells.items() if names]


def render(plan: Plan, known: PilotSpreads, *, effect: float | None) -> RenderableType:
    """The pilot, the table, and the answer for the effect that was asked for."""
    size = planned.family(plan)
    test = "paired t on log ratios" if planned.is_paired(plan) else "Welch's t on logarithms"
    parts: list[RenderableType] = [
        Text(
            f"{plan.study}: pilot is {known.source}; {test}, power {POWER:g}, level "
            f"{1 - plan.design.confidence:g} over a family of {size} ({planned.level(plan):.3g} each){_looks(plan)}; "
            f"planned with the upper {PILOT_CONFIDENCE * 100:.0f} % confidence bound of the pilot's standard deviation"
            "\n"
        ),
        _pilots(known),
        Text(),
        _blocks(plan, known),
    ]
    if effect is not None:
        parts += [Text(), *_answers(plan, known, effect=effect)]
    return Group(*parts)


def _looks(plan: Plan) -> str:
    """What a rule that stops early leaves of the level."""
    design = plan.design
    if design.stop == "fixed":
        return ""
    left = last_look.level(plan, blocks=design.blocks)
    said = f", of which `stop: {design.stop}` leaves {left:.3g} to a look after {counted(design.blocks, 'block')}"
    if design.stop != "precision":
        return said
    return f"{said}; a cell that stops before, at ± {format_share(design.precision or 0)}, has less power"


def _pilots(known: PilotSpreads) -> Table:
    table = _table("metric", "cell", "blocks", "sd", "sd, upper bound", left=2)
    for pilot in known.pilots:
        figures = (str(pilot.df + 1), f"{pilot.sd * 100:.2f} %", f"{pilot.upper * 100:.2f} %")
        table.add_row(pilot.metric, pilot.cell, *figures)
    return table


def _blocks(plan: Plan, known: PilotSpreads) -> Table:
    """Detectable effects of each metric in its noisiest cell, by the number of blocks."""
    metrics = {
        metric: planned.hardest([pilot for pilot in known.pilots if pilot.metric == metric])
        for metric in plan.metrics.primary
        if any(pilot.metric == metric for pilot in known.pilots)
    }
    table = _table("blocks", *(f"{metric} detects" for metric in metrics), "at the pilot's own sd", "duration", left=0)
    for blocks in sorted({*planned.TABLE, max(plan.design.blocks, planned.FEWEST_BLOCKS)}):
        upper = [last_look.detectable(plan, pilot.upper, blocks=blocks) for pilot in metrics.values()]
        own = [last_look.detectable(plan, pilot.sd, blocks=blocks) for pilot in metrics.values()]
        here = " *" if blocks == plan.design.blocks else ""
        table.add_row(
            f"{blocks}{here}",
            *(_percent(effect) for effect in upper),
            ", ".join(_percent(effect) for effect in own),
            duration(known.block_s * blocks),
        )
    table.caption = "* as in the study" if plan.design.blocks else None
    return table


def _answers(plan: Plan, known: PilotSpreads, *, effect: float) -> list[Text]:
    """Blocks for one effect: of the noisiest cell, which decides, and of every cell by itself."""
    needed = {
        f"{pilot.metric} in {pilot.cell}": last_look.blocks_needed(plan, pilot.upper, effect=effect)
        for pilot in known.pilots
    }
    missing = _missing(plan, known)
    everywhere = "every cell of the pilot" if missing else "every cell"
    lines = [f"{where}: {_needed(blocks)}" for where, blocks in needed.items()]
    every = [blocks for blocks in needed.values() if blocks is not None]
    if len(every) == len(needed):
        takes = duration(known.block_s * max(every))
        whole = f"an effect of {effect * 100:g} % in {everywhere} needs {_needed(max(every))}: {takes}"
    else:
        whole = f"an effect of {effect * 100:g} % needs more than {planned.MOST_BLOCKS} blocks in some cell"
    whole = "; ".join([whole, *missing])
    return [Text(whole, style="bold"), *(Text(f"  {line}") for line in lines if len(lines) > 1)]


def _needed(blocks: int | None) -> str:
    return f"more than {planned.MOST_BLOCKS} blocks" if blocks is None else counted(blocks, "block")


def _percent(effect: float | None) -> str:
    return "–" if effect is None else f"± {effect * 100:.{1 if effect < 1 else 0}f} %"


def _table(*columns: str, left: int) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0), caption_justify="left")
    for index, column in enumerate(columns):
        table.add_column(column, justify="left" if index < left else "right", no_wrap=True)
    return table
