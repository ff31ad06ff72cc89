"""What stands behind the figures: places, systems, options as read back, and what became of every planned trial.

Reads a record's models only; knows no layout.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from fairtrial.plan.differences import differences
from fairtrial.record import Record
from fairtrial.record.models import Difference, PlaceOpened, Plan, TrialRecord
from fairtrial.report import in_effect, numbers
from fairtrial.study.resolved import ResolvedTrial, Section

FACT_LABELS: Final = {
    "host": "host",
    "kernel": "kernel",
    "kernel_version": "kernel build",
    "kernel_command_line": "kernel command line",
    "distribution": "distribution",
    "machine": "machine",
    "processor_model": "processor",
    "processors": "processors",
    "memory_bytes": "memory",
    "swap_bytes": "swap",
    "virtualisation": "virtualisation",
    "clock_source": "clock source",
    "file_system": "file system",
    "client_operations_per_core_s": "client's ceiling, operations per second and core",
    "client_interface": "client's event interface",
    "boot.by": "booted by",
    "boot.kernel_source": "kernel's source",
    "boot.kernel_sha256": "kernel image's SHA-256",
    "boot.content_sha256": "SHA-256 of the kernel's image and modules",
    "boot.build_id": "kernel's build id",
    "boot.microcode": "microcode",
    "boot.watchdog": "hardware watchdog",
    "container.image": "image",
    "container.image_id": "image's identifier",
    "container.runtime": "container runtime",
    "container.run_options": "container's options",
}

LARGEST: Final = 1e18  # of a number that is shown in a unit
ENTRY_LABELS: Final = {"server_user": "server's user", "agent_sha256": "agent's SHA-256"}


@dataclass(frozen=True)
class Fact:
    """A labelled value."""

    label: str
    value: str


@dataclass(frozen=True)
class PlaceFacts:
    """One machine. `findings` is all that was looked at before the run; see `record.models.Finding`."""

    name: str
    facts: tuple[Fact, ...]
    findings: tuple[dict[str, Any], ...] = ()

    @property
    def cautions(self) -> tuple[dict[str, Any], ...]:
        """Findings that are not fine, worst first."""
        order = ("unfit", "caution", "unknown")
        below = (finding for finding in self.findings if finding["grade"] in order)
        return tuple(sorted(below, key=lambda finding: order.index(finding["grade"])))


@dataclass(frozen=True)
class Background:
    """Everything a report says besides results.

    Attributes:
        system: facts of the system under test; where trials differ, one value per arm and cell.
        options, settings: effective values as read back, the same way.
        differences: what differs between the compared levels: path, then each arm's value.
        in_effect: options that differ between them as read back, asked or not: name, then each arm's value.
        invalid: trials that do not count and why.
        voided, added: blocks lost and their replacements, in words.
        checks: consistency conditions: name, how many trials were checked, violations.
    """

    places: tuple[PlaceFacts, ...]
    system: tuple[Fact, ...]
    options: tuple[Fact, ...]
    settings: tuple[Fact, ...]
    differences: tuple[tuple[str, dict[str, str]], ...]
    in_effect: tuple[tuple[str, dict[str, str]], ...]
    invalid: tuple[Fact, ...]
    voided: tuple[str, ...]
    added: tuple[str, ...]
    checks: tuple[tuple[str, int, int], ...]
    warnings: tuple[str, ...]


def background(record: Record, *, contrast: str) -> Background:
    """Collects a record's background; `contrast` is the factor whose levels' differences are wanted."""
    trials = record.trials
    return Background(
        places=tuple(_places(record.places)),
        system=_common_or_each(trials, lambda trial: _flat(trial.system_facts)),
        options=_common_or_each(trials, lambda trial: trial.options),
        settings=_common_or_each(
            trials, lambda trial: {s.name: s.read_back if s.read_back is not None else s.asked for s in trial.effective}
        ),
        differences=tuple(
            (difference.path, {arm: shown(value) for arm, value in difference.values.items()})
            for difference in contrasted(record.plan, contrast)
        ),
        in_effect=in_effect.apart(trials, contrast=contrast, levels=record.plan.factors[contrast]),
        invalid=tuple(Fact(trial.trial.id, trial.invalid_reason) for trial in trials if not trial.valid),
        voided=tuple(f"{event.cell}, block {event.block}: {event.reason}" for event in record.voided),
        added=tuple(
            f"{event.cell}, block {event.block} in round {event.round} replaces block {event.replaces}"
            for event in record.added
        ),
        checks=_checks(trials),
        warnings=tuple(record.plan.warnings),
    )


def clients(trials: Iterable[TrialRecord]) -> tuple[Fact, ...]:
    """Of a load by several: where each was, its share of the virtual users, and how busy it got; else nothing."""
    found: dict[int, list[tuple[str, float, float]]] = {}
    for trial in trials:
        users = sum(client.users for client in trial.clients)
        for number, client in enumerate(trial.clients, start=1):
            busy = trial.scalars.get(f"client_{number}_busy_share", 0.0)
            found.setdefault(number, []).append((client.place, client.users / users if users else 0.0, busy))
    return tuple(
        Fact(
            f"client {number}",
            f"{', '.join(dict.fromkeys(place for place, _share, _busy in each))}: "
            f"{_shares([share for _place, share, _busy in each])} of the virtual users; its busiest event loop was "
            f"busy for {100 * max(busy for _place, _share, busy in each):.0f} % of a trial at most",
        )
        for number, each in sorted(found.items())
    )


def _shares(of: list[float]) -> str:
    """One share, or the least and the most."""
    ends = dict.fromkeys(f"{100 * share:.0f} %" for share in (min(of), max(of)))
    return " to ".join(ends)


def contrasted(plan: Plan, contrast: str) -> list[Difference]:
    """What differs between the contrast's levels: as planned for the arm, by the same comparison for another factor."""
    if contrast == plan.arm:
        return plan.differences
    resolved: dict[str, dict[str, ResolvedTrial]] = {}
    for cell in plan.cells:
        for arm, trial in plan.resolved[cell.name].items():
            levels = {**cell.levels, plan.arm: arm}
            level = levels.pop(contrast)
            resolved.setdefault(", ".join(levels.values()), {})[level] = trial
    return differences(resolved)


