"""What each command costs of a record of many small trials: milliseconds per trial, processor time and peak memory.

    .venv/bin/python benches/many_trials.py [--trials 1000 10000] [--stop fixed] [--fresh] [--keep DIR] [--only …]

One real run of two commands that only print gives trials of every cell and arm. The record is then made by the writer
that a run uses: real plans, files, hashes and journals, but nothing is synced, which would take most of an hour. Of a
rule that may stop, the looks are the rule's own, after each round. `record` is what making it cost the controller, of
which `first` and `last` fifth are told apart, and what it holds after each: memory and open files. What grows with the
number committed shows there. With `--fresh` the place is opened for every trial, as a guest is. `page` is all that a
browser gets when it opens the run. Each command is a process of its own; its children's time counts, the largest
process' memory is told.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from fairtrial import plan as planning
from fairtrial import record
from fairtrial import study as language
from fairtrial.catalogue import catalogue
from fairtrial.cli.running.stopping import stopping_rule
from fairtrial.record.models import PlaceOpened, PlannedTrial, TrialRecord, TrialStarted
from fairtrial.run.conducting import Conductor

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from support.progress import Told

CELLS: Final = 10
ARMS: Final = 2
BLOCKS: Final = 3  # of the real run: another trial each for the copies
FAIRTRIAL: Final = Path(sys.executable).with_name("fairtrial")
STUDY: Final = """\
study: many
question: What does a record of many trials cost?
place: {{local: {{}}}}
system: {{command: {{}}}}
factors:
  program:
    one: {{workload: {{command: {{run: "printf 1"}}}}}}
    other: {{workload: {{command: {{run: "printf 2"}}}}}}
  part: {parts}
arm: program
trials: {{blocks: {blocks}, order: randomised_blocks, seed: 1, stop: {stop}, margin: 2 %}}
metrics: {{primary: elapsed_s}}
"""
OPEN: Final = """
import sys
from collections import defaultdict
from pathlib import Path
from fairtrial.live.followed import FollowedRun
from fairtrial.serve.rendering import environment
from fairtrial.serve.run_page import RunPage
page = RunPage(FollowedRun(Path(sys.argv[1])), environment())
page.refresh()
print(len(page.page("many", since="", assets=defaultdict(str))))
"""
COMMANDS: Final = {
    "verify": [FAIRTRIAL, "verify"],
    "report": [FAIRTRIAL, "report"],
    "verify with report": [FAIRTRIAL, "verify"],
    "history": [FAIRTRIAL, "history"],
    "page": [sys.executable, "-c", OPEN],
}


def study(directory: Path, *, blocks: int, stop: str) -> Path:
    """The study's file."""
    path = directory / f"many-{blocks}.yaml"
    parts = "{" + ", ".join(f"p{number}: {{}}" for number in range(CELLS)) + "}"
    path.write_text(STUDY.format(parts=parts, blocks=blocks, stop=stop), encoding="utf-8")
    return path


