"""What the kernel killed for want of memory: counted, and told in its own words."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from support.machines.places import place_here, place_in_memory

from fairtrial.errors import SystemStartError
from fairtrial.protocol import generated as wire
from fairtrial.run.trial import memory_kills
from fairtrial.run.trial.outcome import TrialOutcome
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
        assert memory_kills.report(place, since=3) == ""
        assert memory_kills.report(place, since=2) == f"the kernel killed 1 for want of memory: {LINE}"
    with place_in_memory(kernel("oom_kill 3")) as (place, _):
        assert memory_kills.report(place, since=0) == "the kernel killed 3 for want of memory"


def test_a_containers_limit_is_named_where_it_killed() -> None:
    container = ContainerFacts(image="db:1", image_id="0", runtime="podman 5", run_options=[], memory_bytes=64 << 20)
    with place_in_memory(kernel("oom_kill 1")) as (place, _):
        place.agent.container = container
        killed = "the kernel killed 1 for want of memory (place.container.memory is 64MiB: raise it, or use less)"
        assert memory_kills.report(place, since=0) == killed


def test_this_kernel_counts(tmp_path: Path) -> None:
    counters = dict(line.split() for line in Path("/proc/vmstat").read_text().splitlines())
    with place_here(tmp_path) as place:
        assert memory_kills.count(place) >= int(counters["oom_kill"])
        assert memory_kills.report(place, since=memory_kills.count(place)) == ""


def test_a_server_that_was_killed_while_it_started_says_so() -> None:
    def failing() -> None:
        raise SystemStartError("it exited during startup", hint="mend its options")

    killed = r"^it exited during startup; the kernel killed 1 for want of memory: .*python3"
    with place_in_memory(kernel("oom_kill 3", LINE)) as (place, _):
        with pytest.raises(SystemStartError, match=killed), memory_kills.named(place, since=2):
            failing()
        with pytest.raises(SystemStartError, match=r"^it exited during startup$"), memory_kills.named(place, since=3):
            failing()


def test_a_cause_explains_a_reason_and_is_none_of_its_own() -> None:
    outcome = TrialOutcome()
    outcome.explain("memory ran out")
    assert outcome.invalid_reason == ""
    outcome.invalidate("the load ended")
    outcome.explain("")
    outcome.explain("memory ran out")
    assert outcome.invalid_reason == "the load ended; memory ran out"
