"""The machine that carries a guest is looked at from outside, before the guest's own work looks like load."""

from __future__ import annotations

from pathlib import Path

from fairtrial.places.vm import Vm
from fairtrial.places.vm.parameters import VmParameters
from fairtrial.run.feasibility import carriers


def test_this_machine_is_looked_at_as_the_host_without_its_lock(tmp_path: Path) -> None:
    state = tmp_path / "state"
    place = Vm(VmParameters(kernel="debian-6.1", state_directory=str(state)))
    found = carriers.examine(place, directory=tmp_path / "run")
    assert found
    assert all(finding.of_host for finding in found)
    assert {"steal", "other_load", "file_system"} <= {finding.name for finding in found}
    assert not (state / "undo.jsonl").exists(), "nothing was changed"
