"""`fairtrial audit`: the claims of a publication against its raw data."""

from __future__ import annotations

import sys
from pathlib import Path

import typer

from fairtrial.cli.terminal import say

FINDING = 1


def audit(claims: Path, *, data: Path | None, as_json: bool) -> None:
    """Prints every claim with its verdict; exits with 1 if one is contradicted.

    Raises:
        InputError: the claims or the data cannot be read, or something in them is wrong.
    """
    from fairtrial import audit as publications
    from fairtrial.audit import text as report
    from fairtrial.audit.claims import file as claims_file

    result = publications.audit(claims_file.read(claims, data=data))
    if as_json:
        typer.echo(result.model_dump_json(indent=1))
    else:
        say("\n".join(report.text(result)))
    if result.count("contradicted"):
        sys.exit(FINDING)
