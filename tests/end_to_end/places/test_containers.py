"""Containers: an image as an arm, and what ends, breaks or kills one."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.command_line import Desk, eventually
from support.forking import Started
from support.machines import images
from support.machines.holding import Held
from support.shared import alone_in

from fairtrial import record
from fairtrial.places import open_place
from fairtrial.places.container import STATE
from fairtrial.record.models import PlaceOpened
from fairtrial.wire.open_place import OpenPlace

pytestmark = pytest.mark.servers

SERVERS = """\
study: images
place: {{container: {{memory: 512MiB, cpus: 2}}}}
system: {{postgres: {{options: {{shared_buffers: 32MB}}}}}}
workload: {{oltp: {{profile: point_select, table_size: 1000, virtual_users: 2, ramp_up: 100ms, transactions: 100}}}}
factors:
  image:
    now: {{place: {{container: {{image: "{now}"}}}}}}
    next: {{place: {{container: {{image: "{next}"}}}}}}
    other: {{place: {{container: {{image: "{next}"}}}}, system: {{mariadb: {{}}}}}}
arm: image
trials: {{blocks: 1, seed: 3}}
metrics: {{primary: throughput_tps}}
"""

COMMAND = """\
study: boxed
place: {{container: {{image: "{image}", {place}}}}}
workload: {{command: {{run: "{run}"}}}}
settings: {settings}
factors: {{arm: {{a: {{}}, b: {{workload: {{command: {{run: "{run} b"}}}}}}}}}}
arm: arm
trials: {{blocks: 1, seed: 4}}
metrics: {{primary: elapsed_s}}
telemetry: {{interval: 50ms}}
"""


@pytest.fixture(scope="session")
def image(tmp_path_factory: pytest.TempPathFactory) -> str:
    with alone_in(tmp_path_factory, "images"):
        return images.required()


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent that nobody talks to notices soon."""
    monkeypatch.setenv("FAIRTRIAL_LIMITS", "silence_s=6,grace_s=0.5")


def study(here: Desk, image: str, *, run: str, place: str = "cpus: 1", settings: str = "{}") -> Path:
    return here.study(COMMAND.format(image=image, run=run, place=place, settings=settings))


def test_an_image_is_an_arm_and_the_record_holds_what_it_was(here: Desk, image: str) -> None:
    other = images.variant(image, here.directory)
    here.fairtrial("run", here.study(SERVERS.format(now=image, next=other)))
    found = record.read(here.run)
    assert [trial.invalid_reason for trial in found.trials] == [""] * 3
    opened = [event.facts["container"] for event in found.events if isinstance(event, PlaceOpened)]
    ids = {facts["image"]: facts["image_id"] for facts in opened}
    assert ids == {name: images.identifier(name) for name in (image, other)}
    assert ids[image] != ids[other]
    subjects = {trial.trial.arm: trial.subject["image"] for trial in found.trials}
    assert subjects == {"now": ids[image], "next": ids[other], "other": ids[other]}
    versions = {trial.trial.arm: trial.system_facts["version"].split()[:2] for trial in found.trials}
    assert versions["other"] == ["/usr/sbin/mariadbd", "Ver"], "no warning before it"
    assert versions["now"] == versions["next"] == ["postgres", "(PostgreSQL)"]
    assert len({trial.data.content_sha256 for trial in found.trials}) == 1
    assert images.containers(here.state) == []
    here.fairtrial("verify", here.run)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another user")
def test_no_other_user_reaches_a_program_that_a_containers_root_left_with_roots_rights(here: Desk, image: str) -> None:
    (here.state / "container").mkdir(mode=0o755)
    with open_place("container", {"image": image, "state_directory": str(here.state)}, holder="a test") as agent:
        inside = OpenPlace(agent)
        inside.require(["sh", "-c", f"cp /bin/true {STATE}/su && chmod 4755 {STATE}/su"], hint="")
        inside.require([f"{STATE}/su"], hint="", user="nobody")  # servers in it run as other users
    (left,) = (here.state / "container").rglob("su")
    assert left.stat().st_mode & stat.S_ISUID
    assert left.stat().st_uid == 0
    tried = [
        "setpriv",
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
        "sh",
        "-c",
        str(left),
    ]  # after exec, without root's right
    assert subprocess.run(tried, check=False, capture_output=True).returncode != 0


