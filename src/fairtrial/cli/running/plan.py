"""`fairtrial plan`: what a study would run, in full, without running it."""

from __future__ import annotations

import io
import shutil
from collections.abc import Sequence
from pathlib import Path

from rich.console import Group, JustifyMethod, RenderableType
from rich.table import Table
from rich.text import Text

from fairtrial import study as language
from fairtrial.cli.places import of_plan
from fairtrial.cli.running import designs, screening, spreading
from fairtrial.cli.terminal import Console, print_whole
from fairtrial.places import place_of
from fairtrial.record.models import Design, Difference, Plan
from fairtrial.study import Study
from fairtrial.study.duets import DUET
from fairtrial.study.tree.quantities import format_seconds, format_share
from fairtrial.words import counted, duration, size

MINIMUM_WIDTH = 80  # narrower, seeds would be cut


def plan(
    study: Path,
    *,
    size: str | None,
    overrides: list[str],
    against_itself: bool = False,
    places: Path | None = None,
    hosts: int | None = None,
) -> None:
    """Prints the plan of a study, or of an A/A run of its baseline; how long it takes on hosts of a file, or so many.

    Raises:
        InputError: the study is wrong, or the file of hosts.
    """
    loaded, made = _made(study, size=size, overrides=overrides, against_itself=against_itself)
    if loaded.file.tune is not None:
        from fairtrial.cli.running import tune

        print_whole(Console(highlight=False), tune.plan(loaded))
        return
    boots_s = spreading.boots_of_hosts(made, study=loaded, places=places, hosts=hosts)
    beside = spreading.sentences(made, boots_s=boots_s)
    width = max(MINIMUM_WIDTH, shutil.get_terminal_size().columns)
    Console(width=width, highlight=False).print(render(made, detectable=_detectable(made), beside=beside))


def text(study: Path, *, width: int = 120) -> tuple[str, str]:
    """The plan of a study, as `plan` prints it, and the study with all that it includes.

    Raises:
        InputError: the study is wrong.
    """
    loaded, made = _made(study, size=None, overrides=[])
    console = Console(width=width, highlight=False, file=io.StringIO(), color_system=None)
    with console.capture() as printed:
        console.print(render(made, detectable=_detectable(made)))
    return printed.get(), language.dump(loaded)


def _made(study: Path, *, size: str | None, overrides: list[str], against_itself: bool = False) -> tuple[Study, Plan]:
    from fairtrial import plan as planning
    from fairtrial.catalogue import catalogue

    known = catalogue()
    loaded = language.load(study, catalogue=known, size=size, overrides=overrides)
    made = planning.make(loaded, catalogue=known)
    if against_itself:
        made = planning.against_itself(made, catalogue=known)
    return loaded, made


def _detectable(plan: Plan) -> str:
    """What the planned blocks can show, where this machine has an A/A of the study; other places are not asked."""
    from fairtrial.cli.running import power

    if plan.screening is not None:
        return screening.sentence(plan)
    places = [trial.place for arms in plan.resolved.values() for trial in arms.values()]
    known = power.at_place(plan) if all(place.kind == "local" for place in places) else None
    return "" if known is None or not known.pilots or plan.against_itself else power.sentence(plan, known)


def render(plan: Plan, *, detectable: str = "", beside: Sequence[str] = ()) -> RenderableType:
    """The plan for a person: what is asked, what differs, every trial, what it costs, and what it can show.

    `beside` says where blocks run side by side.
    """
    warnings = [Text(f"warning: {warning}") for warning in plan.warnings]
    return Group(
        _heading(plan),
        *_what_differs(plan),
        Text("\ntrials, in the order they run"),
        _trials(plan),
        *_diagnostics(plan),
        Text(""),
        _costs(plan),
        *(Text(line) for line in beside),
        *([Text(detectable)] if detectable else []),
        *warnings,
    )


def _what_differs(plan: Plan) -> list[RenderableType]:
    if plan.against_itself:
        return [Text("\nnothing differs between the arms: an A/A run, whose differences are the place's noise floor")]
    if plan.screening is not None:
        return [*screening.matrix(plan.screening)]
    arms = plan.factors[plan.arm]
    return [Text("\nwhat differs between the arms"), _differences(plan.differences, arms=arms)]


def _heading(plan: Plan) -> RenderableType:
    size = f" (size {plan.size})" if plan.size else ""
    lines = [f"{plan.study}{size}" + (f": {plan.question}" if plan.question else ""), ""]
    baseline, *others = plan.factors[plan.arm]
    if plan.screening is not None:
        lines.append(f"screens      {', '.join(plan.screening.options)}")
    else:
        lines.append(f"arm          {plan.arm}: {baseline} (baseline) against {', '.join(others)}")
    for name, levels in plan.factors.items():
        if name != plan.arm:
            lines.append(f"condition    {name}: {', '.join(levels)}")
    if plan.also_compare:
        lines.append(f"also compare {', '.join(plan.also_compare)}")
    if plan.curve is not None:
        lines.append(f"curve        {plan.curve.model} over {plan.curve.over}, fitted to each arm")
    lines += designs.heading(plan)
    for role, names in (
        ("primary", plan.metrics.primary),
        ("secondary", plan.metrics.secondary),
        ("guardrails", plan.metrics.guardrails),
    ):
        if names:
            lines.append(f"{role:<12} {', '.join(f'{name} [{_better(plan, name)}]' for name in names)}")
    lines += _sampled(plan)
    baseline = f"{plan.arm} {plan.factors[plan.arm][0]}"
    lines += [
        f"expected     {expected.metric} {expected.text} where {expected.factor} is {expected.level}, with {baseline}"
        for expected in plan.expectations
    ]
    design = plan.design
    lines.append(
        f"design       {design.order}, {_blocks(design)} per cell, seed {design.seed}, "
        f"margin {format_share(design.margin)}, confidence {format_share(design.confidence)}"
    )
    if plan.screening is not None:
        return Text("\n".join(lines))
    if design.min_blocks is not None:
        lines.append(f"stops        {_stops(design)}")
    lines.append(f"             at most {counted(design.voided_limit, 'voided block')} replaced per cell")
    return Text("\n".join(lines))


