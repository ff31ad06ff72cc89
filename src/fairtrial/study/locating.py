"""Where a study says what turned out wrong only once a system had seen it.

Owns the way back from a trial's field to line and column. It must not know what is wrong with the field.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from fairtrial.errors import InputError, PlaceError, Problem
from fairtrial.study import workload_place
from fairtrial.study.loading import Study
from fairtrial.study.tree.nodes import Listing, Node, Path, Position, Scalar, Tree
from fairtrial.study.tree.texts import position_in

_PART = re.compile(r'"([^"]+)"|([^."]+)')  # as `dotted` joins them


def located(error: InputError, study: Study, levels: Mapping[str, str]) -> InputError:
    """The same mistakes; one without a line is put where the trial of `levels` got its field from."""
    problems = [problem if problem.line else _located(problem, study, levels) for problem in error.problems]
    return InputError(problems, hint=error.hint)


def located_lack(error: PlaceError, study: Study, levels: Mapping[str, str]) -> PlaceError:
    """The same error, which says where the trial of `levels` got the field from that asks for what is not there."""
    problem = Problem(str(error), study.written.at.file, field=error.field)
    return PlaceError(str(_located(problem, study, levels)), hint=error.hint)


def _located(problem: Problem, study: Study, levels: Mapping[str, str]) -> Problem:
    path = tuple(quoted or bare for quoted, bare in _PART.findall(problem.field))
    if not path:
        return problem
    is_of_all = path[0] in study.written.entries and path[0] not in study.base.entries
    tree = study.written if is_of_all else study.merged(levels)
    kept = workload_place.kept(path)
    path = kept if kept[0] in tree.entries else path
    if path[0] not in tree.entries:
        return problem
    at = _position(tree, path)
    return replace(problem, file=at.file, line=at.line, column=at.column)


def _position(node: Node, path: Path) -> Position:
    """Where the end of a path was written, as far as there is one; of a text, its first letter."""
    for part in path:
        if isinstance(node, Tree) and part in node.entries:
            node = node.entries[part]
        elif isinstance(node, Listing) and part.isdecimal() and int(part) < len(node.items):
            node = node.items[int(part)]
        else:
            break
    return position_in(node, 0) if isinstance(node, Scalar) else node.at
