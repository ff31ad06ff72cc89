"""One trial, from prepared data to a committed directory.

settings → restore → settle → settings → start → settings → sample → drive → stop sampling → check → stop → end
what is left running → undo → collect.
Whatever goes wrong on the way, processes are stopped and settings undone before the trial is called valid or not.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from fairtrial import settings
from fairtrial.errors import AgentError, PlaceError, StreamLostError, StuckError, SystemStartError
from fairtrial.metrics.telemetry.probes import DIRECTORY as PROBES
from fairtrial.protocol.generated import Changed, Step, Undone
from fairtrial.record import Writer
from fairtrial.record.files import disk_explained
from fairtrial.record.models import Clock, EffectiveSetting, PlannedTrial, TrialData, TrialRecord
from fairtrial.run import elsewhere, hosted, interrupting, prepared
from fairtrial.run.existing import ExistingServers
from fairtrial.run.kinds import Parts, parts_of
from fairtrial.run.progress import Progress
from fairtrial.run.trial import (
    covariates,
    driving,
    encrypting,
    governing,
    layouts,
    leftovers,
    memory_kills,
    preloading,
    read_back,
    settling,
    workspace,
)
from fairtrial.run.trial import sampling as telemetry
from fairtrial.run.trial.deriving import derive
from fairtrial.run.trial.driving import Driver
from fairtrial.run.trial.outcome import STREAM_LOST, TrialOutcome
from fairtrial.run.trial.probing import TrialProbes
from fairtrial.run.trial.separation import separated
from fairtrial.run.trial.shutting_down import LoadedServer, shut_down_slowly
from fairtrial.settings import Effect
from fairtrial.settings.steps.effect import Phase
from fairtrial.study.resolved import ResolvedTrial, Section
from fairtrial.systems import Certificate, Identity, Instance, Launch, changed_meanwhile
from fairtrial.wire.open_place import OpenPlace
from fairtrial.wire.process import how
from fairtrial.wire.stream import TRIED_AGAIN
from fairtrial.workloads import Drive, OnProgress


def _accept_any(_trial: TrialRecord) -> None:
    """Every trial that came about."""


@dataclass
class TrialRunner:
    """Runs trials at one open place.

    Attributes:
        clients: the places that workloads run at, where these are others.
        identities: what exactly runs, by system and data, with builds by arm too; found once per open place.
        checked: (cell, arm) whose data were found whole, for workloads that check once per cell and arm.
        servers: that are there already, as this run has locked them.
        accept: asked of every trial before it is committed; what it raises leaves the trial undone.
    """

    place: OpenPlace
    writer: Writer
    progress: Progress
    servers: ExistingServers
    clients: tuple[elsewhere.Client, ...] = ()
    identities: dict[tuple[Section, str, str], Identity] = field(default_factory=dict)
    checked: set[tuple[str, str]] = field(default_factory=set)
    accept: Callable[[TrialRecord], None] = _accept_any

    @property
    def subject(self) -> dict[str, str]:
        """What runs trials here, beyond the system itself; a run may not change it half-way."""
        facts, agent = self.place.facts, self.place.agent.hello.agent_sha256
        boot = {} if facts.boot is None else {"modules": facts.boot.content_sha256}
        guest = {}
        if facts.guest is not None:
            guest = {"accelerator": facts.guest.accelerator, "modules": facts.guest.content_sha256}
        image = {} if facts.container is None else {"image": facts.container.image_id}
        clients = {
            "client_kernel" if number == 1 else f"client_{number}_kernel": client.place.facts.kernel_version
            for number, client in enumerate(self.clients, start=1)
        }
        return {"agent_sha256": agent, "kernel": facts.kernel_version, **boot, **guest, **image, **clients}

    def prepare(self, planned: PlannedTrial) -> str | None:
        """Makes the data that a trial starts from, if need be: no trial shall follow a load. Returns their key."""
        resolved = self.writer.plan.resolved[planned.cell][planned.arm]
        layouts.link(self.place, self.writer.plan, arm=planned.arm)
        parts = parts_of(resolved)
        key = prepared.key_of(resolved, parts, self.identity(resolved, arm=planned.arm))
        if (existing := parts.system.existing()) is not None:
            self.progress.phase("prepare")
            self.servers.prepare(parts, existing, key=key, on_progress=self.progress.load)
        elif key is not None:
            self.progress.phase("prepare")
            hosted.ensure(self.place, resolved, key=key, parts=parts, on_progress=self.progress.load)
        return key

    def identity(self, resolved: ResolvedTrial, *, arm: str) -> Identity:
        """What exactly a trial's system is; looked for once: of builds, with the program that `prepare` put there."""
        parts = parts_of(resolved)
        key = resolved.system, repr(parts.workload.data()), "" if self.writer.plan.builds is None else arm
        if key not in self.identities:
            self.identities[key] = hosted.identity(self.place, resolved, parts)
        return self.identities[key]

    def run(self, planned: PlannedTrial, *, has_started: bool) -> TrialRecord:
        """Runs one trial and commits it, valid or not.

        A start that fails is the trial's if this system `has_started` before in this run.

        Raises:
            PlaceError: the place cannot carry the study out at all (missing binary, setting refused); nothing is
                committed then.
            SystemStartError: the system did not start, and never has.
        """
        with disk_explained(self.writer.directory):
            return self._run(planned, has_started=has_started)

    def _run(self, planned: PlannedTrial, *, has_started: bool) -> TrialRecord:
        local = self.writer.begin(planned.id)
        resolved = self.writer.plan.resolved[planned.cell][planned.arm]
        remote = workspace.work_directory(self.place, self.writer.directory.name, planned.id)
        attempt = Attempt(self, planned, resolved, parts_of(resolved), remote)
        try:
            try:
                with interrupting.goes_first():
                    attempt.measure()
            except SystemStartError as error:
                if not has_started:
                    raise
                attempt.outcome.invalidate(str(error))
            with interrupting.goes_first():
                attempt.collect(local)
        except StreamLostError as error:
            attempt.outcome.lose(f"{STREAM_LOST}: {error}")
        except BaseException:
            self.writer.abandon(planned.id)
            raise
        attempt.derive(local)
        clock = attempt.drivers[0].place.agent.hello.clock
        trial = attempt.outcome.record(
            planned,
            plan=self.writer.plan,
            resolved=resolved,
            clock=Clock(monotonic_ns=clock.monotonic_ns, realtime_ns=clock.realtime_ns),
            subject=self.subject,
        )
        try:
            self.accept(trial)  # what the run cannot go on with must not be in its record, or no resume could, either
        except BaseException:
            self.writer.abandon(planned.id)
            raise
        self.writer.commit(trial)
        self.progress.trial_finished(trial)
        return trial


