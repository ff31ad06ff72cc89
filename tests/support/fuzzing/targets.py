"""The table of targets: every reader of foreign bytes, with real inputs to begin from.

A record, and the files that stand beside each other, are one input: see `mutating.several`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from fairtrial import audit, record, report, study, verify
from fairtrial.analyse import analyse_table
from fairtrial.audit.claims import file as claims_file
from fairtrial.bisect import journal as bisect_journal
from fairtrial.bisect import reading as bisect_reading
from fairtrial.catalogue import catalogue
from fairtrial.farm.orders import Outcome
from fairtrial.history import otava
from fairtrial.history import series as history_series
from fairtrial.imports import ImportSource, Question, ask, gather
from fairtrial.metrics import latency
from fairtrial.places.boot import looking
from fairtrial.places.vm.guest import console_end
from fairtrial.protocol import generated as wire
from fairtrial.record import acknowledgements, consistency, journal
from fairtrial.record import live as live_file
from fairtrial.report.analysing import analysed
from fairtrial.serve.overview import summarising
from fairtrial.tune import journal as tune_journal
from fairtrial.wire.messages import FrameError, Frames, chunk_frame
from fairtrial.workloads.fio import output as fio_output
from fairtrial.workloads.hammerdb import output as hammerdb_output
from fairtrial.workloads.pgbench import output as pgbench_output
from fairtrial.workloads.sysbench import output as sysbench_output
from support.fuzzing.judging import Target, judge
from support.fuzzing.mutating import apart, several

ROOT: Final = Path(__file__).parents[3]
UNIT: Final = ROOT / "tests" / "unit"
STUDIES: Final = ROOT / "src" / "fairtrial" / "studies"
KEPT: Final = ROOT / "tests" / "records"
SEEDS: Final = Path(__file__).parent / "seeds"
ANSWER_S: Final = 8.0  # a table of thousands of rows is read in no time; its arms are exchanged ten thousand times
BUSY: Final = 5  # a processor that is shared is slow, too
FEW: Final = 5  # lines that begin an object: files of k6 are lines of JSON, not a document
CATALOGUE: Final = catalogue()


def contents(*patterns: str, below: Path) -> Callable[[], list[bytes]]:
    """Seeds: files by pattern."""

    def read() -> list[bytes]:
        found = [path.read_bytes() for pattern in patterns for path in sorted(below.glob(pattern)) if path.is_file()]
        assert found, f"no {patterns} below {below}"
        return found

    return read


def filed(name: str, read: Callable[[Path], object]) -> Callable[[bytes, Path], object]:
    """A reader of a path: of the content in a file of this name."""

    def reading(content: bytes, directory: Path) -> object:
        path = directory / name
        path.write_bytes(content)
        return read(path)

    return reading


def _study(path: Path) -> object:
    found = study.load(path, catalogue=CATALOGUE)
    return study.dump(found)


@cache
def _record_seed() -> bytes:
    """The newest kept record, whole, without its report."""
    newest = max(KEPT.glob("[0-9]*"), key=lambda path: int(path.name))
    files = (path for path in sorted(newest.rglob("*")) if path.is_file() and "log" not in path.parts)
    return several({str(path.relative_to(newest)): path.read_bytes() for path in files})


def _damaged_record(content: bytes, directory: Path) -> Path:
    """The kept record with one file exchanged."""
    run = directory / "run"
    for files in (apart(_record_seed()), apart(content)):
        for name, data in files.items():
            path = run / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
    return run


def _report(content: bytes, directory: Path) -> None:
    found = record.read(_damaged_record(content, directory))
    consistency.require_whole(found.plan, found.planned, directory)
    report.write(found, analysed(found), directory / "report", drawn=False)


def _verify(content: bytes, directory: Path) -> object:
    found = record.read(_damaged_record(content, directory))
    consistency.require_whole(found.plan, found.planned, directory)
    return [*record.verify_hashes(found), *verify.recompute(found)]


def _history(content: bytes, directory: Path) -> object:
    return history_series.read([_damaged_record(content, directory)])


def _overview(content: bytes, directory: Path) -> object:
    return summarising.stored_report(_damaged_record(content, directory))


def _table(content: bytes, _directory: Path) -> object:
    """As `fairtrial analyse` reads a file and answers, with the column and the label that any file can have."""
    sources = [ImportSource("input", content, label=label, number=1) for label in ("a", "b")]
    rows = gather(sources)
    value = rows.value or next(iter(rows.definitions), "") or rows.frame.columns[0]
    better = ("lower",) if value in rows.undirected else ()
    return analyse_table(*ask(rows, Question(values=(value,), arm="label", better=better, baseline="a")))


class _Pieces:
    """A transport that gives its bytes in pieces, then ends."""

    def __init__(self, data: bytes) -> None:
        self._left = memoryview(data)

    def read(self) -> bytes:
        piece, self._left = self._left[:5000], self._left[5000:]
        return bytes(piece)

    def write(self, data: bytes) -> None:
        raise AssertionError(data)

    def close(self) -> None:
        """Nothing to close."""

    def said(self) -> str:
        return ""


def _frames(content: bytes, _directory: Path) -> object:
    return sum(1 for _ in Frames(_Pieces(content)))


def _wire_seeds() -> list[bytes]:
    messages = b"".join(
        TypeAdapter(object).dump_json(TypeAdapter(Any).validate_json(path.read_bytes())) + b"\n"
        for path in sorted((ROOT / "tests" / "messages").glob("event-*.json"))
    )
    done = wire.Done(id=9).model_dump_json().encode() + b"\n"
    return [messages + chunk_frame(3, b"x" * 100) + done, done * 3]


def _bisection_seeds() -> list[bytes]:
    return [several({path.name: path.read_bytes() for path in sorted((SEEDS / "bisection").iterdir())})]


def _bisect(content: bytes, directory: Path) -> object:
    for files in (apart(_bisection_seeds()[0]), apart(content)):
        for name, data in files.items():
            (directory / name).write_bytes(data)
    found = bisect_reading.question(directory)
    return bisect_reading.result(found, bisect_journal.events(directory))


def _tune(path: Path) -> object:
    return tune_journal.read(path.parent)


def _log(path: Path) -> object:
    found = latency.read(path.parent)
    seconds = latency.by_second(path.parent, zero_ns=0)
    return latency.compute(path.parent), {name: each.mean_ns for name, each in found.items()}, len(seconds)


def _console(path: Path) -> object:
    return console_end(path).splitlines()


def _boot(content: bytes, _directory: Path) -> object:
    seen = looking.parsed(content.decode(errors="replace"))
    return seen.build_id, seen.grub_family


def _decoded(read: Callable[[str], object]) -> Callable[[bytes, Path], object]:
    """A reader of a program's output, which is text whatever bytes it was."""
    return lambda content, _directory: read(content.decode(errors="replace"))


