"""What this machine does for a guest on it: it prepares the guest's data, unless the guest has other programs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.command_line import eventually
from support.machines.places import place_here
from support.records import section

from fairtrial.errors import PlaceError
from fairtrial.places.vm import Vm, images
from fairtrial.places.vm.parameters import VmParameters
from fairtrial.run import hosted, prepared
from fairtrial.run.kinds import parts_of
from fairtrial.study.builds import Builds
from fairtrial.study.resolved import ResolvedTrial, Section
from fairtrial.systems import SYSTEMS, Identity
from fairtrial.wire.open_place import OpenPlace
from fairtrial.workloads import WORKLOADS

MIB = 1 << 20
SIZE = 512 * MIB
GUEST = Section({"vm": {"kernel": "debian-6.1", "disk": SIZE}})


def trial(system: str = "files", workload: str = "file_access", **given: Any) -> ResolvedTrial:
    asked = given or {"accesses": 1, "size": MIB}
    return ResolvedTrial(place=GUEST, system=section(SYSTEMS, system), workload=section(WORKLOADS, workload, **asked))


@contextmanager
def guest(directory: Path) -> Iterator[tuple[OpenPlace, OpenPlace]]:
    """A place that stands for a guest, and the machine that carries it."""
    with place_here(directory / "guest") as place, place_here(directory / "host") as host:
        place.carrier = host
        yield place, host


def quiet(_line: Mapping[str, Any]) -> None:
    """Nobody listens."""


def test_data_for_a_guest_are_made_on_its_host_once_and_lie_on_a_disk(tmp_path: Path) -> None:
    with guest(tmp_path) as (place, host):
        hosted.ensure(place, trial(), key="k" * 16, parts=parts_of(trial()), on_progress=quiet)
        disk = images.path(Path(host.state_directory) / "vm", key="k" * 16, size=SIZE)
        written = disk.stat().st_mtime_ns
        made = json.loads((Path(host.state_directory) / "prepared" / ("k" * 16) / "manifest.json").read_text())
        hosted.ensure(place, trial(), key="k" * 16, parts=parts_of(trial()), on_progress=quiet)
        assert disk.stat().st_mtime_ns == written
        assert not (Path(place.state_directory) / "prepared").exists(), "the guest did nothing"
        inside = prepared.ensure(place, "k" * 16, parts_of(trial()), on_progress=quiet)
    assert made["content_sha256"] == inside.content_sha256


def test_a_guest_without_this_machines_program_says_what_it_has_and_prepares_its_data_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[OpenPlace] = []

    def identity(_system: object, place: OpenPlace) -> Identity:
        asked.append(place)
        return Identity(version="1", sha256="a" * 64, facts={"binary": str(tmp_path / "server")})

    monkeypatch.setattr(SYSTEMS["files"], "identity", identity)
    with guest(tmp_path) as (place, host):
        hosted.identity(place, trial(), parts_of(trial()))
        assert asked == [host, place]
        hosted.ensure(place, trial(), key="k" * 16, parts=parts_of(trial()), on_progress=quiet)
        assert (Path(place.state_directory) / "prepared" / ("k" * 16) / "manifest.json").exists()
        assert not (Path(host.state_directory) / "vm").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has servers run as somebody else")
def test_where_servers_may_not_enter_the_state_directory_the_guest_prepares_its_data(tmp_path: Path) -> None:
    with guest(tmp_path) as (place, host):
        host.server_user = "nobody"
        (tmp_path / "host").chmod(0o700)
        hosted.ensure(place, trial(), key="k" * 16, parts=parts_of(trial()), on_progress=quiet)
        assert (Path(place.state_directory) / "prepared" / ("k" * 16) / "manifest.json").exists()
        assert not (Path(host.state_directory) / "vm").exists()


def test_a_command_is_asked_for_its_version_where_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[OpenPlace] = []
    monkeypatch.setattr(SYSTEMS["command"], "identity", lambda _system, place: asked.append(place) or Identity("", ""))
    command = trial("command", "command", run="true")
    with guest(tmp_path) as (place, _host):
        hosted.identity(place, command, parts_of(command))
        assert asked == [place]


def test_what_loads_data_is_looked_at_where_they_are_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WORKLOADS["file_access"], "loader", lambda _workload, place: {"at": str(place.state_directory)})
    with guest(tmp_path) as (place, host):
        assert hosted.identity(place, trial(), parts_of(trial())).loader == {"at": str(host.state_directory)}
        monkeypatch.setattr(hosted, "_is_shared", lambda _trial, _identity: False)
        assert hosted.identity(place, trial(), parts_of(trial())).loader == {"at": str(place.state_directory)}


def test_files_below_a_guests_own_mounts_are_not_this_machines(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to("/usr/bin/env")
    shares = Vm(VmParameters(kernel="debian-6.1")).shares
    assert shares(Path("/usr/bin/env"))
    assert shares(link), "what counts is where the file is"
    assert not shares(Path("/tmp/server"))
    assert not shares(Path("/var/lib/fairtrial/servers/x/bin/mysqld"))


LOADING = """
import sys
from pathlib import Path
sys.path[:0] = {paths!r}
from fairtrial.run import hosted
from fairtrial.run.kinds import parts_of
from test_hosted import guest, quiet, trial
import test_hosted
held = trial("sqlite", "oltp", table_size=20_000_000, duration=1)
with guest(Path({directory!r})) as (place, host):
    hosted.ensure(place, held, key="k" * 16, parts=parts_of(held), on_progress=lambda line: print(line, flush=True))
