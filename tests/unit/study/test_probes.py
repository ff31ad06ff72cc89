"""Probes as a study says them: names that stand alone, scripts beside the file, and what is refused at which line."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from pydantic import ValidationError

from fairtrial import study
from fairtrial.study.probes import HIGHEST_FREQUENCY_HZ, LARGEST_SCRIPT, MOST_PROBES, SOFTWARE_EVENTS, Probe

Load = Callable[..., study.Study]
Mistakes = Callable[..., list[str]]
SCRIPT = "profile:hz:99 { @[comm] = count(); }\n"


@pytest.fixture
def probed(small: Any) -> Callable[[str], str]:
    """The MGLRU study with a `telemetry` section of so many lines, first in the file."""

    def text(telemetry: str) -> str:
        return f"telemetry:\n{telemetry}{small.MGLRU}"

    return text


def test_bare_names_stand_for_probes_with_their_defaults(load: Load, probed: Callable[[str], str]) -> None:
    found = load(probed("  probes: [perf_stat, perf_record]\n")).file.telemetry.probes
    assert [probe.kind for probe in found] == ["perf_stat", "perf_record"]
    counts, profile = found[0].perf_stat, found[1].perf_record
    assert counts is not None
    assert profile is not None
    assert counts.events == list(SOFTWARE_EVENTS)
    assert (profile.frequency, profile.event, profile.call_graph) == (99, "cpu-clock", False)


def test_every_kind_in_full_keeps_what_was_written(load: Load, probed: Callable[[str], str]) -> None:
    text = probed(
        "  probes:\n"
        "    - {perf_stat: {events: [cycles, 'sched:sched_switch']}}\n"
        "    - {perf_record: {frequency: 999, event: cycles, call_graph: true}}\n"
        "    - {bpftrace: {program: 'BEGIN { exit(); }'}}\n"
        "    - {file: /sys/kernel/debug/x}\n"
        "    - {command: vmstat -w 1}\n"
    )
    found = [probe.model_dump(exclude_none=True) for probe in load(text).file.telemetry.probes]
    assert found == [
        {"perf_stat": {"events": ["cycles", "sched:sched_switch"]}},
        {"perf_record": {"frequency": 999, "event": "cycles", "call_graph": True}},
        {"bpftrace": {"program": "BEGIN { exit(); }", "script": ""}},
        {"file": "/sys/kernel/debug/x"},
        {"command": "vmstat -w 1"},
    ]


def test_labels_say_what_a_reader_has_to_know() -> None:
    asked: list[Any] = [
        "perf_stat",
        "perf_record",
        {"bpftrace": {"program": "x", "script": "locks.bt"}},
        {"bpftrace": {"program": "x"}},
        {"file": "/proc/vmstat"},
        {"command": "iostat -x 1"},
    ]
    assert [Probe.model_validate(each).label for each in asked] == [
        *("perf stat", "perf record", "bpftrace locks.bt", "bpftrace", "file /proc/vmstat", "command iostat -x 1"),
    ]


def test_a_script_is_read_from_beside_the_study_and_the_study_is_whole_without_it(
    load: Load, probed: Callable[[str], str], tmp_path: Path
) -> None:
    loaded = load(probed("  probes: [{bpftrace: locks.bt}]\n"), files={"locks.bt": SCRIPT})
    (probe,) = loaded.file.telemetry.probes
    assert probe.bpftrace is not None
    assert (probe.bpftrace.program, probe.bpftrace.script) == (SCRIPT, "locks.bt")
    (tmp_path / "locks.bt").unlink()
    again = load(study.dump(loaded))
    assert again == loaded
    assert again.file.telemetry.probes[0].bpftrace == probe.bpftrace


def test_a_script_named_in_an_included_file_lies_beside_that_file(load: Load, small: Any, tmp_path: Path) -> None:
    (tmp_path / "looks").mkdir()
    (tmp_path / "looks" / "why.yaml").write_text("telemetry: {probes: [{bpftrace: own.bt}]}\n", encoding="utf-8")
    (tmp_path / "looks" / "own.bt").write_text(SCRIPT, encoding="utf-8")
    (probe,) = load(f"include: looks/why.yaml\n{small.MGLRU}").file.telemetry.probes
    assert probe.bpftrace is not None
    assert probe.bpftrace.program == SCRIPT


def test_a_size_and_an_assignment_can_leave_the_probes_out(load: Load, probed: Callable[[str], str]) -> None:
    text = probed("  probes: [perf_stat]\n  diagnostic_blocks: 3\n")
    assert load(text).file.telemetry.blocks_of_diagnostics == 3
    without = load(text, overrides=["telemetry={}", "telemetry.probes=[]", "telemetry.diagnostic_blocks=null"])
    assert without.file.telemetry.blocks_of_diagnostics == 0
    assert load(text, overrides=["telemetry.probes=[perf_record]"]).file.telemetry.probes[0].kind == "perf_record"


@pytest.mark.parametrize(
    ("asked", "blocks"),
    [
        ("", 0),
        ("  probes: []\n", 0),
        ("  probes: [perf_stat]\n", 1),
        ("  probes: [perf_stat]\n  diagnostic_blocks: 2\n", 2),
    ],
)
def test_one_diagnostic_block_if_there_are_probes_and_none_if_not(
    load: Load, probed: Callable[[str], str], *, asked: str, blocks: int
) -> None:
    assert load(probed(asked or "  interval: 1s\n")).file.telemetry.blocks_of_diagnostics == blocks


@pytest.mark.parametrize(
    ("asked", "wrong"),
    [
        ("  probes: [perfstat]\n", "2:12 telemetry.probes.0: unknown probe `perfstat`; expected one of `perf_stat`"),
        ("  probes: [bpftrace]\n", "2:12 telemetry.probes.0: `bpftrace` needs a value; write `{bpftrace: …}`"),
        ("  probes: [{file: proc/stat}]\n", "2:19 telemetry.probes.0.file: expected an absolute path at the place"),
        ("  probes: [{command: ' '}]\n", "2:22 telemetry.probes.0.command: the command line is empty"),
        ('  probes: [{command: "a \'b"}]\n', "2:22 telemetry.probes.0.command: not a command line"),
        ("  probes: [{}]\n", "2:12 telemetry.probes.0: expected exactly one of perf_stat, perf_record, bpftrace"),
        (
            "  probes:\n    - perf_stat\n    - {file: /a, command: b}\n",
            "4:7 telemetry.probes.1: expected exactly one of perf_stat, perf_record, bpftrace, file, command, found 2",
        ),
        ("  probes: [{perf_stat: {events: []}}]\n", "2:33 telemetry.probes.0.perf_stat.events: expected at least 1"),
        ("  probes: [{perf_stat: {events: ['-e x']}}]\n", "2:34 telemetry.probes.0.perf_stat.events.0: expected text"),
        ("  probes: [{perf_record: {frequency: 0}}]\n", "2:38 telemetry.probes.0.perf_record.frequency: expected"),
        ("  probes: [{bpftrace: nowhere.bt}]\n", "2:23 telemetry.probes.0.bpftrace: cannot read"),
        (
            "  diagnostic_blocks: 2\n",
            "2:22 telemetry.diagnostic_blocks: `diagnostic_blocks` has no effect without `probes`",
        ),
        (
            "  probes: [perf_stat]\n  diagnostic_blocks: 0\n",
            "3:22 telemetry.diagnostic_blocks: expected a value greater",
        ),
    ],
)
def test_mistakes_are_named_by_line_and_field(
    mistakes: Mistakes, probed: Callable[[str], str], *, asked: str, wrong: str
) -> None:
    (found,) = mistakes(probed(asked))
    at, _, said = wrong.partition(" ")
    assert found.startswith(f"study.yaml:{at}: ")
    assert said in found


def test_a_misspelt_key_of_a_probe_is_named_with_the_right_one(
    mistakes: Mistakes, probed: Callable[[str], str]
) -> None:
    (found,) = mistakes(probed("  probes: [{perf_record: {frequencies: 99}}]\n"))
    assert found.startswith("study.yaml:2:27: telemetry.probes.0.perf_record.frequencies: ")
    assert "(did you mean `frequency`?)" in found


def test_a_script_that_is_no_text_or_too_large_is_refused(
    load: Load, mistakes: Mistakes, probed: Callable[[str], str], *, tmp_path: Path
) -> None:
    text = probed("  probes: [{bpftrace: own.bt}]\n")
    (tmp_path / "own.bt").write_bytes(b"\xff\xfe")
    assert "not UTF-8" in mistakes(text)[0]
    (tmp_path / "own.bt").write_bytes(b"#" * (LARGEST_SCRIPT + 1))
    assert "larger than 64 KiB" in mistakes(text)[0]
    (tmp_path / "own.bt").write_bytes(b"#" * LARGEST_SCRIPT)
    assert load(text).file.telemetry.probes[0].kind == "bpftrace"


def test_limits_of_number_and_frequency_hold_and_no_less_is_refused() -> None:
    for wrong in (0, HIGHEST_FREQUENCY_HZ + 1):
        with pytest.raises(ValidationError):
            Probe.model_validate({"perf_record": {"frequency": wrong}})
    Probe.model_validate({"perf_record": {"frequency": HIGHEST_FREQUENCY_HZ}})


def test_more_probes_than_anybody_can_read_are_refused(mistakes: Mistakes, probed: Callable[[str], str]) -> None:
    names = ", ".join(["perf_stat"] * (MOST_PROBES + 1))
    assert "telemetry.probes" in mistakes(probed(f"  probes: [{names}]\n"))[0]


def test_the_schema_for_editors_takes_what_the_language_takes(small: Any) -> None:
    whole = study.schema(small.SMALL)
    probe = {"$ref": "#/$defs/Probe", "$defs": whole["$defs"]}
    for asked in ("perf_stat", {"perf_stat": {}}, {"bpftrace": "own.bt"}, {"file": "/a"}, {"command": "a b"}):
        jsonschema.validate(asked, probe)
    for wrong in (3, {"perf": {}}, {"perf_record": {"frequency": 0}}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, probe)


def test_a_probe_is_its_own_plain_form() -> None:
    """What a plan stores is read back as the same, bare names included."""
    for asked in ("perf_stat", {"bpftrace": {"program": "x", "script": "s"}}, {"command": shlex.join(["a", "b c"])}):
        probe = Probe.model_validate(asked)
        assert Probe.model_validate_json(probe.model_dump_json()) == probe
