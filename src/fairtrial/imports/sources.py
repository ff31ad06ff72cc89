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
        InputError: a file that is not there or cannot be read, or a name that does not fit the pattern.
    """
    result: list[ImportSource] = []
    count: Counter[str] = Counter()
    pattern = None if names is None else _compiled(names)
    for label, path in _paths(arguments):
        count[label] += 1
        name = STANDARD_INPUT_NAME if path is None else str(path)
        content = standard_input.read() if path is None else _content(path)
        fields = () if pattern is None else _fields(pattern, name, names=names or "")
        result.append(ImportSource(name, content, label=label, number=count[label], fields=fields, path=path))
    return result


def _paths(arguments: Iterable[str]) -> Iterator[tuple[str, Path | None]]:
    """Label and path of every file; None is standard input."""
    for text in arguments:
        label, rest = "", text
        if not Path(text).exists() and (parts := _LABELLED.fullmatch(text)):
            label, rest = parts[1], parts[2]
        if rest == STANDARD_INPUT:
            yield label, None
            continue
        for path in _expanded(rest):
            yield label, path


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
    return [(1, int(part), "") if part.isdigit() else (0, 0, part) for part in parts]


def _content(path: Path) -> bytes:
    try:
        if path.stat().st_size > LARGEST_BYTES:
            problem = Problem(f"the file is larger than {LARGEST_BYTES >> 30} GiB", str(path))
            raise InputError([problem], hint="give one row per trial, not one per request")
        return path.read_bytes()
    except OSError as error:
        problem = Problem(f"cannot read the file: {error.strerror or error}", str(path))
        raise InputError([problem], hint="check its permissions") from error


def _compiled(names: str) -> re.Pattern[str]:
    """`{kernel}-{block}.json` as an expression on the end of a path."""
    fields = _FIELD.findall(names)
    twice = [name for name, times in Counter(fields).items() if times > 1]
    if not fields or twice:
        message = f"field `{twice[0]}` appears twice" if twice else "expected a field in braces, such as {kernel}"
        raise InputError([Problem(message, "--names")], hint="for example --names '{kernel}-{block}.json'")
    parts = _FIELD.split(names)
    expression = "".join(f"(?P<{part}>[^/]+?)" if index % 2 else re.escape(part) for index, part in enumerate(parts))
    return re.compile(rf"(?:.*/)?{expression}")


def _fields(pattern: re.Pattern[str], name: str, *, names: str) -> tuple[tuple[str, str], ...]:
    match = pattern.fullmatch(name)
    if match is None:
        problem = Problem(f"the name does not match the pattern `{names}`", name)
        raise InputError([problem], hint="name only files that match --names, or leave --names out")
    return tuple(match.groupdict().items())
