"""The cheapest run there is, for a fault at every call: a record that is written, taken up again and finished."""

from __future__ import annotations

import os
import signal
import traceback
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from faulting import calls, promises
from faulting.origin import asked
from support.records import planned, tiny_plan, trial_record

from fairtrial import record
from fairtrial.errors import FairtrialError
from fairtrial.record.events import RunFinished

RUN = "faults-1"
KILLED_EXIT = -signal.SIGKILL
TRIALS = ((1, "a"), (1, "b"), (2, "b"), (2, "a"))
WHOLE, FAILED, BROKEN = 0, 3, 4  # how a session ends: with every trial reported, by an error of a call, by a bug


def struck(output: Path, faults: Mapping[str, str]) -> list[str]:
    """What is wrong with a session under faults, and with its record once it was taken up again.

    Args:
        output: does not exist.
        faults: environment; without a call to strike, every trial must be reported.
    """
    output.mkdir()
    reading, reported = os.pipe()
    session = os.fork()
    if session == 0:
        ended = BROKEN
        try:
            _session(output, faults, reported)
            ended = WHOLE
        except (OSError, FairtrialError):
            ended = FAILED
        except BaseException:  # noqa: BLE001 - told by the exit code
            traceback.print_exc()
        finally:
            os._exit(ended)
    os.close(reported)
    code = os.waitstatus_to_exitcode(os.waitpid(session, 0)[1])
    with os.fdopen(reading) as said:
        names = said.read().splitlines()
    allowed = {WHOLE, FAILED, KILLED_EXIT} if "FAULT_CALL" in faults else {WHOLE}
    wrong = [] if code in allowed else [f"the session ended with {code}"]
    wrong += [f"{len(names)} trials reported"] if code == WHOLE and len(names) != len(TRIALS) else []
    return wrong + asked(partial(promises.of_cut, output / "runs" / RUN, names, all_there=True))


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
