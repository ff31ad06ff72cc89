"""What probes left, read back: perf's own formats, outputs cut to a page, files compared, damage named."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairtrial.errors import RecordError
from fairtrial.metrics.telemetry import probes
from fairtrial.metrics.telemetry.probes import DIRECTORY, LINES_KEPT, LONGEST_LINE, RUNS, SYMBOLS_KEPT, ProbeRun

COUNTED = (
    "# started on Sat Nov 21 15:30:40 2026\n\n"
    "5734.70\tmsec\ttask-clock\t5734699163\t100.00\t2.000\tCPUs utilized\n"
    "33767\t\tcontext-switches\t5734695702\t100.00\t5.888\tK/sec\n"
    "<not supported>\t\tcycles\t0\t100.00\t\t\n"
    "<not counted>\t\tinstructions\t0\t0.00\t\t\n"
    "110\t\tcpu/event=0x3c,umask=0/\t5734691209\t100.00\t19.181\t/sec\n"
)
SAMPLED = (
    "# Samples: 10  of event 'cpu-clock'\n#\n#      Samples\tCommand        \tShared Object  \tSymbol     \n"
    " 4         \tserver\t[kernel.kallsyms]\t[k] _raw_spin_lock\n"
    " 3         \tclient\t[kernel.kallsyms]\t[k] _raw_spin_lock\n"
    " 2         \tserver\tlibc.so.6\t[.] memcpy\n"
    "\n"
    " 1         \tserver\tserver\t[.] std::pair<int, int>::pair\n"
)


def run(kind: str = "command", number: int = 1, **changes: Any) -> ProbeRun:
    times = {"start_ns": 1_000_000_000, "end_ns": 3_500_000_000}
    return ProbeRun.model_validate({"number": number, "kind": kind, "label": kind, **times, **changes})


def trial(directory: Path, runs: list[ProbeRun], **files: str) -> Path:
    """A trial's directory; keyword: file name with its dots as `__` and its dash as `_of_` → content."""
    below = directory / DIRECTORY
    below.mkdir(parents=True)
    (below / RUNS).write_bytes(probes.write_runs(runs))
    for name, content in files.items():
        (below / ("1-" + name.replace("__", "."))).write_text(content, encoding="utf-8")
    return directory


def test_counts_are_read_with_what_the_place_cannot_count() -> None:
    assert probes.counters(COUNTED) == {
        "task-clock": 5734.70,
        "context-switches": 33767.0,
        "cycles": None,
        "instructions": None,
        "cpu/event=0x3c,umask=0/": 110.0,
    }


def test_a_count_that_is_none_is_damage() -> None:
    with pytest.raises(RecordError, match="'33x67' is no count"):
        probes.counters(COUNTED.replace("33767", "33x67"))


def test_a_profile_adds_programs_up_and_shares_are_of_all_samples() -> None:
    total, symbols = probes.profile(SAMPLED)
    assert total == 10
    assert [(each.symbol, each.origin, each.share) for each in symbols] == [
        ("[k] _raw_spin_lock", "[kernel.kallsyms]", 0.7),
        ("[.] memcpy", "libc.so.6", 0.2),
        ("[.] std::pair<int, int>::pair", "server", 0.1),
    ]


def test_a_profile_of_nothing_is_empty_and_one_that_is_damaged_says_so() -> None:
    assert probes.profile("# Samples: 0\n") == (0, ())
    assert probes.profile("0\ta\tb\tc\n") == (0, ())
    for wrong in ("4x", "-4"):
        with pytest.raises(RecordError, match=f"'{wrong}' is no number of samples"):
            probes.profile(SAMPLED.replace(" 4   ", f" {wrong}  "))


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 1000), st.integers(0, 99)), min_size=1, max_size=120))
def test_the_symbols_kept_are_the_largest_and_their_shares_no_more_than_one(rows: list[tuple[int, int]]) -> None:
    text = "".join(f"{samples}\tprogram\torigin\t[.] f{name}\n" for samples, name in rows)
    total, symbols = probes.profile(text)
    sums: dict[int, int] = {}
    for samples, name in rows:
        sums[name] = sums.get(name, 0) + samples
    assert total == sum(sums.values())
    assert len(symbols) == min(SYMBOLS_KEPT, len(sums))
    largest = sorted(sums.values(), reverse=True)[:SYMBOLS_KEPT]
    assert [each.share * total for each in symbols] == pytest.approx(largest)
    assert sum(each.share for each in symbols) <= 1 + 1e-9


def test_equal_samples_are_ordered_by_name_so_that_a_report_repeats() -> None:
    rows = ["5\tp\to\t[.] b\n", "5\tp\to\t[.] a\n", "5\tp\tn\t[.] b\n"]
    orders = {tuple((s.symbol, s.origin) for s in probes.profile("".join(each))[1]) for each in (rows, rows[::-1])}
    assert orders == {(("[.] a", "o"), ("[.] b", "n"), ("[.] b", "o"))}


def test_lines_that_changed_are_told_before_and_after_in_order() -> None:
    before = "one 1\nsame 5\ntwo 2\n"
    after = "one 10\nsame 5\ntwo 2\nthree 3\n"
    assert list(probes.changed(before, after)) == ["-one 1", "+one 10", "+three 3"]
    assert list(probes.changed(before, before)) == []


def test_long_files_are_compared_line_by_line() -> None:
    before = "".join(f"counter{number} 1\n" for number in range(100_000))
    after = before.replace("7 1\n", "7 2\n") + "new 1\n"
    found = list(probes.changed(before, after))
    assert found[:2] == ["-counter7 1", "+counter7 2"]
    assert len(found) == 20_001
    assert found[-1] == "+new 1"


