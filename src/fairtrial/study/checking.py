"""What a study must be beyond its shape: every combination of levels resolves, and something is compared.

Owns the checks that need factors and kinds together. All are noted at the line that set the value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import combinations, product
from math import prod

from pydantic import ValidationError

from fairtrial.errors import Problem
from fairtrial.study import assignments
from fairtrial.study.boots import check_hosts, check_reboot
from fairtrial.study.catalogue import TRIAL_COLUMNS, Catalogue, MetricDefinition
from fairtrial.study.confounding import Factors, check_confounding
from fairtrial.study.designs.numeric_factors import NumericFactor
from fairtrial.study.duets import OTHERWISE, check_duet, same_in_both_arms
from fairtrial.study.expectations import Expectation, read_expectations
from fairtrial.study.file_model import Metrics
from fairtrial.study.resolved import ResolvedTrial
from fairtrial.study.resolving import Resolution, known_in, overlaid, resolve
from fairtrial.study.screening import check_screening, design_of, one_at_a_time
from fairtrial.study.service_counters import CounterMetric, with_placeholders
from fairtrial.study.tree.merging import KIND_SECTIONS, SECTIONS
from fairtrial.study.tree.nodes import Branch, Listing, Node, Position, Scalar, Tree, dotted, leaves, plain
from fairtrial.study.tree.problems import Problems, did_you_mean, listed, note_in_part
from fairtrial.study.tree.quantities import PLACEHOLDER
from fairtrial.study.tuning import SECTION as TUNE

MAXIMUM_COMBINATIONS = 512  # merged and validated for four sizes in a second; few runs could finish more
ROLES = ("primary", "secondary", "guardrails")
_CELLS_SHOWN = 3

Levels = tuple[str, ...]
Trials = Mapping[Levels, ResolvedTrial]


@dataclass(frozen=True)
class StudyDefinitions:
    """What checking found out: the expectations, and the definition of every metric that the study names."""

    expectations: tuple[Expectation, ...]
    definitions: Mapping[str, MetricDefinition]


def factors_of(tree: Tree) -> Factors:
    """The levels of every factor, as overlays, in study order; what is no mapping is left out."""
    section = tree.tree("factors")
    return {
        factor: {
            level: Tree({key: value for key, value in node.entries.items() if key in SECTIONS}, node.at, node.key_at)
            for level, node in section.tree(factor).entries.items()
            if isinstance(node, Tree)
        }
        for factor in section.entries
    }


def check(
    tree: Tree,
    *,
    numeric: Mapping[str, NumericFactor],
    catalogue: Catalogue,
    problems: Problems,
    recorded: bool = False,
) -> StudyDefinitions:
    """Notes everything wrong with a merged study, whose factors all have levels; some stand for numbers.

    `recorded`: as `loading.load` has it.
    """
    factors = factors_of(tree)
    design = design_of(tree)
    if design:
        check_screening(tree, factors, design=design, problems=problems)
    arm = "" if design else _check_arm(tree, factors, problems)
    _check_metric_names(tree, factors, problems)
    check_confounding(factors, problems)
    expectations = read_expectations(
        tree, {name: list(levels) for name, levels in factors.items()}, numeric=numeric, arm=arm, problems=problems
    )
    given, factors = factors, {name: levels for name, levels in factors.items() if levels}  # the others are noted
    count = prod(len(levels) for levels in factors.values())
    if count > MAXIMUM_COMBINATIONS and not design:
        message = f"{count} combinations of levels, more than {MAXIMUM_COMBINATIONS}"
        problems.add(message, tree.where("factors"), field=("factors",), suggestion="split it into several studies")
        return StudyDefinitions((), {})
    combinations_ = one_at_a_time(factors) if design else list(product(*factors.values()))
    here = Problems()
    resolutions = _resolve_all(tree, factors, every=combinations_, catalogue=catalogue, problems=here)
    for problem in here:  # but for a section that levels may bring of a factor that has none yet
        if factors == given or problem.field not in SECTIONS or tree.tree(problem.field).entries:
            problems.note(problem)
    _check_base(tree, catalogue, problems)
    trials = [each.trial for each in resolutions.values() if each.trial is not None]
    check_duet(tree, factors, arm=arm, trials=trials, problems=problems)
    whole = {levels: each.trial for levels, each in resolutions.items() if each.trial is not None}
    also = [item.text for item in _items(tree.entries.get("also_compare")) if isinstance(item, Scalar)]
    compared = list(factors if design else dict.fromkeys([arm, *also]))
    if factors == given:
        check_reboot(tree, factors, arm=arm, trials=whole, problems=problems)
        check_hosts(tree, factors, compared=() if recorded else compared, trials=whole, problems=problems)
    for each in compared:
        for first, second, equal in _equal_levels(factors, of=each, resolutions=resolutions):
            problems.add(
                f"{'arms' if each == arm else 'levels'} `{first}` and `{second}` resolve to equal trials in cell "
                f"{equal}, so nothing would be compared",
                tree.tree("factors").tree(each).where(second),
                field=("factors", each, second),
            )
    uses: list[_MetricUse] = [*_named_metrics(tree)]
    names = list(factors)
    for expectation, at in expectations:
        among = (names.index(expectation.factor), expectation.level)
        uses.append(_MetricUse(expectation.metric, at, ("expect", expectation.level), among))
    _check_placeholders(tree, factors, catalogue=catalogue, resolutions=resolutions, problems=problems)
    own = _own_metrics(tree, resolutions, problems)
    if not recorded:
        _check_servers(uses, factors, resolutions=resolutions, problems=problems)
    definitions = _check_metrics(uses, factors, resolutions=resolutions, problems=problems, own=own)
    _check_duet_metrics(tree, uses, definitions=definitions, problems=problems)
    windowed = {**own, **{name: catalogue.telemetry_metrics[name] for name in catalogue.window_metrics}}
    # By definition: some workloads measure themselves what telemetry has under the same name.
    telemetry = [use for use in uses if use.name in windowed and definitions.get(use.name) == windowed[use.name]]
    _check_windows(telemetry, factors, catalogue=catalogue, trials=whole, problems=problems)
    return StudyDefinitions(tuple(expectation for expectation, _ in expectations), definitions)


def _check_metric_names(tree: Tree, factors: Factors, problems: Problems) -> None:
    """A table of trials has one column of each name: its own, those of factors, those of metrics."""
    levels = [(("factors", name, level), node) for name, of in factors.items() for level, node in of.items()]
    found: list[tuple[tuple[str, ...], Tree]] = [(("metrics",), tree.tree("metrics").without(*Metrics.model_fields))]
    found += [
        ((*path, "workload", kind, "metrics"), trial.tree("workload").tree(kind).tree("metrics"))
        for path, trial in [((), tree), *levels]
        for kind in trial.tree("workload").entries
    ]
    for path, metrics in found:
        for name in metrics.entries:
            if name in factors or name in TRIAL_COLUMNS:
                of = "a factor is called" if name in factors else "a column of every table of trials is called"
                problems.add(
                    f"{of} `{name}` already",
                    metrics.where(name),
                    field=(*path, name),
                    suggestion="give the metric another name",
                )


def _check_arm(tree: Tree, factors: Factors, problems: Problems) -> str:
    node = tree.entries.get("arm")
    arm = node.text if isinstance(node, Scalar) else ""
    if node is None:
        problems.add("required but missing", tree.at, field=("arm",))
    named = [("arm", node), *(("also_compare", item) for item in _items(tree.entries.get("also_compare")))]
    for number, (key, scalar) in enumerate(named):
        if not isinstance(scalar, Scalar):
            continue
        if scalar.text not in factors:
            problems.unknown("factor", scalar.text, factors, at=scalar.at, field=(key,))
        elif len(factors[scalar.text]) == 1 and not any(_is_below(each.field, scalar.text) for each in problems):
            message = f"factor `{scalar.text}` has only one level, so there is nothing to compare"
            problems.add(message, scalar.at, field=(key,), suggestion="add a level; the first is the baseline")
        elif key == "also_compare" and scalar.text == arm:
            problems.add(f"`{arm}` is already the arm", scalar.at, field=(key,), suggestion="leave it out here")
        elif any(scalar.text == other.text for _, other in named[1:number] if isinstance(other, Scalar)):
            problems.add(f"`{scalar.text}` is named twice", scalar.at, field=(key,), suggestion="keep one of them")
    return arm


def _is_below(field: str, factor: str) -> bool:
    """Whether a mistake is in a factor: levels that are wrong are left out of it."""
    return f"{field}.".startswith(f"{dotted(('factors', factor))}.")


def _resolve_all(
    tree: Tree, factors: Factors, *, every: list[Levels], catalogue: Catalogue, problems: Problems
) -> dict[Levels, Resolution]:
    base = Tree({key: node for key, node in tree.entries.items() if key in SECTIONS}, tree.at, tree.key_at)
    resolutions: dict[Levels, Resolution] = {}
    met: dict[Problem, list[Levels]] = {}
    assigned = {id(node): path for path, node in leaves(base) if node.at == assignments.AT}
    for levels in every:
        here = Problems()
        chosen = (factors[factor][level] for factor, level in zip(factors, levels, strict=True))
        trial = overlaid(base, chosen)
        if assigned:
            used = {id(node) for _, node in leaves(trial)}
            assigned = {node: path for node, path in assigned.items() if node not in used}
        resolutions[levels] = resolve(trial, catalogue=catalogue, problems=here)
        _check_system_fits(trial, catalogue, here)
        for problem in here:
            met.setdefault(problem, []).append(levels)
    for problem, where in met.items():
        alone = len(where) == 1 and len(every) < prod(len(levels) for levels in factors.values())
        condition = _condition(factors, where, beside=every[0] if alone else ())
        problems.note(replace(problem, message=problem.message + condition))
    for path in () if met else assigned.values():
        message = "it has no effect: in every trial a level sets it, or names another kind"
        suggestion = f"set it in a level, as factors.FACTOR.LEVEL.{dotted(path)}"
        problems.add(message, assignments.AT, field=path, suggestion=suggestion)
    return resolutions


def _check_base(tree: Tree, catalogue: Catalogue, problems: Problems) -> None:
    """A mistake in the base trial that no trial has, as every level says something else there."""
    here = Problems()
    for section in (*KIND_SECTIONS, "settings"):
        known, base = known_in(section, catalogue), tree.tree(section)
        for name, node in base.entries.items():
            path = (*section.split("."), name)
            if name in known and TUNE not in tree.entries:  # whose base trial names options in values' places
                note_in_part(known[name].parameters, node, prefix=path, problems=here)
            elif name not in known and section in KIND_SECTIONS:
                here.unknown(f"kind of {path[-2]}", name, known, at=base.where(name), field=path)
    noted = {(problem.file, problem.line, problem.column) for problem in problems}
    for problem in here:
        if (problem.file, problem.line, problem.column) not in noted:
            problems.note(problem)


def _check_system_fits(trial: Tree, catalogue: Catalogue, problems: Problems) -> None:
    """A workload or a setting that needs a database is refused now, not once its data are prepared."""
    system = trial.tree("system")
    for section, kinds in (("workload", catalogue.workloads), ("settings", catalogue.settings)):
        for name in trial.tree(section).entries:
            kind = kinds.get(name)
            if kind is None or not kind.systems:
                continue
            for system_name in system.entries:
                if system_name in catalogue.systems and system_name not in kind.systems:
                    needed = listed(sorted(kind.systems))
                    problems.add(
                        f"`{name}` does not run on the system `{system_name}`; expected {needed}",
                        trial.tree(section).where(name),
                        field=(section, name),
                        suggestion=f"name one under `system`: `system: {{{min(kind.systems)}: {{}}}}`",
                    )


def _condition(factors: Factors, where: list[Levels], *, beside: Levels = ()) -> str:
    """Under which levels something holds, as `, with memory=low`; nothing if under all.

    Levels of `beside` go without saying: where one level was tried beside them, it alone is to blame.
    """
    parts = []
    for index, (name, every) in enumerate(factors.items()):
        met = {levels[index] for levels in where}
        if len(met) < len(every) and met != set(beside[index : index + 1]):
            parts.append(f"{name}={'|'.join(level for level in every if level in met)}")
    return f", with {', '.join(parts)}" if parts else ""


def _equal_levels(
    factors: Factors, *, of: str, resolutions: Mapping[Levels, Resolution]
) -> Iterable[tuple[str, str, str]]:
    """Every two levels of a factor that are the same trial somewhere, and in which cells."""
    if of not in factors:
        return
    index = list(factors).index(of)
    for first, second in combinations(factors[of], 2):
        equal = [
            "+".join(level for position, level in enumerate(levels) if position != index) or "all"
            for levels, resolution in resolutions.items()
            if levels[index] == first
            and resolution.trial is not None
            and (other := resolutions.get((*levels[:index], second, *levels[index + 1 :]))) is not None
            and resolution.trial == other.trial
        ]
        if equal:
            yield first, second, ", ".join(equal[:_CELLS_SHOWN]) + (" and others" if len(equal) > _CELLS_SHOWN else "")


def _check_placeholders(
    tree: Tree,
    factors: Factors,
    *,
    catalogue: Catalogue,
    resolutions: Mapping[Levels, Resolution],
    problems: Problems,
) -> None:
    """What telemetry's addresses and commands name must be handed in to the system, whatever the levels."""
    systems = {levels: each.trial.system for levels, each in resolutions.items() if each.trial is not None}
    handed_in = {each: catalogue.systems[each.kind].handed_in(each.parameters) for each in systems.values()}
    for path, text in with_placeholders(Branch(tree.tree("telemetry"), ("telemetry",))):
        for name in PLACEHOLDER.findall(text.text):
            missing = [levels for levels, system in systems.items() if name not in handed_in[system]]
            if missing:
                known = sorted(handed_in[systems[missing[0]]])
                expected = f"expected one of {listed(known)}" if known else "only a service is handed in anything"
                problems.add(
                    f"the system is not handed in `{{{name}}}`{_condition(factors, missing)}; {expected}",
                    text.at,
                    field=path,
                    suggestion=did_you_mean(name, known)
                    or ("name one of its ports, or write the address itself" if known else "write the value itself"),
                )


