"""What the kernel killed for want of memory: counted, and told in its own words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from support.machines.places import place_here, place_in_memory

from fairtrial.errors import SystemStartError
from fairtrial.protocol import generated as wire
from fairtrial.run.trial import memory_kills
from fairtrial.run.trial.memory_kills import Kills
from fairtrial.run.trial.outcome import TrialOutcome
from fairtrial.settings.steps.effect import Effect
from fairtrial.wire.facts import ContainerFacts
from fairtrial.wire.fake import FakeProgram

LINE = "[ 9.1] Out of memory: Killed process 7 (python3) total-vm:1kB"


def kernel(counter: str, log: str = "") -> Callable[[wire.Spawn], FakeProgram]:
    def run(spawn: wire.Spawn) -> FakeProgram:
        found = counter if spawn.argv[0] == "grep" else log
        return FakeProgram(stdout=found.splitlines(), code=0 if found else 1)

    return run


@pytest.mark.parametrize(("counter", "count"), [("oom_kill 3", 3), ("", 0)])
def test_kills_are_counted_where_the_kernel_counts(counter: str, count: int) -> None:
    with place_in_memory(kernel(counter)) as (place, _):
        assert memory_kills.count(place) == count


def test_only_what_was_killed_since_is_told_with_the_kernels_words_if_it_gives_them() -> None:
    with place_in_memory(kernel("oom_kill 3", LINE)) as (place, _):
        assert Kills(place, since=3).report() == ""
        assert Kills(place, since=2).report() == f"the kernel killed 1 for want of memory: {LINE}"
    with place_in_memory(kernel("oom_kill 3")) as (place, _):
        assert Kills(place, since=0).report() == "the kernel killed 3 for want of memory"


FULL = """\
[11320.11] sh invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0
[11320.12] oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg={group},\
task_memcg={group}/leaf,task=sh,pid=115,uid=0
[11320.13] Memory cgroup out of memory: Killed process 115 (sh) total-vm:125488kB, anon-rss:61908kB
"""
WHOLE = """\
[11321.12] oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,\
task_memcg=/libpod_parent/libpod-1,task=sh,pid=116,uid=0
[11321.13] Out of memory: Killed process 116 (sh) total-vm:125488kB, anon-rss:61908kB
"""


VERSIONS = {
    "1": ["9:name=systemd:/", "4:cpu,memory:/system.slice/ssh.service", "0::/"],
    "2": ["0::/system.slice/ssh.service"],
}


def answering(log: str, *, killed: int, around: Sequence[str] = ("0::/ours",)) -> Callable[[wire.Spawn], FakeProgram]:
    """A kernel that says what the agent's groups are, too."""

    def run(spawn: wire.Spawn) -> FakeProgram:
        said = {"cat": around, "grep": [f"oom_kill {killed}"]}.get(spawn.argv[0], log.splitlines())
        return FakeProgram(stdout=[line for line in said if "invoked" not in line])

    return run


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("group", "ours"),
    [
        ("/libpod_parent/libpod-1", False),
        ("/system", False),
        ("/fairtrial-001-server", True),
        ("/fairtrial-002-server", False),
        ("/system.slice", True),  # around the agent
        ("/system.slice/ssh.service/below", True),
        ("/", True),
    ],
)
def test_what_a_group_that_is_not_the_trials_was_too_small_for_is_not_told(
    group: str, version: str, *, ours: bool
) -> None:
    log = FULL.format(group=group)
    killed = [line for line in (log + WHOLE).splitlines() if "Killed process" in line]
    with place_in_memory(answering(log, killed=1, around=VERSIONS[version])) as (place, _):
        told = f"the kernel killed 1 for want of memory: {killed[0]}" if ours else ""
        assert Kills(place, since=0, groups=["/fairtrial-001-server"]).report() == told
    with place_in_memory(answering(log + WHOLE, killed=2, around=VERSIONS[version])) as (place, _):
        words = "\n".join(killed if ours else killed[1:])
        told = f"the kernel killed {1 + ours} for want of memory: {words}"
        assert Kills(place, since=0, groups=["/fairtrial-001-server"]).report() == told


DIES_AS_ONE = FULL.format(group="/theirs") + "[11320.14] Memory cgroup out of memory: Killed process 117 (sh)\n"


def test_all_processes_of_a_group_that_dies_as_one_are_that_groups() -> None:
    with place_in_memory(answering(DIES_AS_ONE, killed=2)) as (place, _):
        assert Kills(place, since=0).report() == ""
    with place_in_memory(answering(DIES_AS_ONE + WHOLE, killed=3)) as (place, _):
        assert Kills(place, since=0).report().startswith("the kernel killed 1 for want of memory: [11321.13]")
    with place_in_memory(answering(DIES_AS_ONE, killed=200)) as (place, _):
        assert Kills(place, since=0).report() == "", "there are more than the log has"


def test_where_the_server_may_be_in_any_group_all_kills_are_told() -> None:
    with place_in_memory(answering(DIES_AS_ONE, killed=2)) as (place, _):
        assert Kills(place, since=0, groups=None).report().startswith("the kernel killed 2 for want of memory: ")


def test_a_container_counts_its_own_kills_whatever_the_machine_says() -> None:
    container = ContainerFacts(image="db:1", image_id="0", runtime="podman 5", run_options=[], memory_bytes=None)
    with place_in_memory(answering(DIES_AS_ONE, killed=1)) as (place, _):
        place.agent.container = container
        assert Kills(place, since=0).report().startswith("the kernel killed 1 for want of memory")


def test_a_containers_limit_is_named_where_it_killed() -> None:
    container = ContainerFacts(image="db:1", image_id="0", runtime="podman 5", run_options=[], memory_bytes=64 << 20)
    with place_in_memory(kernel("oom_kill 1")) as (place, _):
        place.agent.container = container
        killed = "the kernel killed 1 for want of memory (place.container.memory is 64MiB: raise it, or use less)"
        assert Kills(place, since=0).report() == killed


def test_this_kernel_counts(tmp_path: Path) -> None:
    counters = dict(line.split() for line in Path("/proc/vmstat").read_text().splitlines())
    with place_here(tmp_path) as place:
        assert memory_kills.count(place) >= int(counters["oom_kill"])
        assert memory_kills.from_now(place, Effect()).report() == ""


def test_a_server_that_was_killed_while_it_started_says_so() -> None:
    def failing() -> None:
        raise SystemStartError("it exited during startup", hint="mend its options")

    killed = r"^it exited during startup; the kernel killed 1 for want of memory: .*python3"
    with place_in_memory(kernel("oom_kill 3", LINE)) as (place, _):
        with pytest.raises(SystemStartError, match=killed), Kills(place, since=2).named():
            failing()
        with pytest.raises(SystemStartError, match=r"^it exited during startup$"), Kills(place, since=3).named():
            failing()


def test_a_cause_explains_a_reason_and_is_none_of_its_own() -> None:
    outcome = TrialOutcome()
    outcome.explain("memory ran out")
    assert outcome.invalid_reason == ""
    outcome.invalidate("the load ended")
    outcome.explain("")
    outcome.explain("memory ran out")
    assert outcome.invalid_reason == "the load ended; memory ran out"
