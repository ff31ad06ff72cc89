"""hyperfine's `--export-json`: one row per timed run of a command, each a process of its own."""

from __future__ import annotations

from typing import Final

from pydantic import BaseModel, TypeAdapter

from fairtrial.imports.reader import Figure, ImportSource, Reader, document, file_table, metric, refused, shared_state
from fairtrial.imports.rows import FileTable

VALUE: Final = "time_s"
SOURCE: Final = "hyperfine"
EXPECTED: Final = "the file of `hyperfine --export-json`"


class Measured(BaseModel, frozen=True):
    """A command's runs, in their order."""

    command: str
    times: list[float]
    exit_codes: list[int | None] = []
    parameters: dict[str, str] = {}


class Export(BaseModel, frozen=True):
    """The whole."""

    results: list[Measured]


_EXPORT: Final = TypeAdapter(Export)


def read(source: ImportSource) -> FileTable:
    """Rows by command, then by run; parameters have the names that hyperfine's own CSV gives them.

    Raises:
        InputError: the document is cut, a command failed, or there are no times.
    """
    rows: list[dict[str, Figure]] = []
    for index, each in enumerate(document(source, _EXPORT, expected=EXPECTED).results):
        if failed := [code for code in each.exit_codes if code != 0]:
            how = "was killed by a signal" if failed[0] is None else f"exited with status {failed[0]}"
            message = f"`{each.command}` {how} in {len(failed)} of {len(each.exit_codes)} runs"
            hint = "fix the command, or leave it out: the time of a failed run measures nothing"
            raise refused(source, message, hint=hint, field=f"results.{index}.exit_codes")
        named = {"command": each.command, **{f"parameter_{key}": value for key, value in each.parameters.items()}}
        rows += [{**named, VALUE: time} for time in each.times]
    if not rows:
        raise refused(source, "no command has a time", hint=f"give {EXPECTED}", field="results")
    return file_table(source, rows, lambda name: metric(name, "s", "lower", source=SOURCE))


READER: Final = Reader(
    name=SOURCE,
    expected=EXPECTED,
    recognises=lambda text: text.startswith("{") and '"results"' in text and '"command"' in text,
    read=read,
    values=(VALUE,),
    arm="command",
    apart=("parameter_*", "command"),
    shared=shared_state(
        "all times of a command share one state of the machine and its caches: hyperfine runs one command to its end "
        "before it starts the next, so the commands are not interleaved",
        advice="compare the commands with `fairtrial compare`, or run hyperfine with few runs several times, the "
        "commands in random order, and name runs with `--cluster file`",
    ),
)
