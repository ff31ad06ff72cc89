"""The page of one run, in a process of its own beside it: there before its first trial, and a while after its end.

It is started as `python -c … RUN PROCESSORS`, prints its address and says nothing more. The processors are those it may
use, as numbers with commas between them; none are all.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

from fairtrial.metrics import parquet
from fairtrial.record.live import controller
from fairtrial.serve.server import Listening

KEPT_S: Final = 600.0  # after the run's end and the last browser


def main() -> None:
    """Serves until nobody has looked for a while and nobody runs it."""
    run, processors = Path(sys.argv[1]), sys.argv[2]
    if processors:
        os.sched_setaffinity(0, {int(number) for number in processors.split(",")})
    parquet.begin_first_reader()  # other runs beside this one may be anybody's
    page = Listening(run.parent)
    sys.stdout.write(page.address(f"/runs/{run.name}") + "\n")
    sys.stdout.flush()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)  # whoever started it may end, and the page goes on
    os.dup2(nowhere, 2)
    os.close(nowhere)
    page.serve(kept_s=KEPT_S, needed=lambda: controller(run) is not None)
