"""The options of `fairtrial govern`, beside those of the other commands. Importing this must stay cheap, too."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(help="Run a governor next to a server, without a study.", no_args_is_help=True, rich_markup_mode=None)

Socket = Annotated[
    Path, typer.Option("--socket", metavar="PATH", help="Socket of a MariaDB or MySQL server.", show_default=False)
]
PasswordFile = Annotated[
    Path | None,
    typer.Option("--password-file", metavar="FILE", help="File with the user's password (default: no password)."),
]


@app.callback()
def _govern() -> None:
    """Run a governor next to a server, without a study."""


@app.command("purge")
def _purge(
    socket: Socket,
    user: Annotated[str, typer.Option("--user", help="User with the privilege to set global variables.")] = "root",
    password_file: PasswordFile = None,
    period: Annotated[str, typer.Option("--period", metavar="TIME", help="Time between two polls.")] = "50ms",
    answer_limit: Annotated[str, typer.Option("--answer-limit", metavar="TIME", help="Time limit of a poll.")] = "1s",
    min_threads: Annotated[int, typer.Option("--min-threads", help="Minimum number of purge threads.")] = 1,
    max_threads: Annotated[
        int | None, typer.Option("--max-threads", help="Maximum number of purge threads (default: the server's own).")
    ] = None,
    min_batch: Annotated[int, typer.Option("--min-batch", help="Batch size while purge is held.")] = 1,
    max_batch: Annotated[
        int | None, typer.Option("--max-batch", help="Batch size while purge runs (default: the server's own).")
    ] = None,
    low_water: Annotated[
        str, typer.Option("--low-water", metavar="SHARE", help="Checkpoint age up to which all purge threads work.")
    ] = "20%",
    stop_at: Annotated[
        str, typer.Option("--stop-at", metavar="SHARE", help="Checkpoint age from which purge is held.")
    ] = "80%",
    hysteresis: Annotated[
        str, typer.Option("--hysteresis", metavar="SHARE", help="Distance below --stop-at at which purge resumes.")
    ] = "2%",
    seconds: Annotated[
        float | None,
        typer.Option("--seconds", min=0.001, help="Duration in seconds (default: until Ctrl-C or SIGTERM)."),
    ] = None,
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print decisions without setting anything.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print every decision as a line of JSON.")] = False,
) -> None:
    """Adapt InnoDB's purge to the checkpoint age (MDEV-26356). Works from outside; restores all values at the end."""
    from fairtrial.cli import govern as command

    values = {
        "--period": period,
        "--answer-limit": answer_limit,
        "--min-threads": min_threads,
        "--max-threads": max_threads,
        "--min-batch": min_batch,
        "--max-batch": max_batch,
        "--low-water": low_water,
        "--stop-at": stop_at,
        "--hysteresis": hysteresis,
        "--dry-run": dry_run,
    }
    parameters = {command.OPTIONS[option]: value for option, value in values.items()}
    options = command.GovernOptions(parameters, seconds=seconds, as_json=as_json)
    command.purge(command.Server(socket, user, password_file), options)
