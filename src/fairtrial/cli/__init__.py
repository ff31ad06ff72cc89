"""The command line: one file per command; the only place that catches errors."""

from __future__ import annotations

import atexit
import gc
import sys
from typing import Final, NoReturn

# Objects made since the last search for garbage. What a command imports lives to its end: searching through it after
# every 700, as Python does, takes a seventh of a start.
SEARCHED: Final = 50_000


def main() -> NoReturn:
    """Runs the command line and exits.

    Exit codes: 0 fine, 1 a finding, 2 the user's input, 3 the environment, 4 our bug, 5 an undecided gate, 130 Ctrl-C.
    """
    gc.set_threshold(SEARCHED)
    atexit.register(_spare_last_search)
    from fairtrial.cli.app import app
    from fairtrial.errors import INTERRUPTED, FairtrialError
    from fairtrial.words import printable

    try:
        app(standalone_mode=True)
    except FairtrialError as error:
        print(printable(f"error: {error}\nhint: {error.hint}"), file=sys.stderr)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        sys.exit(0)
    except Exception:  # noqa: BLE001 - whatever arrives here is our bug, and says so
        import traceback

        print(printable(traceback.format_exc()), file=sys.stderr, end="")
        print("this is a bug in fairtrial: please report it with the lines above", file=sys.stderr)
        sys.exit(4)
    sys.exit(0)


def _spare_last_search() -> None:
    """When nothing is left but to end, Python searches for garbage once more: a fifth of a short command's time."""
    if "_duckdb" not in sys.modules:  # it would call what is left leaked
        gc.freeze()
