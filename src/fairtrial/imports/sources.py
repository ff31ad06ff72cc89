"""Which files a user means: paths, folders, patterns, standard input, each with a label if one is given."""

from __future__ import annotations

import glob
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Final

from fairtrial.errors import InputError, Problem
from fairtrial.imports.outputs import READERS
from fairtrial.imports.reader import ImportSource

STANDARD_INPUT: Final = "-"
STANDARD_INPUT_NAME: Final = "standard input"
LARGEST_BYTES: Final = 1 << 30  # a table of trials is small: a gigabyte is another file than was meant
_LABELLED: Final = re.compile(r"([^=/\s]+)=(.+)")
_FIELD: Final = re.compile(r"\{([A-Za-z_]\w*)\}")


def sources(arguments: Sequence[str], *, names: str | None, standard_input: BinaryIO) -> list[ImportSource]:
    """Reads paths, folders, patterns or `-` (standard input), each perhaps as `label=path`.

    Fields in braces of a pattern of file names, `{kernel}-{memory}-{block}.json`, become columns.

    Raises:
        InputError: a file is not there, cannot be read or is twice in a label, or a name fits the pattern not at all
            or in several ways.
    """
    result: list[ImportSource] = []
    count: Counter[str] = Counter()
    patterns = () if names is None else (_compiled(names, shortest=True), _compiled(names, shortest=False))
    known: dict[tuple[str, Path] | None, str] = {}
    for label, path in _paths(arguments):
        count[label] += 1
        name = STANDARD_INPUT_NAME if path is None else str(path)
        file = None if path is None else (label, path.resolve())
        if file in known:
            again = "" if known[file] == name else f", first as {known[file]}"
            hint = "its trials would count twice in one arm: name it once, by patterns that do not overlap"
            raise InputError([Problem(f"the file is named twice{again}", name)], hint=hint)
        known[file] = name
        content = standard_input.read() if path is None else _content(path)
        fields = _fields(patterns, name, names=names) if names is not None else ()
        result.append(ImportSource(name, content, label=label, number=count[label], fields=fields, path=path))
    return result


def _paths(arguments: Iterable[str]) -> Iterator[tuple[str, Path | None]]:
    """Label and path of every file; None is standard input."""
    for text in arguments:
        label, rest = "", text
        try:
            if not Path(text).exists() and (parts := _LABELLED.fullmatch(text)):
                label, rest = parts[1], parts[2]
            files = [None] if rest == STANDARD_INPUT else _expanded(rest)
        except OSError as error:
            raise _unreadable(rest, error) from error
        yield from ((label, path) for path in files)


def _expanded(text: str) -> list[Path]:
    """A file is itself, a folder the files in it, a pattern what it matches: run2 before run10.

    A folder of folders is the files of a format that keeps its files so.
    """
    path = Path(text)
    if path.is_file():
        return [path]
    matches = path.iterdir() if path.is_dir() else (Path(match) for match in glob.glob(text, recursive=True))  # noqa: PTH207 - absolute patterns too
    nested = (reader.nested for reader in READERS.values() if reader.nested and path.is_dir())
    files = _visible(matches) or next(filter(None, (_visible(path.glob(each)) for each in nested)), [])
    if not files:
        what = "the directory holds no files" if path.is_dir() else "no such file"
        raise InputError(
            [Problem(what, text)],
            hint="name a CSV or Parquet file, outputs of a benchmark tool, or - for standard input",
        )
    return files


def _visible(paths: Iterable[Path]) -> list[Path]:
    return sorted((each for each in paths if each.is_file() and not each.name.startswith(".")), key=_natural)


def _natural(path: Path) -> list[tuple[int, int, str]]:
    """Numbers in names count as numbers."""
    parts = re.split(r"(\d+)", str(path))
    return [(1, int(part), "") if part.isdecimal() else (0, 0, part) for part in parts]


def _content(path: Path) -> bytes:
    try:
        if path.stat().st_size > LARGEST_BYTES:
            problem = Problem(f"the file is larger than {LARGEST_BYTES >> 30} GiB", str(path))
            raise InputError([problem], hint="give one row per trial, not one per request")
        return path.read_bytes()
    except OSError as error:
        raise _unreadable(str(path), error) from error


def _unreadable(name: str, error: OSError) -> InputError:
    problem = Problem(f"cannot read the file: {error.strerror or error}", name)
    return InputError([problem], hint="check its name and its permissions")


def _compiled(names: str, *, shortest: bool) -> re.Pattern[str]:
    """`{kernel}-{block}.json` as an expression on the end of a path, of which the first fields are short or long."""
    fields = _FIELD.findall(names)
    twice = [name for name, times in Counter(fields).items() if times > 1]
    if not fields or twice:
        message = f"field `{twice[0]}` appears twice" if twice else "expected a field in braces, such as {kernel}"
        raise InputError([Problem(message, "--names")], hint="for example --names '{kernel}-{block}.json'")
    parts = _FIELD.split(names)
    some = "[^/]+?" if shortest else "[^/]+"
    expression = "".join(f"(?P<{part}>{some})" if index % 2 else re.escape(part) for index, part in enumerate(parts))
    return re.compile(rf"(?:.*/)?{expression}")


def _fields(patterns: Sequence[re.Pattern[str]], name: str, *, names: str) -> tuple[tuple[str, str], ...]:
    matches = [match.groupdict() for pattern in patterns if (match := pattern.fullmatch(name))]
    if not matches:
        problem = Problem(f"the name does not match the pattern `{names}`", name)
        raise InputError([problem], hint="name only files that match --names, or leave --names out")
    if matches[0] != matches[-1]:
        ways = " or ".join(", ".join(f"{field} `{value}`" for field, value in each.items()) for each in matches)
        problem = Problem(f"the name matches the pattern `{names}` in several ways: {ways}", name)
        hint = "give each part between separators its own field, such as {year}-{month}-{day}, or rename the files"
        raise InputError([problem], hint=hint)
    return tuple(matches[0].items())
