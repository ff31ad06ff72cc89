"""docs/reference/settings.md: what each kind of setting does to a place, shown on an example of each."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any, Final

from fairtrial import settings
from fairtrial.protocol.generated import (
    Controller,
    CreateAction,
    ExecuteAction,
    FileRead,
    GroupAction,
    MountAction,
    Step,
    WriteAction,
)
from fairtrial.settings import Effect, TrialContext
from fairtrial.study.catalogue import Catalogue, Kind
from fairtrial.study.reference import value_in_words
from fairtrial.wire.facts import Facts, GuestFacts
from reference.markdown import render, table

_FACTS: Final = Facts.model_construct(
    processors=[0, 1, 2, 3],
    user_id=0,
    page_bytes=4096,
    guest=GuestFacts(accelerator="kvm", emulated=False),
    nodes={"0": [0, 1], "1": [2, 3]},
    controllers={
        name: Controller(version=2, directory="/sys/fs/cgroup", enabled=name == "memory")
        for name in ("cpuset", "io", "memory")
    },
)

_OF_GROUPS = ("memory.", "numa.")
_TRIAL = TrialContext(PurePosixPath("TRIAL"))  # as the page calls a trial's directory

_NORMALISED = {
    "trim": "as text",
    "words": "word by word, ignoring white space",
    "brackets": "by the word in brackets in the kernel's list of choices",
    "integer": "as a number: `7` reads back as `0x0007`",
    "boolean": "as a truth value",
}
_UNDONE = {
    "write": "the earlier value is written back",
    "create": "removed",
    "group": "processes that still run in it are killed, and it is removed",
    "mount": "unmounted",
}
_SHELL = "sh"


def page(catalogue: Catalogue) -> str:
    """The page as Markdown."""
    privileges = ((f"[`{name}`](#{name})", _privilege(name)) for name in catalogue.settings)
    return render(
        "settings.md",
        kinds=[_shown(kind) for kind in catalogue.settings.values()],
        privileges=table(("setting", "takes of root's"), privileges),
    )


def _privilege(name: str) -> str:
    privilege = settings.SETTINGS[name].privilege
    return privilege if privilege in ("none", "user 0") else f"`{privilege.replace(', ', '`, `')}`"


def _shown(kind: Kind) -> Mapping[str, str]:
    validated = kind.parameters.dump_python(kind.parameters.validate_python(kind.example), mode="json")
    effect = settings.effects({kind.name: validated}, _FACTS, _TRIAL)
    return {
        "name": kind.name,
        "summary": kind.summary,
        "value": value_in_words(kind),
        "example": _flow(kind.example),
        "effect": _steps(effect) if effect.steps else _processes(effect),
    }


def _steps(effect: Effect) -> str:
    return table(("phase", "step", "read back", "undone"), (_step(phase, step) for phase, step in effect.steps))


def _flow(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{name}: {_flow(item)}" for name, item in value.items()) + "}"
    return str(value)


def _step(phase: str, step: Step) -> tuple[str, str, str, str]:
    return f"`{phase}`", _done(step), _read_back(step), _undone(step)


def _done(step: Step) -> str:
    action = step.action
    match action:
        case WriteAction():
            return f"write `{action.value}` to `{action.path}`"
        case CreateAction():
            return f"make the directory `{action.path}`"
        case GroupAction():
            return f"make the control group `{action.path}`"
        case MountAction():
            options = f" with `{action.options}`" if action.options else ""
            return f"mount {action.file_system} on `{action.source}` at `{action.target}`{options}"
        case ExecuteAction(argv=[program, *_]) if program != _SHELL:
            return f"run `{' '.join(action.argv)}`"
        case _:
            return f"a script of the shell: {step.name}"


def _read_back(step: Step) -> str:
    if step.check is None:
        return "nothing to read"
    how = _NORMALISED[step.check.normalise]
    if isinstance(step.check.read, FileRead):
        same = isinstance(step.action, WriteAction) and step.action.path == step.check.read.path
        return f"{'the same file' if same else step.check.read.path}, {how}"
    return f"a program must print `{step.check.expect.strip()}`, {how}"


def _undone(step: Step) -> str:
    if isinstance(step.action, WriteAction) and step.name.startswith(_OF_GROUPS):
        return "goes with its group"
    if step.inverse.kind == "restore":
        return _UNDONE[step.action.kind]
    return "by a program" if step.inverse.kind == "execute" else "nothing to undo"


def _processes(effect: Effect) -> str:
    lines = [
        f"- variable `{name}={value}` of the process that runs the system" for name, value in effect.environment.items()
    ]
    for side, processors in (("system", effect.server_processors), ("load", effect.client_processors)):
        if processors is not None:
            lines.append(f"- the {side}'s process starts on processors {', '.join(map(str, processors))}")
    if effect.governor is not None:
        return (
            "A process beside the server sets `innodb_purge_threads` and `innodb_purge_batch_size` from before the "
            "ramp-up until the load has ended. Then it restores them; if it is killed, the agent does."
        )
    return "\n".join([*lines, "", "Nothing at the place changes: the setting ends with the process."])
