"""Prepared data: made once per place and key, kept after a slow shutdown, copied for every trial."""

from __future__ import annotations

import hashlib
import json
import signal
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from pydantic import ValidationError

from fairtrial.errors import AgentError, InputError, PlaceError, StreamLostError, SystemStartError
from fairtrial.protocol.generated import Exited, Restore, Restored
from fairtrial.protocol.subcommands import RESTORE
from fairtrial.run.kinds import Parts, parts_of
from fairtrial.run.trial import leftovers, workspace
from fairtrial.study.resolved import ResolvedTrial
from fairtrial.systems import Identity, Instance, Launch
from fairtrial.wire.open_place import OpenPlace
from fairtrial.wire.process import how
from fairtrial.workloads import Loaded, OnProgress

KEY_CHARACTERS = 16
RESTORE_S = 3600.0
MOVE_S = 60.0
CREATED = "created"  # beside the data of a load under way: the boot in which their system was created
NOTHING = hashlib.sha256().hexdigest()  # the content of an empty system
# Signals that a service's own way to stop may end it by; exit codes are everybody's own, but for servers known here.
ORDERLY = frozenset({signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM})
BOOT = "/proc/sys/kernel/random/boot_id"


@dataclass(frozen=True)
class PreparedData:
    """Data ready to be copied.

    Attributes:
        key: what they were made from, hashed.
        directory: at the place.
        content_sha256: of the logical content.
    """

    key: str
    directory: PurePosixPath
    content_sha256: str


def key_of(trial: ResolvedTrial, parts: Parts, identity: Identity) -> str | None:
    """The key of a trial's data: everything that determines them; None if neither workload nor system needs any."""
    data = parts.workload.data()
    if data is None and not parts.system.has_data_directory():
        return None
    determined_by = {
        "system": trial.system.kind,
        "binary_sha256": identity.sha256,
        "source": identity.facts.get("source"),  # what else created them: scripts and libraries beside the program
        "initial": parts.system.initial(),
        "data": data,
    }
    if identity.loader:
        determined_by |= {"loader": dict(identity.loader)}
    if not parts.system.is_its_binary:
        determined_by |= {"version": identity.version, "facts": dict(identity.facts)}
    return hashlib.sha256(json.dumps(determined_by, sort_keys=True).encode()).hexdigest()[:KEY_CHARACTERS]


def identity_of(place: OpenPlace, parts: Parts) -> Identity:
    """What exactly a trial's system is, and what loads its data.

    Raises:
        PlaceError: one of them is missing, with where it was looked for.
    """
    found, existing = parts.system.identity(place), parts.system.existing()
    # One that keeps its data keeps those of an older loader, too: they are made once, and are not ours to remove.
    kept = existing is not None and existing.restores in ("command", "none")
    if kept or parts.workload.data() is None:
        return found
    return replace(found, loader=parts.workload.loader(place))


def directories(place: OpenPlace, trials: Iterable[ResolvedTrial]) -> set[PurePosixPath]:
    """Where the data of these trials are at the place, or would be; not of those whose server it does not have."""
    keys: set[str | None] = set()
    identities: dict[str, Identity | None] = {}
    for trial in trials:
        parts = parts_of(trial)
        of = repr((trial.system, parts.workload.data()))
        if of not in identities:
            identities[of] = _identity(place, parts)
        identity = identities[of]
        keys.add(None if identity is None else key_of(trial, parts, identity))
    return {_directory(place, key) for key in keys if key is not None}


def _identity(place: OpenPlace, parts: Parts) -> Identity | None:
    if parts.system.awaited() is not None:
        return None  # looking downloads nothing
    try:
        return identity_of(place, parts)
    except StreamLostError:
        raise
    except (PlaceError, InputError):
        return None  # who starts it says why


def _directory(place: OpenPlace, key: str) -> PurePosixPath:
    return place.state_directory / "prepared" / key


def ensure(place: OpenPlace, key: str, parts: Parts, *, on_progress: OnProgress) -> PreparedData:
    """Finds the prepared data of a key at the place, or makes them.

    Raises:
        SystemStartError: their server does not start, or it crashed or had to be killed while they were made.
    """
    directory = _directory(place, key)
    manifest = directory / "manifest.json"
    try:
        loaded = Loaded.model_validate_json(place.agent.get(str(manifest)))
    except AgentError as error:
        if error.code != "not_found":
            raise
        loaded = _make(place, directory, parts, on_progress=on_progress)
    except ValidationError as error:
        hint = f"remove {directory} there: the data are made again"
        raise PlaceError(f"{manifest} is damaged: {error}", hint=hint) from error
    return PreparedData(key=key, directory=directory / "data", content_sha256=loaded.content_sha256)


