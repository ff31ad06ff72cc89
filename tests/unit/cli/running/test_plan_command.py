"""`fairtrial plan` as installed."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from support.command_line import Desk, desk

STUDY = """\
study: two-sleeps
workload: {command: {run: sleep 0.1}}
factors:
  length:
    short: {}
    long: {workload: {command: {run: sleep 0.2}}}
arm: length
trials: {blocks: 2, order: abba, seed: 5}
metrics: {primary: elapsed_s}
sizes: {ci: {trials: {blocks: 1}}}
"""
TRIAL = re.compile(r"(?m)^ *(\d+) +(\d+) +(\d+) +(\S+) +(\S+) +(\d+) *$")


@pytest.fixture
def here() -> Iterator[Desk]:
    with desk() as found:
        yield found


def test_every_trial_stands_in_its_order_with_the_seed_of_its_block(here: Desk) -> None:
    rows = TRIAL.findall(here.fairtrial("plan", here.study(STUDY)).stdout)
    assert [(position, block, arm) for position, _, block, _, arm, _ in rows] == [
        ("0", "1", "short"),
        ("1", "1", "long"),
        ("2", "2", "long"),
        ("3", "2", "short"),
    ]
    seeds = [row[-1] for row in rows]
    assert seeds[0] == seeds[1] != seeds[2] == seeds[3]


def test_what_differs_is_shown_and_nothing_runs(here: Desk) -> None:
    before = set(here.state.iterdir())
    done = here.fairtrial("plan", here.study(STUDY))
    assert re.search(r"workload\.command\.run +sleep 0\.1 +sleep 0\.2", done.stdout)
    assert done.stderr == ""
    assert [path.name for path in here.directory.iterdir() if path.name != "state"] == ["study.yaml"]
    assert set(here.state.iterdir()) == before


def test_endpoints_and_commands_that_are_read_beside_the_load_are_named(here: Desk) -> None:
    telemetry = """\
telemetry:
  interval: 2s
  prometheus: [{url: "http://h:1/metrics", match: [a_total, b_*]}, {url: "https://h:2/", interval: 200ms}]
  command: {run: cat /proc/loadavg, name: load}
"""
    done = here.fairtrial("plan", here.study(STUDY + telemetry))
    (said,) = re.findall(r"(?m)^samples .*\n(?: {12} .*\n)*", done.stdout)
    assert said == (
        "samples      http://h:1/metrics (a_total, b_*) every 2s\n"
        "             https://h:2/ (all metrics) every 200ms\n"
        "             `cat /proc/loadavg` (load) every 2s\n"
    )


def test_a_size_and_an_assignment_change_the_plan(here: Desk) -> None:
    study = here.study(STUDY)
    assert len(TRIAL.findall(here.fairtrial("plan", study, "--size", "ci").stdout)) == 2
    assert len(TRIAL.findall(here.fairtrial("plan", study, "--size", "ci", "--set", "trials.blocks=3").stdout)) == 6


def test_the_same_study_prints_the_same_plan(here: Desk) -> None:
    study = here.study(STUDY)
    assert here.fairtrial("plan", study).stdout == here.fairtrial("plan", study).stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--size", "cii"], "did you mean `ci`?"),
        (["--set", "trials.block=3"], "did you mean `blocks`?"),
        (["--set", "nonsense"], "expected path=value, found `nonsense`"),
        (["--set", "arm=lenght"], "did you mean `length`?"),
    ],
)
def test_a_wrong_option_is_refused_with_what_was_meant(here: Desk, options: list[str], message: str) -> None:
    done = here.fairtrial("plan", here.study(STUDY), *options, code=2)
    assert message in done.stderr
    assert "\nhint: " in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(("name", "message"), [("absent.yaml", "No such file"), ("state", "Is a directory")])
def test_what_is_no_file_is_refused(here: Desk, name: str, message: str) -> None:
    done = here.fairtrial("plan", name, code=2)
    assert message in done.stderr
    assert "hint: check the path" in done.stderr


def test_what_a_place_must_have_is_said(here: Desk) -> None:
    guest = "place: {vm: {kernel: debian-6.1, memory: 1GiB, cpus: 4, pmem: 512MiB, accelerator: kvm}}\n"
    printed = " ".join(here.fairtrial("plan", here.study(STUDY + guest)).stdout.split())
    assert "needs a guest for every trial with debian-6.1: 1.5 GiB of memory, 4 processors, QEMU, KVM" in printed
    far = "place: {ssh: {host: server.example}}\n"
    printed = " ".join(here.fairtrial("plan", here.study(STUDY + far)).stdout.split())
    assert "needs access to server.example over SSH" in printed
    assert "needs" not in here.fairtrial("plan", here.study(STUDY)).stdout


def test_a_farm_s_length_is_told_for_a_number_of_hosts_or_a_file_of_them(here: Desk) -> None:
    study = here.study(STUDY.replace("blocks: 2", "blocks: 12"))
    hosts = here.study("hosts: {a: {ssh: {host: a}}, b: {ssh: {host: b}}, c: {ssh: {host: c}}}", "hosts.yaml")
    said = [here.fairtrial("plan", study, *words).stdout for words in (("--hosts", "3"), ("--places", hosts))]
    assert said[0] == said[1]
    (line,) = re.findall(r"(?m)^on 3 hosts .*$", said[0])
    assert re.fullmatch(
        r"on 3 hosts \d+ s, [23]\.\d times as fast, for 12 blocks; each host also prepares its data", line
    )
    assert "8 of them get no block" in here.fairtrial("plan", study, "--hosts", "20").stdout
    done = here.fairtrial("plan", study, "--hosts", "3", "--places", hosts, code=2)
    assert "a run has one farm, found two" in done.stderr


def test_the_halves_of_a_duet_are_told_with_who_has_which(here: Desk) -> None:
    study = here.study(STUDY.replace("abba", "duet"))
    done = here.fairtrial("plan", study)
    rows = re.findall(r"(?m)^ *\d+ +\d+ +(\d+) +\S+ +(\S+) +([12]) +\d+ *$", done.stdout)
    assert {(arm, half) for _block, arm, half in rows} == {(arm, half) for arm in ("short", "long") for half in "12"}
    told = re.findall(r"(?m)^halves +1 has processors [\d,]+ of this machine, 2 has [\d,]+;", done.stdout)
    assert len(told) == 1 or "on this machine the run would be refused: a duet needs two cores" in done.stdout
    refused = here.fairtrial("plan", study, "--hosts", "3", code=2)
    assert "`order: duet` runs both arms of a block on this machine" in refused.stderr


def test_boots_that_are_shared_are_told_with_what_they_save(here: Desk) -> None:
    text = STUDY.replace("order: abba", "reboot: between_blocks, per_boot: 3").replace(
        "arm: length", "  kernel:\n    old: {}\n    new: {place: {ssh: {boot: {kernel: debian-6.12}}}}\narm: kernel"
    )
    text += "place: {ssh: {host: h, boot: {by: kexec, kernel: debian-6.1, expected: 3min}}}\n"
    done = here.fairtrial("plan", here.study(text))
    assert (
        "boots        4 instead of 24, which saves about 60 min: each arm once in a round, for 3 trials of 2 cells"
        in done.stdout
    )
    assert "24 trials (2 cells × 2 blocks × 2 arms × 3 per boot), named CELL.bBLOCK.ARM[+TIME]; " in done.stdout
