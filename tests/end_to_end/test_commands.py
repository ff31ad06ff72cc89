"""The main job on ordinary programs: from a study file to a verdict, and everything that can go wrong on the way."""

import json
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest
from support.command_line import FAIRTRIAL, PATIENCE_S, Desk, eventually
from support.machines.machine import alone_with

from fairtrial import record
from fairtrial.record.events import RunInterrupted
from fairtrial.record.models import BlockAdded, BlockVoided, TrialFinished

# A program whose score depends on arm and seed alone: B is 10 % better, with a little noise that both arms share.
PROGRAM = """\
import os, random, sys, time
noise = random.Random(os.environ["FAIRTRIAL_SEED"]).gauss(0, 0.01)
own = random.Random(os.environ["FAIRTRIAL_SEED"] + sys.argv[1]).gauss(0, 0.002)
held = os.path.join(os.path.dirname(sys.argv[0]), "held")  # holds the number of runs that it lets pass
left = int(open(held).read()) if os.path.exists(held) else 1
if os.path.exists(held) and left:
    open(held, "w").write(str(left - 1))
while not left and os.path.exists(held):
    time.sleep(0.05)
print("score:", 100 * (1.1 if sys.argv[1] == "b" else 1.0) * (1 + noise + own))
"""
STUDY = """\
study: scores
question: Is b better than a?
workload: {{command: {{run: python3 {program} a, metrics: {{score: {{regex: 'score: (.*)', better: higher}}}}}}}}
factors:
  program:
    a: {{}}
    b: {{workload: {{command: {{run: python3 {program} b}}}}}}
  load: {{light: {{}}, heavy: {{settings: {{environment: {{LOAD: heavy}}}}}}}}
arm: program
trials: {{blocks: {blocks}, seed: 3}}
metrics: {{primary: score, secondary: elapsed_s}}
telemetry: {{interval: 50ms}}
"""


def scores(here: Desk, *, blocks: int = 5) -> Path:
    program = here.directory / "program.py"
    program.write_text(PROGRAM)
    return here.study(STUDY.format(program=program, blocks=blocks))


def planned_trials(here: Desk, study: Path) -> list[str]:
    """Trial ids in the order that `plan` prints: position, round, block, cell, arm, seed."""
    rows = re.findall(r"(?m)^ +\d+ +\d+ +(\d+) +(\w+) +(\w+) +\d+", here.fairtrial("plan", study).stdout)
    return [f"{cell}.b{int(block):02d}.{arm}" for block, cell, arm in rows]


def test_a_study_file_goes_in_and_a_verdict_comes_out(here: Desk) -> None:
    done = here.fairtrial("run", scores(here, blocks=7), drawn=True)  # fewer than 6 claim nothing
    assert len(re.findall(r"\bfaster\b", done.stdout)) >= 2
    found = record.read(here.run)
    assert found.finished
    assert len(found.trials) == 2 * 2 * 7
    assert all(trial.valid for trial in found.trials)
    analysis = json.loads((here.run / "report" / "report.json").read_text())["analysis"]
    for cell in analysis["cells"]:
        (comparison,) = cell["comparisons"]["score"]
        assert comparison["verdict"] == "faster"
        assert 1.09 < comparison["ratio"]["low"] < 1.1 < comparison["ratio"]["high"] < 1.11
    here.fairtrial("verify", here.run)
    assert {path.name for path in (here.run / "report").iterdir()} >= {
        "report.txt",
        "report.html",
        "report.json",
        "raw_data.csv",
        "raw_data.r",
    }


def test_the_plan_shows_every_trial_and_runs_nothing(here: Desk) -> None:
    cells = ("light", "heavy")
    expected = {f"{cell}.b{block:02d}.{arm}" for cell in cells for block in (1, 2) for arm in "ab"}
    before = set(here.state.iterdir())
    assert set(planned_trials(here, scores(here, blocks=2))) == expected
    assert not here.runs
    assert set(here.state.iterdir()) == before


def test_five_mistakes_are_reported_together_and_nothing_starts(here: Desk) -> None:
    study = here.study(
        """\
        study: wrong
        workload: {command: {run: "true"}}
        telemetry: {interval: 5 parsecs}
        factors:
          program: {a: {}, b: {settings: {enviroment: {A: b}}}}
        arm: programme
        trials: {blocks: 0}
        metrics: {primary: elapsed_second}
        """
    )
    before = set(here.state.iterdir())
    done = here.fairtrial("run", study, code=2)
    for line, what in ((3, "interval"), (5, "environment"), (6, "program"), (7, "blocks"), (8, "elapsed_s")):
        assert re.search(rf"study\.yaml:{line}:\d+: .*{what}", done.stderr), (line, what, done.stderr)
    assert not here.runs
    assert set(here.state.iterdir()) == before


