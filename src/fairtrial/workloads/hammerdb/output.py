"""HammerDB's output as our own files: its result, the lines of `observing.tcl`, and xtprof's report.

HammerDB reads the server's counters twice and divides by the minutes it was asked for, down to whole numbers; the times
of its two counts are known from the lines that it prints before and after each. Times in the output are of the place's
clock of the day, in microseconds; `HammerdbClock` makes them those of its monotonic clock. Source: HammerDB 4.12's
mysqloltp.tcl, pgoltp.tcl, gentccli.tcl and xtprof-1.0.tm.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from fairtrial.errors import PlaceError
from fairtrial.metrics.drive import ErrorCount, TransactionOutcomes
from fairtrial.protocol import generated as wire
from fairtrial.record.models import Window
from fairtrial.workloads import agreement, made_files
from fairtrial.workloads.tool import COUNT, DECIMAL, OUTPUT, WORDS

TYPE: Final = "transaction"  # HammerDB counts what the server ended, of whatever type
PROCEDURES: Final = {
    "NEWORD": "new_order",
    "PAYMENT": "payment",
    "OSTAT": "order_status",
    "DELIVERY": "delivery",
    "SLEV": "stock_level",
}
STATISTICS: Final = ("AVG", "MAX", "P50", "P95", "P99")
SECONDS_PER_MINUTE: Final = 60
NANOSECONDS_PER_US: Final = 1000
NANOSECONDS_PER_MS: Final = 1e6
_NOTE: Final = re.compile(rf"^fairtrial: {COUNT} ([a-z ]+?)(?: {COUNT})?$", re.MULTILINE)
_RESULT: Final = (
    re.compile(r"TEST RESULT : System achieved (?P<nopm>-?[0-9]{1,18}) NOPM from (?P<tpm>-?[0-9]{1,18}) \S+ TPM"),
    re.compile(r"TEST RESULT : System achieved (?P<tpm>-?[0-9]{1,18}) \S+ TPM at (?P<nopm>-?[0-9]{1,18}) NOPM"),
)
_MINUTES: Final = re.compile(rf"Timing test period of {COUNT} in minutes")
_USER: Final = re.compile(rf"^ ?Vuser +{COUNT}:(.*)$")
# What a user says that is no error.
_USUAL: Final = re.compile(
    r"\s*$|RUNNING|FINISHED|Processing [0-9]+ transactions|Ssl_cipher|Initializing xtprof|SSL|DBVersion"
)
_USER_PART: Final = ">>>>> VIRTUAL USER "
_WHOLE_PART: Final = ">>>>> SUMMARY OF "
_PROCEDURE: Final = re.compile(r">>>>> PROC: ([A-Z]+)\n(CALLS: [^\n]*)\n([^\n]*)\n")
_FIGURE: Final = re.compile(rf"\b([A-Z0-9]{{1,20}}): {DECIMAL}")


@dataclass(frozen=True)
class HammerdbClock:
    """What the place's clock of the day is ahead of its monotonic one, nanoseconds: before HammerDB ran, and after."""

    before_ns: int
    after_ns: int

    @classmethod
    def of(cls, before: wire.Reading, after: wire.Reading) -> HammerdbClock:
        """From looks at both clocks."""
        return cls(before.realtime_ns - before.monotonic_ns, after.realtime_ns - after.monotonic_ns)

    @property
    def moved_ns(self) -> int:
        """By so much the clock of the day was set while HammerDB ran."""
        return abs(self.after_ns - self.before_ns)

    def monotonic_ns(self, time_us: int) -> int:
        """On the monotonic clock."""
        return time_us * NANOSECONDS_PER_US - (self.before_ns + self.after_ns) // 2


class Note(NamedTuple):
    """A line of `observing.tcl`: `counting`, `begun`, `ended`, `counted`, `tpm` with its number, `complete`."""

    time_us: int
    name: str
    number: int | None


class HammerdbResult(made_files.ToolResult):
    """`result.json`.

    Attributes:
        counting_ns: what both counts took; HammerDB's own window is longer than the trial's by at most so much.
    """

    counting_ns: int
    clock: dict[str, int]
    nopm: int
    tpm: int
    minutes: int
    latency_ms: dict[str, dict[str, float]]


def notes(text: str) -> list[Note]:
    """All of them, in their order."""
    return [Note(int(time), name, int(number) if number else None) for time, name, number in _NOTE.findall(text)]


