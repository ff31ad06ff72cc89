"""Settings of a trial as changes: the steps that a place would be told, with imagined facts of a place."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Final

from fairtrial import settings
from fairtrial.errors import PlaceError
from fairtrial.programs import SERVERS, Act
from fairtrial.protocol.generated import ExecuteAction, ExecuteInverse, MountAction, NoneInverse, Step, WriteAction
from fairtrial.run import elsewhere
from fairtrial.settings.steps.effect import Effect
from fairtrial.settings.steps.imagined import IMAGINED
from fairtrial.study.resolved import ResolvedTrial

PHASES: Final = {
    "place": "before the data are there",
    "before_server": "before the server starts",
    "after_server": "once the server answers",
    "before_ramp_up": "before ramp-up",
}
RESTORED: Final = "what was there before is restored, also after a kill"
PROCESSOR: Final = re.compile(r"/cpu\d+/")
TRIAL: Final = PurePosixPath("/{trial}")


def acts(trial: ResolvedTrial) -> Iterator[Act]:
    """All of a trial's settings."""
    try:
        effect = settings.effects(trial.settings, IMAGINED, elsewhere.context(trial, directory=TRIAL))
    except PlaceError as error:
        yield Act("knows not", f"what the settings change: {error}", when="")
        return
    for phase, step in effect.steps:
        yield _change(step, when=PHASES[phase])
    yield from _of_processes(effect)


def _of_processes(effect: Effect) -> Iterator[Act]:
    for name, value in effect.environment.items():
        yield Act("changes", f"variable {name} = {value}", "of the server", undo="it ends with its trial")
    for side, processors in (("server", effect.server_processors), ("load", effect.client_processors)):
        if processors is not None:
            yield Act("changes", f"processors of the {side}: {', '.join(map(str, processors))}", undo="it ends")
    if effect.preloaded is not None:
        yield Act("runs", "libfairtrial_locks.so, preloaded into the server", user=SERVERS)
    if effect.governor is not None:
        what = "innodb_purge_threads and innodb_purge_batch_size, by a governor beside the server"
        yield Act("changes", what, "while the load runs", undo=RESTORED)


def _change(step: Step, *, when: str) -> Act:
    return Act("changes", PROCESSOR.sub("/cpu{number}/", _what(step)), when, undo=_undo(step))


def _what(step: Step) -> str:
    action = step.action
    if isinstance(action, WriteAction):
        return f"{action.path} = {action.value}"
    if isinstance(action, ExecuteAction):
        return f"{step.name}: {shlex.join(action.argv)}"
    if isinstance(action, MountAction):
        return f"mount {action.source} on {action.target} ({action.file_system}, {action.options or 'no options'})"
    return f"{action.path}: {action.kind}d" if action.kind == "create" else f"control group {action.path}"


def _undo(step: Step) -> str:
    if isinstance(step.inverse, NoneInverse):
        return "nothing: it acts once, or goes with what it is in"
    if isinstance(step.inverse, ExecuteInverse):
        return f"{shlex.join(step.inverse.argv)}, also after a kill"
    return RESTORED
