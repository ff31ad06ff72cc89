"""Whether the files that a trial's figures come from are what fio itself wrote: its document, read again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np

from fairtrial.metrics import latency
from fairtrial.workloads.fio import output

DOCUMENT: Final = "fio.json"


def contradictions(directory: Path, result: dict[str, Any]) -> list[str]:
    """Where `result.json` or `latency.hlog` is not what `fio.json` gives, a sentence each.

    Raises:
        PlaceError: the document is none.
        OSError: it is not there.
    """
    document = output.document((directory / DOCUMENT).read_text(encoding="utf-8"))
    return [*_figures(document, result), *_bins(document, directory)]


def _figures(document: dict[str, Any], result: dict[str, Any]) -> Iterator[str]:
    for name, given in output.result(document).items():
        stored = result.get(name)
        if isinstance(given, dict) and isinstance(stored, dict):
            stored = {key: stored.get(key) for key in given}  # ours has the kernel's accounting besides
        if stored != given:
            yield f"result.json: {name} is {stored}, but {DOCUMENT} gives {given}"


def _bins(document: dict[str, Any], directory: Path) -> Iterator[str]:
    logged = latency.read(directory)
    for side, counts in output.whole(document).items():
        given = {output.upper_end(index): int(counts[index]) for index in np.flatnonzero(counts).tolist()}
        found = logged.get(side)
        stored = {} if found is None else dict(zip(found.highest_ns.tolist(), found.counts.tolist(), strict=True))
        if stored != given:
            yield f"latency.hlog: {sum(stored.values())} of {side} in other classes than {DOCUMENT} has them"
