"""What a host's journal says of boots that were begun, and to whom."""

from __future__ import annotations

import pytest
from support.machines.places import FACTS

from fairtrial.errors import AgentError
from fairtrial.places.boot import watchdog
from fairtrial.places.boot.booting import JOURNAL, BegunBoot, journalled
from fairtrial.protocol import generated as wire
from fairtrial.wire import Agent
from fairtrial.wire.fake import FakeProgram, FakeTransport

BEGUN = BegunBoot(by="kexec", holder="run A by ann")


def asked(fake: FakeTransport) -> BegunBoot | None:
    with Agent(fake, holder="a test", lock=True) as agent:
        return journalled(agent)


def test_a_boot_that_was_begun_is_known_by_its_journal() -> None:
    assert asked(FakeTransport(files={JOURNAL: BEGUN.model_dump_json().encode()})) == BEGUN
    assert asked(FakeTransport()) is None


class _Closed(FakeTransport):
    """A host whose /boot is closed."""

    def _send(self, request: wire.Get) -> None:
        said = f"cannot open {request.path}: Permission denied (os error 13)"
        self.say(wire.Failed(id=request.id, code="system", message=said, hint=None))


@pytest.mark.parametrize("user_id", [0, 1000])
def test_whom_boot_is_closed_to_could_end_no_boot_and_is_served_without(user_id: int) -> None:
    facts = FACTS.model_copy(update={"user_id": user_id}).model_dump_json(exclude={"boot", "guest", "container"})
    closed = _Closed(run=lambda _spawn: FakeProgram(stdout=[facts]))
    if user_id:
        assert asked(closed) is None
        return
    with pytest.raises(AgentError, match="Permission denied"):
        asked(closed)


@pytest.mark.parametrize(
    ("nowayout", "state", "identity"),
    [("0", "inactive", "iTCO_wdt"), ("0", "active", ""), ("1", "inactive", "")],
)
def test_a_watchdog_that_somebody_feeds_or_nobody_can_stop_is_left_alone(
    nowayout: str, state: str, identity: str
) -> None:
    said = {"identity": "iTCO_wdt", "nowayout": nowayout, "state": state}
    fake = FakeTransport(files={f"{watchdog.DEVICE}/{name}": f"{text}\n".encode() for name, text in said.items()})
    with Agent(fake, holder="a test", lock=True) as agent:
        assert watchdog.begin(agent) == identity
    spawned = [request.name for request in fake.requests if isinstance(request, wire.Spawn)]
    assert (watchdog.NAME in spawned) == bool(identity)