def test_a_missing_program_is_named_and_nothing_is_left(here: Desk) -> None:
    study = here.study(
        """\
        study: missing
        system: {command: {run: no-such-server}}
        workload: {command: {run: "true"}}
        factors: {arm: {a: {}, b: {workload: {command: {run: "true 1"}}}}}
        arm: arm
        metrics: {primary: elapsed_s}
        """
    )
    done = here.fairtrial("run", study, code=3)
    assert "no-such-server" in done.stderr
    assert record.read(here.run).trials == ()


def test_an_invalid_trial_voids_its_block_and_is_replaced(here: Desk) -> None:
    marker = here.directory / "failed-once"
    program = here.directory / "flaky.sh"
    program.write_text(f"test -e {marker} && exit 0\ntouch {marker}\nexit 7\n")
    study = here.study(
        f"""\
        study: flaky
        workload: {{command: {{run: sh {program}}}}}
        factors: {{arm: {{a: {{}}, b: {{settings: {{environment: {{X: "1"}}}}}}}}}}
        arm: arm
        trials: {{blocks: 3}}
        metrics: {{primary: elapsed_s}}
        """
    )
    done = here.fairtrial("run", study)
    found = record.read(here.run)
    (invalid,) = [trial for trial in found.trials if not trial.valid]
    assert "exit code 7" in invalid.invalid_reason
    (voided,) = [event for event in found.events if isinstance(event, BlockVoided)]
    (added,) = [event for event in found.events if isinstance(event, BlockAdded)]
    assert (voided.block, added.replaces, added.block) == (invalid.trial.block, invalid.trial.block, 4)
    assert sum(trial.valid for trial in found.trials) == 6
    assert "void" in done.stdout
    here.fairtrial("verify", here.run)


def test_beyond_the_limit_of_voided_blocks_the_run_stops_and_keeps_everything(here: Desk) -> None:
    study = here.study(
        """\
        study: broken
        workload: {command: {run: "false"}}
        factors: {arm: {a: {}, b: {settings: {environment: {X: "1"}}}}}
        arm: arm
        trials: {blocks: 3, voided_limit: 1}
        metrics: {primary: elapsed_s}
        """
    )
    done = here.fairtrial("run", study, code=3)
    assert "more than the limit of 1" in done.stderr
    found = record.read(here.run)
    assert [trial.valid for trial in found.trials] == [False, False]
    assert any(isinstance(event, RunInterrupted) for event in found.events)


def wait_for_trials(here: Desk, number: int) -> None:
    def enough() -> bool:
        return bool(here.runs) and len(list((here.run / "trials").glob("[!.]*"))) >= number

    eventually(enough, f"{number} trials")


def test_a_run_that_is_stopped_again_and_again_follows_its_plan_without_losing_or_repeating_a_trial(here: Desk) -> None:
    study = scores(here, blocks=3)
    planned = planned_trials(here, study)
    held = here.directory / "held"
    before: list[str] = []
    for stop in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        held.write_text("3")
        process = here.start("run", study, *(["--resume"] if before else []))
        wait_for_trials(here, len(before) + 3)
        process.send_signal(stop)
        output, _ = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == (-signal.SIGKILL if stop == signal.SIGKILL else 130), output
        assert (f"`fairtrial run runs/{here.run.name} --resume` continues the run" in output) == (
            stop != signal.SIGKILL
        )
        eventually(lambda: not here.processes(), "every process gone")
        after = [trial.trial.id for trial in record.read(here.run).trials]
        assert after[: len(before)] == before
        assert len(after) >= len(before) + 2  # the third may have been stopped between its rename and its journal line
        before = after
    held.unlink()
    here.fairtrial("run", study, "--resume")
    assert [trial.trial.id for trial in record.read(here.run).trials] == planned
    assert len(planned) == 12
    here.fairtrial("verify", here.run)
    require_changes_to_be_found(here)