def shown(value: Any) -> str:
    """A study's value as a reader would have written it."""
    if value is None:
        return numbers.ABSENT
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def place_facts(record: Record, trial: TrialRecord) -> Mapping[str, Any]:
    """Facts of the machine a trial ran on; empty if the journal does not know it."""
    opened = record.opened.get((trial.host, trial.resolved.place))
    return {} if opened is None else opened.facts


def _places(places: Iterable[PlaceOpened]) -> Iterable[PlaceFacts]:
    for opened in places:
        entry = opened.model_dump()
        parts = {part: opened.facts.get(part) for part in ("boot", "container")}
        own = {
            f"{part}.{name}": value for part, of in parts.items() if isinstance(of, dict) for name, value in of.items()
        }
        facts = {**opened.facts, **own}
        labelled = [Fact(label, _fact(name, facts[name])) for name, label in FACT_LABELS.items() if name in facts]
        labelled += [Fact(label, shown(entry[name])) for name, label in ENTRY_LABELS.items()]
        findings = tuple(finding.model_dump(mode="json") for finding in opened.findings)
        yield PlaceFacts(name=_place_name(opened.place), facts=tuple(labelled), findings=findings)


def _place_name(place: Section) -> str:
    """`local`, `ssh bench-1`: the kind, and what its parameters call the machine."""
    parameters = place.parameters if isinstance(place.parameters, dict) else {}
    named = next((parameters[key] for key in ("host", "image", "command") if key in parameters), None)
    return f"{place.kind} {named}" if named else place.kind


def _fact(key: str, value: Any) -> str:
    """In a reader's units, where it is of the kind that an agent tells."""
    if key.endswith("_bytes") and not value:
        return "none"
    if isinstance(value, (int, float)) and abs(value) <= LARGEST:
        if key.endswith("_bytes"):
            return numbers.bytes_of(value)
        if key == "client_operations_per_core_s":
            return f"{value:,.0f}"
    if isinstance(value, list):
        if key == "processors":
            return str(len(value))
        if key == "container.run_options":
            return " ".join(map(shown, value))
    return shown(value)


def _flat(facts: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    flat: dict[str, str] = {}
    for key, value in facts.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = shown(value)
    return flat


def _common_or_each(trials: Sequence[TrialRecord], values: Any) -> tuple[Fact, ...]:
    """One value where all trials agree; else each value with the levels that have it.

    A trial that is not valid may have ended before anything was read: what it lacks says nothing of its levels.
    """
    by_name: dict[str, dict[str, list[TrialRecord]]] = {}
    for trial in trials:
        for name, value in values(trial).items():
            by_name.setdefault(name, {}).setdefault(shown(value), []).append(trial)
    counted = {trial.trial.id for trial in trials if trial.valid}
    every: dict[str, set[str]] = {}  # once, not for each value: a fact may have as many values as there are trials
    for trial in trials:
        for factor, level in trial.levels.items():
            every.setdefault(factor, set()).add(level)
    facts = []
    for name, by_value in by_name.items():
        first, *others = by_value
        if not others and counted <= {trial.trial.id for trial in by_value[first]}:
            facts.append(Fact(name, first))
        else:
            said = (f"{value} ({_who(having, among=every)})" for value, having in by_value.items())
            facts.append(Fact(name, "; ".join(said)))
    return tuple(facts)


def _who(having: Sequence[TrialRecord], *, among: Mapping[str, set[str]]) -> str:
    """The levels of these trials, of the factors that have others as well; `among`: a factor's levels in all trials."""
    named = []
    for factor in having[0].levels:
        levels = dict.fromkeys(trial.levels[factor] for trial in having)
        if levels.keys() < among[factor]:
            named.append(f"{factor} {' or '.join(levels)}")
    return ", ".join(named) or f"{len(having)} trials"


def _checks(trials: Iterable[TrialRecord]) -> tuple[tuple[str, int, int], ...]:
    counted: dict[str, tuple[int, int]] = {}
    for trial in trials:
        for check in trial.checks:
            trials_checked, violations = counted.get(check.name, (0, 0))
            counted[check.name] = (trials_checked + 1, violations + check.violations)
    return tuple((name, checked, violations) for name, (checked, violations) in counted.items())
