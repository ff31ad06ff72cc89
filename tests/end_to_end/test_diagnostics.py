"""Diagnostic trials of real runs: probes at work on SQLite, a run killed among them, and probes that cannot work."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.command_line import Desk, desk, eventually
from support.real_record import adjust_hash

STUDY = """
    study: probed
    system: {sqlite: {}}
    workload:
      # A window long enough that the controller hears of it, and starts probes, while others take the processors.
      oltp: {tables: 1, table_size: 1000, virtual_users: 2, ramp_up: 100ms, transactions: 200, think_time: 20ms}
    factors:
      journal:
        delete: {system: {sqlite: {pragmas: {journal_mode: delete}}}}
        wal: {system: {sqlite: {pragmas: {journal_mode: wal}}}}
    arm: journal
    trials: {blocks: 3, seed: 3}
    metrics: {primary: throughput_tps}
"""
PROBES = """
    telemetry:
      diagnostic_blocks: 1
      probes:
        - command: sh -c 'while sleep 0.1; do echo tick; done'
        - file: /proc/vmstat
"""
QUICK = """
    study: quick
    workload: {command: {run: sleep 0.05}}
    factors:
      length:
        short: {}
        long: {workload: {command: {run: sleep 0.1}}}
    arm: length
    trials: {blocks: 2, seed: 5}
    metrics: {primary: elapsed_s}
