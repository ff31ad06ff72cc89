"""What a plan says of hosts: no more than they would run, and how long that takes them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fairtrial import plan as planning
from fairtrial import study as language
from fairtrial.catalogue import catalogue
from fairtrial.cli.running import run as command
from fairtrial.cli.running import spreading
from fairtrial.cli.running.farming import Farm
from fairtrial.errors import InputError

STUDY = """\
study: two-sleeps
{place}
workload: {{command: {{run: sleep 0.1}}{load}}}
factors: {{length: {{short: {{}}, long: {{workload: {{command: {{run: sleep 0.2}}}}}}}}}}
arm: length
trials: {{blocks: 4{trials}}}
metrics: {{primary: elapsed_s}}
"""
HOSTS = "hosts: {a: {ssh: {host: a}}, b: {ssh: {host: b%s}}}"
BOOTS = ", boot: {by: kexec, expected: 10min}"


def written(directory: Path, **given: str) -> Path:
    path = directory / "study.yaml"
    path.write_text(STUDY.format(**{"place": "place: {local: {}}", "load": "", "trials": "", **given}))
    (directory / "hosts.yaml").write_text(HOSTS % "")
    return path


def told(path: Path, *, places: Path | None = None, hosts: int | None = None) -> list[str]:
    study = language.load(path, catalogue=catalogue())
    plan = planning.make(study, catalogue=catalogue())
    boots_s = spreading.boots_of_hosts(plan, study=study, places=places, hosts=hosts)
    return spreading.sentences(plan, boots_s=boots_s)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"trials": ", order: sequential"}, r"study\.yaml:6:\d+: trials\.order: a host of a farm runs whole blocks"),
        ({"place": "place: {ssh: {host: z}}"}, r"study\.yaml:2:\d+: place: expected a place that the farm's hosts"),
        ({"load": ", place: {ssh: {host: z}}"}, r"study\.yaml:3:\d+: workload\.place: a host of a farm has no second"),
    ],
)
def test_what_hosts_do_not_run_is_neither_planned_for_them_nor_begun(
    tmp_path: Path, given: dict[str, str], expected: str
) -> None:
    path, places = written(tmp_path, **given), tmp_path / "hosts.yaml"
    with pytest.raises(InputError, match=expected):
        told(path, places=places)
    with pytest.raises(InputError, match=expected):
        told(path, hosts=3)
    farm, runs = Farm(places=places), tmp_path / "runs"
    with pytest.raises(InputError, match=expected):
        command._created(path, size=None, overrides=[], output=runs, against_itself=False, farm=farm)
    assert not runs.exists(), "nor is there a record of it"


def test_guests_are_planned_for_hosts_that_may_be_nodes_and_for_no_file_of_hosts(tmp_path: Path) -> None:
    path = written(tmp_path, place="place: {vm: {kernel: debian-6.1}}")
    assert told(path, hosts=4)[0].startswith("on 4 hosts ")
    with pytest.raises(InputError, match="found `vm`"):
        told(path, places=tmp_path / "hosts.yaml")


def test_boots_of_hosts_take_their_time(tmp_path: Path) -> None:
    path, places = written(tmp_path), tmp_path / "hosts.yaml"
    assert told(path, places=places) == told(path, hosts=2)
    places.write_text((HOSTS % BOOTS).replace("host: a", f"host: a{BOOTS}"))
    (said,) = told(path, places=places)
    assert re.match(r"on 2 hosts (40|41) min, 2\.0 times as fast, for 4 blocks", said), said
    places.write_text(HOSTS % BOOTS)
    assert told(path, places=places)[0].startswith("on 2 hosts 20 min, "), "one block there, and the others elsewhere"