def test_lines_that_look_like_a_diffs_own_are_lost_to_nobody_but_themselves() -> None:
    """A file's line that begins with `--` would be `---` in a diff: the other lines are still told."""
    assert list(probes.changed("x 1\n", "x 2\n@@ y\n"))[:2] == ["-x 1", "+x 2"]


def test_the_diff_is_that_of_the_program_everybody_has(tmp_path: Path) -> None:
    before = "".join(f"counter{number} {number}\n" for number in range(200))
    after = "".join(f"counter{number} {number * (1 + (number % 7 == 0))}\n" for number in range(200))
    (tmp_path / "a").write_text(before)
    (tmp_path / "b").write_text(after)
    done = subprocess.run(["diff", "a", "b"], cwd=tmp_path, capture_output=True, text=True, check=False)
    theirs = [line[0].translate({60: "-", 62: "+"}) + line[2:] for line in done.stdout.splitlines() if line[0] in "<>"]
    assert sorted(probes.changed(before, after)) == sorted(theirs)


def test_each_kind_is_read_from_its_own_file(tmp_path: Path) -> None:
    kinds = {
        "perf_stat": {"perf_stat__tsv": COUNTED},
        "perf_record": {"perf_record__tsv": SAMPLED},
        "bpftrace": {"bpftrace__txt": "Attaching 1 probe...\n\n@x: 3\n\n"},
        "file": {"file__before__txt": "a 1\n", "file__after__txt": "a 2\n"},
        "command": {"command__txt": "hello\n"},
    }
    found = {kind: probes.read(trial(tmp_path / kind, [run(kind)], **files))[0] for kind, files in kinds.items()}
    assert found["perf_stat"].counters["task-clock"] == 5734.70
    assert (found["perf_record"].samples, len(found["perf_record"].symbols)) == (10, 3)
    assert found["bpftrace"].lines == ("Attaching 1 probe...", "", "@x: 3")
    assert found["file"].lines == ("-a 1", "+a 2")
    assert found["command"].lines == ("hello",)
    assert {kind: each.seconds for kind, each in found.items()} == {**dict.fromkeys(kinds, 2.5), "file": None}


def test_probes_are_told_by_their_number_even_two_of_a_kind(tmp_path: Path) -> None:
    directory = trial(tmp_path / "t", [run(), run(number=2, label="other")], command__txt="one\n")
    (directory / DIRECTORY / "2-command.txt").write_text("two\n")
    assert [(each.number, each.label, each.lines) for each in probes.read(directory)] == [
        (1, "command", ("one",)),
        (2, "other", ("two",)),
    ]


def test_long_outputs_are_cut_and_what_is_left_out_is_counted(tmp_path: Path) -> None:
    lines = ["", " ", *(f"line {number}" for number in range(LINES_KEPT + 7)), "", ""]
    (found,) = probes.read(trial(tmp_path / "t", [run()], command__txt="\n".join(lines) + "\n"))
    assert (found.lines[0], found.lines[-1]) == ("line 0", f"line {LINES_KEPT - 1}")
    assert (len(found.lines), found.lines_left_out) == (LINES_KEPT, 7)


def test_a_line_as_long_as_allowed_stays_and_a_longer_one_says_that_it_was_cut(tmp_path: Path) -> None:
    text = "x" * LONGEST_LINE + "\n" + "y" * (LONGEST_LINE + 1) + "\n"
    (found,) = probes.read(trial(tmp_path / "t", [run()], command__txt=text))
    assert found.lines == ("x" * LONGEST_LINE, "y" * (LONGEST_LINE - 1) + "…")


def test_bytes_that_are_no_text_are_shown_as_such(tmp_path: Path) -> None:
    directory = trial(tmp_path / "t", [run()])
    (directory / DIRECTORY / "1-command.txt").write_bytes(b"caf\xe9\n")
    assert probes.read(directory)[0].lines == ("caf�",)


def test_a_trial_without_probes_gives_nothing(tmp_path: Path) -> None:
    assert probes.read(tmp_path) == []


def test_a_failed_probe_tells_why_and_nothing_else(tmp_path: Path) -> None:
    directory = trial(tmp_path / "t", [run("perf_stat", failure="ended with code 1")], perf_stat__tsv="rubbish\tx\ty\n")
    (found,) = probes.read(directory)
    assert (found.failure, found.counters) == ("ended with code 1", {})


def test_a_probe_that_never_started_has_no_time(tmp_path: Path) -> None:
    directory = trial(tmp_path / "t", [run(start_ns=None, end_ns=None, failure="did not start")])
    assert probes.read(directory)[0].seconds is None


def test_damage_is_named_by_file(tmp_path: Path) -> None:
    missing = trial(tmp_path / "missing", [run("perf_stat")])
    with pytest.raises(RecordError, match=r"1-perf_stat\.tsv cannot be read: No such file"):
        probes.read(missing)
    for content in ("", "[1]", '[{"number": 1}]', '[{"number": 1, "kind": "command", "label": "x", "more": 1}]'):
        (missing / DIRECTORY / RUNS).write_text(content)
        with pytest.raises(RecordError, match=r"probes\.json cannot be read"):
            probes.read(missing)


def test_what_is_written_is_what_is_read() -> None:
    runs = [run("perf_stat"), run("file", number=2, end_ns=None)]
    assert [ProbeRun.model_validate(each) for each in json.loads(probes.write_runs(runs))] == runs
    assert [each.stem for each in runs] == ["1-perf_stat", "2-file"]
    assert [each.seconds for each in runs] == [2.5, None]
