"""A workload at another place: what is refused, whose address it is told, and how far two clocks are apart."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from support.facts import facts_of
from support.machines.places import place_here, place_in_memory
from support.records import section

from fairtrial.errors import InputError, PlaceError
from fairtrial.protocol import generated as wire
from fairtrial.run import elsewhere
from fairtrial.settings import ANY_TRIAL, TrialContext
from fairtrial.study.resolved import Network, ResolvedTrial, Section
from fairtrial.systems import SYSTEMS
from fairtrial.wire.fake import FakeProgram
from fairtrial.wire.open_place import OpenPlace
from fairtrial.workloads import WORKLOADS

LOCAL = Section({"local": {"state_directory": None}})
FAR = Section({"ssh": {"host": "far"}})
FARTHER = Section({"ssh": {"host": "farther"}})
SYSBENCH = section(WORKLOADS, "sysbench", **dict(WORKLOADS["sysbench"].example))


def trial(
    system: str = "mariadb",
    *,
    place: Section | None = None,
    client: Section | None = None,
    more: tuple[Section, ...] = (),
    workload: Section | None = None,
    **network: Any,
) -> ResolvedTrial:
    return ResolvedTrial(
        place=place or LOCAL,
        system=section(SYSTEMS, system, **({"run": "serve"} if system == "service" else {})),
        workload=workload or section(WORKLOADS, "oltp", duration="1s", virtual_users=2),
        workload_place=client,
        further_places=more,
        network=Network(**network),
    )


def test_the_same_place_written_twice_is_one_place() -> None:
    assert elsewhere.of(trial()) == ()
    assert elsewhere.of(trial(client=LOCAL)) == ()
    assert elsewhere.of(trial(client=FAR)) == (FAR,)
    assert elsewhere.of(trial(client=FAR, more=(FARTHER,))) == (FAR, FARTHER)


def test_trials_belong_to_the_place_that_drives_them() -> None:
    here, far, both = trial(), trial(client=FAR), trial(client=FAR, more=(FARTHER,))
    resolved = {"all": {"a": here, "b": far, "c": both}}
    assert elsewhere.driven_from(LOCAL, resolved) == [here]
    assert elsewhere.driven_from(FAR, resolved) == [far, both]
    assert elsewhere.driven_from(FARTHER, resolved) == [both]


def test_settings_go_by_the_processors_of_the_place_that_drives() -> None:
    here = PurePosixPath("/state/work/abc")
    assert elsewhere.context(trial(), directory=here) == TrialContext(here, load="beside")
    assert elsewhere.context(trial("sqlite")) == TrialContext(ANY_TRIAL.directory, load="within")
    far = TrialContext(ANY_TRIAL.directory, load="elsewhere")
    assert elsewhere.context(trial(client=FAR)) == far
    with (
        place_in_memory(facts=facts_of(processors=[3, 4])) as (one, _),
        place_in_memory(facts=facts_of(processors=[4, 5])) as (other, _),
    ):
        clients = [elsewhere.Client(place=place, address="::1") for place in (one, other)]
        assert elsewhere.context(trial(client=FAR), clients[:1]) == replace(far, client_processors=(3, 4))
        assert elsewhere.context(trial(client=FAR), clients) == replace(far, client_processors=(4,)), "what all have"


@pytest.mark.parametrize("system", ["mariadb", "postgres"])
def test_servers_can_be_reached_and_whatever_is_beside_its_system_is_not_asked(system: str) -> None:
    elsewhere.require(trial(system, client=FAR, tls=True, address="10.0.0.1"))
    elsewhere.require(trial(system, client=FAR, more=(FARTHER,)))
    elsewhere.require(trial("sqlite"))


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (trial("sqlite", client=FAR), "`sqlite` has no server"),
        (trial("command", client=FAR), "`command` has no server"),
        (trial(place=Section({"vm": {}}), client=FAR), "no network"),
        (trial(client=Section({"vm": {}})), "no network"),
        (trial(client=FAR, more=(LOCAL,)), "client 2 runs at the system's own place"),
        (trial(client=FAR, more=(FARTHER,), workload=SYSBENCH), "`sysbench` has one client"),
        (trial(client=FAR, more=(FARTHER,), workload=section(WORKLOADS, "oltp", transactions=9)), "share one window"),
    ],
)
def test_what_cannot_be_reached_is_refused_at_its_field(asked: ResolvedTrial, said: str) -> None:
    with pytest.raises(InputError, match=said) as refused:
        elsewhere.require(asked)
    assert refused.value.problems[0].field == "workload.place"
    assert refused.value.problems[0].suggestion


@pytest.mark.parametrize(
    ("asked", "field", "said"),
    [
        (trial(tls=True), "workload.tls", "beside its system"),
        (trial(client=LOCAL, address="10.0.0.1"), "workload.address", "beside its system"),
        (trial("service", client=FAR, tls=True), "workload.tls", "`service` is not told how to encrypt"),
        (trial(client=FAR, workload=SYSBENCH, tls=True), "workload.tls", "`sysbench` is not told how to encrypt"),
    ],
)
def test_a_network_that_cannot_be_is_refused_at_its_key(asked: ResolvedTrial, field: str, said: str) -> None:
    with pytest.raises(InputError, match=said) as refused:
        elsewhere.require(asked)
    assert refused.value.problems[0].field == field


def connected(words: str) -> Any:
    return lambda _spawn: FakeProgram(stdout=[words])


def reached(system: str, client: str, *, kinds: tuple[str, str], must_know: bool = True) -> str:
    first, second = ({"local": LOCAL, "ssh": FAR}[kind] for kind in kinds)
    with place_in_memory(connected(system)) as (one, _), place_in_memory(connected(client)) as (other, _):
        found = elsewhere.reached(one, other, places=(first, second), must_know=must_know)
        assert found.place is other
        return found.address


def test_a_server_over_ssh_has_the_address_that_ssh_reached_it_at() -> None:
    assert reached("10.0.0.1 50000 10.0.0.2 22", "", kinds=("ssh", "local")) == "10.0.0.2"
    assert reached("10.0.0.1 50000 10.0.0.2 22", "10.0.0.1 5 10.0.0.3 22", kinds=("ssh", "ssh")) == "10.0.0.2"


def test_a_server_on_this_machine_has_the_address_that_the_client_was_reached_from() -> None:
    assert reached("", "10.0.0.1 50000 10.0.0.3 22", kinds=("local", "ssh")) == "10.0.0.1"


def test_an_address_may_stay_unknown_where_the_study_chooses_one_for_every_trial() -> None:
    assert reached("", "", kinds=("local", "local"), must_know=False) == ""
    assert reached("10.0.0.1 5 10.0.0.2 22", "", kinds=("ssh", "local"), must_know=False) == "10.0.0.2"


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
