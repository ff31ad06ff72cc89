"""Several clients of one drive as one: their files merged into the trial's, and each client's own scalars.

Every client began at one agreed instant of its own clock, so that what has the same number in their files belongs to
the same time: intervals are added up by number, and told in the first client's clock.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import polars as pl

from fairtrial.errors import RecordError
from fairtrial.metrics import drive, latency
from fairtrial.metrics.latency import percentiles
from fairtrial.metrics.series import timeline

DIRECTORY: Final = "clients"  # of a trial; below it each client has a directory by its number, from 1
LATENESS: Final = "lateness.hlog"
CONSTANTS: Final = "nurand_c_"  # how names of `drawn` begin that are not counts: all clients have the same
LARGEST: Final = "max_resident_bytes"  # of the client's usage: the only figure of it that does not add up
HINT: Final = "restore the trial from a copy, or run it again"


def directories(directory: Path) -> list[Path]:
    """The clients' own directories in a trial, in the order of their numbers; empty if one client drove."""
    found = (directory / DIRECTORY).glob("*") if (directory / DIRECTORY).is_dir() else ()
    return sorted(found, key=lambda each: int(each.name) if each.name.isdecimal() else 0)


def merge(directory: Path) -> None:
    """Writes the files that one client would have written; nothing where one did.

    Raises:
        RecordError: the clients' files do not fit each other.
    """
    for name, content in merged(directory).items():
        (directory / name).write_bytes(content)


def contradictions(directory: Path) -> list[str]:
    """Where a trial's files are not what its clients' files give, a sentence each; empty where one client drove.

    Raises:
        RecordError: the clients' files do not fit each other.
    """
    return [
        f"{name}: differs from the sum of the clients' files"
        for name, content in merged(directory).items()
        if not _same(directory / name, content)
    ]


def merged(directory: Path) -> dict[str, bytes]:
    """The files of all clients together, by name.

    Raises:
        RecordError: they do not fit each other.
    """
    clients = directories(directory)
    if not clients:
        return {}
    results = [_result(each) for each in clients]
    rows = _timeline(clients, results)
    content = io.BytesIO()
    rows.write_parquet(content)
    files = {drive.FILE: _written(_together(results, rows)), timeline.FILE: content.getvalue()}
    for name in (latency.FILE, LATENESS):
        if (clients[0] / name).exists():
            files[name] = _log(clients, name)
    return files


def scalars(directory: Path) -> dict[str, float]:
    """Each client's own scalars, by `client_<number>_<name>`; empty where one client drove.

    Raises:
        RecordError: a client's file is damaged.
    """
    values: dict[str, float] = {}
    for number, client in enumerate(directories(directory), start=1):
        result = drive.read(client)
        own = {
            "busy_share": max((loop.busy_share for loop in result.loops), default=0.0),
            "longest_turn_s": max((loop.longest_turn_s for loop in result.loops), default=0.0),
        }
        own |= latency.scalars(latency.merged(latency.read(client).values()))
        late = latency.merged(latency.read(client, file=LATENESS).values())
        if late.n:
            own |= {f"lateness_ns_{name}": late.percentile_ns(share) for name, share in percentiles.PERCENTILES.items()}
        values |= {f"client_{number}_{name}": value for name, value in own.items()}
    return values


def _result(client: Path) -> dict[str, Any]:
    drive.read(client)  # says what is wrong with it
    values: dict[str, Any] = json.loads((client / drive.FILE).read_bytes())
    return values


def _timeline(clients: Sequence[Path], results: Sequence[dict[str, Any]]) -> pl.DataFrame:
    """Counts of all clients by interval."""
    frames = [timeline.read(client) for client in clients]
    first, zero_ns = frames[0], results[0]["window"]["start_ns"]
    at = first.select(pl.col("time_ns") - zero_ns, "measured")
    counts = [name for name in first.columns if name not in ("time_ns", "measured")]
    sums = first.select(counts)
    for client, frame, result in zip(clients[1:], frames[1:], results[1:], strict=True):
        own_ns = result["window"]["start_ns"]
        if result["window"]["end_ns"] - own_ns != results[0]["window"]["end_ns"] - zero_ns:
            raise _unfit(client, drive.FILE, "a longer or shorter window")
        if frame.columns != first.columns or not frame.select(pl.col("time_ns") - own_ns, "measured").equals(at):
            raise _unfit(client, timeline.FILE, "other intervals")
        sums = sums.select(pl.col(name) + frame[name] for name in counts)
    return first.select("time_ns", "measured").hstack(sums)