def processes(*words: str) -> list[int]:
    """Of this machine, whose command lines have all of some words."""
    pids: list[int] = []
    for entry in filter(lambda entry: entry.name.isdigit(), Path("/proc").iterdir()):
        with contextlib.suppress(OSError):
            line = (entry / "cmdline").read_bytes().decode(errors="replace")
            pids += [int(entry.name)] if all(word in line for word in words) else []
    return pids


def first_process(name: str) -> list[int]:
    shown = subprocess.run(["podman", "inspect", "--format", "{{.State.Pid}}", name], capture_output=True, check=True)
    return [int(shown.stdout)]


@contextmanager
def under_way(here: Desk, image: str) -> Iterator[tuple[Started, Held]]:
    """A run whose first trial is being measured."""
    held = Held(here)
    held.hold()
    mount = f"run_options: ['--volume={here.directory}:{here.directory}']"
    run = here.start("run", study(here, image, run=held.run, place=mount))
    try:
        eventually(lambda: processes(f"{here.directory}/held-program.sh"), "a trial under way")
        yield run, held
    finally:
        if held.is_held():
            held.release()
        run.communicate(timeout=300)


@pytest.mark.parametrize("victim", ["podman", "conmon", "agent"])
@pytest.mark.usefixtures("quick")
def test_whatever_is_killed_the_container_is_gone_and_the_run_goes_on(here: Desk, image: str, victim: str) -> None:
    with under_way(here, image) as (run, held):
        (name,) = images.containers(here.state)
        for pid in first_process(name) if victim == "agent" else processes(victim, name):
            with contextlib.suppress(ProcessLookupError):  # it has ended by the end of another one
                os.kill(pid, signal.SIGKILL)
        eventually(lambda: name not in images.containers(here.state), "the container is still there")
        held.release()
    assert run.returncode == 0
    found = record.read(here.run)
    assert found.finished
    assert len(found.voided) == 1
    assert images.containers(here.state) == []


def test_a_killed_controller_leaves_no_container_and_the_run_is_resumed(here: Desk, image: str) -> None:
    with under_way(here, image) as (run, held):
        run.kill()
        eventually(lambda: not images.containers(here.state), "the container is still there")
        held.release()
    here.fairtrial("run", "--resume", here.run)
    assert [trial.invalid_reason for trial in record.read(here.run).trials] == ["", ""]
    assert images.containers(here.state) == []


def test_a_name_that_moves_is_one_image_for_a_run_and_none_for_its_resumption(here: Desk, image: str) -> None:
    moving = f"localhost/fairtrial-tests:moving-{os.getpid()}"
    other = images.variant(image, here.directory)
    images.tag(image, moving)
    try:
        with under_way(here, moving) as (run, held):
            images.tag(other, moving)
            run.send_signal(signal.SIGINT)
            eventually(lambda: not images.containers(here.state), "the container is still there")
            held.release()
        refused = here.fairtrial("run", "--resume", here.run, code=3)
        assert f"{moving} is now {images.identifier(other)[:12]}; this run began with" in refused.stderr
    finally:
        images.untag(moving)


def test_what_a_container_has_killed_for_want_of_memory_voids_a_trial_that_ends_well(here: Desk, image: str) -> None:
    hidden = "sh -c 'tail /dev/zero; true'"
    here.fairtrial("run", study(here, image, run=hidden, place="memory: 64MiB"), code=3)
    reasons = [trial.invalid_reason for trial in record.read(here.run).trials]
    assert all("for want of memory" in reason for reason in reasons), reasons


def test_what_outgrows_the_containers_memory_is_told_as_the_trials_reason(here: Desk, image: str) -> None:
    growing = "sh -c 'x=aaaaaaaa; while :; do x=$x$x; done'"
    done = here.fairtrial("run", study(here, image, run=growing, place="memory: 64MiB"), code=3)
    assert "has lost" in done.stderr
    reasons = [trial.invalid_reason for trial in record.read(here.run).trials]
    assert all("for want of memory" in reason for reason in reasons), reasons


def test_a_setting_that_a_container_does_not_allow_is_refused_by_name_before_a_trial(here: Desk, image: str) -> None:
    settings = '{sysctl: {vm.swappiness: "10"}}'
    done = here.fairtrial("run", study(here, image, run="true", settings=settings), code=3)
    assert "vm.swappiness" in done.stderr
    assert record.read(here.run).trials == ()