def _make(place: OpenPlace, directory: PurePosixPath, parts: Parts, *, on_progress: OnProgress) -> Loaded:
    """Creates, starts, loads, stops slowly, and only then gives the data their final name."""
    building = place.state_directory / "building" / directory.name
    launch = Launch(
        data_directory=building / "data",
        work_directory=building / "server",
        log_path=building / "server.log",
    )
    resumed = _resumed(place, launch, parts) if _loads(parts) else None  # an empty system is not worth keeping
    instance = resumed or _begun(place, launch, parts)
    try:
        loaded = _loaded(place, parts, instance, on_progress=on_progress)
        _require_alive(place, launch, instance)
    except BaseException:
        parts.system.stop(place, instance, settled=False)
        raise
    parts.system.stop(place, instance, settled=True)
    _require_shut_down(place, launch, instance, orderly=parts.system.orderly_codes)
    if leftovers.end(place, grace_s=place.limits.shutdown_s).killed:
        raise SystemStartError(
            "processes that the server had started had to be killed once its data were made, so they are not used",
            hint="let the server end what it starts before it ends itself, or when it gets SIGTERM",
        )
    workspace.remove(place, building / "server")
    workspace.remove(place, building / CREATED)
    place.agent.put(str(building / "manifest.json"), loaded.model_dump_json().encode(), mode=0o644)
    place.require(["sync", "-f", str(building)], hint="check the place's disk", timeout_s=RESTORE_S)
    workspace.make(place, directory.parent)
    place.require(["mv", "-T", str(building), str(directory)], hint="check the place's disk", timeout_s=MOVE_S)
    place.require(["sync", "-f", str(directory)], hint="check the place's disk", timeout_s=RESTORE_S)
    return loaded


def _require_alive(place: OpenPlace, launch: Launch, instance: Instance) -> None:
    exited = None if instance.process is None else instance.process.exited
    if exited is not None:
        raise _lost(place, launch, exited, what="ended while its data were made")


def _require_shut_down(
    place: OpenPlace, launch: Launch, instance: Instance, *, orderly: Collection[int] | None
) -> None:
    exited = None if instance.process is None else instance.process.exited
    if exited is None:
        return
    died = exited.signal is not None and exited.signal not in ORDERLY
    if died or (exited.code is not None and orderly is not None and exited.code not in orderly):
        raise _lost(place, launch, exited, what="did not shut down properly once its data were made")


def _lost(place: OpenPlace, launch: Launch, exited: Exited, *, what: str) -> SystemStartError:
    """Why data are not kept: some may have been in the server's memory only."""
    words = workspace.last_words(place, launch.log_path)
    hint = "fix what its log or the kernel's log reports: the data are made again by the next run"
    return SystemStartError(f"the server {what} ({how(exited)}), so they are not used{words}", hint=hint)


def _loads(parts: Parts) -> bool:
    return parts.workload.data() is not None


def _loaded(place: OpenPlace, parts: Parts, instance: Instance, *, on_progress: OnProgress) -> Loaded:
    """The workload's data; none for a workload that brings its own to an empty system."""
    if not _loads(parts):
        parts.system.create_database(place, instance.endpoint)
        return Loaded(content_sha256=NOTHING, rows={})
    if instance.endpoint is None:
        raise PlaceError("this workload loads data, and the system takes none", hint="name another under `system`")
    return parts.workload.load(place, instance.endpoint, on_progress=on_progress)


def _resumed(place: OpenPlace, launch: Launch, parts: Parts) -> Instance | None:
    """The system of a load that was interrupted, started again: the loader goes on where it was.

    None if there is nothing to go on from. Loading syncs nothing, so data that saw the machine go down are not used.
    """
    building = launch.data_directory.parent
    boot = place.require(["cat", BOOT], hint="the place's kernel must have procfs mounted")
    if place.execute(["cat", str(building / CREATED)]).output != boot:
        return None
    workspace.remove(place, building / "server")
    workspace.make_private(place, building / "server", user=parts.system.user(place))
    try:
        return parts.system.for_loading(place.facts).start(place, launch)
    except SystemStartError:
        return None  # what the kill left does not start: made anew


def _begun(place: OpenPlace, launch: Launch, parts: Parts) -> Instance:
    """A new system, in place of whatever loads have left, of other data too: one is under way at a time."""
    building = launch.data_directory.parent
    workspace.remove(place, building.parent)
    for name in ("data", "server"):
        workspace.make_private(place, building / name, user=parts.system.user(place))
    system = parts.system.for_loading(place.facts)
    system.create(place, launch)
    boot = place.require(["cat", BOOT], hint="the place's kernel must have procfs mounted")
    place.agent.put(str(building / CREATED), boot.encode())
    return system.start(place, launch)


def restore(place: OpenPlace, prepared: PreparedData, target: PurePosixPath, *, user: str | None) -> Restored:
    """Copies prepared data for one trial, as a user's; returns how."""
    request = Restore.model_validate({"from": str(prepared.directory), "to": str(target), "user": user})
    return place.native(RESTORE, request, timeout_s=RESTORE_S)