def _hammerdb(text: str) -> object:
    clock = hammerdb_output.HammerdbClock(0, 0)
    hammerdb_output.timeline(text, clock, interval_s=1)
    return hammerdb_output.result(text, clock)


def _sysbench(text: str) -> object:
    found = sysbench_output.result(text, ended_ns=1 << 40)
    sysbench_output.timeline(text, window=found.window)
    return sysbench_output.latency_log(text, window=found.window)


def _fio(text: str) -> object:
    found = fio_output.document(text)
    fio_output.whole(found)
    return fio_output.failure(found)


def _outcome(content: bytes, _directory: Path) -> object:
    return Outcome.model_validate_json(content)


def _published_seeds() -> list[bytes]:
    folders = sorted(path.parent for path in STUDIES.glob("published/*/data.csv"))
    return [several({path.name: path.read_bytes() for path in sorted(folder.iterdir())}) for folder in folders]


def _claims(content: bytes, directory: Path) -> object:
    whole = next((seed for seed in _published_seeds() if apart(seed).keys() >= apart(content).keys()), content)
    for files in (apart(whole), apart(content)):
        for name, data in files.items():
            (directory / name).write_bytes(data)
    return audit.audit(claims_file.read(directory / "claims.yaml"))


def _live(path: Path) -> object:
    return live_file.read(path.parent)


