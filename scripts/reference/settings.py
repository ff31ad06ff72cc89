"""docs/reference/settings.md: what each kind of setting does to a place, shown on an example of each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fairtrial import settings
from fairtrial.settings import Effect
from fairtrial.study.catalogue import Catalogue, Kind
from fairtrial.study.reference import value_in_words
from fairtrial.wire.generated import Step
from reference.markdown import render, table

# One value of each kind that shows each way it acts; a kind without one fails the generation.
EXAMPLES: Final[Mapping[str, Any]] = {
    "affinity": {"server": "0-2", "client": "3"},
    "drop_caches": "all",
    "environment": {"MALLOC_ARENA_MAX": "1"},
    "sysctl": {"vm.swappiness": 10},
    "sysfs": {"/sys/kernel/mm/transparent_hugepage/enabled": "never", "/sys/kernel/mm/lru_gen/enabled": 7},
}
_FACTS: Final = {"processors": [0, 1, 2, 3]}

_NORMALISED = {
    "trim": "as text",
    "words": "word by word, whatever the blanks between",
    "brackets": "by the word in brackets, where the kernel lists choices",
    "integer": "as a number: `7` reads back as `0x0007`",
    "boolean": "as a truth value",
}
_UNDONE = {"restore": "what was there before is written back", "none": "nothing to undo"}


def page(catalogue: Catalogue) -> str:
    """The page as Markdown."""
    return render("settings.md", kinds=[_shown(kind) for kind in catalogue.settings.values()])


def _shown(kind: Kind) -> Mapping[str, str]:
    example = EXAMPLES[kind.name]
    validated = kind.parameters.dump_python(kind.parameters.validate_python(example), mode="json")
    effect = settings.SETTINGS[kind.name].effect(validated, _FACTS)
    return {
        "name": kind.name,
        "summary": kind.summary,
        "value": value_in_words(kind),
        "example": _flow(example),
        "effect": _steps(effect) if effect.steps else _processes(effect),
    }


def _steps(effect: Effect) -> str:
    return table(("phase", "step", "read back", "undone"), (_step(phase, step) for phase, step in effect.steps))


def _flow(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{name}: {_flow(item)}" for name, item in value.items()) + "}"
    return str(value)


def _step(phase: str, step: Step) -> tuple[str, str, str, str]:
    action = step.action
    if action.kind != "write":
        raise NotImplementedError(f"say in words what {action.kind} does")
    read_back = f"the same file, {_NORMALISED[step.check.normalise]}" if step.check else "it holds nothing to read"
    return f"`{phase}`", f"write `{action.value}` to `{action.path}`", read_back, _UNDONE[step.inverse.kind]


def _processes(effect: Effect) -> str:
    lines = [
        f"- variable `{name}={value}` of the process that runs the system" for name, value in effect.environment.items()
    ]
    for side, processors in (("system", effect.server_processors), ("load", effect.client_processors)):
        if processors is not None:
            lines.append(f"- the {side}'s process starts on processors {', '.join(map(str, processors))}")
    return "\n".join([*lines, "", "Nothing at the place changes: it ends with the process, and nothing is undone."])
