"""A workload at another place: what is refused, whose address it is told, and how far two clocks are apart."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from support.facts import facts_of
from support.machines.places import place_here, place_in_memory
from support.records import section, tiny_plan

from fairtrial.errors import InputError, PlaceError
from fairtrial.protocol import generated as wire
from fairtrial.run import elsewhere
from fairtrial.settings import ANY_TRIAL, TrialContext
from fairtrial.study.probes import Probe
from fairtrial.study.resolved import ResolvedTrial, Section
from fairtrial.systems import SYSTEMS
from fairtrial.wire.fake import FakeProgram
from fairtrial.wire.open_place import OpenPlace
from fairtrial.workloads import WORKLOADS

LOCAL = Section({"local": {"state_directory": None}})
FAR = Section({"ssh": {"host": "far"}})


def trial(system: str = "mariadb", *, place: Section | None = None, client: Section | None = None) -> ResolvedTrial:
    return ResolvedTrial(
        place=place or LOCAL,
        system=section(SYSTEMS, system),
        workload=section(WORKLOADS, "oltp", duration="1s"),
        workload_place=client,
    )


def test_the_same_place_written_twice_is_one_place() -> None:
    assert elsewhere.of(trial()) is None
    assert elsewhere.of(trial(client=LOCAL)) is None
    assert elsewhere.of(trial(client=FAR)) == FAR


def test_trials_belong_to_the_place_that_drives_them() -> None:
    here, far = trial(), trial(client=FAR)
    resolved = {"all": {"a": here, "b": far}}
    assert elsewhere.driven_from(LOCAL, resolved) == [here]
    assert elsewhere.driven_from(FAR, resolved) == [far]


def test_settings_go_by_the_processors_of_the_place_that_drives() -> None:
    here = PurePosixPath("/state/work/abc")
    assert elsewhere.context(trial(), directory=here) == TrialContext(here, load="beside")
    assert elsewhere.context(trial("sqlite")) == TrialContext(ANY_TRIAL.directory, load="within")
    far = TrialContext(ANY_TRIAL.directory, load="elsewhere")
    assert elsewhere.context(trial(client=FAR)) == far
    with place_in_memory(facts=facts_of(processors=[4])) as (place, _):
        client = elsewhere.Client(place=place, address="::1")
        assert elsewhere.context(trial(client=FAR), client) == replace(far, client_processors=(4,))


@pytest.mark.parametrize("system", ["mariadb", "postgres"])
def test_servers_can_be_reached_and_whatever_is_beside_its_system_is_not_asked(system: str) -> None:
    elsewhere.require(tiny_plan(), trial(system, client=FAR))
    elsewhere.require(tiny_plan(), trial("sqlite"))


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (trial("sqlite", client=FAR), "`sqlite` has no server"),
        (trial("command", client=FAR), "`command` has no server"),
        (trial(place=Section({"vm": {}}), client=FAR), "no network"),
        (trial(client={"vm": {}}), "no network"),
    ],
)
def test_what_cannot_be_reached_is_refused_at_its_field(asked: ResolvedTrial, said: str) -> None:
    with pytest.raises(InputError, match=said) as refused:
        elsewhere.require(tiny_plan(), asked)
    assert refused.value.problems[0].field == "workload.place"
    assert refused.value.problems[0].suggestion


def test_probes_are_refused_beside_it() -> None:
    plan = tiny_plan().model_copy(update={"probes": [Probe.model_validate("perf_stat")]})
    elsewhere.require(plan, trial())
    with pytest.raises(InputError, match="probes"):
        elsewhere.require(plan, trial(client=FAR))


def connected(words: str) -> Any:
    return lambda _spawn: FakeProgram(stdout=[words])


def reached(system: str, client: str, *, kinds: tuple[str, str]) -> str:
    first, second = (Section({kind: {}}) for kind in kinds)
    with place_in_memory(connected(system)) as (one, _), place_in_memory(connected(client)) as (other, _):
        found = elsewhere.reached(one, other, places=(first, second))
        assert found.place is other
        return found.address


def test_a_server_over_ssh_has_the_address_that_ssh_reached_it_at() -> None:
    assert reached("10.0.0.1 50000 10.0.0.2 22", "", kinds=("ssh", "local")) == "10.0.0.2"
    assert reached("10.0.0.1 50000 10.0.0.2 22", "10.0.0.1 5 10.0.0.3 22", kinds=("ssh", "ssh")) == "10.0.0.2"


def test_a_server_on_this_machine_has_the_address_that_the_client_was_reached_from() -> None:
    assert reached("", "10.0.0.1 50000 10.0.0.3 22", kinds=("local", "ssh")) == "10.0.0.1"


def test_addresses_of_version_4_in_version_6_are_told_as_what_they_are() -> None:
    words = "::ffff:10.0.0.1 50000 ::ffff:10.0.0.2 22"
    assert reached(words, "", kinds=("ssh", "local")) == "10.0.0.2"


@pytest.mark.parametrize(
    ("words", "kinds"), [("", ("local", "local")), ("", ("ssh", "local")), ("odd", ("local", "ssh"))]
)
def test_without_an_address_nothing_is_guessed(words: str, kinds: tuple[str, str]) -> None:
    with pytest.raises(PlaceError, match="does not know an address"):
        reached(words, words, kinds=kinds)


@pytest.fixture
def two_here(tmp_path: Path) -> Iterator[tuple[OpenPlace, OpenPlace]]:
    with place_here(tmp_path / "one") as one, place_here(tmp_path / "two") as other:
        yield one, other


def test_two_agents_of_one_machine_agree_within_the_error_they_state(two_here: tuple[OpenPlace, OpenPlace]) -> None:
    one, other = two_here
    found = elsewhere.shift(one.agent, other.agent)
    assert abs(found.shift_ns) <= found.error_ns
    assert found.error_ns > 0


class Ahead:
    """An agent whose clock is ahead by a known time."""

    def __init__(self, agent: Any, by_ns: int) -> None:
        self.agent, self.by_ns = agent, by_ns

    def clock(self) -> wire.Reading:
        found = self.agent.clock()
        return found.model_copy(update={"monotonic_ns": found.monotonic_ns + self.by_ns})


def test_a_clock_that_is_ahead_is_found_to_be_so(two_here: tuple[OpenPlace, OpenPlace]) -> None:
    one, other = (place.agent for place in two_here)
    hour: Any = 3_600_000_000_000
    later: Any = Ahead(other, hour)
    found = elsewhere.shift(one, later)
    assert abs(found.shift_ns - hour) <= found.error_ns
    back = elsewhere.shift(later, one)
    assert abs(back.shift_ns + hour) <= back.error_ns