def _journal(path: Path) -> object:
    return list(journal.lines(path))


def _records() -> Iterator[Target]:
    """What a run leaves, and what stands beside it."""

    def seeds() -> list[bytes]:
        return [_record_seed()]

    yield Target("report", "record", seeds, _report, most_s=3.0)
    yield Target("verify", "record", seeds, _verify, most_s=3.0)
    yield Target("history", "record", seeds, _history)
    yield Target("overview", "record", seeds, _overview)
    yield Target("journal", "lines", contents("*/journal.jsonl", below=KEPT), filed(journal.NAME, _journal))
    yield Target("bisection", "record", _bisection_seeds, _bisect)
    yield Target("tuning", "lines", contents("tune.jsonl", below=SEEDS), filed(tune_journal.NAME, _tune))
    yield Target("spool", "json", contents("outcome.json", below=SEEDS), _outcome, refusals=(ValidationError,))
    yield Target("live", "json", contents("live.json", below=SEEDS), filed(live_file.NAME, _live))
    logs = contents("latency/latency_rust.hlog", below=UNIT / "metrics")
    yield Target("histograms", "histograms", logs, filed(latency.FILE, _log))


def _people() -> Iterator[Target]:
    """What people write and exchange."""
    yield Target("study", "yaml", contents("*.yaml", below=STUDIES), filed("study.yaml", _study))
    yield Target("claims", "record", _published_seeds, _claims)
    known = contents(acknowledgements.NAME, below=SEEDS)
    yield Target("acknowledged", "yaml", known, filed(acknowledgements.NAME, acknowledgements.read))
    yield Target("otava", "text", contents("otava.csv", below=SEEDS), filed("otava.csv", otava.read))


def _tools() -> Iterator[Target]:
    """Outputs of other programs: imported, and of loads that a run starts."""
    data, outputs, workloads = UNIT / "imports" / "data", UNIT / "imports" / "outputs", UNIT / "workloads"
    documents = contents("*.json", below=data)
    yield Target(
        "analyse-json", "json", lambda: [each for each in documents() if each.count(b"\n{") < FEW], _table, ANSWER_S
    )
    texts = contents("*.txt", "*.csv", "*.xml", "k6-lines.json", below=data)
    yield Target("analyse-text", "text", texts, _table, ANSWER_S)
    fio, sysbench = contents("fio-*.json", below=outputs), contents("sysbench-*.txt", below=outputs)
    yield Target("analyse-fio", "json", fio, _table, ANSWER_S)
    yield Target("analyse-sysbench", "text", sysbench, _table, ANSWER_S)
    yield Target("fio", "json", fio, _decoded(_fio))
    hammerdb, printed = (contents(f"{tool}/printed.txt", below=workloads) for tool in ("hammerdb", "sysbench"))
    yield Target("hammerdb", "text", hammerdb, _decoded(_hammerdb))
    yield Target("sysbench", "text", printed, _decoded(_sysbench))
    reports = contents("pgbench/outputs/*.txt", below=workloads)
    yield Target("pgbench", "text", reports, _decoded(pgbench_output.report))


def _places() -> Iterator[Target]:
    """What hosts and guests say."""
    yield Target("wire", "bytes", _wire_seeds, _frames, refusals=(FrameError,))
    yield Target("console", "text", contents("console.txt", below=SEEDS), filed("console", _console))
    yield Target("boot", "text", contents("boot.txt", below=SEEDS), _boot)


TARGETS: Final = {target.name: target for each in (_records, _people, _tools, _places) for target in each()}


def examined(name: str, content: bytes, directory: Path) -> None:
    """Asserts that a reader stands content, in a new directory; `BUSY` times as long as alone, beside other tests."""
    directory.mkdir()
    target = TARGETS[name]
    verdict = judge(target, content, directory)
    busy = verdict.fault == "slow" and verdict.seconds < BUSY * target.most_s
    assert busy or not verdict.fault, f"{verdict.fault}: {verdict.what}"