def _sampled(plan: Plan) -> list[str]:
    """The endpoints and commands that are read beside the load, a line each."""
    default_ms = plan.telemetry_interval_ms
    read = [
        *((each, f"{each.url} ({', '.join(each.match) or 'all metrics'})") for each in plan.exporters),
        *((each, f"`{each.run}` ({each.name})") for each in plan.counter_commands),
    ]
    return [
        f"{'' if index else 'samples':<12} {what} every {format_seconds(each.interval_ms(default_ms) / 1000)}"
        for index, (each, what) in enumerate(read)
    ]


def _blocks(design: Design) -> str:
    if design.min_blocks is None:
        return counted(design.blocks, "block")
    return f"{design.min_blocks} to {counted(design.blocks, 'block')}"


def _stops(design: Design) -> str:
    """When a cell gets no more blocks, in a line."""
    said = {
        "sequential": f"cell by cell after each round, {(design.spending or '').replace('_', ' ')} spending",
        "anytime": "cell by cell after each round, always-valid intervals",
        "precision": f"once the interval reaches ± {format_share(design.precision or 0)}",
    }[design.stop]
    switches = (("futility", design.futility), ("equivalence", design.equivalence))
    ignored = [name for name, on in switches if on is False and design.stop != "precision"]
    said += f", never for {' or '.join(ignored)}" if ignored else ""
    return said + (f", within {duration(design.time_budget_s)}" if design.time_budget_s else "")


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
        values = (difference.values.get(arm, "(not set)") for arm in arms)
        table.add_row(Text(difference.path), *(Text("(none)" if value is None else str(value)) for value in values))
    return table


def _trials(plan: Plan) -> RenderableType:
    numbers = ("position", "round", "block")
    halves = ("half",) if plan.design.order == DUET else ()
    table = _table(*numbers, "cell", "arm", *halves, "seed", right=(*numbers, *halves), whole=(*numbers, "seed"))
    for trial in plan.trials:
        half = (trial.half,) if halves else ()
        values = (trial.position, trial.round, trial.block, trial.cell, trial.arm, *half, trial.seed)
        table.add_row(*(Text(str(value)) for value in values))
    return table


def _diagnostics(plan: Plan) -> list[RenderableType]:
    """The trials with probes and what they cost; nothing if there are none."""
    if not plan.diagnostics:
        return []
    table = _table("position", "block", "cell", "arm", "seed", right=("position", "block"), whole=("position", "seed"))
    for trial in plan.diagnostics:
        table.add_row(*(Text(str(value)) for value in (trial.position, trial.block, trial.cell, trial.arm, trial.seed)))
    said = (
        f"\n{counted(len(plan.diagnostics), 'diagnostic trial')} after them, about "
        f"{duration(plan.diagnostic_duration_s)} more, excluded from estimates, each with "
        f"{', '.join(probe.label for probe in plan.probes)}"
    )
    return [Text(said), table]


def _costs(plan: Plan) -> RenderableType:
    cells, blocks = counted(len(plan.cells), "cell"), counted(plan.design.blocks, "block")
    at_most = "at most " if plan.design.min_blocks else ""
    again, times = (f" × {plan.design.per_boot} per boot", "[+TIME]") if plan.design.per_boot > 1 else ("", "")
    named = (
        f"{at_most}{len(plan.trials)} trials ({cells} × {blocks} × {len(plan.factors[plan.arm])} arms{again}), named "
        f"CELL.bBLOCK.ARM{times}; the first is {plan.trials[0].id}"
    )
    return Text(
        f"{named if plan.screening is None else screening.costs(plan)}\n"
        f"{_durations(plan)}\n"
        f"expected disk {size(plan.disk_bytes)}" + "".join(f"\nneeds {each}" for each in _needs(plan))
    )


def _needs(plan: Plan) -> list[str]:
    """What its places must have beyond disk; `fairtrial doctor STUDY` looks whether they do."""
    return [need for place in of_plan(plan) if (need := place_of(place).need)]


def _durations(plan: Plan) -> str:
    """How long the run takes: one figure, or three if it may stop early."""
    from fairtrial.analyse.sequential import planning

    first, expected = plan.design.min_blocks, planning.expected_blocks(plan)
    if first is None or expected is None:
        return f"expected duration {duration(plan.duration_s)}, estimated before any measurement"
    each_s = plan.duration_s / plan.design.blocks
    largest_s = min(plan.duration_s, plan.design.time_budget_s or plan.duration_s)
    if largest_s < each_s * first:
        rounds = max(1, int(largest_s / each_s))  # the first round always runs
        return (
            f"expected duration {duration(each_s * rounds)}, {counted(rounds, 'block')} per cell: the time budget ends "
            f"the run before its first decision, which takes {counted(first, 'block')}, so it can claim nothing"
        )
    expected = min(expected, largest_s / each_s)
    return (
        f"shortest duration {duration(each_s * first)}, {counted(first, 'block')} per cell; longest "
        f"{duration(largest_s)}\n"
        f"expected duration {duration(each_s * expected)}, {expected:.1f} blocks per cell "
        f"{planning.ASSUMED}"
    )