def _require_undone(undone: Undone, *, after: str = "") -> None:
    if undone.failed:
        raise PlaceError(f"settings could not be undone: {'; '.join(undone.failed)}{after}", hint=TRIED_AGAIN)


@dataclass
class Attempt:
    """One trial under way.

    Attributes:
        remote: its directory at the place: `data`, `server` (sockets, configuration) and `out` (raw files, logs).
        drivers: where the workload runs: the same place, or the clients'.
    """

    runner: TrialRunner
    planned: PlannedTrial
    resolved: ResolvedTrial
    parts: Parts
    remote: PurePosixPath
    outcome: TrialOutcome = field(default_factory=TrialOutcome)

    def __post_init__(self) -> None:
        self.place = self.runner.place
        self.clients = self.runner.clients
        context = elsewhere.context(self.resolved, self.clients, directory=self.remote)
        effect = settings.effects(self.resolved.settings, self.place.facts, context)
        self.served = self.parts.system.has_server()
        self.existing = self.parts.system.existing()
        # A client elsewhere takes no processors here, a server that runs already keeps those that it has, and a half
        # of a duet is not divided further.
        whole = not self.clients and self.planned.half is None
        beside = self.served and whole and self.parts.system.there() is None
        self.effect: Effect = separated(effect, self.place.facts, served=beside)
        self.data = self.effect.data_directory or self.remote / "data"
        self.drivers = driving.drivers(
            self.clients,
            # The load's own files lie on the storage that is studied, too, where a study says what that is.
            beside=Driver(self.place, self.remote, self.data.parent / "work"),
            trial=(self.runner.writer.directory.name, self.planned.id),
            chosen=self.resolved.network.address,
        )

    def measure(self) -> None:
        """Everything that happens at the place, and its undoing."""
        for place, directory in self._directories():
            workspace.remove(place, directory)
            workspace.make(place, directory / "out" / "log")
        if self.resolved.place.kind == "local":
            self.runner.progress.logs(Path(self.remote / "out" / "log"))
        covariates.measure(self.place, self.remote / "out", self.runner.writer.plan.metrics)
        user = self.parts.system.user(self.place)
        workspace.make_private(self.place, self.remote / "server", user=user)
        try:
            self._apply("place")
            self.outcome.layout, placed = layouts.put(self.place, self.runner.writer.plan, self.planned)
            self.outcome.effective += placed
            for driver in self.drivers:
                workspace.make(driver.place, driver.work)
            workspace.make_private(self.place, self.data, user=user)
            with leftovers.ended([place for place, _ in self._directories()], self.outcome, phase=self._phase):
                self._bring_data()
                self._apply("before_server")
                self._with_system()
        except (StreamLostError, KeyboardInterrupt):
            self.runner.servers.restore_held(self.parts.system)
            raise  # the agent stops the load and undoes on its own when its stream ends
        except BaseException as error:
            _require_undone(self.place.agent.undo(), after=f", after: {str(error) or type(error).__name__}")
            raise
        with self._phase("undo"):
            undone = self.place.agent.undo()
        _require_undone(undone)
        self.outcome.invalidate(changed_meanwhile(undone.disturbed))

    def _directories(self) -> list[tuple[OpenPlace, PurePosixPath]]:
        """The trial's directory at each place that takes part."""
        elsewhere_ = [(driver.place, driver.desk) for driver in self.drivers if driver.address is not None]
        return [(self.place, self.remote), *elsewhere_]

    def _bring_data(self) -> None:
        identity = self.runner.identity(self.resolved, arm=self.planned.arm)
        hosted.require_same(self.place, self.resolved, identity, builds=self.runner.writer.plan.builds)
        self.outcome.system_facts = {"version": identity.version, "sha256": identity.sha256, **identity.facts}
        key = prepared.key_of(self.resolved, self.parts, identity)
        told = self.runner.progress.load
        if self.existing is not None:
            with self._phase("restore"):
                self.outcome.data = self.runner.servers.restore(self.parts, self.existing, key=key, on_progress=told)
        elif key is not None:
            with self._phase("prepare"):
                data = prepared.ensure(self.place, key, self.parts, on_progress=told)
            with self._phase("restore"):
                restored = prepared.restore(self.place, data, self.data, user=self.parts.system.user(self.place))
            self.outcome.data = TrialData(key=key, content_sha256=data.content_sha256, restored=restored)
        with self._phase("settle"):
            self.outcome.data = self.outcome.data.model_copy(update={"settled": settling.settled(self.place.kernel)})

    def _with_system(self) -> None:
        preloading.put(self.place, self.effect, self.remote / "server", served=self.served)
        addresses = tuple(dict.fromkeys(driver.address for driver in self.drivers if driver.address is not None))
        self.certificate = self._certificate(addresses)
        launch = Launch(
            data_directory=self.data,
            work_directory=self.remote / "server",
            log_path=self.remote / "out" / "log" / "server.log",
            environment=self.effect.environment,
            processors=self.effect.server_processors,
            groups=self.effect.server_groups,
            addresses=addresses,
            certificate=self.certificate,
            watched=self.runner.servers.watched(self.parts.system),
        )
        killed = memory_kills.from_now(self.place, self.effect if self.existing is None else None)
        with self._phase("start"), killed.named():
            instance = self.parts.system.start(self.place, launch)
        self.outcome.options = dict(instance.options)
        try:
            with killed.named():
                self._read_processes_back(instance)
            if self.existing is not None:
                self.runner.servers.started(self.existing)
            self._apply("after_server")
            self._apply("before_ramp_up")
            self._sampled_drive(instance)
            loaded = LoadedServer(instance, launch, self.outcome.load_ended_ns)
            instance = shut_down_slowly(self.place, self.parts, loaded, phase=self._phase)
            self._check(instance)
        except StreamLostError:
            raise
        except BaseException:
            self.parts.system.stop(self.place, instance, settled=False)
            raise
        with self._phase("stop"):
            if instance.process is not None and instance.process.exited is not None:
                exited = instance.process.exited
                words = workspace.last_words(self.place, launch.log_path)
                self.outcome.invalidate(f"the server ended during the trial ({how(exited)}){words}")
            self.outcome.invalidate(self.parts.system.disturbance(self.place, instance))
            if self.existing is not None:
                self.outcome.invalidate(self.runner.servers.disturbance(self.existing, instance))
            self.parts.system.stop(self.place, instance, settled=False)
        preloading.keep(self.place, self.effect, self.remote)
        self._ran_out_of_memory(killed.report())

    def _certificate(self, addresses: Sequence[str]) -> Certificate | None:
        """Of the trial's server, where the study has connections encrypted."""
        if not self.resolved.network.tls:
            return None
        directory, user = self.remote / "server" / "tls", self.parts.system.user(self.place)
        return encrypting.certificate(self.place, directory, addresses, user=user)

    def _ran_out_of_memory(self, killed: str) -> None:
        """In a guest or container runs nothing but the trial; else what was killed may be anyone's, unless it broke."""
        facts = self.place.facts
        if (facts.guest is not None or facts.container is not None) and not self.outcome.invalid_reason:
            self.outcome.invalidate(killed)
        else:
            self.outcome.explain(killed)

    def _read_processes_back(self, instance: Instance) -> None:
        """A server that runs elsewhere than it was told to is not what was asked."""
        if instance.process is None:
            return
        pid, effective = instance.process.pid, self.outcome.effective
        try:
            if self.effect.server_processors is not None:
                effective.append(read_back.affinity(self.place, pid, self.effect.server_processors))
            if self.effect.preloaded is not None:
                effective.append(read_back.preloaded(self.place, pid, self.effect.preloaded))
            if self.effect.server_groups:
                setting = read_back.groups(self.place, pid, self.effect.server_groups)
                effective.append(read_back.of_any_trial(setting, trial=self.remote.name))
        except StreamLostError:
            raise
        except PlaceError as error:
            read_back.require_alive(self.place, instance.process, error)
            raise

    def _apply(self, phase: Phase) -> None:
        for when, step in self.effect.steps:
            if when == phase:
                changed, asked = self._change(step), read_back.expectation(step, trial=self.remote.name)
                before, found = changed.before, changed.read_back
                setting = EffectiveSetting(name=step.name, asked=asked, before=before, read_back=found)
                self.outcome.effective.append(setting)

    def _change(self, step: Step) -> Changed:
        try:
            return self.place.agent.change(step)
        except AgentError as error:
            raise PlaceError(
                f"setting {step.name} is not in effect: {error}",
                hint=f"choose a value that this kernel takes, or another place ({error.hint})",
            ) from error

    def _sampled_drive(self, instance: Instance) -> None:
        """Drives with the sampler around it. The sampler ends first: checks are not part of any figure."""
        request = telemetry.request(self.remote / "out", instance, plan=self.runner.writer.plan)
        sampler = telemetry.Sampler(self.place, request, shown=self.runner.progress.load)
        try:
            with self._phase("drive"), self._governed(instance):
                self._probed_drive(instance)
        finally:
            self._end(sampler.stop)

    @contextlib.contextmanager
    def _governed(self, instance: Instance) -> Iterator[None]:
        """Beside the governor that a setting asks for; the server has its own values again before it is checked."""
        if self.effect.governor is None:
            yield
            return
        processors = None if self.clients else self.effect.client_processors
        governor = governing.beside(
            self.place, self.remote, self.effect.governor, endpoint=instance.monitoring, processors=processors
        )
        self.outcome.effective.append(governor.effective)
        try:
            yield
        finally:
            self._end(lambda: governing.ended(governor))

    def _probed_drive(self, instance: Instance) -> None:
        """Drives, in a diagnostic trial with the plan's probes at work inside the measured window."""
        load = self.runner.progress.load
        if not self.planned.diagnostic:
            self._drive(instance, on_progress=load)
            return
        probes = TrialProbes(
            self.place,
            self.remote / "out" / PROBES,
            self.runner.writer.plan.probes,
            processors=None if self.clients else self.effect.client_processors,
        )
        # What warms up says when its window begins; the window of a command is its whole life.
        if self.parts.workload.announces:
            probes.begin_when_measuring()
        else:
            probes.begin()
        try:
            self._drive(instance, on_progress=probes.listening(load))
        finally:
            self._end(lambda: probes.end(self.outcome.window, shift_ns=self.outcome.shift_ns))

    def _drive(self, instance: Instance, *, on_progress: OnProgress) -> None:
        authorities = None
        if self.certificate is not None:
            user = self.parts.system.user(self.place)
            authorities = encrypting.authorities(self.place, self.certificate, user=user)
        drives = [
            Drive(
                endpoint=driver.endpoint(instance, authorities=authorities),
                seed=self.planned.seed,
                directory=driver.desk / "out",
                work_directory=driver.work,
                environment=self.effect.environment if instance.process is None else {},
                processors=driving.load_processors(self.effect, served=self.served),
                on_progress=on_progress,
                groups=driving.load_groups(self.effect, served=self.served),
            )
            for driver in self.drivers
        ]
        try:
            outcome = driving.driven(
                self.place.agent, self.drivers, drives, workload=self.parts.workload, kept=self.outcome
            )
        except (StreamLostError, StuckError, AgentError):
            raise  # what does not end would run beside the next trial, too
        except PlaceError as error:
            self.outcome.invalidate(f"the load failed: {error}")
            return
        self.outcome.window = outcome.window
        self.outcome.options |= outcome.effective
        self.outcome.invalidate(outcome.invalid_reason)

    def _end(self, what: Callable[[], str]) -> None:
        """Ends what ran beside the load, and says why that makes the trial invalid."""
        with contextlib.suppress(StreamLostError):  # the caller is told by its own next call on the stream
            self.outcome.invalidate(what())

    def _check(self, instance: Instance) -> None:
        """Checks the data where the workload asks for it; a failing database has measured something else."""
        when = self.parts.workload.checks_after()
        subject = (self.planned.cell, self.planned.arm)  # an arm may be what breaks the data
        due = when == "every_trial" or (when == "once_per_cell" and subject not in self.runner.checked)
        if not due or instance.endpoint is None or self.outcome.invalid_reason:
            return
        with self._phase("check"):
            try:
                checks = self.parts.workload.check_data(self.place, instance.endpoint)
            except (StreamLostError, StuckError, AgentError):
                raise
            except PlaceError as error:
                self.outcome.invalidate(f"the check failed: {error}")
                return
        self.outcome.checks = checks
        broken = [check.name for check in checks if check.violations]
        if broken:
            self.outcome.invalidate("consistency conditions violated: " + ", ".join(broken))
        else:
            self.runner.checked.add(subject)

    def collect(self, local: Path) -> None:
        """Fetches the raw files and removes the trial's directory at the place."""
        with self._phase("collect"):
            workspace.fetch(self.place, self.remote / "out", local)
            for driver in self.drivers:
                if driver.address is not None:
                    workspace.fetch(driver.place, driver.desk / "out", local / driver.raw)
            for place, directory in self._directories():
                workspace.remove(place, directory)

    def derive(self, local: Path) -> None:
        """Scalars from the raw files; a trial whose figures cannot be computed is invalid, not fatal."""
        derive(
            local,
            self.outcome,
            workload=self.parts.workload,
            metrics=self.runner.writer.plan.metrics,
            ticks_per_s=self.place.facts.ticks_per_s,
        )

    @contextlib.contextmanager
    def _phase(self, name: str) -> Iterator[None]:
        self.runner.progress.phase(name)
        started = time.monotonic()
        try:
            yield
        finally:
            spent = self.outcome.phases_s
            spent[name] = spent.get(name, 0.0) + time.monotonic() - started
