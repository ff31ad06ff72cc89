"""SHA-256 of what a study names and does not hold: archives, packages, kernels, images."""

from __future__ import annotations

from typing import Annotated

from pydantic import StringConstraints

from fairtrial.errors import PlaceError

Sha256 = Annotated[str, StringConstraints(pattern="^[0-9a-f]{64}$")]


def require(found: str, expected: str | None, *, what: str, field: str = "") -> None:
    """Lets only what is expected pass; None expects nothing.

    Raises:
        PlaceError: the hash is different; the message has the one that was found.
    """
    if expected not in (None, found):
        raise PlaceError(
            f"{what} has the SHA-256 {found}: expected {expected}",
            hint="find out who changed it; if you trust this one, write its hash into the study",
            field=field,
        )
