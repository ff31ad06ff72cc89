"""What a trial does for a database server, from the study alone: its files, its programs, and what is changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from fairtrial import servers
from fairtrial.programs import SERVERS, Act
from fairtrial.systems.existing.parameters import PostgresAt, RestoreCommand, ServerAt
from fairtrial.systems.server import PORTS

GONE: Final = "the server ends with its trial"
CHECKS: Final = {
    "maven": "checked by the SHA-1 that the repository gives",
    "debian": "by apt, which checks its signatures",
    "archive": "a file of this machine",
}


def fetching(source: servers.Source) -> Act:
    """Where files come from, and by what they are known."""
    check = f"SHA-256 {source.sha256}" if source.sha256 else CHECKS[source.kind]
    what, when = f"{source}, {check}", "once, and unpacks it into the cache of servers"
    return Act("reads" if source.kind == "archive" else "downloads", what, when, here=True)


def private(programs: Sequence[str], *, base: str | None, options: Mapping[str, str]) -> Iterator[Act]:
    """A server of the trial's own.

    Args:
        programs: its main program first, then those that make its data.
        base: directory of an installation at the place.
        options: of its configuration file, as they are written there.
    """
    where = "" if base is None else f"{base}/{{bin,sbin,libexec}}/"
    server, *making = programs
    yield Act("runs", f"{where}{server} --version", "in every trial, for the record", user=SERVERS)
    yield Act("runs", f"{where}{server}", "to make data, and in every trial", user=SERVERS)
    for program in making:
        yield Act("runs", f"{where}{program}", "to make data", user=SERVERS)
    yield Act("listens", "a Unix socket in the trial's directory")
    yield Act("writes", "configuration and data of the server, in the trial's directory")
    for name, value in options.items():
        yield Act("changes", f"option {name} = {value}", undo=GONE)


def open_to_clients() -> Act:
    """A private server whose clients are at other places."""
    return Act("listens", f"a free port from {PORTS[0]} to {PORTS[-1]}, on the address that clients reach")


def there(at: ServerAt, options: Mapping[str, str], *, restore: object) -> Iterator[Act]:
    """A server that is there already."""
    address = at.socket_path or (at.host if at.port is None else f"{at.host}:{at.port}")
    password = "" if at.password is None else f", password from the variable {at.password.env}"
    yield Act("connects", f"{address} as {at.user}{password}")
    overwritten = "whoever made it" if at.may_overwrite else "if fairtrial made it"
    ended = "; sessions in it are ended" if isinstance(at, PostgresAt) and restore in ("template", "reload") else ""
    yield Act(
        "changes",
        f"database {at.database}: made, or dropped and made anew {overwritten}{ended}",
        undo="nothing: the database stays",
    )
    if restore == "template":
        yield Act(
            "changes",
            "database fairtrial_{key} for each set of data: made, and copied for every trial",
            "once",
            undo="nothing: it stays for later runs, as large as the data",
        )
    if isinstance(restore, RestoreCommand):
        yield Act("runs", restore.command, "before every trial")
    if at.restart is not None:
        yield Act("runs", at.restart, "in every trial, after options are set")
    for name, value in options.items():
        undo = "the value that was read before, also after a kill"
        yield Act("changes", f"option {name} = {value}", undo=undo)
