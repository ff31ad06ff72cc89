"""Finding the agent's binary on this machine."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from fairtrial.errors import PlaceError

NAME = "fairtrial-agent"
VARIABLE = "FAIRTRIAL_AGENT"
CHECKOUT_DEPTH = 4  # src/fairtrial/wire/find.py: a checkout's root is that far up


def find_agent() -> Path:
    """The agent's binary: $FAIRTRIAL_AGENT, else beside this Python, its scripts, on PATH, built in a checkout.

    Raises:
        PlaceError: there is none; the message names every place tried.
    """
    named = os.environ.get(VARIABLE)
    tried: list[str] = []
    for candidate in [Path(named)] if named else _candidates():
        if candidate.is_file() and os.access(candidate, os.X_OK):
            return candidate
        tried.append(str(candidate))
    places = ", ".join(dict.fromkeys(tried))
    where = f"${VARIABLE} names {named}, which is not an executable file" if named else f"looked for {places}"
    raise PlaceError(
        f"{NAME} not found: {where}",
        hint=f"install fairtrial as a wheel, run `make setup` in a checkout, or set {VARIABLE}",
    )


def _candidates() -> Iterator[Path]:
    yield Path(sys.executable).parent / NAME
    yield Path(sysconfig.get_path("scripts")) / NAME
    on_path = shutil.which(NAME)
    yield Path(on_path) if on_path else Path("$PATH") / NAME
    yield Path(__file__).resolve().parents[CHECKOUT_DEPTH - 1] / "target" / "release" / NAME
