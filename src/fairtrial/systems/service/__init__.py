"""`service`: any long-running program, started before a trial's load, configured by a study's options.

Directories, ports and the configuration file are handed in by name; an option counts once it has been read back.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Self

from fairtrial.errors import PlaceError, StreamLostError, SystemStartError
from fairtrial.programs import Act, asked_for
from fairtrial.protocol.endpoints import Endpoint, ServiceEndpoint, is_loopback
from fairtrial.protocol.generated import HttpGet
from fairtrial.protocol.subcommands import HTTP_GET
from fairtrial.systems import program, server
from fairtrial.systems.instance import Identity, Instance, Launch, ServerAddress, changed_meanwhile
from fairtrial.systems.service import acts as service_acts
from fairtrial.systems.service import lock, read_back, rendering, there
from fairtrial.systems.service.parameters import HANDED_IN, Option, ServiceAt, ServiceParameters
from fairtrial.systems.system import System
from fairtrial.wire.agent import Process
from fairtrial.wire.facts import Facts
from fairtrial.wire.open_place import OpenPlace

HOST = "127.0.0.1"
# As many as there are below Linux's ephemeral ports: of few, services that start at once take the same now and then.
PORTS = range(server.PORTS[-1] + 1, 32_768)
DATA_S = 24 * 3600.0  # for a command that makes data
OTHERS = 2
SUCCESS = range(200, 300)
ANSWER_S = 5.0  # a page that says whether a service is ready takes less, or it is not
# Whether a process or one below it listens on a port (proc(5): 0A is LISTEN, the tenth column the socket's inode):
# 0 if so, 1 if nobody does, 2 if others do.
LISTENS = (
    "sh",
    "-c",
    """
    tree() { echo "$1"; for child in $(cat /proc/"$1"/task/*/children 2>/dev/null); do tree "$child"; done; }
    inodes=$(grep -hiE ":$(printf %04X "$2") [0-9A-F]+:0000 0A" /proc/net/tcp /proc/net/tcp6 2>/dev/null |
        while read -r _ _ _ _ _ _ _ _ _ inode _; do echo "$inode"; done)
    [ -n "$inodes" ] || exit 1
    for pid in $(tree "$1"); do
        for file in /proc/"$pid"/fd/*; do
            link=$(readlink "$file")
            for inode in $inodes; do [ "$link" != "socket:[$inode]" ] || exit 0; done
        done
    done
    exit 2
    """,
    "sh",
)


class Service(System[ServiceParameters]):
    """A program of anybody's, of which fairtrial knows what the study says."""

    name = "service"
    summary = "Any long-running program: Redis, nginx, your own daemon."
    model = ServiceParameters
    is_its_binary = False

    def acts(self) -> Iterator[Act]:
        """All that the study says of it."""
        return service_acts.acts(self.parameters)

    def handed_in(self) -> Collection[str]:
        """Its directories and ports; of one that is there, what is known of it."""
        at = self.parameters.at
        return (*HANDED_IN, *self.parameters.ports) if at is None else there.handed_in(at, work="").keys()

    def has_server(self) -> bool:
        """Always."""
        return True

    def has_data_directory(self) -> bool:
        """Where data are made for it."""
        return self.parameters.data is not None

    def there(self) -> ServerAddress | None:
        """Its address, where the study gives one."""
        at = self.parameters.at
        return None if at is None else ServerAddress(there.address(at), at.host, [*self.parameters.options])

    def hold(self, place: OpenPlace, held: dict[str, Process], *, holder: str) -> None:
        """Takes the lock of one that is there.

        Raises:
            PlaceError: another study has it, or has left its options changed.
        """
        if self.parameters.at is not None:
            lock.hold(place, self.parameters.at, held, holder=holder)

    def identity(self, place: OpenPlace) -> Identity:
        """Path and hash of the program, and what its version command prints; of one that is there, what it says.

        Raises:
            PlaceError: the program is not on the place's PATH.
        """
        parameters = self.parameters
        if parameters.at is not None:
            return there.identity(place, parameters, parameters.at)
        variables = {**parameters.environment, **rendering.environment(parameters.configuration, parameters.options)}
        return program.identity(
            place,
            run=self._run,
            version=parameters.version,
            field="system.service",
            user=self.user(place),
            environment={name: text for name, text in variables.items() if name == program.SEARCH},
        )

    def user(self, place: OpenPlace) -> str | None:
        """The study's, where the agent may become it."""
        return self.parameters.user if self.parameters.user and place.server_user else place.server_user

    def initial(self) -> dict[str, str]:
        """All that its data are made with."""
        parameters = self.parameters
        if parameters.data is None:
            return {}
        made_with = parameters.model_copy(
            update={"options": self._loading_options(), "read_back": None, "version": None}
        )
        return {"service": made_with.model_dump_json()}

    def for_loading(self, facts: Facts) -> Self:
        """The service with the options that its data are made with; a template has no other form than with all."""
        del facts
        return type(self)(self.parameters.model_copy(update={"options": self._loading_options()}))

    def _loading_options(self) -> dict[str, Option]:
        parameters = self.parameters
        if parameters.configuration is not None and parameters.configuration.format == "template":
            return dict(sorted(parameters.options.items()))
        named = parameters.data.options if parameters.data is not None else ()
        return {name: parameters.options[name] for name in named if name in parameters.options}

    def create(self, place: OpenPlace, launch: Launch) -> None:
        """Runs the commands that make data before it starts."""
        handed_in = self._directories(launch)
        for command in self.parameters.data.create if self.parameters.data is not None else ():
            self._prepare(place, command, handed_in)

    def create_database(self, place: OpenPlace, endpoint: Endpoint | None) -> None:
        """Runs the commands that fill it while it runs."""
        assert isinstance(endpoint, ServiceEndpoint)  # noqa: S101 - it is this system's own
        for command in self.parameters.data.load if self.parameters.data is not None else ():
            self._prepare(place, command, endpoint.handed_in)

    def start(self, place: OpenPlace, launch: Launch) -> Instance:
        """Writes its configuration, starts it, waits until it is ready and reads every option back.

        Raises:
            SystemStartError: it exits, is not ready in time, or an option is not in effect.
        """
        parameters = self.parameters
        if parameters.at is not None:
            return self._reached(place, launch, parameters.at)
        first = secrets.randbelow(len(PORTS))
        ports = server.free_ports(place, len(parameters.ports), among=(*PORTS[first:], *PORTS[:first]))
        handed_in = {
            **self._directories(launch),
            **{name: str(port) for name, port in zip(parameters.ports, ports, strict=True)},
        }
        if parameters.configuration is not None:
            content = rendering.document(parameters.configuration, parameters.options, handed_in)
            place.agent.put(handed_in["config"], content.encode(), mode=0o644)
        command = rendering.argv(
            self._run, handed_in, flags=rendering.flags(parameters.configuration, parameters.options)
        )
        environment = {
            **{name: rendering.filled(text, handed_in) for name, text in parameters.environment.items()},
            **rendering.environment(parameters.configuration, parameters.options),
            **launch.environment,
        }
        launch = replace(launch, environment=environment, ready_s=parameters.ready_timeout)
        with asked_for("system.service"):
            process = server.spawned(place, command, launch, user=self.user(place))
        endpoint = ServiceEndpoint(handed_in=handed_in, ports=parameters.ports)

        def stop() -> None:
            self._stop(place, process, handed_in)

        with server.coming_up(place, launch, kind=self.name, stop=stop):
            looks = self._looks(place, handed_in, pid=process.pid)
            server.wait_until_ready(place, process, launch, looks=looks, kind=self.name)
            self._require_own_ports(place, handed_in, pid=process.pid)
            options = self._read(place, handed_in, parameters.options)
            server.require_in_effect(read_back.differences(parameters.options, options))
        return Instance(endpoint=endpoint, process=process, options=options, is_one_process=False)

    def _reached(self, place: OpenPlace, launch: Launch, at: ServiceAt) -> Instance:
        """One that is there: restored, and its options set until the trial ends or whoever runs it dies."""
        handed_in = there.handed_in(at, work=str(launch.work_directory))
        looks = self._looks(place, handed_in, pid=0)
        ready = partial(server.succeeds, place, looks)
        there.await_ready(at, ready, limit_s=self.parameters.ready_timeout)
        there.restore(place, at, handed_in)
        own = there.OwnOptions(place, self.parameters, at, handed_in=handed_in)
        own.set()
        names = dict.fromkeys((*self.parameters.options, *read_back.readable(self.parameters, launch.watched)))
        printed = read_back.printed(place, self.parameters, handed_in, names=names)
        options = read_back.values(printed)
        server.require_in_effect(read_back.differences(self.parameters.options, options))
        own.note(printed)
        endpoint = ServiceEndpoint(handed_in=handed_in, ports=self.parameters.port_names)
        is_at_place = is_loopback(at.host)
        return Instance(endpoint=endpoint, process=None, options=options, is_at_place=is_at_place)

    def disturbance(self, place: OpenPlace, instance: Instance) -> str:
        """Options of one that is there which somebody else has changed."""
        if self.parameters.at is None or not isinstance(instance.endpoint, ServiceEndpoint):
            return ""
        try:
            now = self._read(place, instance.endpoint.handed_in, instance.options)
        except StreamLostError:
            raise
        except PlaceError as error:
            return f"the service did not answer at the trial's end: {error}"
        changed = [name for name, value in now.items() if value != instance.options.get(name)]
        return changed_meanwhile(changed)

    @property
    def _run(self) -> str:
        """The command line of one that is started."""
        assert self.parameters.run is not None  # noqa: S101 - or it is there already
        return self.parameters.run

    def stop(self, place: OpenPlace, instance: Instance, *, settled: bool) -> None:
        """Stops it by its own command, else by SIGTERM; what it does then is its affair, `settled` or not."""
        del settled
        assert isinstance(instance.endpoint, ServiceEndpoint)  # noqa: S101 - it is this system's own
        if instance.process is not None and instance.process.exited is None:
            self._stop(place, instance.process, instance.endpoint.handed_in)

    def _stop(self, place: OpenPlace, process: Process, handed_in: Mapping[str, str]) -> None:
        limit_s = place.limits.shutdown_s
        if self.parameters.stop is not None and process.exited is None:
            with contextlib.suppress(PlaceError, TimeoutError):  # what hangs is stopped as if there were no command
                if place.execute(rendering.argv(self.parameters.stop, handed_in), timeout_s=limit_s).code == 0:
                    process.wait(limit_s)
        process.stop(limit_s, group=True)

    def _directories(self, launch: Launch) -> dict[str, str]:
        return {
            "config": str(launch.work_directory / "service.conf"),
            "data": str(launch.data_directory),
            "host": HOST,
            "work": str(launch.work_directory),
        }

    def _prepare(self, place: OpenPlace, command: str, handed_in: Mapping[str, str]) -> None:
        words = rendering.argv(command, handed_in)
        place.require(words, hint="fix system.service.data", timeout_s=DATA_S, user=self.user(place))

    def _looks(self, place: OpenPlace, handed_in: Mapping[str, str], *, pid: int) -> server.Looks:
        ready = self.parameters.ready
        if ready is None:
            return ["true"]
        if ready.port is not None:
            return [*LISTENS, str(pid), handed_in[ready.port]]
        if ready.http is not None:
            return partial(_answers, place, rendering.filled(ready.http, handed_in))
        return rendering.argv(ready.command or "", handed_in)

    def _require_own_ports(self, place: OpenPlace, handed_in: Mapping[str, str], *, pid: int) -> None:
        """A port that was free may be another program's by now, and who asks there would not notice.

        Raises:
            SystemStartError: one is.
        """
        for name in self.parameters.ports:
            if place.execute([*LISTENS, str(pid), handed_in[name]]).code == OTHERS:
                raise SystemStartError(
                    f"port {handed_in[name]} ({name}) is another program's, which took it while the service started",
                    hint="let the service fail where it cannot listen, and run it again",
                )

    def _read(self, place: OpenPlace, handed_in: Mapping[str, str], names: Iterable[str]) -> dict[str, str]:
        """The values in effect of some options.

        Raises:
            PlaceError: one cannot be read.
        """
        return read_back.values(read_back.printed(place, self.parameters, handed_in, names=names))


def _answers(place: OpenPlace, url: str, limit_s: float) -> bool:
    """Whether a URL answers with success."""
    answer = place.native(HTTP_GET, HttpGet(url=url, timeout_ms=int(1000 * min(limit_s, ANSWER_S))))
    return answer.status is not None and answer.status in SUCCESS
