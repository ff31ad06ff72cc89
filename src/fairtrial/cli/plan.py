"""`fairtrial plan`: what a study would run, in full, without running it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from rich.console import Console, Group, JustifyMethod, RenderableType
from rich.table import Table
from rich.text import Text

from fairtrial.record.models import Difference, Plan
from fairtrial.study.quantities import format_share
from fairtrial.words import counted

MINIMUM_WIDTH = 80  # narrower, seeds would be cut
_MINUTE_S, _HOUR_S = 60, 3600
_BINARY_UNITS = (("GiB", 30), ("MiB", 20), ("KiB", 10))


def plan(study: Path, *, size: str | None, overrides: list[str]) -> None:
    """Prints the plan of a study."""
    from fairtrial import plan as planning
    from fairtrial import study as language
    from fairtrial.catalogue import catalogue

    known = catalogue()
    loaded = language.load(study, catalogue=known, size=size, overrides=overrides)
    width = max(MINIMUM_WIDTH, shutil.get_terminal_size().columns)
    Console(width=width, highlight=False).print(render(planning.make(loaded, catalogue=known)))


def render(plan: Plan) -> RenderableType:
    """The plan for a person: what is asked, what differs, every trial, and what it costs."""
    warnings = [Text(f"warning: {warning}") for warning in plan.warnings]
    return Group(
        _heading(plan),
        Text("\nwhat differs between the arms"),
        _differences(plan.differences, arms=plan.factors[plan.arm]),
        Text("\ntrials, in the order they run"),
        _trials(plan),
        Text(""),
        _costs(plan),
        *warnings,
    )


def _heading(plan: Plan) -> RenderableType:
    size = f" (size {plan.size})" if plan.size else ""
    lines = [f"{plan.study}{size}" + (f": {plan.question}" if plan.question else ""), ""]
    baseline, *others = plan.factors[plan.arm]
    lines.append(f"arm          {plan.arm}: {baseline} (baseline) against {', '.join(others)}")
    for name, levels in plan.factors.items():
        if name != plan.arm:
            lines.append(f"condition    {name}: {', '.join(levels)}")
    if plan.also_compare:
        lines.append(f"compared too {', '.join(plan.also_compare)}")
    for role, names in (
        ("primary", plan.metrics.primary),
        ("secondary", plan.metrics.secondary),
        ("guardrails", plan.metrics.guardrails),
    ):
        if names:
            lines.append(f"{role:<12} {', '.join(f'{name} [{_better(plan, name)}]' for name in names)}")
    lines += [
        f"expected     {expected.metric} {expected.text} where {expected.factor} is {expected.level}"
        for expected in plan.expectations
    ]
    design = plan.design
    lines.append(
        f"design       {design.order}, {counted(design.blocks, 'block')} per cell, seed {design.seed}, "
        f"margin {format_share(design.margin)}, confidence {format_share(design.confidence)}"
    )
    lines.append(f"             at most {counted(design.voided_limit, 'voided block')} replaced per cell")
    return Text("\n".join(lines))


def _better(plan: Plan, name: str) -> str:
    definition = plan.metrics.definitions[name]
    return f"{definition.unit}, {definition.better} is better"


def _table(*columns: str, right: tuple[str, ...] = (), whole: tuple[str, ...] = ()) -> Table:
    """A plain table; columns named in `whole` never wrap, so that their numbers can be copied."""
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for column in columns:
        justify: JustifyMethod = "right" if column in right else "left"
        table.add_column(column, justify=justify, overflow="fold", no_wrap=column in whole)
    return table


def _differences(differences: list[Difference], *, arms: list[str]) -> RenderableType:
    table = _table("path", *arms)
    for difference in differences:
        values = (_value(difference.values[arm]) if arm in difference.values else "(not set)" for arm in arms)
        table.add_row(Text(difference.path), *(Text(value) for value in values))
    return table


def _value(value: Any) -> str:
    return "(none)" if value is None else str(value)


def _trials(plan: Plan) -> RenderableType:
    numbers = ("position", "round", "block")
    table = _table(*numbers, "cell", "arm", "seed", right=numbers, whole=(*numbers, "seed"))
    for trial in plan.trials:
        values = (trial.position, trial.round, trial.block, trial.cell, trial.arm, trial.seed)
        table.add_row(*(Text(str(value)) for value in values))
    return table


def _costs(plan: Plan) -> RenderableType:
    cells, blocks = counted(len(plan.cells), "cell"), counted(plan.design.blocks, "block")
    return Text(
        f"{len(plan.trials)} trials ({cells} × {blocks} × {len(plan.factors[plan.arm])} arms), each named "
        f"CELL.bBLOCK.ARM, the first {plan.trials[0].id}\n"
        f"expected duration {duration(plan.duration_s)}, an estimate before anything was measured\n"
        f"expected disk {size(plan.disk_bytes)}"
    )


def duration(seconds: float) -> str:
    """Seconds as `45 s`, `12 min` or `3 h 20 min`."""
    if seconds < 2 * _MINUTE_S:
        return f"{seconds:.0f} s"
    if seconds < 2 * _HOUR_S:
        return f"{seconds / _MINUTE_S:.0f} min"
    minutes = round(seconds / _MINUTE_S)
    return f"{minutes // _MINUTE_S} h {minutes % _MINUTE_S:02d} min"


def size(count: int) -> str:
    """Bytes as `1.5 GiB`."""
    for unit, bits in _BINARY_UNITS:
        if count >= 1 << bits:
            return f"{count / (1 << bits):.1f} {unit}"
    return f"{count} B"