def _items(node: Node | None) -> tuple[Node, ...]:
    """The items of a list; one value stands for a list of one."""
    if isinstance(node, Listing):
        return node.items
    return () if node is None else (node,)


@dataclass(frozen=True)
class _MetricUse:
    """A metric that the study names. `among`: index of a factor and the level that must measure it; None: all."""

    name: str
    at: Position
    field: tuple[str, ...]
    among: tuple[int, str] | None = None


def _named_metrics(tree: Tree) -> Iterable[_MetricUse]:
    section = tree.tree("metrics")
    for role in ROLES:
        node = section.entries.get(role)
        for item in _items(node):
            if isinstance(item, Scalar) and isinstance(item.value, str):
                yield _MetricUse(item.text, item.at, ("metrics", role))


def _own_metrics(
    tree: Tree, resolutions: Mapping[Levels, Resolution], problems: Problems
) -> dict[str, MetricDefinition]:
    """The metrics that the study defines itself; what is wrong with one is noted with the file's own shape."""
    section = tree.tree("metrics")
    known = {name for each in resolutions.values() for name in each.metrics or ()}
    own: dict[str, MetricDefinition] = {}
    for name, node in section.entries.items():
        if name in Metrics.model_fields or not isinstance(node, Tree):
            continue
        if name in known:
            problems.add("a metric of this name is measured already", section.where(name), field=("metrics", name))
        try:
            own[name] = CounterMetric.model_validate(plain(node)).definition(name)
        except ValidationError:
            continue
    return own


