"""How soon the page's list of many runs is there, and how long a filter or another order takes.

    .venv/bin/python benches/page_index.py [--runs 10000] [--asked 40]

Records are copies of three real ones of a tiny study, each with a name and a study of its own, in a temporary place.
Served twice by `fairtrial serve`, with a cache of its own: the first process reads every record, the second knows them.
First paint is what Chromium says of its first request to that process. Nothing is asserted.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Final

import numpy as np
from playwright.sync_api import sync_playwright

from fairtrial import record, report
from fairtrial.caching import CACHE_VARIABLE
from fairtrial.record.events import RunFinished
from fairtrial.report.analysing import analysed

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from support.command_line import FAIRTRIAL
from support.machines.browser import CHROMIUM
from support.records import planned, tiny_plan, trial_record

RATIOS: Final = (0.8, 1.0, 1.2)
BLOCKS: Final = 8
STUDIES: Final = 40
SAVING_S: Final = 3  # until the index is on disk
COPIED: Final = ("plan.json", "journal.jsonl", "report/report.json")  # all that a list reads
ADDRESSES: Final = (
    "/",
    "/?verdict=worse",
    "/?verdict=changed&sort=-ratio",
    "/?text=study-7+slower",
    "/?study=study-11&sort=started",
    "/?state=finished&sort=verdict&page=50",
    "/?sort=run",
    "/?sort=kernel&verdict=none",
)
PAINTED: Final = "performance.getEntriesByName('first-contentful-paint').map((each) => each.toJSON())"
ADDRESS: Final = re.compile(r"page: (http://\S+?)/\?token=(\S+)")


def model(directory: Path, ratio: float) -> Path:
    """A record of a tiny study, whose arm b takes `ratio` times as long, with its report."""
    plan = tiny_plan()
    trials = [planned(block, arm) for block in range(1, BLOCKS + 1) for arm in "ab"]
    plan = plan.model_copy(
        update={"study": "STUDY", "trials": trials, "design": plan.design.model_copy(update={"blocks": BLOCKS})}
    )
    writer = record.create(directory, plan=plan, sources={"study.yaml": "study: STUDY\n"})
    generator = np.random.default_rng(1)
    for trial in trials:
        value = (ratio if trial.arm == "b" else 1.0) * math.exp(0.01 * generator.standard_normal())
        writer.begin(trial.id)
        writer.commit(trial_record(trial).model_copy(update={"scalars": {"elapsed_s": value}}))
    writer.append(RunFinished())
    writer.close()
    found = record.read(directory)
    report.write(found, analysed(found), directory / "report", drawn=False)
    return directory


def copies(models: Sequence[Path], runs: Path, count: int) -> None:
    """Many runs, each with a name, a study and a time of its own."""
    texts = [{name: (each / name).read_text(encoding="utf-8") for name in COPIED} for each in models]
    for number in range(count):
        study = f"study-{number % STUDIES}"
        directory = runs / f"{study}-{number:05d}"
        (directory / "report").mkdir(parents=True)
        for name, text in texts[number % len(texts)].items():
            own = text.replace("STUDY", study)
            if name == "journal.jsonl":
                first, *rest = own.splitlines(keepends=True)
                line = json.loads(first) | {"time": f"2026-{1 + number % 12:02d}-01T{number // 3600:02d}:00:00.000Z"}
                own = "".join([json.dumps(line), "\n", *rest])
            (directory / name).write_text(own, encoding="utf-8")


@dataclass(frozen=True)
class Served:
    """A process that serves; `started_s` from its start to its address."""

    base: str
    token: str
    started_s: float


@contextmanager
def served(runs: Path, cache: Path) -> Iterator[Served]:
    """`fairtrial serve`, until the block ends."""
    began = time.perf_counter()
    process = subprocess.Popen(
        [FAIRTRIAL, "serve", str(runs), "--no-browser"],
        env={**os.environ, CACHE_VARIABLE: str(cache)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        found = ADDRESS.search(process.stdout.readline())
        assert found is not None
        yield Served(found[1], found[2], time.perf_counter() - began)
    finally:
        process.terminate()
        process.wait()


def painted_ms(page: Served) -> float:
    """From the navigation to the first paint of content, as Chromium tells it."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        tab = browser.new_page()
        tab.goto(f"{page.base}/?token={page.token}")
        while not (painted := tab.evaluate(PAINTED)):
            time.sleep(0.01)
        browser.close()
    return float(painted[0]["startTime"])


def asked_s(opener: urllib.request.OpenerDirector, address: str) -> tuple[float, str]:
    """Seconds that an answer takes, and the answer."""
    began = time.perf_counter()
    text = opener.open(address).read().decode()
    return time.perf_counter() - began, text


def let_in(page: Served) -> urllib.request.OpenerDirector:
    """A client with the page's cookie; the token is handed over at an address that costs nothing."""
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
    with suppress(urllib.error.HTTPError):
        opener.open(f"{page.base}/assets/none?token={page.token}").read()
    return opener


def first(runs: Path, cache: Path) -> None:
    """A process that knows nothing."""
    with served(runs, cache) as page:
        print(f"nothing known: address after {page.started_s:.2f} s")
        opener = let_in(page)
        took, text = asked_s(opener, f"{page.base}/")
        print(f"  first answer {1000 * took:.0f} ms, {len(text):,} bytes")
        began = time.perf_counter()
        slowest = took
        while "being read" in text:
            time.sleep(0.5)
            took, text = asked_s(opener, f"{page.base}/?sort=ratio")
            slowest = max(slowest, took)
        read_s = time.perf_counter() - began
        time.sleep(SAVING_S)
        print(f"  all read after {read_s:.1f} s; slowest answer meanwhile {1000 * slowest:.0f} ms")


def again(runs: Path, cache: Path, *, asked: int) -> None:
    """A process that finds the index of the one before."""
    with served(runs, cache) as page:
        print(f"index on disk: address after {page.started_s:.2f} s")
        print(f"  first paint {painted_ms(page):.0f} ms after a browser asked")
        opener = let_in(page)
        for address in ADDRESSES:
            times = [asked_s(opener, f"{page.base}{address}") for _ in range(asked)]
            seconds = sorted(took for took, _text in times)
            rows = times[0][1].count('<th scope="row">')
            print(
                f"  {address:42} {rows:4} rows  median {1000 * statistics.median(seconds):6.1f} ms  "
                f"p95 {1000 * seconds[int(0.95 * len(seconds))]:6.1f} ms"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--asked", type=int, default=40, help="requests of each address")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="page-index-") as temporary:
        home = Path(temporary)
        models = [model(home / f"model-{ratio}", ratio) for ratio in RATIOS]
        copies(models, home / "runs", options.runs)
        print(f"{options.runs:,} runs, load average {os.getloadavg()[0]:.1f}")
        first(home / "runs", home / "cache")
        again(home / "runs", home / "cache", asked=options.asked)


if __name__ == "__main__":
    main()
