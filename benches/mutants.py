"""Which one-line mutants of this project do its own tests kill?

    .venv/bin/python benches/mutants.py [--seed 1] [--python 55] [--rust 40] [--jobs 1] [--out mutants.json]
    .venv/bin/python benches/mutants.py --from before.json --compare before.json --out after.json

Draws mutants of every room of both languages by a seed, puts each into a clone of a commit and runs that room's own
tests until one fails. Prints what became of each, and the share killed. A mutant that does not compile does not count,
and another is drawn. One that the tests do not end with counts as killed: whoever waits for them sees it.

`--from` applies the mutants of an earlier run to another commit, whatever was edited around their lines, and says which
lines no longer exist. A run that was interrupted goes on with the same `--out`.

Nothing is written in this checkout but `--out`. Mutants run as the user who starts this, if root in a PID namespace.
"""

from __future__ import annotations

import argparse
import json
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from mutation.rooms import Room, rooms, shares
from mutation.running import COUNTED, GONE, KILLED, NOT_COMPILED, SURVIVED, TIMED_OUT, Result, Scratch, Tests, tried
from mutation.sites import Mutant, drawn, line_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ROOT = Path(__file__).parents[1]
LANGUAGES = ("Python", "Rust")


class Outcomes:
    """Results as they come, printed and kept in a file after each."""

    def __init__(self, path: Path, *, commit: str, seed: int, total: int) -> None:
        self.path = path
        self.head = {"commit": commit, "seed": seed}
        self.total = total
        self.results: list[Result] = []
        self.lock = threading.Lock()
        if path.exists() and json.loads(path.read_text(encoding="utf-8"))["commit"] == commit:
            self.results = read(path)

    def known(self, mutant: Mutant) -> Result | None:
        return next((each for each in self.results if each.mutant.key == mutant.key), None)

    def add(self, result: Result) -> None:
        with self.lock:
            self.results.append(result)
            rows = [asdict(each) for each in self.results]
            self.path.write_text(json.dumps({**self.head, "results": rows}, indent=1), encoding="utf-8")
            counted = sum(each.outcome in COUNTED for each in self.results)
            by = f"  by {result.by}" if result.by else ""
            print(f"[{counted}/{self.total}] {result.outcome} {result.seconds:.0f} s  {named(result)}{by}", flush=True)


def read(path: Path) -> list[Result]:
    """The results of an earlier run."""
    rows = json.loads(path.read_text(encoding="utf-8"))["results"]
    return [Result(**{**row, "mutant": Mutant(**row["mutant"])}) for row in rows]


def named(result: Result) -> str:
    return f"{result.mutant.file}:{result.line} ({result.mutant.operator}): {result.mutant.mutated or '(nothing)'}"


def share(results: Sequence[Result]) -> str:
    """Killed by a test or by the time limit, of all that count."""
    counts = Counter(result.outcome for result in results)
    total = sum(counts[outcome] for outcome in COUNTED)
    killed = counts[KILLED] + counts[TIMED_OUT]
    rate = f"{100 * killed / total:.0f} %" if total else "none"
    return f"{killed} of {total} killed ({rate}), {counts[TIMED_OUT]} of them by the time limit"


def summary(results: Sequence[Result]) -> Iterator[str]:
    """Survivors, and the share killed by language and overall."""
    for result in results:
        if result.outcome == SURVIVED:
            yield f"survived: {named(result)}"
        elif result.outcome == GONE:
            yield f"gone: {result.mutant.file}: {result.mutant.text}"
    for language in LANGUAGES:
        yield f"{language}: {share([result for result in results if result.language == language])}"
    yield f"both: {share(results)}"
    yield f"not counted: {sum(result.outcome == NOT_COMPILED for result in results)} that do not compile"


def compared(before: Sequence[Result], after: Sequence[Result]) -> Iterator[str]:
    """The shares of those that both runs count, and each mutant whose outcome is different."""
    now = {result.mutant.key: result for result in after if result.outcome in COUNTED}
    pairs = [(old, now[old.mutant.key]) for old in before if old.outcome in COUNTED and old.mutant.key in now]
    yield f"before: {share([old for old, _ in pairs])}"
    yield f"after:  {share([new for _, new in pairs])}"
    for old, new in pairs:
        if old.outcome != new.outcome:
            yield f"{old.outcome} before, {new.outcome} now: {named(new)}"


