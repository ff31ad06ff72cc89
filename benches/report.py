"""How long `fairtrial report` takes on a long run, how large its page is, and how a browser copes with it.

The record is made up (`long_record.py`): by default 500 trials of 45 minutes, sampled once a second, and 50 of
them for comparison; 10 GB on the disk. `--records` keeps them for another time. Processor time and largest resident set
are the kernel's figures (wait4). Chromium's are of the page as it opens, scrolled from top to bottom, then of the same
with every cell opened, then of the same once all is drawn.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from long_record import Size, make

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from support.machines import browser

PROGRAM = [sys.executable, "-c", "from fairtrial.cli import main; main()", "report"]
VIEW_PX = 900
FRAMES = """
new Promise((done) => {
  const gaps = [];
  let last = performance.now();
  const step = () => {
    const now = performance.now();
    gaps.push(now - last);
    last = now;
    scrollBy(0, %d);
    const below = document.documentElement.scrollHeight - scrollY - innerHeight;
    if (below <= 2) { done(gaps); } else { requestAnimationFrame(step); }
  };
  requestAnimationFrame(step);
})
"""
STEP_PX = 60
LATE_MS = 100  # a pause that is seen


def measure(record: Path) -> None:
    """Runs the command and prints what it cost."""
    started = time.monotonic()
    process = subprocess.Popen([*PROGRAM, str(record)], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"report ended with {process.returncode}")
    wall, processor = time.monotonic() - started, usage.ru_utime + usage.ru_stime
    page, whole = mebibytes(record / "report" / "report.html"), mebibytes(record / "report")
    print(f"  report   {wall:.1f} s wall, {processor:.1f} s processor, {usage.ru_maxrss / 1024:.0f} MiB resident")
    print(f"  page     {page:.2f} MiB of {whole:.1f} MiB in all", flush=True)


def mebibytes(path: Path) -> float:
    """Of a file, or of all below a directory."""
    files = [path] if path.is_file() else [each for each in path.rglob("*") if each.is_file()]
    return sum(file.stat().st_size for file in files) / 2**20


def show(report: Path) -> None:
    """Opens the page and scrolls through it."""
    figures = "[...document.querySelectorAll('.vega')]"
    with browser.browser() as page:
        started = time.monotonic()
        page.open(report, dark=False, height=VIEW_PX)
        loaded = time.monotonic() - started
        page.until(f"{figures}[0].querySelector('svg, canvas')")
        first = time.monotonic() - started
        scrolled = {"as opened": page.evaluate(FRAMES % STEP_PX)}
        page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
        page.evaluate("void scrollTo(0, 0)")
        scrolled["all open"] = page.evaluate(FRAMES % STEP_PX)
        page.until(f"{figures}.every((each) => each.querySelector('svg, canvas'))")
        page.evaluate("void scrollTo(0, 0)")
        scrolled["all drawn"] = page.evaluate(FRAMES % STEP_PX)
        nodes = page.evaluate("document.querySelectorAll('*').length")
    print(f"  browser  loaded after {loaded:.1f} s, first figure after {first:.1f} s, {nodes:,} elements in the end")
    for title, gaps in scrolled.items():
        late = sum(gap > LATE_MS for gap in gaps)
        middle, most = np.percentile(gaps, [50, 99])
        print(
            f"  scroll   {title}: {len(gaps)} frames, median {middle:.0f} ms, 99 % {most:.0f} ms, longest"
            f" {max(gaps):.0f} ms, {late} over {LATE_MS} ms",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", type=int, default=5)
    parser.add_argument("--blocks", type=int, nargs="+", default=[5, 50], help="per cell; each makes a record")
    parser.add_argument("--seconds", type=int, default=2700)
    parser.add_argument("--records", type=Path, help="keep the records here, and use those that are here")
    parser.add_argument("--no-report", action="store_true", help="make the records and show what reports there are")
    given = parser.parse_args()
    directory = given.records or Path(tempfile.mkdtemp(prefix="ft-report-"))
    try:
        for blocks in given.blocks:
            record = directory / f"{given.cells}x{blocks}x{given.seconds}"
            if not record.exists():
                started = time.monotonic()
                make(record, Size(cells=given.cells, blocks=blocks, seconds=given.seconds))
                print(f"made in {time.monotonic() - started:.0f} s", flush=True)
            trials, raw = 2 * given.cells * blocks, mebibytes(record / "trials") / 1024
            print(f"{trials} trials of {given.seconds / 60:g} minutes, {raw:.2f} GiB of raw files", flush=True)
            if not given.no_report:
                measure(record)
            if browser.CHROMIUM:
                show(record / "report" / "report.html")
    finally:
        if given.records is None:
            shutil.rmtree(directory)


if __name__ == "__main__":
    main()
