"""`fairtrial run`: the main job, from a study file to a report."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from fairtrial import plan as planning
from fairtrial import record
from fairtrial import study as language
from fairtrial.catalogue import catalogue
from fairtrial.cli.reading.report import conclude
from fairtrial.cli.running import page as beside
from fairtrial.cli.running.farming import ALONE, DUET, Farm
from fairtrial.cli.running.noise import keep_noise
from fairtrial.cli.running.progress import progress_for
from fairtrial.cli.running.resuming import as_given, as_it_ran, directory_name, resumed
from fairtrial.cli.running.stopping import stopping_rule
from fairtrial.cli.terminal import Console
from fairtrial.compare.checkouts import Checkouts
from fairtrial.errors import InputError, Problem
from fairtrial.places.ssh import ALLOWED_HERE
from fairtrial.record import Writer
from fairtrial.record.events import PageServed
from fairtrial.record.files import GIVEN, MERGED
from fairtrial.run.interrupting import heed


def run(
    study: Path,
    *,
    size: str | None,
    overrides: Sequence[str],
    output: Path,
    resume: bool,
    against_itself: bool = False,
    drawn: bool = True,
    page: bool = False,
    farm: Farm = ALONE,
    checkouts: Checkouts | None = None,
) -> None:
    """Runs a study, or goes on with an unfinished run of it, and prints the verdicts.

    Args:
        study: its file, or with `resume` a run's directory.
        size: one of the study's sizes.
        overrides: values that replace the study's.
        output: where runs are kept.
        resume: go on with the newest unfinished run.
        against_itself: run the study's baseline against itself, an A/A run.
        drawn: the report has a page and figures.
        page: show the run in a browser while it goes on.
        farm: hosts that run its blocks, if this machine is not to.
        checkouts: two that are built and compared, in place of the study's own arms.

    Raises:
        FairtrialError: the study is wrong, or the run cannot go on.
        KeyboardInterrupt: the user stopped it.
        BrokenPipeError: whoever read its output has closed it.
    """
    heed()
    console = Console()
    if checkouts is not None:
        overrides = [*overrides, *checkouts.levels(study, size=size, overrides=overrides, resume=resume)]
    farm.conductor()  # what is wrong with a farm is said before there is a record
    if page:
        beside.require()
    if resume:
        writer = resumed(
            study, size=size, overrides=overrides, output=output, console=console, against_itself=against_itself
        )
    else:
        writer = _created(
            study, size=size, overrides=overrides, output=output, against_itself=against_itself, farm=farm
        )
    try:
        console.print(f"record: {writer.directory}", markup=False, soft_wrap=True)
        for warning in writer.plan.warnings:
            console.print(f"warning: {warning}", markup=False, soft_wrap=True)
        shown_at = _page(writer, console, farm) if page else None
        with progress_for(console, writer.plan) as progress:
            source = partial(as_it_ran, writer.directory, study, size=size, overrides=overrides)
            farm.conductor_of(writer.plan)(
                writer=writer, progress=progress, stopping=stopping_rule(writer.plan), study=source, page=shown_at
            ).execute()
    except (KeyboardInterrupt, BrokenPipeError):
        again = continued_by(writer.directory, farm)
        print(f"stopped; every finished trial is kept: `{again}` continues the run", file=sys.stderr)
        raise
    finally:
        writer.close()
    finished = record.read(writer.directory)
    conclude(finished, console=console, drawn=drawn)
    if finished.plan.against_itself and finished.plan.design.order != DUET:  # a duet's noise is not that of blocks
        with progress_for(console, finished.plan) as progress:
            keep_noise(finished, progress=progress)


def continued_by(directory: Path, farm: Farm) -> str:
    """The command that goes on with a run, which may do what this one may."""
    before = "".join(f" --ssh-config {shlex.quote(each)}" for each in ALLOWED_HERE)
    return f"fairtrial{before} run {shlex.quote(str(directory))} --resume{_options(farm)}"


def _options(farm: Farm) -> str:
    """As they were given: a run that goes on without its farm voids the blocks that hosts had begun."""
    given = {"--places": farm.places, "--farm": farm.cluster}
    named = "".join(f" {option} {shlex.quote(str(value))}" for option, value in given.items() if value is not None)
    return named + (" --insecure-farm" if farm.insecure else "")


def _page(writer: Writer, console: Console, farm: Farm) -> Callable[[], PageServed | None]:
    """Starts the page and says where it is."""
    from fairtrial.farm import hosts

    places = [] if farm.places is None else [*hosts.read(farm.places).values()]
    found = beside.Page.started(writer.directory, writer.plan, hosts=places)
    console.print(f"page: {found.address}", markup=False, soft_wrap=True, highlight=False)
    return found.served


def _created(
    study: Path, *, size: str | None, overrides: Sequence[str], output: Path, against_itself: bool, farm: Farm
) -> Writer:
    if (study / "plan.json").exists():
        problem = Problem("it is the directory of a run, not a study", str(study))
        raise InputError([problem], hint=f"`fairtrial run {shlex.quote(str(study))} --resume` continues the run")
    kinds = catalogue()
    loaded = language.load(study, catalogue=kinds, size=size, overrides=overrides)
    if loaded.file.tune is not None:
        problem = Problem("the study searches options, and its levels are found as it goes", str(study), field="tune")
        raise InputError([problem], hint=f"use `fairtrial tune {study}`")
    plan = planning.make(loaded, catalogue=kinds)
    if against_itself:
        plan = planning.against_itself(plan, catalogue=kinds)
    farm.require_takes(plan, study=loaded)
    sources = {GIVEN: as_given(study, loaded), MERGED: language.dump(loaded)}
    name = directory_name(plan.study, against_itself=against_itself)
    return record.create(output / name, plan=plan, sources=sources, numbered=True)