def work(options: argparse.Namespace, checkout: Path) -> list[tuple[Room, int]]:
    """Rooms with the mutants to try in order, and how many have to count."""
    if options.origin:
        chosen: dict[tuple[str, str], Room] = {}
        for result in read(options.origin):
            if result.outcome in COUNTED:
                room = chosen.setdefault((result.language, result.room), Room(result.room, result.language))
                room.mutants.append(result.mutant)
        return [(room, len(room.mutants)) for room in chosen.values()]
    every = rooms(checkout)
    found = []
    for language, total in zip(LANGUAGES, (options.python, options.rust), strict=True):
        own = [room for room in every if room.language == language and total]
        given = shares(own, total)
        for room in own:
            room.mutants = list(drawn(room.mutants, options.seed))
            found.append((room, given[room.name]))
    return found


def examine(room: Room, least: int, scratch: Scratch, *, outcomes: Outcomes, longest_s: float) -> None:
    """Tries a room's mutants until enough of them count; those that the file of results has are not tried again."""
    tests: Tests | None = None

    def result(mutant: Mutant) -> Result:
        nonlocal tests
        if known := outcomes.known(mutant):
            return known
        path = scratch.root / mutant.file
        line = line_of(mutant, path.read_text(encoding="utf-8")) if path.exists() else None
        if line is None:
            new = Result(room.name, room.language, mutant, 0, GONE, 0.0)
        else:
            tests = tests or Tests(scratch, room, longest_s)
            new = tests.result(mutant, line)
        outcomes.add(new)
        return new

    for _ in tried(map(result, room.mutants), least=least):
        pass


def run(options: argparse.Namespace, commit: str, directory: Path) -> list[Result]:
    """Rust in one clone, so that it is compiled incrementally; Python rooms in as many as there are jobs."""
    clones = [Scratch(ROOT, commit, directory / str(job)) for job in range(options.jobs)]
    free: queue.Queue[Scratch] = queue.Queue()
    for clone in clones:
        free.put(clone)
    chosen = [each for each in work(options, clones[0].root) if not options.only or each[0].name in options.only]
    outcomes = Outcomes(options.out, commit=commit, seed=options.seed, total=sum(least for _, least in chosen))
    tasks: dict[str, list[tuple[Room, int]]] = {"Rust": []}  # the longest first
    for room, least in chosen:
        tasks.setdefault("Rust" if room.language == "Rust" else room.name, []).append((room, least))

    def task(of: list[tuple[Room, int]]) -> None:
        scratch = free.get()
        try:
            for room, least in of:
                examine(room, least, scratch, outcomes=outcomes, longest_s=options.timeout)
        finally:
            free.put(scratch)

    with ThreadPoolExecutor(options.jobs) as pool:
        try:
            for done in [pool.submit(task, of) for of in tasks.values()]:
                done.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for clone in clones:
                clone.stop()
            raise
    return outcomes.results


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--commit", default="HEAD")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--python", type=int, default=55, help="how many mutants; each room gets two at least")
    parser.add_argument("--rust", type=int, default=40, help="the same")
    parser.add_argument("--from", dest="origin", type=Path, help="results whose mutants to apply instead of drawing")
    parser.add_argument("--compare", type=Path, help="results to compare with")
    parser.add_argument("--out", type=Path, default=Path("mutants.json"))
    parser.add_argument("--only", action="append", help="a room, as `analyse` or `load/driver`; may be repeated")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument(
        "--timeout", type=float, default=120, help="seconds of a Python test, or beyond 4 times a crate's"
    )
    parser.add_argument("--scratch", type=Path, help="a directory to keep clones in, so that little is compiled twice")
    options = parser.parse_args()
    commit = subprocess.run(
        ["git", "rev-parse", options.commit], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.strip()
    started = time.monotonic()
    with ExitStack() as stack:
        directory = options.scratch or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mutants")))
        directory.mkdir(parents=True, exist_ok=True)
        results = run(options, commit, directory)
    print(f"\nseed {options.seed}, commit {commit[:10]}, {(time.monotonic() - started) / 60:.0f} min")
    print("\n".join(summary(results)))
    if options.compare:
        print("\n".join(compared(read(options.compare), results)))
    return 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that what runs is ended as by Ctrl-C
    sys.exit(main())