"""


def test_a_kill_while_this_machine_prepares_leaves_no_data_no_disk_and_no_process(tmp_path: Path) -> None:
    state = tmp_path / "host/state"
    program = LOADING.format(paths=[str(Path(__file__).parent), *sys.path], directory=str(tmp_path))
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as loading:
        assert loading.stdout is not None
        assert "progress" in loading.stdout.readline(), "it loads"
        os.kill(loading.pid, signal.SIGKILL)
    eventually(lambda: not processes(state), "something went on without its control plane")
    assert not list(state.glob("prepared/*"))
    assert not list(state.glob("vm/data/*"))
    with guest(tmp_path) as (place, _host):  # of other data, so that what was half loaded goes
        hosted.ensure(place, trial(), key="f" * 16, parts=parts_of(trial()), on_progress=quiet)
    assert [found.name for found in state.glob("prepared/*")] == ["f" * 16]
    assert [found.name for found in state.glob("vm/data/*")] == [f"{'f' * 16}-{SIZE}"]
    assert not list(state.glob("building/*"))


def processes(state: Path) -> list[int]:
    """Processes that an agent of this state directory has started, and itself."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if f"FAIRTRIAL_STATE_DIRECTORY={state}".encode() in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


@pytest.mark.parametrize(("where", "is_built"), [("bin/mysqld", True), ("bin/mariadbd", True), ("bin/other", False)])
def test_a_program_that_each_trial_puts_in_place_is_known_by_any_spelling(
    tmp_path: Path, *, where: str, is_built: bool
) -> None:
    (tmp_path / "bin").mkdir()
    for name in ("mysqld", "other"):
        (tmp_path / "bin" / name).write_text("new")
    (tmp_path / "bin/mariadbd").symlink_to("mysqld")
    identity = Identity(version="1", sha256="a" * 64, facts={"binary": str(tmp_path / where)})
    here = trial().model_copy(update={"place": Section({"local": {}})})
    given = {"program": f"{tmp_path}/bin/mysqld", "objects": {"a": "/o/*.o"}, "link": "cc -o {output} {objects}"}
    builds = Builds.model_validate(given)
    with place_here(tmp_path) as place:
        if is_built:
            hosted.require_same(place, here, identity, builds=builds)
        else:
            with pytest.raises(PlaceError, match="other was replaced during the run"):
                hosted.require_same(place, here, identity, builds=builds)
