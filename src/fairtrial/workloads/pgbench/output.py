"""What pgbench prints at its end: its own counts, means and rates, to be held against the transactions it logged.

Source: pgbench.c of 15, `printResults`.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from fairtrial.errors import PlaceError
from fairtrial.workloads.tool import COUNT, DECIMAL, WORDS

ROUNDED_MS: Final = 0.0005  # half of the last digit that pgbench prints
MICROSECONDS_PER_S: Final = 1e6
_SECTION: Final = re.compile(r"^SQL script [0-9]+: ", re.MULTILINE)


class Moments(NamedTuple):
    """Mean and standard deviation (of the whole population), milliseconds of three decimals."""

    mean_ms: float
    deviation_ms: float


class Lag(NamedTuple):
    """How late transactions began, milliseconds of three decimals."""

    mean_ms: float
    max_ms: float


class PgbenchCounts(NamedTuple):
    """Transactions of a script, or of all.

    Attributes:
        processed: that ended well.
        retries: attempts after a first one, of all transactions.
        latency: None of less than one transaction.
    """

    processed: int
    serialization: int = 0
    deadlock: int = 0
    retries: int = 0
    skipped: int = 0
    latency: Moments | None = None


class PgbenchReport(NamedTuple):
    """The whole report.

    Attributes:
        late: above the latency limit.
        connecting_ms: until all clients were connected; 0 where each transaction connects anew.
        scripts: what is told of each, if there are several; threads add to it without a lock, and may lose some.
        threads: that ran.
    """

    whole: PgbenchCounts
    late: int
    lag: Lag | None
    connecting_ms: float
    tps: float
    scripts: list[PgbenchCounts]
    threads: int

    @property
    def whole_us(self) -> int:
        """Pgbench's own time, from the last connection to the last transaction: what `tps` was divided by."""
        return round(self.whole.processed / self.tps * MICROSECONDS_PER_S) if self.tps else 0


def report(text: str) -> PgbenchReport:
    """The report in an output.

    Raises:
        PlaceError: it is not there.
    """
    head, *sections = _SECTION.split(text)
    match = re.search(rf"^tps = {DECIMAL} \(", head, re.MULTILINE)
    whole = _counted(head, prefix="", processed=rf"number of transactions actually processed: {COUNT}")
    if match is None or whole is None:
        raise PlaceError(f"pgbench did not print a report: {text[-WORDS:]}", hint="see log/load.log")
    scripts = [_counted(section, prefix=" - ", processed=rf"{COUNT} transactions \(") for section in sections]
    lag = re.search(rf"^rate limit schedule lag: avg {DECIMAL} \(max {DECIMAL}\) ms$", head, re.MULTILINE)
    return PgbenchReport(
        whole=whole,
        late=int(_number(head, rf"number of transactions above the .{{1,40}} latency limit: {COUNT}/")),
        lag=Lag(mean_ms=float(lag[1]), max_ms=float(lag[2])) if lag else None,
        connecting_ms=float(_number(head, rf"initial connection time = {DECIMAL} ms")),
        tps=float(match[1]),
        scripts=[each for each in scripts if each is not None],
        threads=int(_number(head, rf"number of threads: {COUNT}$")),
    )


def _counted(text: str, *, prefix: str, processed: str) -> PgbenchCounts | None:
    """None where not even the number of transactions is."""
    # From 18 on a script's first number is of all its transactions, and a line of its own tells the processed.
    own = re.search(rf"^{prefix}number of transactions actually processed: {COUNT}", text, re.MULTILINE)
    first = own or re.search(rf"^{prefix}{processed}", text, re.MULTILINE)
    if first is None:
        return None
    mean = re.search(rf"^{prefix}latency average = {DECIMAL} ms", text, re.MULTILINE)
    deviation = re.search(rf"^{prefix}latency stddev = {DECIMAL} ms$", text, re.MULTILINE)
    return PgbenchCounts(
        processed=int(first[1]),
        serialization=int(_number(text, rf"{prefix}number of serialization failures: {COUNT} ")),
        deadlock=int(_number(text, rf"{prefix}number of deadlock failures: {COUNT} ")),
        retries=int(_number(text, rf"{prefix}total number of retries: {COUNT}$")),
        skipped=int(_number(text, rf"{prefix}number of transactions skipped: {COUNT} ")),
        latency=Moments(mean_ms=float(mean[1]), deviation_ms=float(deviation[1])) if mean and deviation else None,
    )


def _number(text: str, expression: str) -> str:
    """0 where nothing is said."""
    match = re.search(f"^{expression}", text, re.MULTILINE)
    return match[1] if match else "0"
