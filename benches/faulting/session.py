"""The cheapest run there is, for a fault at every call: a record that is written, taken up again and finished."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from faulting import calls, promises
from faulting.origin import asked
from support.records import planned, tiny_plan, trial_record

from fairtrial import record
from fairtrial.record.events import RunFinished

RUN = "faults-1"
TRIALS = ((1, "a"), (1, "b"), (2, "b"), (2, "a"))


def struck(output: Path, faults: Mapping[str, str]) -> list[str]:
    """What is wrong with a record after a session under faults, once it was taken up again; `output` does not exist."""
    output.mkdir()
    reading, reported = os.pipe()
    session = os.fork()
    if session == 0:
        try:
            _session(output, faults, reported)
        finally:
            os._exit(0)
    os.close(reported)
    os.waitpid(session, 0)
    with os.fdopen(reading) as said:
        names = said.read().splitlines()
    directory = output / "runs" / RUN
    return asked(partial(promises.of_cut, directory, names, all_there=True)) if names else []


def _session(output: Path, faults: Mapping[str, str], reported: int) -> None:
    calls.begin({"FAULT_BELOW": str(output), **faults})
    directory = output / "runs" / RUN
    writer = record.create(directory, plan=tiny_plan(), sources={"study.yaml": "study: tiny\n"})
    for number, (block, arm) in enumerate(TRIALS):
        if number == 1:
            writer.close()
            writer = record.resume(directory)
        trial = planned(block, arm)
        (writer.begin(trial.id) / "raw.txt").write_text("x" * 5000)
        writer.commit(trial_record(trial))
        os.write(reported, f"{trial.id}\n".encode())
    writer.append(RunFinished())
    writer.close()
