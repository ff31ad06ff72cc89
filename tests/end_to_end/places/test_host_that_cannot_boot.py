"""A host that is asked to boot a kernel and cannot: this machine, over a real sshd, whose doctor boots nothing."""

from __future__ import annotations

import pytest
from support.command_line import Desk
from support.machines.ssh_host import SSHD, host

pytestmark = [
    pytest.mark.servers,
    pytest.mark.skipif(SSHD is None, reason="no sshd: install openssh-server"),
]

STUDY = """\
study: booting
place: {{ssh: {{host: far, config: {config}, state_directory: {state}, boot: {{by: systemd-boot, expected: 3min}}}}}}
workload: {{command: {{run: "true"}}}}
factors:
  mitigations:
    default: {{}}
    "off": {{place: {{ssh: {{boot: {{parameters: [mitigations=off]}}}}}}}}
arm: mitigations
trials: {{blocks: 4}}
metrics: {{primary: elapsed_s}}
"""


def test_doctor_says_why_a_way_to_boot_does_not_work_and_a_plan_counts_the_minutes(here: Desk) -> None:
    with host(here) as far:
        study = here.study(STUDY.format(config=far.config, state=here.state))
        ended = here.fairtrial("doctor", study, code=3)
        assert "cannot be opened" in ended.stdout
        assert "place.ssh.boot.by" in ended.stdout
        planned = here.fairtrial("plan", study).stdout
    assert "as root, to boot it by systemd-boot" in planned
    assert "24 min" in planned
