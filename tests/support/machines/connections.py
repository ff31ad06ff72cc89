"""Connections to the MariaDB of a trial, counted and killed by somebody who is none of its users."""

from __future__ import annotations

import subprocess

from fairtrial.protocol.generated import MysqlEndpoint, Sql
from fairtrial.protocol.subcommands import SQL
from fairtrial.wire import find_agent
from support.command_line import Desk, desk_in, eventually


class Server:
    """The server of the trial under way, asked over its own socket."""

    def __init__(self, here: Desk) -> None:
        self._here = here

    def ask(self, *statements: str) -> list[list[str]]:
        """Rows of the statements' answers; none while there is no server."""
        found = list((self._here.state / "work").glob("*/server/mysqld.sock"))
        if not found:
            return []
        endpoint = MysqlEndpoint(socket=str(found[0]), user="root", database="mysql")
        asked = SQL.document(Sql(endpoint=endpoint, statements=list(statements)))
        done = subprocess.run([find_agent(), "sql"], input=asked, capture_output=True, text=True, check=False)
        answers = [SQL.result(line) for line in done.stdout.splitlines()]
        return [[value or "" for value in row] for answer in answers for row in answer.rows]

    def is_busy(self, beyond: int) -> bool:
        """Whether users have committed more often than that."""
        commits = self.ask(
            "SELECT variable_value FROM information_schema.global_status WHERE variable_name='COM_COMMIT'"
        )
        return bool(commits) and int(commits[0][0]) > beyond

    def kill_users(self) -> int:
        """Kills every connection to the workload's database; how many."""
        users = self.ask("SELECT id FROM information_schema.processlist WHERE db = 'fairtrial'")
        for (user,) in users:
            self.ask(f"KILL HARD CONNECTION {user}")
        return len(users)


def kill_users_at_work(directory: str, beyond: int, users: int) -> None:
    """Waits until users have committed so often, and kills their connections: so many; for `apart`."""
    server = Server(desk_in(directory))
    eventually(lambda: server.is_busy(beyond), "users at work")
    assert server.kill_users() == users
