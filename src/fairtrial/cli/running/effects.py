"""`fairtrial plan --effects`: what a study would run, change and reach, without running, changing or reaching it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fairtrial import plan as planning
from fairtrial import study as language
from fairtrial.catalogue import catalogue
from fairtrial.cli.running.resuming import refuse_changes
from fairtrial.cli.terminal import say
from fairtrial.effects import effects, showing, unasking
from fairtrial.errors import InputError, Problem
from fairtrial.record import reader
from fairtrial.record.models import Plan
from fairtrial.study.tuning import Tuning
from fairtrial.tune.dry_run import values


def show(study: Path, *, size: str | None, overrides: list[str], beside: Sequence[str] = ()) -> None:
    """Prints what a run of a study does, or what a run's directory would do if it were continued.

    Args:
        study: its file, or the directory.
        size: one of the study's sizes.
        overrides: values that replace the study's.
        beside: other options that were given, which would change what runs where.

    Raises:
        InputError: the study is wrong, or the list would not be that of the run.
        RecordError: the directory is not a run's.
    """
    if beside:
        problem = Problem("the list of --effects takes no notice of it", ", ".join(beside))
        raise InputError([problem], hint="leave it out: the list is of the study as written, at its own place")
    if study.is_dir():
        refuse_changes(study, changed=bool(size or overrides))
        plan, tuning = reader.read_plan(study), None
    else:
        plan, tuning = _of_study(study, size=size, overrides=overrides)
    trials = {(cell, arm): trial for cell, arms in plan.resolved.items() for arm, trial in arms.items()}
    for line in showing.lines(plan, effects(plan, trials), trials):
        say(line)
    for name, option in () if tuning is None else tuning.options.items():
        say(f"  tries {showing.visible(f'{option.of or name}: {values(option)}')}")
    say(f"\n{showing.END}")


def _of_study(study: Path, *, size: str | None, overrides: list[str]) -> tuple[Plan, Tuning | None]:
    kinds = unasking(catalogue())
    loaded = language.load(study, catalogue=kinds, size=size, overrides=overrides)
    return planning.make(loaded, catalogue=kinds), loaded.file.tune
