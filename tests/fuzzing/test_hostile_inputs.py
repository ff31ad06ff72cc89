"""Inputs that somebody with a reader's source before him would write: small, and each once took minutes or all memory.

What a fuzzer found is in `corpus`; these are too regular for it, or too long to keep as files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from support.fuzzing.mutating import apart, several
from support.fuzzing.targets import TARGETS, examined

MANY = 200_000


def seed(target: str, mark: bytes) -> bytes:
    """The real input that has a text in it."""
    return next(each for each in TARGETS[target].seeds() if mark in each)


def beside(change: Callable[[dict[str, bytes]], None]) -> bytes:
    """The claims of a publication with R's output, with some files exchanged."""
    files = dict(apart(seed("claims", b"r_output.csv")))
    change(files)
    return several(files)


def nested_results() -> bytes:
    results = b"<Result>" * 20_000 + b"<Data><Entry/></Data>" + b"</Result>" * 20_000
    return b"<?xml version='1.0'?><PhoronixTestSuite>" + results + b"</PhoronixTestSuite>"


def a_counter_of_its_own_for_each_row() -> bytes:
    row = {"name": "a", "run_type": "iteration", "real_time": 1.0, "cpu_time": 1.0, "time_unit": "ns"}
    rows = [{**row, f"counter{number}": 1.0} for number in range(5000)]
    return json.dumps({"context": {}, "benchmarks": rows}).encode()


def many_factors(files: dict[str, bytes]) -> None:
    names = [f"f{number}" for number in range(30)]
    files["data.csv"] = f"{','.join(names)},m\n{','.join('a' * 30)},1\n{','.join('b' * 30)},2\n".encode()
    factors = {name: ["a", "b"] for name in names}
    claim = {"where": "T", "metric": "m", "contrast": "f0", "rest": "not significant"}
    document = {"data": "data.csv", "factors": factors, "metrics": {"m": {}}, "claims": [claim]}
    files["claims.yaml"] = json.dumps(document).encode()


def a_field_of_a_megabyte(files: dict[str, bytes]) -> None:
    files["data.csv"] += b'"' + b"x" * 1_000_000 + b'"\n'


def no_levels(files: dict[str, bytes]) -> None:
    files["r_output.csv"] = files["r_output.csv"].replace(b"=", b"")


def another_metric(files: dict[str, bytes]) -> None:
    header, row, _ = files["r_output.csv"].split(b"\n", 2)
    files["r_output.csv"] = header + b"\nnothing" + row[row.index(b",") :] + b"\n"


def a_width_in_a_label(files: dict[str, bytes]) -> None:
    files["publication.yaml"] = files["publication.yaml"].replace(b"{", b"{x:9999999999}{", 1)


def a_count_that_no_float_holds(end: str) -> bytes:
    """In a file of the kept record."""
    files = apart(seed("verify", b""))
    name = next(name for name in sorted(files) if name.endswith(end))
    return several({name: re.sub(rb"(:\s*)[0-9.]+(?=[\s,}])", rb"\g<1>1" + b"0" * 400, files[name])})


INPUTS: dict[str, tuple[str, Callable[[], bytes]]] = {
    "blank lines in sysbench": ("analyse-sysbench", lambda: TARGETS["analyse-sysbench"].seeds()[0] + b"\n" * MANY),
    "digits in pgbench": (
        "analyse-text",
        lambda: seed("analyse-text", b"transaction type: ") + b"\ntps = " + b"1" * MANY + b"\n",
    ),
    "digits in HammerDB": ("analyse-text", lambda: b"HammerDB\n" + b"1" * MANY),
    "results without end in HammerDB": (
        "analyse-text",
        lambda: b"TEST RESULT : System achieved 1 NOPM from 1 x" * (MANY // 40),
    ),
    "errors of wrk that no integer holds": (
        "analyse-text",
        lambda: (
            seed("analyse-text", b"Requests/sec")
            + b"  Socket errors: connect %s, read 0, write 0, timeout 0\n" % (b"9" * 5000)
        ),
    ),
    "results in each other": ("analyse-text", nested_results),
    "columns": ("analyse-text", lambda: b",".join(b"c%d" % number for number in range(100_000)) + b"\n"),
    "a counter of its own for each row": ("analyse-json", a_counter_of_its_own_for_each_row),
    "fewer than no latencies": (
        "analyse-fio",
        lambda: seed("analyse-fio", b'"bins"').replace(b'" : 1,', b'" : -1,').replace(b'": 1,', b'": -1,'),
    ),
    "factors": ("claims", lambda: beside(many_factors)),
    "a field of a megabyte": ("claims", lambda: beside(a_field_of_a_megabyte)),
    "R's output without levels": ("claims", lambda: beside(no_levels)),
    "R's output of another metric": ("claims", lambda: beside(another_metric)),
    "a width in a label": ("claims", lambda: beside(a_width_in_a_label)),
    "branches": (
        "otava",
        lambda: b"time,branch,x\n" + b"".join(b"%d,b%d,1\n" % (number, number) for number in range(10_000)),
    ),
    "a field of a megabyte in a history": ("otava", lambda: b'time,x\n1,"' + b"1" * 1_000_000 + b'"\n'),
    "a time before all years": ("otava", lambda: b"time,x\n0001-01-01T00:00:00+23:59,1\n"),
    "a time that is no number": ("otava", lambda: b"time,x\nnan,1\n"),
    "notes of a kernel": ("boot", lambda: b"notes 04000\nnotes zz\n"),
    "counts of a drive": ("verify", lambda: a_count_that_no_float_holds("result.json")),
    "sums of counters": ("verify", lambda: a_count_that_no_float_holds("telemetry-summary.json")),
    "a chunk without end": ("wire", lambda: b'{"id":1,"chunk":1099511627776}\n' + b"x" * MANY),
    "a console of megabytes": ("console", lambda: b"x\n" * 20 * MANY),
}


@pytest.mark.parametrize("name", INPUTS)
def test_it_ends_soon_and_says_what_is_wrong(name: str, tmp_path: Path) -> None:
    target, content = INPUTS[name]
    examined(target, content(), tmp_path / "files")