def _together(results: Sequence[dict[str, Any]], rows: pl.DataFrame) -> dict[str, Any]:
    """`result.json` of all clients: sums, but for what is no count."""
    first = results[0]
    together = {
        **first,
        "transactions": _summed([result["transactions"] for result in results]),
        "errors": list(_errors(results)),
        "drawn": {
            name: first["drawn"][name] if name.startswith(CONSTANTS) else sum(_each(results, "drawn", name))
            for name in dict.fromkeys(name for result in results for name in result["drawn"])
        },
        "client": {name: (max if name == LARGEST else sum)(_each(results, "client", name)) for name in first["client"]},
        "loops": [loop for result in results for loop in result.get("loops", [])],
    }
    if first.get("arrivals") is not None:
        arrivals = _summed([{"arrivals": result["arrivals"]} for result in results])["arrivals"]
        longest = rows.filter("measured")["waiting"].max()
        together["arrivals"] = arrivals | {"waiting_most": 0 if longest is None else longest}
    return together


def _each(results: Sequence[dict[str, Any]], part: str, name: str) -> Iterator[float]:
    return (result[part].get(name, 0) for result in results)


def _summed(counts: Sequence[dict[str, dict[str, int | None]]]) -> dict[str, dict[str, int | None]]:
    """Counts added up, name by name; one that nobody has stays away."""
    return {
        kind: {
            name: None if value is None else sum(each[kind][name] or 0 for each in counts)
            for name, value in counts[0][kind].items()
        }
        for kind in counts[0]
    }


def _errors(results: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """One entry per type of transaction and code, with the message of whoever met it first."""
    every = [error for result in results for error in result["errors"]]
    for key in dict.fromkeys((error["transaction"], error["code"]) for error in every):
        alike = [error for error in every if (error["transaction"], error["code"]) == key]
        yield {**alike[0], "count": sum(error["count"] for error in alike)}


def _log(clients: Sequence[Path], name: str) -> bytes:
    """The lines of all clients' logs by interval, each with the first client's time: their starts are one instant."""
    parts = [_lines(client / name) for client in clients]
    header, first = parts[0]
    text = [*header]
    for client, (_, lines) in zip(clients, parts, strict=True):
        if [line[0] for line in lines] != [line[0] for line in first]:
            raise _unfit(client, name, "other intervals or types")
    for number, (tag, times, _) in enumerate(first):
        text += [f"{tag}{times},{lines[number][2]}" for _, lines in parts]
    return ("\n".join(text) + "\n").encode()


def _lines(path: Path) -> tuple[list[str], list[tuple[str, str, str]]]:
    """The header, and each line as its tag, its start and length, and the rest: largest value and histogram."""
    header: list[str] = []
    lines: list[tuple[str, str, str]] = []
    try:
        for line in path.read_text(encoding="utf-8").splitlines():
            if not line or line.startswith(("#", '"')):
                header.append(line)
                continue
            tag, comma, rest = line.partition(",") if line.startswith("Tag=") else ("", "", line)
            start, length, largest = rest.split(",", 2)
            lines.append((tag + comma, f"{start},{length}", largest))
    except (OSError, ValueError) as error:
        raise RecordError(f"{path} cannot be read: {error}", hint=HINT) from error
    return header, lines


def _unfit(client: Path, name: str, what: str) -> RecordError:
    return RecordError(f"client {client.name} has {what} in {name} than client 1", hint=HINT)


def _written(document: dict[str, Any]) -> bytes:
    return json.dumps(document, indent=2).encode() + b"\n"


def _same(path: Path, content: bytes) -> bool:
    if path.suffix != ".parquet":
        return path.exists() and path.read_bytes() == content
    return timeline.read(path.parent).equals(pl.read_parquet(io.BytesIO(content)))
