"""Servers that are there already, as a run holds them: locked, looked at, their one database filled and restored.

Owns the order in which that happens. It must not know how a server says it (`systems.existing`).
"""

from __future__ import annotations

import contextlib
import shlex
import threading
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, NoReturn

from fairtrial import settings
from fairtrial.errors import InputError, PlaceError, Problem, StreamLostError
from fairtrial.places import is_fresh
from fairtrial.protocol.generated import Rows, SqlHold
from fairtrial.protocol.subcommands import SQL_HOLD, failure
from fairtrial.record.models import TrialData
from fairtrial.run import elsewhere
from fairtrial.run.kinds import Parts, parts_of
from fairtrial.run.prepared import key_of
from fairtrial.settings import Effect
from fairtrial.study.resolved import ResolvedTrial
from fairtrial.systems import Instance, ServerAddress, System, changed_meanwhile
from fairtrial.systems.existing import DataMark, ExistingServer
from fairtrial.systems.existing.parameters import RestoreCommand
from fairtrial.wire.agent import Process
from fairtrial.wire.open_place import OpenPlace
from fairtrial.workloads import OnProgress

# A server may take seconds to hear that a session's process was killed. Tries are counted, and not their time: a
# machine that stands still takes one of them.
TRIES: Final = 15
AGAIN_S: Final = 0.2
RESTORE_S: Final = 24 * 3600.0
TEMPLATE: Final = "fairtrial_"  # and the key of the data in it
COMMAND: Final = "command"  # the workload whose program sees to its connections itself
HAMMERDB: Final = "hammerdb"


def of(trial: ResolvedTrial) -> ExistingServer | None:
    """The server that is there already, which a trial tests; None: it has one of its own, or none."""
    return parts_of(trial).system.existing()


def refuse(trial: ResolvedTrial) -> None:
    """Refuses what cannot be done with a server that is there already, before anything is opened.

    Raises:
        InputError: the place begins anew with every trial, settings or encryption would not reach the server, or the
            workload's program cannot be used with it.
    """
    system, workload = parts_of(trial).system, parts_of(trial).workload
    there = system.there()
    if there is None:
        return
    if is_fresh(trial.place):
        _refuse(
            system.name,
            f"a place `{trial.place.kind}` ends with its trial, and with it what it would have to undo",
            "use `local` or `ssh`",
        )
    if there.is_remote and trial.settings:
        _refuse(
            system.name,
            f"settings.{min(trial.settings)} would change the machine of the load, not {there.host}",
            "leave the settings out, or name as `place` the machine of the server, and its socket or loopback here",
        )
    server = system.existing()
    if server is not None and server.tls is not None and not workload.is_native and workload.name != COMMAND:
        _refuse(system.name, f"the workload `{workload.name}` is not told how to encrypt", "use tpcc, oltp or script")
    if server is not None and workload.name == HAMMERDB:
        _refuse_hammerdb(system.name, server, workload.parameters.options)
    if elsewhere.of(trial) and not there.is_remote:
        _refuse(system.name, "the load runs at another place, which this address does not lead from", "name the host")


def _refuse_hammerdb(system: str, server: ExistingServer, options: Mapping[str, str]) -> None:
    """Its build makes different rows each time, and some of what it does reaches beyond its database."""
    if system == "postgres":
        problem = "HammerDB's build sets the password of its user on the server (`ALTER USER`)"
        _refuse(system, problem, "use tpcc, pgbench or a private server")
    if options.get("purge", "false") != "false":
        problem = "HammerDB's option `purge` sets options of the server, which stay if HammerDB is killed"
        _refuse(system, problem, "leave it out")
    if server.restores == "reload":
        problem = "HammerDB's build makes different rows each time, so trials would not start from the same data"
        _refuse(system, problem, "set `restore: none`, or a command")


def _refuse(system: str, message: str, suggestion: str) -> NoReturn:
    field_name = f"system.{system}.at"
    problem = Problem(message, "the study", field=field_name, suggestion=suggestion)
    raise InputError([problem], hint="nothing was started")


def require_unstarted(server: ServerAddress, effect: Effect) -> None:
    """Refuses what only a server that is started can be given.

    Raises:
        PlaceError: a setting would.
    """
    given = {
        "affinity.server": effect.server_processors,
        "memory, io or cpu (control groups)": effect.server_groups,
        "locks": effect.preloaded,
        "environment": effect.environment,
        "storage": effect.data_directory,
    }
    for name, value in given.items():
        if value:
            raise PlaceError(
                f"settings.{name} is given to a server when it starts, and {server.text} runs already",
                hint="leave the setting out, or test a private server",
            )


def _is_held(session: Process | None) -> bool:
    return session is not None and session.exited is None


