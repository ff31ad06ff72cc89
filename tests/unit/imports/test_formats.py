"""What holds for every reader: its files are known by content, and refused where they are cut or foreign."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.inference.tables import rows_of_files

from fairtrial.analyse import analyse_table
from fairtrial.errors import InputError
from fairtrial.imports import READERS, ImportSource, Question, ask, gather
from fairtrial.imports.reader import Reader

DATA = Path(__file__).with_name("data")
TOOLS = [reader for reader in READERS.values() if reader.name != "table"]
OWNERS = {
    **{f"outputs/{path.name}": path.name.split("-")[0] for path in Path(__file__).with_name("outputs").iterdir()},
    "data/hyperfine.json": "hyperfine",
    "data/hyperfine-parameters.json": "hyperfine",
    "data/google-benchmark.json": "google-benchmark",
    "data/go.txt": "go",
    "data/go-verbose.txt": "go",
    "data/criterion-raw.csv": "criterion",
    "data/criterion/sqrt/new/sample.json": "criterion",
    "data/jmh.json": "jmh",
    "data/pytest-benchmark.json": "pytest-benchmark",
    "data/pytest-benchmark-saved.json": "pytest-benchmark",
    "data/pgbench.txt": "pgbench",
    "data/pgbench-scripts.txt": "pgbench",
    "data/hammerdb.txt": "hammerdb",
    "data/wrk.txt": "wrk",
    "data/wrk-latency.txt": "wrk",
    "data/redis-benchmark.csv": "redis-benchmark",
    "data/k6-summary.json": "k6",
    "data/k6-lines.json": "k6",
    "data/phoronix.xml": "phoronix",
}
FILES = {name: DATA.parent / name for name in OWNERS}
ENDS = {name: path.read_bytes() for name, path in FILES.items()}


def source(content: bytes, name: str = "f", path: Path | None = None) -> ImportSource:
    return ImportSource(name, content, label="", number=1, path=path)


def refused(content: bytes, *, format_name: str = "") -> InputError:
    with pytest.raises(InputError) as caught:
        gather([source(content)], format_name=format_name)
    assert caught.value.hint
    return caught.value


def test_every_reader_has_a_file() -> None:
    assert set(OWNERS.values()) == {reader.name for reader in TOOLS}


@pytest.mark.parametrize("name", OWNERS)
def test_a_file_is_known_by_its_content_and_by_one_reader_only(name: str) -> None:
    text = FILES[name].read_text()
    assert [reader.name for reader in TOOLS if reader.recognises(text)] == [OWNERS[name]]


@pytest.mark.parametrize("name", OWNERS)
def test_a_format_that_is_named_reads_what_its_content_says(name: str) -> None:
    rows = rows_of_files(FILES[name])
    assert rows.frame.equals(rows_of_files(FILES[name], format_name=OWNERS[name]).frame)
    assert {"file", "number"} <= set(rows.frame.columns)
    assert rows.value in {*rows.definitions, ""}
    assert all(each.unit or each.source in {"k6", "Google Benchmark"} for each in rows.definitions.values())


@pytest.mark.parametrize("name", OWNERS)
def test_a_file_that_came_through_windows_is_the_same(name: str) -> None:
    windows = ENDS[name].decode().replace("\n", "\r\n").encode("utf-16")
    frames = [gather([source(content, "f", FILES[name])]).frame for content in (windows, ENDS[name])]
    assert frames[0].equals(frames[1])


@pytest.mark.parametrize("reader", TOOLS, ids=lambda reader: reader.name)
def test_a_foreign_file_is_refused_by_its_name_and_what_was_expected(reader: Reader) -> None:
    for name, owner in OWNERS.items():
        if owner != reader.name:
            (problem,) = refused(ENDS[name], format_name=reader.name).problems
            assert problem.file == "f"
            assert problem.line or problem.field or "expected" in problem.message, (name, str(problem))


def test_an_unknown_format_is_refused_with_the_nearest() -> None:
    error = refused(ENDS["data/go.txt"], format_name="hyperfin")
    assert "--format: expected one of `fio`, `hyperfine`" in str(error)
    assert error.problems[0].suggestion == "did you mean `hyperfine`?"


@pytest.mark.parametrize("name", [name for name in OWNERS if name.endswith((".json", ".xml"))])
def test_a_document_is_refused_wherever_it_is_cut(name: str) -> None:
    content = ENDS[name].rstrip()
    lines = name == "data/k6-lines.json"
    for share in range(1, 20):
        at = len(content) * share // 20
        if lines and content[at : at + 1] == b"\n":
            continue
        (problem,) = refused(content[:at], format_name=OWNERS[name]).problems
        assert problem.line, str(problem)


@pytest.mark.parametrize(
    ("name", "last", "message"),
    [
        ("data/wrk.txt", "Transfer/sec", "f:7:1: the output ends without transferred_bytes_per_s"),
        ("data/wrk.txt", "Requests/sec", "f:6:1: the output ends without requests_per_s"),
        ("data/wrk.txt", "    Latency", "f:3:1: the output ends without latency_ms_mean"),
        ("data/pgbench.txt", "transaction type", "f:2:1: expected one run of pgbench, found 0"),
        ("data/pgbench.txt", "tps = ", "f:13:1: the output ends without tps"),
        ("data/pgbench.txt", "number of transactions", "f:9:1: the output ends without transactions"),
        ("outputs/sysbench-oltp.txt", "SQL", "f:11:1: expected one run of sysbench, found 0"),
        ("outputs/sysbench-oltp.txt", "79\n\nLatency", "f:25:1: the output ends without latency_ms_max"),
        ("outputs/sysbench-oltp.txt", "1.22", "f:30:1: the last line does not end, so it may be cut"),
        ("data/hammerdb.txt", "Vuser 1:TEST", "f:26:1: the output ends without a TEST RESULT"),
        ("data/hammerdb.txt", " from 36823", "f:27:1: expected a result in NOPM and TPM, found"),
        ("data/redis-benchmark.csv", ',"0.031","4.6', "f:4:1: expected 8 cells, as in the header, found 6"),
        ("data/redis-benchmark.csv", '7"', "f:4:1: the line is cut: unexpected end of data"),
        ("data/go.txt", " ns/op", "f:16:1: expected pairs of a number and its unit, found '2.090'"),
        ("data/go.txt", "         5.000 letters/op\nPASS", "f:16:1: the last line does not end, so it may be cut"),
        ("data/criterion-raw.csv", ",ns,", "f:11:1: the last line does not end, so it may be cut"),
    ],
)
def test_a_text_is_refused_by_the_line_at_which_it_is_cut(name: str, last: str, message: str) -> None:
    content = ENDS[name].decode()
    for named in ("", OWNERS[name]):
        assert str(refused(content[: content.rindex(last)].encode(), format_name=named)).startswith(message)


CHANGES = [b"NaN", b"-1", b"null", b"{}", b'""', b"9" * 400, b"\xff", b"[" * 3000, b"\x00", b"\n", b"1e999"]


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(sorted(OWNERS)), st.sampled_from(["", *READERS]), st.data())
def test_no_change_of_a_file_is_a_bug(name: str, format_name: str, data: st.DataObject) -> None:
    content = ENDS[name]
    for _ in range(data.draw(st.integers(0, 3))):
        start = data.draw(st.integers(0, len(content)))
        end = data.draw(st.integers(start, min(len(content), start + 40)))
        content = content[:start] + data.draw(st.sampled_from(CHANGES) | st.binary(max_size=4)) + content[end:]
    path = FILES[name]
    with contextlib.suppress(InputError):
        rows = gather([source(content, label, path) for label in "ab"], format_name=format_name)
        arm = rows.arm or data.draw(st.sampled_from(rows.frame.columns))
        value = rows.value or data.draw(st.sampled_from([*rows.definitions, *rows.frame.columns]))
        analyse_table(*ask(rows, Question(values=(value,), arm=arm)))