def _check_servers(
    uses: list[_MetricUse], factors: Factors, *, resolutions: Mapping[Levels, Resolution], problems: Problems
) -> None:
    """Notes the metrics of servers that are wanted where a system has none."""
    for use in uses:
        lacking = [
            levels
            for levels, each in resolutions.items()
            if use.name in each.absent and (use.among is None or levels[use.among[0]] == use.among[1])
        ]
        if lacking:
            message = f"metric `{use.name}` is not measured{_condition(factors, lacking)}"
            suggestion = "the system has no server of its own there: name another metric, or leave it out"
            problems.add(message, use.at, field=use.field, suggestion=suggestion)


def _check_metrics(
    uses: list[_MetricUse],
    factors: Factors,
    *,
    resolutions: Mapping[Levels, Resolution],
    problems: Problems,
    own: Mapping[str, MetricDefinition],
) -> dict[str, MetricDefinition]:
    """Every metric named must be measured, and mean the same, wherever it is wanted and the workload is right."""
    measured = {levels: {**each.metrics, **own} for levels, each in resolutions.items() if each.metrics is not None}
    known = {name: None for metrics in measured.values() for name in metrics}
    definitions: dict[str, MetricDefinition] = {}
    for metric in uses if measured else ():
        if metric.name not in known:
            problems.unknown("metric", metric.name, known, at=metric.at, field=metric.field)
            continue
        among = {
            levels: metrics.get(metric.name)
            for levels, metrics in measured.items()
            if metric.among is None or levels[metric.among[0]] == metric.among[1]
        }
        missing = [levels for levels, definition in among.items() if definition is None]
        # Levels may know it in finer or coarser classes; the coarsest hold for all.
        alike = [each for each in (*among.values(), definitions.get(metric.name)) if each]
        classes = max((each.resolution for each in alike), key=abs, default=0.0)
        meant = {levels: each.model_copy(update={"resolution": classes}) for levels, each in among.items() if each}
        first = next(iter(meant.values()), None)
        other = [levels for levels, definition in meant.items() if definition != first]
        if missing:
            message = f"metric `{metric.name}` is not measured{_condition(factors, missing)}"
            problems.add(message, metric.at, field=metric.field, suggestion="name a metric that every trial measures")
        if other:
            message = f"metric `{metric.name}` is defined differently{_condition(factors, other)}"
            problems.add(message, metric.at, field=metric.field, suggestion="define it the same way for all levels")
        if first:
            definitions[metric.name] = first
    return definitions


