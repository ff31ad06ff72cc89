"""What a tuning would run, and for how long, without running it."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from fairtrial.study.tuning import TunedOption
from fairtrial.study.tuning.levels import defaults
from fairtrial.tune import planning
from fairtrial.tune.events import Stages
from fairtrial.tune.running import Blocks, Runner
from fairtrial.tune.searching import AGAIN, CONFIRMATION, SEARCH, arm, tuning_of
from fairtrial.words import counted, duration


def render(runner: Runner, stages: Stages) -> RenderableType:
    """Options, stages and durations, for a person."""
    study = runner.study
    file = study.file
    (objective,) = file.metrics.primary
    metric = study.definitions[objective]
    guardrails = ", ".join(file.metrics.guardrails)
    parts: list[RenderableType] = [
        Text(f"{study.name}: {file.question}" if file.question else study.name, style="bold")
    ]
    parts.append(Text(f"objective    {objective}: {metric.label}, {metric.better} is better"))
    if guardrails:
        parts.append(Text(f"guardrails   {guardrails}"))
    return Group(*parts, Text(), _options(runner), Text(), _stages(runner, stages))


def _options(runner: Runner) -> Table:
    table = _table("option", "values", "default", "of")
    tuning = tuning_of(runner.study)
    usual = defaults(tuning, runner.study.base)
    for name, option in tuning.options.items():
        default = str(usual[name]) if name in usual else "the system's own"
        table.add_row(name, values(option), default, option.of or f"{{{name}}}")
    return table


def values(option: TunedOption) -> str:
    """What may be proposed, in words."""
    if option.choices is not None:
        return ", ".join(map(str, option.choices))
    return f"{option.low} to {option.high}{', log' if option.scale == 'log' else ''}"


def _stages(runner: Runner, stages: Stages) -> Table:
    confirm = tuning_of(runner.study).confirm
    most = confirm.blocks or confirm.most
    fewest = confirm.blocks or min(planning.fewest_blocks(alpha=1 - runner.study.trials.confidence), most)
    proposal = {arm(1): _proposal(runner)}
    block = runner.plan(Blocks(SEARCH, proposal, blocks=1)).duration_s
    again = runner.plan(Blocks(AGAIN, proposal, blocks=stages.blocks)).duration_s * (stages.best + 1) / 2
    ends = [runner.plan(Blocks(CONFIRMATION, proposal, blocks=blocks)) for blocks in (fewest, most)]
    table = _table("stage", "what runs", "trials", "duration")
    search = f"{counted(stages.proposals, 'proposal')}, each in a block with the default"
    table.add_row("search", search, str(2 * stages.proposals), duration(stages.proposals * block))
    fresh = f"the best {stages.best} and the default, {stages.blocks} fresh blocks"
    table.add_row("again", fresh, str((stages.best + 1) * stages.blocks), duration(again))
    confirming = f"the best against the default, {_range(str(fewest), str(most))} blocks"
    trials = _range(*(str(len(plan.trials)) for plan in ends))
    table.add_row("confirmation", confirming, trials, _range(*(duration(plan.duration_s) for plan in ends)))
    return table


def _proposal(runner: Runner) -> dict[str, bool | int | float | str]:
    """Values of a proposal that differs from the default, for its duration."""
    tuning = tuning_of(runner.study)
    usual = defaults(tuning, runner.study.base)
    ends = [
        {
            name: option.choices[last] if option.choices is not None else option.value(option.ends[last])
            for name, option in tuning.options.items()
        }
        for last in (0, -1)
    ]
    return next(each for each in ends if each != usual)


def _range(first: str, last: str) -> str:
    return first if first == last else f"{first} – {last}"


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(column, justify="right" if column == "trials" else "left")
    return table