@dataclass
class ExistingServers:
    """Those that a run has locked at one open place.

    Attributes:
        place: where the load and the locks' sessions are.
        holder: who holds the locks, in words.
    """

    place: OpenPlace
    holder: str
    _sessions: dict[str, Process] = field(default_factory=dict)
    _by_server: dict[str, Process] = field(default_factory=dict)
    _kept: dict[tuple[str, str], str] = field(default_factory=dict)
    _set: dict[str, set[str]] = field(default_factory=dict)  # by server, names of the options that any arm sets

    def require(self, trials: Iterable[ResolvedTrial]) -> None:
        """Everything that every arm needs, and the servers' locks, before anything is changed.

        Raises:
            PlaceError: a server does not answer, is used by another study, does not have an option, still has those of
                a run that died, or has a database that is somebody else's, or keeps one set of data and trials need
                several.
        """
        for trial in trials:
            parts = parts_of(trial)
            system = parts.system
            there, server = system.there(), system.existing()
            if there is None:
                continue
            self._set.setdefault(there.text, set()).update(there.options)
            require_unstarted(there, settings.effects(trial.settings, self.place.facts, elsewhere.context(trial)))
            identity = system.identity(self.place)
            if server is None:
                system.hold(self.place, self._sessions, holder=self.holder)
                continue
            self._require_restored(server)
            server.require_own(self.place)
            if server.restores == "none":
                self._require_one_set(server, key_of(trial, parts, identity))
            self.hold(server)
            server.require_settable(self.place)
            server.setter(self.place).require_restorable(self.place)

    def watched(self, system: System[Any]) -> Collection[str]:
        """Options that arms set at a trial's server, its own arm or another: nobody else may change them meanwhile."""
        there = system.there()
        return () if there is None else self._set.get(there.text, ())

    def restore_held(self, system: System[Any]) -> None:
        """Restores a server's options before the agent ends, which ends the lock first: the next study reads them."""
        if system.there() is not None:
            with contextlib.suppress(PlaceError):  # the agent tries again
                self.place.agent.undo()

    def _require_restored(self, server: ExistingServer) -> None:
        """Refuses a server whose options a dead session left set: this one would take them for the server's own."""
        step = f"options of {server.kind} on {server.address}: "
        for failed in self.place.agent.hello.leftovers.failed:
            if failed.startswith(step):
                raise PlaceError(
                    f"left by an earlier run and not restored: {failed}",
                    hint="run again when the server answers: they are restored first; or restore them by hand",
                )

    def _require_one_set(self, server: ExistingServer, key: str | None) -> None:
        database = server.at.database
        if key is not None and self._kept.setdefault((server.address, database), key) != key:
            raise PlaceError(
                f"`restore: none` keeps one set of data in {database} on {server.address}, and trials need several",
                hint="name a database for each, or let fairtrial restore them: leave `restore` out",
                field=f"system.{server.kind}.at.restore",
            )

    def hold(self, server: ExistingServer) -> None:
        """Takes a server's advisory lock, unless its session still has it: a server that restarts ends it.

        Raises:
            PlaceError: another study has it, with who; or the server does not answer.
        """
        if _is_held(self._sessions.get(server.address)):
            return
        name = server.identify(self.place)
        if not _is_held(self._by_server.get(name)):
            self._by_server[name] = self._taken(server)
        self._sessions[server.address] = self._by_server[name]

    def started(self, server: ExistingServer) -> None:
        """Takes the lock again where a trial has restarted the server, which has ended the lock's session.

        Raises:
            PlaceError: as `hold`.
        """
        if server.at.restart is not None and (session := self._sessions.pop(server.address, None)) is not None:
            session.stop(self.place.limits.stop_s)
        self.hold(server)

    def _taken(self, server: ExistingServer) -> Process:
        for tried in range(TRIES):
            if tried:
                time.sleep(AGAIN_S)
            if (session := self._tried(server)) is not None:
                return session
        raise PlaceError(
            f"another study uses {server.kind} on {server.address}: {server.lock_holder(self.place)}",
            hint="wait until it has ended; its advisory lock goes with its session",
        )

    def _tried(self, server: ExistingServer) -> Process | None:
        """The lock's session; None if another one has it."""
        lines: list[str] = []
        answered = threading.Event()

        def hear(_stream: str, line: str) -> None:
            lines.append(line)
            answered.set()

        request = SqlHold(endpoint=server.endpoint(server.maintenance), statements=server.lock(self.holder))
        session = self.place.agent.spawn(
            name="server-lock", argv=SQL_HOLD.argv, stdin=SQL_HOLD.document(request), on_line=hear
        )
        session.wait_until(answered)  # the subcommand has a limit of its own
        if (fault := failure(lines)) is not None:
            raise PlaceError(f"the lock of {server.address}: {fault.error}", hint=fault.hint)
        rows: Rows = SQL_HOLD.result(lines[0] if lines else None)
        if rows.rows[0][0] == "1":
            return session
        session.stop(self.place.limits.stop_s)
        return None

    def prepare(self, parts: Parts, server: ExistingServer, *, key: str | None, on_progress: OnProgress) -> None:
        """Loads the data that all trials start from, where they are kept on the server."""
        self.hold(server)
        if key is None or server.restores not in ("template", "none"):
            return
        database = f"{TEMPLATE}{key}" if server.restores == "template" else server.at.database
        mark = server.mark(self.place, database)
        if mark is not None and mark.key == key:
            return
        with self._shaped(parts, server):
            if mark is None or self._is_anew(parts, server, mark, database=database):
                mark = self._made(server, database)
            data = DataMark(made=mark.made, key=key)
            self._load(parts, server, data, database=database, on_progress=on_progress)

    def restore(self, parts: Parts, server: ExistingServer, *, key: str | None, on_progress: OnProgress) -> TrialData:
        """Brings the database into the state that a trial starts from."""
        self.hold(server)
        if server.restores == "reload" and key is not None:
            self._shape(parts, server)  # the trial sets all options, and undoes these with them
        database, restore = server.at.database, getattr(server.at, "restore", None)
        mark = server.mark(self.place, database)
        if isinstance(restore, RestoreCommand):
            self._restored_by(restore, server, mark or self._made(server, database))
            return TrialData()
        if server.restores == "template" and key is not None:
            server.recreate(self.place, database, template=f"{TEMPLATE}{key}")
            mark = server.mark(self.place, database)
            if mark is not None:
                server.note(self.place, database, mark)
        elif mark is None or (mark.made and server.restores != "none"):
            mark = self._made(server, database)
        elif mark.made and not mark.key and not server.has_mark(self.place, database):
            server.note(self.place, database, mark)  # it was empty, and is not once somebody loads it
        if server.restores == "reload" and key is not None:
            data = DataMark(made=mark is None or mark.made, key=key)
            mark = self._load(parts, server, data, database=database, on_progress=on_progress)
        server.settle(self.place)
        content = mark.content_sha256 if mark is not None else ""
        return TrialData(key=key, content_sha256=content or None)

    def _is_anew(self, parts: Parts, server: ExistingServer, mark: DataMark, *, database: str) -> bool:
        """Whether a database is made anew before a load: only our own loader goes on with what a kill has left."""
        if not mark.made:
            return database != server.at.database
        return mark.key != "" or bool(parts.workload.loader(self.place))

    @contextlib.contextmanager
    def _shaped(self, parts: Parts, server: ExistingServer) -> Iterator[None]:
        """While data are loaded that no trial changes."""
        try:
            is_set = self._shape(parts, server)
            yield
        except BaseException:
            self.restore_held(parts.system)
            raise
        if is_set and (failed := self.place.agent.undo().failed):
            hint = "run again when the server answers: they are restored first; or restore them by hand"
            raise PlaceError(f"what data were loaded with could not be undone: {'; '.join(failed)}", hint=hint)

    def _shape(self, parts: Parts, server: ExistingServer) -> bool:
        """Sets the arm's options that act on data when they are made; whether there are any."""
        shaping = server.with_options(parts.system.initial())
        if not shaping.options:
            return False
        shaping.setter(self.place).set_options(self.place)
        self.started(server)
        return True

    def _restored_by(self, restore: RestoreCommand, server: ExistingServer, mark: DataMark) -> None:
        hint, unknown = f"fix system.{server.kind}.at.restore", DataMark(made=mark.made)
        if mark.key:
            server.note(self.place, server.at.database, unknown)
        password = server.at.password
        environment = {password.env: server.password} if password else {}
        self.place.require(shlex.split(restore.command), hint=hint, timeout_s=RESTORE_S, environment=environment)
        if mark.made:
            server.note(self.place, server.at.database, unknown)  # the command may have made the database anew

    def _made(self, server: ExistingServer, database: str) -> DataMark:
        mark = DataMark(made=True)
        server.recreate(self.place, database)
        server.note(self.place, database, mark)
        return mark

    def _load(
        self, parts: Parts, server: ExistingServer, data: DataMark, *, database: str, on_progress: OnProgress
    ) -> DataMark:
        partial = DataMark(made=data.made)
        server.note(self.place, database, partial)  # what was whole is not while it is loaded
        try:
            loaded = parts.workload.load(self.place, server.endpoint(database), on_progress=on_progress)
        except StreamLostError:
            raise
        except BaseException:
            with contextlib.suppress(PlaceError):  # what went wrong first is the news
                server.note(self.place, database, partial)  # the program may have made the database anew
            raise
        mark = replace(data, content_sha256=loaded.content_sha256)
        server.note(self.place, database, mark)
        server.settle(self.place)
        return mark

    def disturbance(self, server: ExistingServer, instance: Instance) -> str:
        """Why a trial cannot count, seen from its server at its end; empty if it can.

        Raises:
            StreamLostError: the stream to the place ended.
        """
        try:
            changed = server.changed(self.place, instance, self._set.get(server.address, ()))
            self.hold(server)
        except StreamLostError:
            raise
        except PlaceError as error:
            return f"the server did not answer at the trial's end: {error}"
        return changed_meanwhile(changed)
