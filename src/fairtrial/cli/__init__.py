"""The command line: one file per command; the only place that catches errors."""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NoReturn, cast

if TYPE_CHECKING:
    from typer.core import TyperGroup

# Objects made since the last search for garbage. What a command imports lives to its end: searching through it after
# every 700, as Python does, takes a seventh of a start.
SEARCHED: Final = 50_000


def main() -> NoReturn:
    """Runs the command line and exits.

    Exit codes: 0 fine, 1 a finding, 2 the user's input, 3 the environment, 4 our bug, 5 an undecided gate, 130 Ctrl-C,
    141 whoever read the output has closed it.
    """
    gc.set_threshold(SEARCHED)
    atexit.register(_spare_last_search)
    line = command()
    from fairtrial.disks import TROUBLES
    from fairtrial.errors import CLOSED, INTERRUPTED, FairtrialError, PlaceError
    from fairtrial.words import printable

    try:
        _run(line)
    except FairtrialError as error:
        print(printable(f"error: {error}\nhint: {error.hint}"), file=sys.stderr)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        _say_no_more()
        sys.exit(CLOSED)
    except SystemExit:
        raise
    except BaseException as error:  # noqa: BLE001 - whatever else arrives here is our bug, and says so; a panic, too
        import traceback

        if isinstance(error, OSError) and error.errno in TROUBLES:
            _say_no_more()
            what, fix = (words.format("what was written, or printed") for words in TROUBLES[error.errno])
            print(f"error: {what}\nhint: {fix}", file=sys.stderr)
            sys.exit(PlaceError.exit_code)
        print(printable(traceback.format_exc()), file=sys.stderr, end="")
        print("this is a bug in fairtrial: please report it with the lines above", file=sys.stderr)
        sys.exit(4)
    sys.exit(0)


@functools.cache
def command() -> TyperGroup:
    """The whole command line. What its functions take is read once: whoever runs several commands need not wait."""
    from typer.main import get_command

    from fairtrial.cli.app import app

    return cast("TyperGroup", get_command(app))  # of more than one command


def _run(line: Callable[..., object]) -> None:
    """Runs the command, to the last byte that it printed: later nobody could say that there is no room for it."""
    from typer import Abort

    try:
        line(standalone_mode=True)
    except SystemExit as ended:
        behind = ended.__context__  # typer and rich would call it a finding
        if isinstance(behind, BrokenPipeError):
            raise BrokenPipeError from ended
        if isinstance(behind, Abort) and behind.__cause__ is not None:
            raise behind.__cause__ from ended
        if sys.stdout is not None:  # closed before it began
            sys.stdout.flush()
        raise


def _say_no_more() -> None:
    """What is still to be printed goes nowhere: Python would try once more at its end."""
    if sys.stdout is None:
        return
    with contextlib.suppress(OSError):  # a stream of Python's own has no file
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())


def _spare_last_search() -> None:
    """When nothing is left but to end, Python searches for garbage once more: a fifth of a short command's time."""
    if "_duckdb" not in sys.modules:  # it would call what is left leaked
        gc.freeze()
