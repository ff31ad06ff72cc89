"""What bisections and tunings ask: studies made on the way, each run to its end, and what its blocks say.

Owns how such a run is begun, continued and given up, and how its trials stand side by side. It must not know why it was
asked.
"""

from __future__ import annotations

import math
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from fairtrial import plan as planning
from fairtrial import record
from fairtrial import study as language
from fairtrial.analyse.boots import averaged
from fairtrial.catalogue import catalogue
from fairtrial.errors import FairtrialError, InputError, PlaceError, SystemStartError
from fairtrial.record import Record, Writer, journal
from fairtrial.record.files import GIVEN, MERGED
from fairtrial.record.models import TrialRecord, TrialStarted
from fairtrial.study import Study


def loaded(text: str) -> Study:
    """A study from its text.

    Raises:
        InputError: it is wrong.
    """
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / GIVEN
        path.write_text(text, encoding="utf-8")
        return language.load(path, catalogue=catalogue())


def run_whole(directory: Path, text: Callable[[], str], conduct: Callable[[Writer], None], *, arm: str = "") -> Record:
    """The finished record of a study: run now, continued where a kill left it, or there already.

    One that lost too many blocks to trials of other arms than `arm` is set aside and begun again.

    Raises:
        FairtrialError: it cannot continue; what is finished stays.
        KeyboardInterrupt: the user stopped it; the same holds.
    """
    writer = None
    if (directory / journal.NAME).exists():
        if (known := record.read(directory)).finished:
            return known
        if _at_fault(known) - {arm}:
            _set_aside(directory)
        else:
            writer = _resumed(directory)
    writer = writer or _begun(directory, text())
    try:
        conduct(writer)
    finally:
        writer.close()
    return record.read(directory)


def _resumed(directory: Path) -> Writer:
    """A mistake of whoever goes on, as other variables are, is not that of the arm which ran last."""
    try:
        return record.resume(directory)
    except InputError as error:
        raise PlaceError(str(error), hint=error.hint) from error


def _begun(directory: Path, text: str) -> Writer:
    shutil.rmtree(directory, ignore_errors=True)  # a kill can fall between the directory and its journal
    study = loaded(text)
    sources = {GIVEN: text, MERGED: language.dump(study)}
    return record.create(directory, plan=planning.make(study, catalogue=catalogue()), sources=sources)


def _set_aside(directory: Path) -> None:
    number = 1 + len(list(directory.parent.glob(f"{directory.name}-lost-*")))
    directory.rename(directory.with_name(f"{directory.name}-lost-{number}"))


def failure(directory: Path, error: FairtrialError, *, arm: str) -> str:
    """Why a run ended, if one arm is the reason: it is refused, does not start, or its trials alone are invalid."""
    said = str(error).splitlines()[0]
    if not (directory / journal.NAME).exists():
        return said if isinstance(error, InputError) else ""
    of = record.read(directory)
    started = [event.trial.arm for event in of.events if isinstance(event, TrialStarted)]
    if isinstance(error, InputError | SystemStartError) and started[-1:] == [arm]:
        return said
    if isinstance(error, PlaceError) and _at_fault(of) == {arm}:
        return next(trial for trial in reversed(of.trials) if not trial.valid).invalid_reason.splitlines()[0]
    return ""


def _at_fault(of: Record) -> set[str]:
    """Arms whose trials were invalid, in a run that lost more blocks than it may; else none."""
    lost = sum(each.counts for each in of.voided) > of.plan.design.voided_limit
    return {trial.trial.arm for trial in of.trials if lost and not trial.valid}


def whole_blocks(of: Record) -> list[dict[str, TrialRecord]]:
    """Valid trials by arm, of each block of a run with one cell that is not void; those of one boot as one."""
    voided = {event.block for event in of.voided}
    blocks: dict[int, dict[str, TrialRecord]] = {}
    for trial in averaged([each for each in of.trials if each.valid and each.trial.block not in voided]):
        blocks.setdefault(trial.trial.block, {})[trial.trial.arm] = trial
    return [arms for _, arms in sorted(blocks.items())]


def log_ratio(first: TrialRecord, second: TrialRecord, *, metric: str) -> float | None:
    """Of the second trial's value to the first's; None where a number cannot hold it."""
    below, above = (trial.scalars.get(metric, math.nan) for trial in (first, second))
    if not (below > 0 and above > 0 and math.isfinite(above / below)):
        return None
    return math.log(above / below)