"""
# Once it was run so often before, it lasts as long as a file is there.
PROGRAM = """\
n=$(cat {begun} 2>/dev/null || echo 0)
echo $((n + 1)) >{begun}
sleep $1
while [ $n -ge {before} ] && [ -e {slow} ]; do sleep 0.05; done
"""
needs_perf = pytest.mark.skipif(
    shutil.which("perf") is None or os.geteuid() != 0, reason="needs perf, as root: `apt install linux-perf`"
)


def run(here: Desk, probes: str, *arguments: str) -> str:
    """What a run of SQLite with probes printed. It starts them in a window, so it is not stopped with the tests."""
    running = here.start("run", here.study(study(STUDY, probes)), *arguments)
    output, _ = running.communicate()
    assert running.returncode == 0, output
    return output


def study(text: str, probes: str) -> str:
    return text.rstrip() + "\n" + probes.lstrip("\n")


@pytest.fixture(scope="module")
def here() -> Iterator[Desk]:
    """A run of SQLite with a program and a file as probes."""
    with desk() as found:
        run(found, PROBES)
        yield found
        assert found.processes() == {}, "processes were left behind"


def report_of(run: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((run / "report" / "report.json").read_bytes())
    return found


def window_of(trial: Path) -> tuple[int, int]:
    window = json.loads((trial / "trial.json").read_bytes())["window"]
    return window["start_ns"], window["end_ns"]


def test_a_program_and_a_file_are_probed_inside_the_window_of_each_arm(here: Desk) -> None:
    for arm in ("delete", "wal"):
        trial = here.run / "trials" / f"all.d01.{arm}"
        program, file = json.loads((trial / "diagnostics" / "probes.json").read_bytes())
        start_ns, end_ns = window_of(trial)
        assert start_ns <= program["start_ns"] < end_ns
        assert end_ns <= program["end_ns"]
        assert start_ns <= file["start_ns"] < end_ns
        ticks = (trial / "diagnostics" / "1-command.txt").read_text().splitlines()
        assert set(ticks) == {"tick"}
        assert 1 <= len(ticks) <= (program["end_ns"] - program["start_ns"]) / 1e8
        assert (trial / "diagnostics" / "2-file.before.txt").read_text().startswith("nr_free_pages ")


def test_trials_that_estimates_use_carry_no_probes(here: Desk) -> None:
    trials = sorted(path.name for path in (here.run / "trials").iterdir())
    assert [name for name in trials if ".d01." in name] == ["all.d01.delete", "all.d01.wal"]
    assert len(trials) == 2 * 3 + 2
    assert not list((here.run / "trials").glob("all.b*/diagnostics"))


def test_the_report_shows_them_and_uses_none(here: Desk) -> None:
    found = report_of(here.run)
    counts = found["analysis"]["counts"]
    assert (counts["planned"], counts["finished"], counts["used"], counts["diagnostic"]) == (6, 6, 6, 2)
    (cell,) = found["analysis"]["cells"]
    assert {each["n"] for each in cell["summaries"]["throughput_tps"]} == {3}
    program, file = found["diagnostics"][0]["probes"]
    assert set(program["lines"]) == {"tick"}
    assert any(line.startswith("+pgfault ") for line in file["lines"])
    text = (here.run / "report" / "report.txt").read_text(encoding="utf-8")
    assert "2 of 2 diagnostic trials ran" in text
    assert ".d01." not in (here.run / "report" / "raw_data.csv").read_text(encoding="utf-8")


def test_verify_believes_it_and_notices_one_changed_byte(here: Desk) -> None:
    assert "8 trials" in here.fairtrial("verify", here.run).stdout
    raw = here.run / "trials" / "all.d01.wal" / "diagnostics" / "1-command.txt"
    content = raw.read_bytes()
    try:
        raw.write_bytes(b"T" + content[1:])
        said = here.fairtrial("verify", here.run, code=1).stdout
        assert "trials/all.d01.wal/diagnostics/1-command.txt: changed since it was written" in said
        adjust_hash(here.run, "all.d01.wal", "diagnostics/1-command.txt")
        said = here.fairtrial("verify", here.run, code=1).stdout
        assert "probes[0].lines[0] is 'tick' but recomputed 'Tick'" in said
    finally:
        raw.write_bytes(content)
        adjust_hash(here.run, "all.d01.wal", "diagnostics/1-command.txt")


@needs_perf
def test_perf_counts_and_profiles_both_arms_of_a_real_run() -> None:
    probes = "    telemetry: {probes: [perf_stat, {perf_record: {frequency: 499}}]}\n"
    with desk() as found:
        printed = run(found, probes, "--set", "trials.blocks=1")
        assert "2 diagnostic trials in addition" in " ".join(printed.split())
        for trial in report_of(found.run)["diagnostics"]:
            counted, sampled = trial["probes"]
            assert counted["seconds"] > 0
            assert counted["counters"]["task-clock"] > 0
            assert counted["counters"]["page-faults"] > 0
            assert sampled["samples"] > 0
            assert any(each["origin"] for each in sampled["symbols"])
        text = (found.run / "report" / "report.txt").read_text(encoding="utf-8")
        assert "all: perf stat" in text
        assert "all: perf record" in text
        assert list((found.run / "trials").glob("all.d01.*/diagnostics/2-perf_record.data"))
        found.fairtrial("verify", found.run)


@needs_perf
def test_an_event_that_does_not_exist_is_refused_at_its_line_before_anything_runs() -> None:
    probes = "    telemetry:\n      probes:\n        - perf_stat\n        - {perf_stat: {events: [no-such-event]}}\n"
    with desk() as found:
        path = found.study(study(QUICK, probes))
        done = found.fairtrial("run", path, code=2)
        line = 1 + next(n for n, each in enumerate(path.read_text().splitlines()) if "no-such-event" in each)
        assert f"study.yaml:{line}:" in done.stderr
        assert "telemetry.probes.1.perf_stat: perf refuses it" in done.stderr
        assert list((found.run / "trials").iterdir()) == []


def test_a_program_that_is_not_there_is_refused_at_its_line_before_anything_runs() -> None:
    probes = "    telemetry: {probes: [{file: /proc/stat}, {command: no-such-program 1}]}\n"
    with desk() as found:
        path = found.study(study(QUICK, probes))
        done = found.fairtrial("run", path, code=2)
        lines = path.read_text().splitlines()
        line = next(n for n, each in enumerate(lines, start=1) if "no-such-program" in each)
        column = lines[line - 1].index("no-such-program") + 1
        assert (
            f"study.yaml:{line}:{column}: telemetry.probes.1.command: `no-such-program` is not installed" in done.stderr
        )
        assert list((found.run / "trials").iterdir()) == []


def test_a_run_killed_among_them_is_resumed_with_what_is_missing() -> None:
    """Killed by SIGKILL while the first diagnostic trial runs: it and its probe take long while a file is there."""
    with desk() as found:
        hold, slow = found.directory / "hold", found.directory / "slow"
        hold.write_text(f"trap 'test -e {slow} && sleep 60; exit 0' INT\nwhile :; do sleep 0.01; done\n")
        slow.touch()
        program = found.directory / "program"
        program.write_text(PROGRAM.format(begun=found.directory / "begun", before=2 * 2, slow=slow))
        text = QUICK.replace("run: sleep", f"run: sh {program}")
        path = found.study(study(text, f"    telemetry: {{probes: [{{command: sh {hold}}}]}}\n"))
        running = found.start("run", path)
        eventually(lambda: '"trial":{"id":"all.d01.' in _journal(found), "it never came to its diagnostic trials")
        os.killpg(running.pid, signal.SIGKILL)
        running.communicate()
        slow.unlink()
        eventually(lambda: found.processes() == {}, "the agent did not end what it had started")
        assert len(_trials(found)) == 2 * 2, "the trial that was killed left nothing"
        done = found.fairtrial("run", path, "--resume")
        assert "2 diagnostic trials in addition" in " ".join(done.stdout.split())
        assert [each for each in _trials(found) if ".d01." in each] == ["all.d01.long", "all.d01.short"]
        assert len(_trials(found)) == 2 * 2 + 2
        found.fairtrial("verify", found.run)


def _trials(found: Desk) -> list[str]:
    return sorted(each.name for each in (found.run / "trials").iterdir() if not each.name.startswith("."))


def _journal(found: Desk) -> str:
    return "".join(path.read_text() for path in found.directory.glob("runs/*/journal.jsonl"))