def test_a_run_whose_reader_goes_away_says_in_its_journal_why_it_stopped(here: Desk) -> None:
    command = [FAIRTRIAL, "run", scores(here, blocks=1)]
    held = here.directory / "held"
    held.write_text("0")
    begun = subprocess.Popen(
        command, cwd=here.directory, env=here.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert begun.stdout is not None
    assert begun.stderr is not None
    assert [begun.stdout.readline().split(":")[0] for _ in range(2)] == ["record", "warning"]
    begun.stdout.close()  # as `| head -1` does
    held.unlink()
    said = begun.stderr.read()
    assert (begun.wait(PATIENCE_S), said.count("continues the run")) == (141, 1), said
    begun.stderr.close()
    last = record.read(here.run).events[-1]
    assert isinstance(last, RunInterrupted)
    assert (last.reason, last.exit_code) == ("whoever read what the run prints has closed it", 141)


def test_a_listing_that_nobody_reads_or_that_has_no_room_is_neither_a_success_nor_a_finding(here: Desk) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    for file, code, said in ((writer, 141, ""), (os.open("/dev/full", os.O_WRONLY), 3, "error: no space left")):
        done = subprocess.run(
            [FAIRTRIAL, "schema"], env=here.environment, stdout=file, stderr=subprocess.PIPE, text=True, check=False
        )
        os.close(file)
        assert (done.returncode, done.stderr[: len(said) or None]) == (code, said)
    closed = subprocess.run(["sh", "-c", f"{FAIRTRIAL} --version >&-"], capture_output=True, text=True, check=False)
    assert (closed.returncode, closed.stderr) == (0, "")


def require_changes_to_be_found(here: Desk) -> None:
    """A changed byte and a cut file of a record are."""
    trial = record.read(here.run).trials[0].trial.id
    log = here.run / "trials" / trial / "log" / "load.log"
    original = log.read_bytes()
    log.write_bytes(b"score: 1e9\n" + original[11:])
    assert f"trials/{trial}/log/load.log: changed" in here.fairtrial("verify", here.run, code=1).stdout
    log.write_bytes(original)
    here.fairtrial("verify", here.run)
    telemetry = here.run / "trials" / trial / "telemetry-cpu.parquet"
    telemetry.write_bytes(telemetry.read_bytes()[:-20])
    assert "telemetry-cpu.parquet" in here.fairtrial("verify", here.run, code=1).stdout


@pytest.mark.skipif(os.geteuid() != 0, reason="changes a kernel parameter")
@alone_with("swappiness")
def test_a_killed_controller_leaves_no_changed_kernel_parameter(here: Desk) -> None:
    swappiness = Path("/proc/sys/vm/swappiness")
    before = swappiness.read_text()
    other = "37" if before.strip() != "37" else "38"
    study = here.study(
        f"""\
        study: sysctl
        workload: {{command: {{run: sleep 30}}}}
        settings: {{sysctl: {{vm.swappiness: {other}}}}}
        factors: {{arm: {{a: {{}}, b: {{settings: {{environment: {{X: "1"}}}}}}}}}}
        arm: arm
        metrics: {{primary: elapsed_s}}
        """
    )
    process = here.start("run", study)
    eventually(lambda: swappiness.read_text().strip() == other, "the setting applied")
    process.kill()
    process.communicate(timeout=PATIENCE_S)
    eventually(lambda: swappiness.read_text() == before, "the setting restored")
    eventually(lambda: not here.processes(), "every process gone")


@pytest.mark.skipif(os.geteuid() != 0, reason="changes a kernel parameter")
@alone_with("swappiness")
def test_a_setting_the_kernel_refuses_stops_the_run_with_both_values(here: Desk) -> None:
    study = here.study(
        """\
        study: refused
        workload: {command: {run: "true"}}
        settings: {sysctl: {vm.swappiness: 100000}}
        factors: {arm: {a: {}, b: {settings: {environment: {X: "1"}}}}}
        arm: arm
        metrics: {primary: elapsed_s}
        """
    )
    done = here.fairtrial("run", study, code=3)
    assert "vm.swappiness" in done.stderr
    assert record.read(here.run).trials == ()


def test_a_second_run_at_a_busy_place_is_refused_with_the_name_of_the_first(here: Desk) -> None:
    study = scores(here)
    (here.directory / "held").write_text("1")
    first = here.start("run", study)
    wait_for_trials(here, 1)
    done = here.fairtrial("run", study, "--output", here.directory / "other", code=3)
    assert here.run.name in done.stderr
    assert str(first.pid) in done.stderr
    first.terminate()
    first.communicate(timeout=PATIENCE_S)


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a small file system")
def test_a_full_disk_ends_the_run_in_order_and_it_resumes_once_there_is_room(here: Desk) -> None:
    small, held = here.directory / "small", here.directory / "held"
    small.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "none", small], check=False)
    if mounted.returncode:
        pytest.skip("this machine does not let its root mount a file system")
    try:
        study = scores(here, blocks=3)
        held.write_text("2")
        running = here.start("run", study, "--output", small)
        eventually(lambda: len(list(small.glob("*/trials/[!.]*"))) >= 2, "two trials")
        (run,) = small.iterdir()
        filler = small / "filler"
        assert subprocess.run(["dd", "if=/dev/zero", f"of={filler}", "bs=4k"], check=False).returncode == 1, (
            "it is full"
        )
        held.unlink()
        output, _ = running.communicate(timeout=PATIENCE_S)
        assert running.returncode == 3, output
        assert "no space left" in output
        kept = [event for event in record.read(run).events if isinstance(event, TrialFinished)]
        assert kept
        assert record.verify_hashes(record.read(run)) == []
        filler.unlink()
        here.fairtrial("run", study, "--output", small, "--resume")
        assert len(record.read(run).trials) == 12
    finally:
        subprocess.run(["umount", small], check=True)