def _check_duet_metrics(
    tree: Tree, uses: Iterable[_MetricUse], *, definitions: Mapping[str, MetricDefinition], problems: Problems
) -> None:
    """A metric that both arms share shows nothing of either: not that it is kept, and not that it is missed."""
    for use in uses:
        if use.name in definitions and same_in_both_arms(tree, definitions[use.name]):
            problems.add(
                f"metric `{use.name}` is of the whole machine, and with `order: duet` both arms run on it at a time",
                use.at,
                field=use.field,
                suggestion=f"name a metric of the workload or of the server's process, {OTHERWISE}",
            )


def _check_windows(
    uses: Iterable[_MetricUse], factors: Factors, *, catalogue: Catalogue, trials: Trials, problems: Problems
) -> None:
    """Telemetry is of the whole window, so none is evidence of the load where the window holds more than that."""
    workloads = dict.fromkeys(trial.workload for trial in trials.values())
    holds = {each: catalogue.workloads[each.kind].window_holds(each.parameters) for each in workloads}
    for use in uses:
        among = [levels for levels in trials if use.among is None or levels[use.among[0]] == use.among[1]]
        wrong = [levels for levels in among if holds[trials[levels].workload]]
        if wrong:
            problems.add(
                f"metric `{use.name}` is telemetry of the whole window, which also holds "
                f"{holds[trials[wrong[0]].workload]}{_condition(factors, wrong)}",
                use.at,
                field=use.field,
                suggestion="set `runs: 1`, or name a metric that the workload measures itself",
            )
