"""A system under test as it is identified, started and reached."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from fairtrial.protocol.endpoints import Database, Endpoint, is_loopback
from fairtrial.wire.agent import Process


@dataclass(frozen=True)
class Identity:
    """What exactly runs, for the key of prepared data and for the record.

    Attributes:
        version: in the system's own words.
        sha256: of its binary; of the agent's where the system is embedded.
        facts: anything else worth recording (path of the binary, build).
        loader: what makes a trial's data beside it, by version and hash; empty: the agent, or nobody.
    """

    version: str
    sha256: str
    facts: Mapping[str, str] = field(default_factory=dict)
    loader: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Certificate:
    """PEM files at a place, by which a server proves that it is the one that a trial started.

    Attributes:
        authorities: the authority that signed it, which clients get.
        certificate, key: the server's own; the key is readable by the user it runs as alone.
    """

    authorities: PurePosixPath
    certificate: PurePosixPath
    key: PurePosixPath


@dataclass(frozen=True)
class Launch:
    """How a system is started.

    Attributes:
        data_directory: its data, already there, owned by the user it runs as.
        work_directory: for sockets, configuration and temporary files; exists.
        log_path: where its log goes.
        environment: added to its environment.
        processors: it may use; None: all.
        groups: directories of the control groups it starts in.
        addresses: of the place, to listen on for workloads at other ones; empty: no network.
        certificate: connections from other places must be encrypted with it; None: they are not.
        ready_s: how long it may take to be ready; None: `Limits.start_s`.
        watched: options of a server that is there already that other arms set; it reads them, too, where it can.
    """

    data_directory: PurePosixPath
    work_directory: PurePosixPath
    log_path: PurePosixPath
    environment: Mapping[str, str] = field(default_factory=dict)
    processors: tuple[int, ...] | None = None
    groups: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    certificate: Certificate | None = None
    ready_s: float | None = None
    watched: Collection[str] = ()


@dataclass(frozen=True)
class Instance:
    """A system that answers.

    Attributes:
        endpoint: how a workload reaches it; None: by no endpoint.
        process: its main process; None where it is embedded in the load.
        options: effective options as read back.
        monitoring: how the sampler reaches its own counters; None: it has none.
        is_one_process: whether the main process does all its work; else the sampler adds up its children's, because a
            part would be taken for the whole.
        remote: how a workload at another place reaches it; None: it does not listen.
        slow_shutdown_s: how long it may take to stop `settled` once its load has ended, which is measured then; None:
            it is not.
        is_at_place: whether it runs on the machine of the place, so that this machine's counters are about it.
        unrecorded: options that may hold a secret, as read back.
    """

    endpoint: Endpoint | None
    process: Process | None
    options: Mapping[str, str] = field(default_factory=dict)
    monitoring: Database | None = None
    is_one_process: bool = True
    remote: Database | None = None
    slow_shutdown_s: float | None = None
    is_at_place: bool = True
    unrecorded: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class ServerAddress:
    """Where a server is that is there already.

    Attributes:
        text: in words.
        host: its name or address; None: a Unix socket.
        options: names of those that a trial sets.
    """

    text: str
    host: str | None
    options: Collection[str] = ()

    @property
    def is_remote(self) -> bool:
        """Whether it is on another machine than the place, as far as its address tells."""
        return self.host is not None and not is_loopback(self.host)


def changed_meanwhile(names: Sequence[str]) -> str:
    """Why a trial cannot count in which others changed what it was run with; empty if they did not."""
    return "changed by another process during the trial: " + ", ".join(names) if names else ""
