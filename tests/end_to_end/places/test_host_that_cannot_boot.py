"""A host that is asked to boot a kernel and cannot: this machine, over a real sshd. Looking at it boots nothing."""

from __future__ import annotations

import pytest
from support.command_line import Desk
from support.machines.ssh_host import SSHD, host

from fairtrial.errors import PlaceError
from fairtrial.places import PASSING, place_of
from fairtrial.study.resolved import Section

pytestmark = [
    pytest.mark.servers,
    pytest.mark.skipif(SSHD is None, reason="no sshd: install openssh-server"),
]


def test_why_a_way_to_boot_does_not_work_is_said_when_the_host_is_looked_at(here: Desk) -> None:
    boot = {"by": "systemd-boot", "expected": 180.0}
    with host(here) as far:
        given = {"host": "far", "config": str(far.config), "state_directory": str(here.state), "boot": boot}
        place = place_of(Section({"ssh": given}))
        assert place.boots_anew
        assert place.duration_s() == 180.0
        with pytest.raises(PlaceError) as caught:
            place.open(holder="this test", lock=False, disk=PASSING)
    assert caught.value.field == "place.ssh.boot.by"
    assert caught.value.hint