def held() -> tuple[float, int]:
    """MiB of this process that are resident, and how many files it has open."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize() / 2**20, sum(1 for _ in Path("/proc/self/fd").iterdir())


class Copying(Conductor):
    """A run whose trials are copies of those of another one."""

    model: record.Record
    fresh: bool
    used_s: list[float]
    held: list[tuple[float, int]]

    def _run_trials(self) -> None:
        self.used_s, self.held = [], []
        places = [event for event in self.model.events if isinstance(event, PlaceOpened)]
        for opened in places:
            self.writer.note_place(opened)
        likes = {(trial.trial.cell, trial.trial.arm, trial.trial.block): trial for trial in self.model.trials}
        while (planned := self._next()) is not None:
            for opened in places if self.fresh else ():
                self.writer.note_place(opened)
            self._append(TrialStarted(trial=planned))
            self._copy(planned, likes[planned.cell, planned.arm, 1 + planned.block % BLOCKS])
            usage = resource.getrusage(resource.RUSAGE_SELF)
            self.used_s.append(usage.ru_utime + usage.ru_stime)
            if len(self.used_s) % max(1, len(self.writer.plan.trials) // 5) == 0:
                self.held.append(held())

    def _copy(self, planned: PlannedTrial, like: TrialRecord) -> None:
        directory = self.writer.begin(planned.id)
        shutil.copytree(
            self.model.trial_directory(like.trial.id),
            directory,
            dirs_exist_ok=True,
            copy_function=os.link,  # a hundred thousand would fill the disk
            ignore=shutil.ignore_patterns("trial.json"),
        )
        self.writer.commit(like.model_copy(update={"trial": planned}))
        self.schedule.finish(planned.id, valid=True)
        self._repair()


def made(model: record.Record, path: Path, directory: Path, *, fresh: bool) -> dict[str, float]:
    """Makes a record; milliseconds of processor time per trial, of all and of the first and the last fifth."""
    kinds = catalogue()
    plan = planning.make(language.load(path, catalogue=kinds), catalogue=kinds)
    writer = record.create(directory, plan=plan, sources={"study.yaml": path.read_text(encoding="utf-8")})
    run = Copying(writer=writer, progress=Told(), stopping=stopping_rule(plan))
    run.model, run.fresh = model, fresh
    run.execute()
    writer.close()
    used = run.used_s
    fifth = max(1, len(used) // 5)
    return {
        "trials": len(used),
        "ms": 1000 * used[-1] / len(used),
        "first": 1000 * (used[fifth - 1] - used[0]) / max(1, fifth - 1),
        "last": 1000 * (used[-1] - used[-fifth]) / max(1, fifth - 1),
        "first MiB": run.held[0][0],
        "last MiB": run.held[-1][0],
        "more files": run.held[-1][1] - run.held[0][1],
    }


def timed(command: Sequence[str | Path], *, trials: int) -> dict[str, float]:
    """Runs a command; its figures."""
    began = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    took = time.monotonic() - began
    return {
        "s": took,
        "ms per trial": 1000 * took / trials,
        "cpu ms per trial": 1000 * (usage.ru_utime + usage.ru_stime) / trials,
        "MiB": usage.ru_maxrss / 1024,
        "status": os.waitstatus_to_exitcode(status),
    }


def measured(model: record.Record, scratch: Path, options: argparse.Namespace) -> Iterator[dict[str, object]]:
    """A line per size and command."""
    for trials in options.trials:
        path = study(scratch, blocks=trials // (CELLS * ARMS), stop=options.stop)
        directory: Path = (options.keep or scratch) / "runs" / f"many-{options.stop}-{trials}"
        if not directory.exists():
            yield {"of": "record", **made(model, path, directory, fresh=options.fresh)}
        committed = sum(1 for _ in (directory / "trials").iterdir())
        for name, command in COMMANDS.items():
            if options.only is None or name in options.only:
                yield {"of": name, "trials": committed, **timed([*command, directory], trials=committed)}


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, nargs="+", default=[1000, 10_000])
    parser.add_argument("--stop", default="fixed")
    parser.add_argument("--fresh", action="store_true")
    parser.add_argument("--keep", type=Path, help="directory in which records stay, and are found again")
    parser.add_argument("--only", nargs="*", choices=COMMANDS)
    options = parser.parse_args(arguments)
    os.fsync = lambda _descriptor: None
    with tempfile.TemporaryDirectory(prefix="many-") as name:
        scratch = Path(name)
        small = study(scratch, blocks=BLOCKS, stop="fixed")
        command = [FAIRTRIAL, "run", small, "--plain", "--output", scratch / "model"]
        alone = {**os.environ, "FAIRTRIAL_STATE_DIRECTORY": str(scratch / "state")}
        subprocess.run(command, check=True, env=alone, stdout=subprocess.DEVNULL)
        model = record.read(next((scratch / "model").iterdir()))
        for line in measured(model, scratch, options):
            figures = {name: round(value, 3) if isinstance(value, float) else value for name, value in line.items()}
            print(json.dumps(figures), flush=True)


if __name__ == "__main__":
    main()
