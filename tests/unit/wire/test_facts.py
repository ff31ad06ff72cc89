"""Facts of a place as a record holds them."""

from __future__ import annotations

from support.facts import ORDINARY, facts_of

from fairtrial.wire.facts import GuestFacts


class OfAPackage(GuestFacts):
    hypervisor: str


def test_facts_of_a_machine_are_written_as_its_agent_told_them() -> None:
    assert facts_of().as_json() == ORDINARY


def test_a_guest_adds_whatever_its_kind_tells_of_it() -> None:
    guest = OfAPackage(accelerator="kvm", emulated=False, hypervisor="other")
    told = {"accelerator": "kvm", "emulated": False, "content_sha256": "", "hypervisor": "other"}
    assert facts_of(guest=guest).as_json() == {**ORDINARY, **told}
