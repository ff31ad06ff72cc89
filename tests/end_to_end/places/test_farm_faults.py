"""Hosts of a farm that are cut off, frozen, or slow: real sshds in network namespaces, real nodes of Ray."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.command_line import Desk, eventually
from support.kin import descendants, processor_share
from support.machines.holding import NAME, Held
from support.machines.namespace import Namespace, namespace, refused
from support.machines.ray_cluster import ray_cluster
from support.machines.ssh_host import SSHD, Host, host
from support.spread_runs import study_of, whole

from fairtrial import record
from fairtrial.record.events import BlockLeased, HostLeft
from fairtrial.report.analysing import analysed
from fairtrial.run.processes import parent

REFUSED = refused()
needs_hosts = [
    pytest.mark.skipif(SSHD is None, reason="no sshd: install openssh-server"),
    pytest.mark.skipif(bool(REFUSED), reason=REFUSED),
    pytest.mark.waits,
]
MOUNTED = "{storage: {device: memory, size: 16MiB}}"  # what a block changes at its host
# Of a cluster that gives a silent node up after a few seconds.
IMPATIENT = {
    "RAY_health_check_initial_delay_ms": "1000",
    "RAY_health_check_period_ms": "1000",
    "RAY_health_check_timeout_ms": "1000",
    "RAY_health_check_failure_threshold": "3",
}


@dataclass(frozen=True)
class Far:
    """A host with a network, and what mounts see, of its own."""

    host: Host
    side: Namespace
    desk: Desk

    @property
    def line(self) -> str:
        """Of the file of hosts."""
        name = self.host.name
        return f"  {name}: {{ssh: {{host: {name}, config: {self.host.config}, state_directory: {self.desk.state}}}}}"

    def mounted(self) -> bool:
        """Whether it has what a block changes."""
        return str(self.desk.state) in Path(f"/proc/{self.host.daemon.pid}/mounts").read_text()

    def runs(self) -> bool:
        """Whether it is in the middle of a trial."""
        return any(NAME in command for command in self.desk.processes().values())


@pytest.fixture
def both(here: Desk) -> Iterator[list[Far]]:
    with ExitStack() as stack:
        found = []
        for name in ("east", "west"):
            side = stack.enter_context(namespace())
            state = here.directory / name
            state.mkdir(mode=0o755)
            far = stack.enter_context(host(here, name=name, address=side.address, within=side.within))
            found.append(Far(far, side, Desk(here.directory, state)))
        yield found


def voided(here: Desk) -> bool:
    return "block_voided" in (here.run / "journal.jsonl").read_text(encoding="utf-8")


class TestCut:
    pytestmark = needs_hosts

    def test_a_host_that_was_cut_off_has_undone_its_block_and_comes_back(
        self, here: Desk, both: list[Far], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("FAIRTRIAL_LIMITS", "silence_s=6,connect_s=30")
        _east, west = both
        held = Held(here)
        hosts = here.study("\n".join(["hosts:", *(far.line for far in both)]), "hosts.yaml")
        study = here.study(study_of(held.run, blocks=4, settings=MOUNTED))
        held.hold()
        run = here.start("run", study, "--places", str(hosts))
        eventually(lambda: all(far.runs() and far.mounted() for far in both), "both hosts are in a block")
        west.side.wire("down")
        eventually(lambda: not west.runs() and not west.mounted(), "what the host has changed is undone there")
        west.side.wire("up")
        eventually(lambda: voided(here), "the block is void")
        eventually(west.runs, "the host has another block")
        held.release()
        output, _ = run.communicate(timeout=300)
        assert run.returncode == 0, output
        found = record.read(here.run)
        assert set(whole(found, blocks=4)) == {"east", "west"}
        (lost,) = found.voided
        assert [event.replaces for event in found.added] == [lost.block]
        assert not [event for event in found.events if isinstance(event, HostLeft)]
        assert not any(far.mounted() for far in both)
        here.fairtrial("verify", found.directory)

    @pytest.mark.long  # its sibling: the one above, and a host with a full disk in test_farm.py
    def test_a_host_that_stays_cut_off_gets_no_more_blocks_and_ends_clean(
        self, here: Desk, both: list[Far], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("FAIRTRIAL_LIMITS", "silence_s=6,connect_s=4")
        _east, west = both
        held = Held(here)
        hosts = here.study("\n".join(["hosts:", *(far.line for far in both)]), "hosts.yaml")
        study = here.study(study_of(held.run, blocks=4, settings=MOUNTED))
        held.hold()
        run = here.start("run", study, "--places", str(hosts))
        eventually(lambda: all(far.runs() and far.mounted() for far in both), "both hosts are in a block")
        west.side.wire("down")
        eventually(lambda: "host_left" in (here.run / "journal.jsonl").read_text(), "the host gets no more blocks")
        held.release()
        output, _ = run.communicate(timeout=300)
        assert run.returncode == 0, output
        assert set(whole(record.read(here.run), blocks=4)) == {"east"}
        assert not west.mounted()


@pytest.mark.long  # its sibling: the host that was cut off
def test_a_node_that_is_frozen_beyond_its_health_limit_loses_its_block_alone(
    here: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    states = here.directory / "hosts"
    states.mkdir()
    desks = {name: Desk(here.directory, states / name) for name in ("alpha", "beta")}
    held = Held(here)
    with ray_cluster(states, tuple(desks), environment=IMPATIENT) as cluster:
        for name, value in cluster.environment.items():
            monkeypatch.setenv(name, value)
        study = here.study(study_of(held.run, blocks=4))
        held.hold()
        run = here.start("run", study, "--farm", cluster.address)
        eventually(
            lambda: all(any(NAME in each for each in desk.processes().values()) for desk in desks.values()),
            "both nodes are in a block",
        )
        node = parent(parent(desks["beta"].agent_pid()))
        frozen = descendants(node)
        for process in frozen:
            os.kill(process, signal.SIGSTOP)
        try:
            eventually(lambda: voided(here), "the node's block is void")
        finally:
            for process in frozen:
                with contextlib.suppress(ProcessLookupError):  # the node ends what it had begun as soon as it goes on
                    os.kill(process, signal.SIGCONT)
        cluster.kill("beta")  # Ray has ended it; its workers look for a process, which is there until it is waited for
        eventually(lambda: not desks["beta"].processes(), "the node is gone with all that it had begun")
        held.release()
        output, _ = run.communicate(timeout=300)
        assert run.returncode == 0, output
    found = record.read(here.run)
    assert set(whole(found, blocks=4)) == {"alpha"}
    assert len(found.voided) == 1
    here.fairtrial("verify", found.directory)


@pytest.mark.long  # its sibling: a slow host in tests/unit/farm/test_controller.py
def test_a_host_slower_by_ten_holds_nobody_up_and_its_own_effect_is_told(here: Desk) -> None:
    spin = here.directory / "spin.sh"
    spin.write_text("i=0; while [ $i -lt 150000 ]; do i=$((i+1)); done\n", encoding="ascii")
    slow = here.directory / "slow.sh"
    with processor_share(0.1) as group:
        if group is None:
            pytest.skip("this machine makes no control group for us")
        slow.write_text(f'echo $$ >{group} && exec "$@"\n', encoding="ascii")
        lines = [
            f"  {name}: {{through: {{command: {command}, state_directory: {here.directory / name}}}}}"
            for name, command in (("quick", "env"), ("usual", "env"), ("slow", f"sh {slow}"))
        ]
        hosts = here.study("\n".join(["hosts:", *lines]), "hosts.yaml")
        study = here.study(study_of("sleep 0.8", other=f"sh {spin}", blocks=14))
        done = here.fairtrial("run", study, "--places", str(hosts))
    found = record.read(here.run)
    ran = whole(found, blocks=14)
    assert not found.voided
    counts = {name: len(ran[name]) for name in ("quick", "usual", "slow")}
    assert 0 < counts["slow"] < min(counts["quick"], counts["usual"]), counts
    leased = [event.host for event in found.events if isinstance(event, BlockLeased)]
    assert len(leased) == 14, "none was handed out twice"
    assert "3 hosts" in done.stdout
    ((comparison,),) = analysed(found).cells[0].comparisons.values()
    assert comparison.over_hosts is not None
    ratios = {effect.host: effect.ratio or 0.0 for effect in comparison.over_hosts.hosts}
    assert ratios["slow"] > max(ratios["quick"], ratios["usual"]), "what computes suffers, what sleeps does not"
