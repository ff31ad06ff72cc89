"""Whether probes can work at a place, asked of this machine's real programs and of places in memory that lack them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from support.machines.places import place_here, place_in_memory

from fairtrial.errors import AgentError, InputError
from fairtrial.protocol import generated as wire
from fairtrial.run.feasibility import probes as probe_checks
from fairtrial.study.probes import Probe
from fairtrial.wire.fake import FakeProgram
from fairtrial.wire.open_place import OpenPlace

needs_perf = pytest.mark.skipif(shutil.which("perf") is None, reason="needs perf: `apt install linux-perf`")
needs_bpftrace = pytest.mark.skipif(
    shutil.which("bpftrace") is None or os.geteuid() != 0, reason="needs bpftrace, as root: `apt install bpftrace`"
)


def problems(place: OpenPlace, *probes: object) -> list[str]:
    with pytest.raises(InputError) as raised:
        probe_checks.require(place, [Probe.model_validate(probe) for probe in probes])
    assert raised.value.exit_code == 2
    return [str(problem) for problem in raised.value.problems]


def test_files_and_programs_that_are_there_are_accepted(tmp_path: Path) -> None:
    with place_here(tmp_path) as place:
        probe_checks.require(
            place, [Probe(file="/proc/vmstat"), Probe(command="sleep 1"), Probe(command="/bin/sleep 1")]
        )
        assert not (tmp_path / "state" / "work" / "probes").exists(), "what trying left is removed"


def test_a_checked_program_is_not_run(tmp_path: Path) -> None:
    with place_here(tmp_path) as place:
        probe_checks.require(place, [Probe(command=f"touch {tmp_path / 'ran'}")])
    assert not (tmp_path / "ran").exists()


def test_everything_that_is_missing_is_named_at_once_by_its_number(tmp_path: Path) -> None:
    with place_here(tmp_path) as place:
        first, second, third = problems(
            place,
            {"command": "no-such-program 1"},
            {"file": "/proc/vmstat"},
            {"file": "/no/such/file"},
            {"file": "/sys/kernel/debug/no-such-file"},
        )
    assert "telemetry.probes.0.command: `no-such-program` is not installed at the place" in first
    assert "telemetry.probes.2.file: cannot be read at the place" in second
    assert "No such file" in second
    assert "telemetry.probes.3.file" in third
    assert "mount -t debugfs none /sys/kernel/debug" in third
    assert "debugfs" not in second


def test_a_file_that_may_not_be_read_is_named_before_the_run(tmp_path: Path) -> None:
    (tmp_path / "directory").mkdir()
    with place_here(tmp_path) as place:
        (found,) = problems(place, {"file": str(tmp_path / "directory")})
    assert "cannot be read" in found


@needs_perf
def test_software_events_can_be_counted_and_nonsense_cannot(tmp_path: Path) -> None:
    with place_here(tmp_path) as place:
        probe_checks.require(place, [Probe.model_validate("perf_stat")])
        (found,) = problems(place, {"perf_stat": {"events": ["no-such-event"]}})
    assert "telemetry.probes.0.perf_stat: perf refuses it" in found
    assert "no-such-event" in found


@needs_perf
def test_a_profile_can_be_taken_and_read(tmp_path: Path) -> None:
    with place_here(tmp_path) as place:
        probe_checks.require(place, [Probe.model_validate("perf_record")])
        (found,) = problems(place, {"perf_record": {"event": "no-such-event"}})
    assert "telemetry.probes.0.perf_record: perf refuses it" in found


@needs_bpftrace
def test_a_script_is_attached_and_one_that_is_wrong_is_shown_in_bpftraces_words(tmp_path: Path) -> None:
    with place_here(tmp_path) as place:
        probe_checks.require(place, [Probe.model_validate({"bpftrace": {"program": "interval:s:1 { @ = count(); }"}})])
        probe_checks.require(place, [Probe.model_validate({"bpftrace": {"program": "BEGIN { exit(); }"}})])
        (found,) = problems(place, {"bpftrace": {"program": "nonsense {"}})
    assert "telemetry.probes.0.bpftrace: bpftrace refuses it" in found
    assert "syntax error" in found
    assert "RLIMIT_MEMLOCK" not in found


@pytest.mark.parametrize(
    ("probe", "package"),
    [("perf_stat", "linux-perf"), ("perf_record", "linux-perf"), ({"bpftrace": {"program": "x"}}, "bpftrace")],
)
def test_a_program_that_is_not_installed_is_named_with_its_package(
    probe: object, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with place_in_memory() as (place, _fake):
        spawn = place.agent.spawn

        def without(name: str, argv: list[str], **options: object) -> object:
            if argv[0] in probe_checks.PACKAGES:
                raise AgentError(f"no program {argv[0]}", code="not_found", hint="install it")
            return spawn(name, argv, **options)  # type: ignore[arg-type]

        monkeypatch.setattr(place.agent, "spawn", without)
        (found,) = problems(place, probe)
    assert "is not installed at the place" in found
    assert f"`apt install {package}`" in found


def test_an_agent_that_fails_in_another_way_is_not_taken_for_a_missing_program(monkeypatch: pytest.MonkeyPatch) -> None:
    with place_in_memory() as (place, _fake):
        spawn = place.agent.spawn

        def broken(name: str, argv: list[str], **options: object) -> object:
            if argv[0] == "perf":
                raise AgentError("out of processes", code="system", hint="wait")
            return spawn(name, argv, **options)  # type: ignore[arg-type]

        monkeypatch.setattr(place.agent, "spawn", broken)
        with pytest.raises(AgentError, match="out of processes"):
            probe_checks.require(place, [Probe.model_validate("perf_stat")])


def counting(said: str) -> object:
    """A place whose perf counts this."""

    def run(spawn: wire.Spawn) -> FakeProgram:
        if spawn.argv[0] == "perf":
            counts[spawn.argv[spawn.argv.index("-o") + 1]] = said.encode()
        return FakeProgram()

    counts: dict[str, bytes] = {}
    return run, counts


def test_events_that_a_virtual_machine_lacks_are_named_with_a_way_out() -> None:
    run, counts = counting(
        "# started on …\n\n<not supported>\t\tcycles\t0\t100.00\t\t\n5\t\tpage-faults\t1\t100\n"
        "<not supported>\t\tinstructions\t0\t100.00\t\t\n"
    )
    with place_in_memory(run) as (place, fake):
        fake.files = counts
        (found,) = problems(place, {"perf_stat": {"events": ["cycles", "page-faults", "instructions"]}})
    assert "this place cannot count cycles, instructions (leave them out; a virtual machine often has" in found


def test_a_count_that_came_too_late_is_no_reason_to_refuse() -> None:
    """`true` ends before a multiplexed counter had its turn: the place can count it."""
    run, counts = counting("<not counted>\t\tcycles\t0\t0.00\t\t\n")
    with place_in_memory(run) as (place, fake):
        fake.files = counts
        probe_checks.require(place, [Probe.model_validate({"perf_stat": {"events": ["cycles"]}})])


def test_a_perf_that_may_not_is_told_how_it_could() -> None:
    def refuse(spawn: wire.Spawn) -> FakeProgram:
        return (
            FakeProgram(code=255, stderr=["", "Access to performance monitoring … is limited."])
            if spawn.argv[0] == "perf"
            else FakeProgram()
        )

    with place_in_memory(refuse) as (place, _fake):
        (found,) = problems(place, "perf_record")
    assert "perf refuses it: Access to performance monitoring … is limited." in found
    assert "kernel.perf_event_paranoid=-1" in found
