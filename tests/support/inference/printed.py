"""Files of a trial as they are made from what fio, HammerDB and sysbench printed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from fairtrial.record.models import Window
from fairtrial.workloads.fio import output as of_fio
from fairtrial.workloads.fio.document import Document
from fairtrial.workloads.hammerdb import output as of_hammerdb
from fairtrial.workloads.hammerdb.output import HammerdbClock
from fairtrial.workloads.sysbench import output as of_sysbench

WORKLOADS: Final = Path(__file__).parents[2] / "unit" / "workloads"
HAMMERDB: Final = (WORKLOADS / "hammerdb" / "printed.txt").read_text(encoding="utf-8")
SYSBENCH: Final = (WORKLOADS / "sysbench" / "printed.txt").read_text(encoding="utf-8")
CLOCK: Final = HammerdbClock(before_ns=1_795_000_000_000_000_000, after_ns=1_795_000_000_000_000_000)


def hammerdb(directory: Path) -> None:
    """Of a drive with intervals of a second."""
    _printed(directory, HAMMERDB)
    _result(directory, {**of_hammerdb.result(HAMMERDB, CLOCK).figures(), "client": {}, "effective": {}})
    (directory / "timeline.parquet").write_bytes(of_hammerdb.timeline(HAMMERDB, CLOCK, interval_s=1))


def sysbench(directory: Path) -> None:
    """Of a drive whose output says when its window began."""
    result = of_sysbench.result(SYSBENCH, ended_ns=0)
    _printed(directory, SYSBENCH)
    _result(directory, {**result.figures(), "client": {}})
    (directory / "latency.hlog").write_text(of_sysbench.latency_log(SYSBENCH, window=result.window), encoding="utf-8")
    (directory / "timeline.parquet").write_bytes(of_sysbench.timeline(SYSBENCH, window=result.window))


def fio(directory: Path) -> None:
    """Of seven reads."""
    printed = {"jobs": [_job({"996": 5, "5024": 2})]}
    document = Document.model_validate(printed)
    (directory / "fio.json").write_text("a note before\n" + json.dumps(printed), encoding="utf-8")
    life = Window(start_ns=0, end_ns=10**9)
    found = of_fio.intervals([], of_fio.whole(document), width_ms=100, life=life)
    (directory / "latency.hlog").write_text(of_fio.latency_log(found), encoding="utf-8")
    (directory / "timeline.parquet").write_bytes(of_fio.timeline(found))
    own = of_fio.result(document, life=life).figures()
    own["client"] |= {"cpu_s": 3.0}
    _result(directory, own)


def falsify(write: Callable[[Path], None], directory: Path, figure: str) -> None:
    """Writes such files, and 1 for a figure of `result.json`."""
    write(directory)
    _result(directory, {**json.loads((directory / "result.json").read_bytes()), figure: 1})


def _job(bins: dict[str, int]) -> dict[str, Any]:
    """As much of a job as is read."""
    count = sum(bins.values())
    side = {
        "total_ios": count,
        "io_bytes": 4096 * count,
        "iops": 10.0 * count,
        "bw": 40.0 * count,
        "clat_ns": {"N": count, "mean": 1000.0, "min": 900, "max": 5000, "bins": bins},
    }
    none = {**dict.fromkeys(side, 0), "clat_ns": {"N": 0, "mean": 0.0, "min": 0, "max": 0}}
    spent = {"usr_cpu": 10.0, "sys_cpu": 20.0, "job_runtime": 1000, "total_err": 0}
    return {"jobname": "job", "read": side, "write": none, **spent}


def _printed(directory: Path, text: str) -> None:
    (directory / "log").mkdir(exist_ok=True)
    (directory / "log" / "load.log").write_text(text, encoding="utf-8")


def _result(directory: Path, content: dict[str, Any]) -> None:
    (directory / "result.json").write_text(json.dumps(content), encoding="utf-8")
