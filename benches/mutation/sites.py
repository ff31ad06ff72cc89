"""Where a mutant stands: a key that survives edits elsewhere in its file, and the order in which a seed draws."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


@dataclass(frozen=True)
class Edit:
    """What an operator does to one line: replaces the characters `start` to `end`."""

    line: int
    start: int
    end: int
    replacement: str
    operator: str


@dataclass(frozen=True)
class Mutant:
    """One line of a file, changed. Lines are known by their text and the how many-th of that text they are, from 0."""

    file: str
    text: str
    occurrence: int
    operator: str
    column: int
    mutated: str

    @property
    def key(self) -> tuple[str, str, int, str, int]:
        """What stays the same when other lines change."""
        return self.file, self.text, self.occurrence, self.operator, self.column


def mutants(file: str, source: str, edits: Iterable[Edit]) -> list[Mutant]:
    """The mutants that `edits` make of the file; indentation is no part of a line's text."""
    lines = source.splitlines()
    occurrences: list[int] = []
    seen: Counter[str] = Counter()
    for line in lines:
        occurrences.append(seen[line.strip()])
        seen[line.strip()] += 1
    found = []
    for edit in edits:
        line = lines[edit.line - 1]
        mutated = line[: edit.start] + edit.replacement + line[edit.end :]
        column = edit.start - (len(line) - len(line.lstrip()))
        occurrence = occurrences[edit.line - 1]
        found.append(Mutant(file, line.strip(), occurrence, edit.operator, column, mutated.strip()))
    return found


def drawn(among: Iterable[Mutant], seed: int) -> Iterator[Mutant]:
    """All lines in an order of chance: a mutant of each operator, then a second of each, and so on; one mutant a line.

    The order is that of the hashes of keys, so lines that did not change keep theirs whatever else changed.
    """
    by_chance = sorted(among, key=lambda mutant: hashlib.sha256(repr((seed, *mutant.key)).encode()).digest())
    turns: Counter[str] = Counter()
    turn: dict[Mutant, int] = {}
    for mutant in by_chance:
        turn[mutant] = turns[mutant.operator]
        turns[mutant.operator] += 1
    lines = set()
    for mutant in sorted(by_chance, key=turn.__getitem__):  # stable: by chance within a turn
        line = mutant.key[:3]
        if line not in lines:
            lines.add(line)
            yield mutant


def line_of(mutant: Mutant, source: str) -> int | None:
    """The number of the mutant's line, from 1; None if the file no longer has it."""
    numbers = [number for number, line in enumerate(source.splitlines(), 1) if line.strip() == mutant.text]
    return numbers[mutant.occurrence] if mutant.occurrence < len(numbers) else None


def applied(mutant: Mutant, source: str) -> str | None:
    """The file with the mutant in it; None if it no longer has the line."""
    number = line_of(mutant, source)
    if number is None:
        return None
    lines = source.splitlines(keepends=True)
    lines[number - 1] = lines[number - 1].replace(mutant.text, mutant.mutated)
    return "".join(lines)
