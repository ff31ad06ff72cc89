"""`fairtrial screen`: the paired study of the strongest options of a screening, written to a file and run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from fairtrial import record
from fairtrial import study as language
from fairtrial.catalogue import catalogue
from fairtrial.cli.running import run as running
from fairtrial.cli.terminal import Console
from fairtrial.cli.writing import write_text
from fairtrial.errors import InputError, Problem, RecordError
from fairtrial.record import Record
from fairtrial.record.files import MERGED
from fairtrial.report.analysing import analysed
from fairtrial.study import Study
from fairtrial.study.loading import Factor
from fairtrial.study.tree.merging import KIND_SECTIONS
from fairtrial.study.tree.nodes import Position, Tree, from_plain, plain

OPTION: Final = "option"  # the arm of the study that confirms
BASELINE: Final = "baseline"


def screen(directory: Path, *, confirm: int, blocks: int, save: Path | None, output: Path, drawn: bool) -> None:
    """Writes and runs the study that compares the strongest options, each alone, with the baseline.

    Raises:
        RecordError: not a screening, or not finished.
        InputError: more options than there are, or the file exists.
    """
    finished = record.read(directory)
    options = nominated(finished, confirm)
    screened = language.load(directory / MERGED, catalogue=catalogue(), recorded=True)
    study = confirmation(screened, options, blocks=blocks, of=directory.resolve().name)
    path = save or Path(f"{study.name}.yaml")
    if path.exists():
        raise InputError(
            [Problem(f"{path} exists: expected a new file", file="--save")], hint="name another file with --save"
        )
    write_text(path, language.dump(study))
    Console().print(f"study: {path}, which compares {', '.join(options)}", markup=False, soft_wrap=True)
    running.run(path, size=None, overrides=(), output=output, resume=False, drawn=drawn)


def nominated(finished: Record, count: int) -> tuple[str, ...]:
    """The strongest options of a screening.

    Raises:
        RecordError: not a screening, not finished, or without effects.
        InputError: more than there are.
    """
    name = finished.directory.name
    if finished.plan.screening is None:
        raise RecordError(f"{name} is not a screening", hint="run a study that has `trials: {design: …}`")
    if not finished.measured:
        raise RecordError(f"{name} is not finished", hint=f"`fairtrial run {finished.directory} --resume` continues it")
    result = analysed(finished).screening
    found = result.nominated if result is not None else ()
    if not found:
        raise RecordError(f"{name} has no effects to choose from", hint="`fairtrial report` says what is missing")
    if count > len(found):
        problem = Problem(f"expected at most {len(found)} options, found {count}", file="--confirm")
        raise InputError([problem], hint="confirm fewer")
    return found[:count]


def confirmation(screened: Study, options: Sequence[str], *, blocks: int, of: str) -> Study:
    """The paired study: each option alone at its last level against all options at their first ones.

    Args:
        screened: the study of the screening.
        options: to compare.
        blocks: of the study.
        of: name of the screening's run, which every report of the study gives.
    """
    first = {factor.name: factor.level_names[0] for factor in screened.factors}
    last = {factor.name: factor.level_names[-1] for factor in screened.factors}
    base = plain(screened.merged(first))
    nowhere = Position("")
    levels = [(BASELINE, Tree({}, nowhere))]
    for option in options:
        changed = from_plain(_changes(base, plain(screened.merged({**first, option: last[option]}))), nowhere)
        assert isinstance(changed, Tree)  # noqa: S101 - of two mappings
        levels.append((f"{option}.{last[option]}", changed))
    tree = from_plain(base, nowhere)
    assert isinstance(tree, Tree)  # noqa: S101 - a trial is a mapping
    trials = screened.trials.model_copy(
        update={"design": None, "resolution": None, "fold": None, "blocks": blocks, "voided_limit": None}
    )
    question = (
        f"Does each of the strongest {len(options)} of {len(first)} options change anything when it alone is changed? "
        f"They were nominated by the screening run {of}, which claims nothing. It asked: {screened.file.question}"
    )
    return replace(
        screened,
        file=screened.file.model_copy(
            update={"study": f"{screened.name}-confirm", "question": question, "arm": OPTION, "trials": trials}
        ),
        base=tree,
        factors=(Factor(OPTION, tuple(levels)),),
    )


def _changes(before: Mapping[str, Any], after: Mapping[str, Any], *, whole: bool = False) -> dict[str, Any]:
    """The overlay that makes one trial of another: what is gone is null; a section of another kind is whole."""
    changes: dict[str, Any] = {}
    for key in {**before, **after}:
        old, new = before.get(key), after.get(key)
        if key not in after:
            changes[key] = None
        elif key not in before or not isinstance(old, Mapping) or not isinstance(new, Mapping):
            if key not in before or old != new or type(old) is not type(new):
                changes[key] = new
        elif old != new:
            other_kind = not whole and key in KIND_SECTIONS and set(old) != set(new)
            changes[key] = new if other_kind else _changes(old, new, whole=True)
    return changes