def edges(text: str, clock: HammerdbClock) -> tuple[Window, int]:
    """The measured window: after the first count, before the second; and what both counts took, nanoseconds.

    Raises:
        PlaceError: HammerDB said no such thing.
    """
    times_ns = {note.name: clock.monotonic_ns(note.time_us) for note in notes(text)}
    if missing := [name for name in ("counting", "begun", "ended", "counted") if name not in times_ns]:
        raise PlaceError(f"HammerDB's output lacks the line `{missing[0]}`", hint="see log/load.log")
    window = Window(start_ns=times_ns["begun"], end_ns=times_ns["ended"])
    return window, times_ns["begun"] - times_ns["counting"] + times_ns["counted"] - times_ns["ended"]


def result(text: str, clock: HammerdbClock) -> HammerdbResult:
    """What the output says of the window.

    Raises:
        PlaceError: it has no result, or a profile that is cut.
    """
    match = next((match for each in _RESULT if (match := each.search(text))), None)
    minutes = _MINUTES.search(text)
    if match is None or minutes is None:
        raise PlaceError(f"HammerDB did not print a TEST RESULT: {text[-WORDS:]}", hint="see log/load.log")
    tpm, length_min = int(match["tpm"]), int(minutes[1])
    window, counting_ns = edges(text, clock)
    failures = errors(text)
    return HammerdbResult(
        window=window,
        counting_ns=counting_ns,
        clock={"before_ns": clock.before_ns, "after_ns": clock.after_ns},
        nopm=int(match["nopm"]),
        tpm=tpm,
        minutes=length_min,
        transactions={
            TYPE: TransactionOutcomes(committed=tpm * length_min, rolled_back=0, failed=0, retried=0, statements=0)
        },
        errors=[ErrorCount(kind="transaction", count=len(failures))] if failures else [],
        latency_ms=profile(text),
    )


def errors(text: str) -> list[str]:
    """What users said inside the window that is none of their usual lines; the monitor is user 1."""
    inside, words = False, []
    for line in text.splitlines():
        if note := _NOTE.match(line):
            inside = note[2] == "begun" or (inside and note[2] != "ended")
        elif inside and (said := _USER.match(line)) and int(said[1]) > 1 and not _USUAL.match(said[2]):
            words.append(said[2].strip())
    return words


def profile(text: str) -> dict[str, dict[str, float]]:
    """The report of xtprof over all users, by type, milliseconds; empty if it was not asked for.

    `calls` adds up the users' own: in the summary of HammerDB 4.12 each call is there twice, which moves no percentile.
    """
    users, mark, whole = text.partition(_WHOLE_PART)
    if not mark:
        return {}
    calls: dict[str, float] = {}
    for name, figures in _profiled(users.partition(_USER_PART)[2]):
        calls[name] = calls.get(name, 0) + figures["CALLS"]
    return {
        name: {"calls": calls.get(name, 0), **{each.lower(): figures[each] for each in STATISTICS}}
        for name, figures in _profiled(whole)
    }


def _profiled(text: str) -> Iterator[tuple[str, dict[str, float]]]:
    for name, *lines in _PROCEDURE.findall(text):
        if name in PROCEDURES:
            figures = {key: float(value) for key, value in _FIGURE.findall("\t".join(lines))}
            if missing := [key for key in ("CALLS", *STATISTICS) if key not in figures]:
                raise PlaceError(f"HammerDB's profile of {name} lacks {missing[0]}", hint="see log/load.log")
            yield PROCEDURES[name], figures


def timeline(text: str, clock: HammerdbClock, *, interval_s: int) -> bytes:
    """`timeline.parquet`: what HammerDB's counter saw the server end in each interval.

    Intervals that lie in the window only in part are not measured ones: their counts are of both sides.
    """
    window, _counting_ns = edges(text, clock)
    counted = [(clock.monotonic_ns(each.time_us), each.number or 0) for each in notes(text) if each.name == "tpm"]
    rows = [
        (start_ns, window.start_ns <= start_ns and end_ns <= window.end_ns, tpm // (SECONDS_PER_MINUTE // interval_s))
        for (start_ns, _before), (end_ns, tpm) in itertools.pairwise(counted)
        if start_ns < window.end_ns
    ]
    counts = {TYPE: {"committed": [row[2] for row in rows]}}
    return made_files.timeline([row[0] for row in rows], counts, measured=[row[1] for row in rows])


def contradictions(directory: Path, *, interval_s: int) -> list[str]:
    """Where `result.json` or `timeline.parquet` is not what the output gives, a sentence each.

    How far the place's two clocks were apart is in `result.json` alone.
    """
    text = (directory / OUTPUT).read_text(encoding="utf-8")
    stored = agreement.stored(directory)
    clock = HammerdbClock(**stored["clock"])
    counted = timeline(text, clock, interval_s=interval_s)
    expected = agreement.ExpectedFiles(OUTPUT, result(text, clock).figures(), timeline=counted)
    return list(expected.contradictions(directory, stored))