def test_an_image_that_is_missing_or_has_no_shell_is_named(here: Desk, image: str) -> None:
    del image  # podman and its like are here
    done = here.fairtrial("run", study(here, "localhost/no-such-image:1", run="true"), code=3)
    assert "study.yaml:2:29: place.container.image: podman has no image localhost/no-such-image:1" in done.stderr
    assert "`pull: missing`" in done.stderr
    done = here.fairtrial("run", study(here, images.bare(here.directory), run="true"), code=3)
    assert "study.yaml:2:29: place.container.image: the image" in done.stderr
    assert "has no shell" in done.stderr
    assert images.containers(here.state) == []


def test_a_program_whose_c_library_the_image_lacks_is_named_with_its_line(here: Desk, image: str) -> None:
    program = here.directory / "foreign"
    program.write_bytes(Path("/bin/true").read_bytes().replace(b"/ld-linux-x86-64.so.2", b"/ld-linux-x86-64.so.9"))
    program.chmod(0o755)
    mount = f"run_options: ['--volume={here.directory}:{here.directory}']"
    done = here.fairtrial("run", study(here, image, run=str(program), place=mount), code=3)
    assert f"study.yaml:3:28: workload.command.run: {program} cannot be started" in done.stderr
    assert "or the C library or interpreter that it names is not" in done.stderr


def test_doctor_goes_through_all_places_of_a_study_and_says_what_each_arm_lacks(here: Desk, image: str) -> None:
    del image
    missing, bare = "localhost/no-such-image:1", images.bare(here.directory)
    done = here.fairtrial("doctor", here.study(SERVERS.format(now=missing, next=bare)), "--json", code=3)
    places = json.loads(done.stdout)["places"]
    what = [place["lack"]["what"] for place in places if "lack" in place]
    assert [text.partition(":")[0] for text in what] == ["place.container.image"] * 2
    assert ["no image" in what[0], "no shell" in what[1]] == [True, True]
    (machine,) = (place for place in places if "lack" not in place)  # that carries both
    assert machine["place"] == {"local": {"state_directory": None}}
    (lack,) = next(study["lacks"] for study in machine["studies"] if study["study"] == "images")
    assert lack["what"].startswith(f"place.container.image: podman has no image {missing}")


def test_a_container_that_is_there_is_reached_through_its_runtimes_exec(here: Desk, image: str) -> None:
    name = f"there-{os.getpid()}"
    making = ["podman", "--runtime=runc", "run", "--detach", "--rm", f"--name={name}", *images.LIMITS]
    subprocess.run([*making, image, "sleep", "100000"], check=True, capture_output=True)
    try:
        study = COMMAND.format(image=image, place="", run="true", settings="{}")
        through = f"place: {{through: {{command: podman --runtime=runc exec -i {name}, state_directory: /state}}}}"
        text = "\n".join(through if line.startswith("place:") else line for line in study.splitlines())
        done = here.fairtrial("run", here.study(text), drawn=True)
    finally:
        subprocess.run(["podman", "rm", "--force", "--time=0", name], check=True, capture_output=True)
    assert [trial.invalid_reason for trial in record.read(here.run).trials] == ["", ""]
    report = here.run / "report"
    page, document = ((report / name).read_text(encoding="utf-8") for name in ("report.html", "report.json"))
    doubt = "page cache was not dropped before 2 of 2 used trials (1 of a, 1 of b)"
    assert [" ".join(text.split()).count(doubt) for text in (done.stdout, page, document)] == [1, 1, 1]


def test_docker_runs_a_container_as_podman_does(here: Desk, image: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By podman's own service, which answers as Docker's engine does."""
    if shutil.which("docker") is None:
        pytest.skip("needs docker")
    socket = f"unix://{here.directory}/podman.sock"
    with subprocess.Popen(["podman", "--runtime=runc", "system", "service", "--time=0", socket]) as service:
        try:
            eventually((here.directory / "podman.sock").exists, "podman's service does not start")
            monkeypatch.setenv("DOCKER_HOST", socket)
            here.fairtrial("run", study(here, image, run="true", place="runtime: docker"))
        finally:
            service.terminate()
    assert [trial.invalid_reason for trial in record.read(here.run).trials] == ["", ""]
