"""CSV as people write it and Parquet: read alike, and wrong at a line that is named."""

from __future__ import annotations

import contextlib
import io
from datetime import timedelta

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.fuzzing.targets import SEEDS
from support.inference.tables import judged, only_comparison, rows_of

from fairtrial.errors import InputError

TABLE = "kernel,block,tpm\nold,1,10\nnew,1,12\nnew,2,13\nold,2,11\nold,3,10.5\nnew,3,12.5\n"


def problem(text: str | bytes, **asked: object) -> str:
    with pytest.raises(InputError) as caught:
        judged(rows_of(text), **({"values": ("tpm",), "arm": "kernel", "block": "block"} | asked))
    assert caught.value.exit_code == 2
    return str(caught.value)


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_every_usual_separator_gives_the_same(separator: str) -> None:
    asked = {"values": ("tpm",), "arm": "kernel", "baseline": "old", "block": "block"}
    table = TABLE.replace(",", separator)
    assert only_comparison(judged(table, **asked), "tpm") == only_comparison(judged(TABLE, **asked), "tpm")


def test_parquet_gives_what_the_same_csv_gives() -> None:
    asked = {"values": ("tpm",), "arm": "kernel", "baseline": "old", "block": "block"}
    stream = io.BytesIO()
    pl.read_csv(io.StringIO(TABLE)).write_parquet(stream)
    assert judged(rows_of(stream.getvalue()), **asked).cells == judged(TABLE, **asked).cells


@pytest.mark.parametrize("role", ["kernel", "block", "tpm", "run", "at", "used"])
@pytest.mark.parametrize(
    ("cell", "dtype"), [(timedelta(seconds=1), "Duration"), ([1.0], "List(Float64)"), (b"\xff", "Binary")]
)
def test_what_has_no_text_is_refused_with_its_column(role: str, cell: object, dtype: str) -> None:
    stream = io.BytesIO()
    marks = {"valid": "true", "used": "true", "invalid_reason": ""}
    rows = [{**row, "run": 1, "at": 1, **marks, role: cell} for row in pl.read_csv(io.StringIO(TABLE)).to_dicts()]
    pl.DataFrame(rows).write_parquet(stream)
    words = problem(stream.getvalue(), cluster="run", time="at", baseline="old")
    assert f"{role}: expected numbers or text, found {dtype}" in words


def test_a_file_that_ends_its_reader_is_an_error() -> None:
    """A page whose length has another byte: the reader asks for two exabytes, and its process ends."""
    assert "not a complete Parquet file" in problem((SEEDS / "ends-its-reader.parquet").read_bytes())


def test_marks_comments_blanks_and_quotes_do_not_matter() -> None:
    asked = {"values": ("tpm",), "arm": "kernel", "baseline": "old", "block": "block"}
    dressed = "# from the lab\nkernel , block,tpm\n" + TABLE.partition("\n")[2].replace("old", '"old"').replace(
        ",", " , "
    )
    assert (
        judged(rows_of(b"\xef\xbb\xbf" + dressed.replace('"old" ', '"old"').encode()), **asked).cells
        == judged(TABLE, **asked).cells
    )


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("new,4,fast", "standard input:8:7: tpm: expected a number, found 'fast'"),
        ('new,4,"12,5"', "standard input:8:8: tpm: expected a number, found '12,5' (did you mean 12.5?)"),
        (
            'new,4,"1,015"',
            "standard input:8:8: tpm: expected a number, found '1,015' (write 1015, or 1.015 if that is meant)",
        ),
        ('new,4,"1,015.5"', "standard input:8:8: tpm: expected a number, found '1,015.5' (write 1015.5)"),
        ("new,4,50.04%", "standard input:8:7: tpm: expected a number, found '50.04%' (write 50.04 without the sign)"),
        (
            "new,4,inf",
            "standard input:8:7: tpm: expected a measurement, found infinity (write the limit that it reached, or NA)",
        ),
        (
            "new,4,-1e301",
            "standard input:8:7: tpm: expected a measurement, found -1e+301 (write the limit that it reached, or NA)",
        ),
        ("new,03,1", "standard input:8:5: block: block `03` is the same number as block `3`, written differently"),
        ("new,3.0,1", "standard input:8:5: block: block `3.0` is the same number as block `3`, written differently"),
        (",4,1", "standard input:8:1: kernel: expected a value in every row, found an empty cell"),
        ("new,,1", "standard input:8:5: block: expected a value in every row, found an empty cell"),
        ("new,4,1,2", "standard input:8:1: expected 3 cells, as in the header, found 4"),
        ("new,4", "standard input:8:1: expected 3 cells, as in the header, found 2"),
        ("new,3,1", "standard input:8:5: block: expected one row for kernel new, block 3, found another"),
    ],
)
def test_a_bad_cell_is_named_by_file_line_and_column(row: str, message: str) -> None:
    assert problem(TABLE + row + "\n") == message


def test_blocks_that_no_two_arms_share_are_refused() -> None:
    apart = "kernel,block,tpm\nold,1,1\nold,2,1\nnew,3,1\nnew,4,1\n"
    assert problem(apart) == "standard input: block: no block holds `old` and another level of `kernel`"


def test_lines_are_counted_through_comments_and_cells_of_several_lines() -> None:
    text = '# one\nkernel,note,block,tpm\nold,"two\nlines",1,10\n# three\nnew,,1,x\n'
    assert problem(text) == "standard input:6:8: tpm: expected a number, found 'x'"


def test_every_mistake_is_shown_at_once() -> None:
    assert problem(TABLE + "new,4,x\n,4,y\n").count("\n") == 2


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (
            {"values": ("tmp",)},
            "--value: unknown column `tmp`; expected one of `kernel`, `block`, `tpm` (did you mean `tpm`?)",
        ),
        ({"arm": "Kernel"}, "--arm: unknown column `Kernel`"),
        ({"by": ("memory",)}, "--by: unknown column `memory`"),
        ({"block": "Block"}, "(did you mean `block`?)"),
        ({"block": "kernel"}, "column `kernel` is named by more than one option"),
        ({"values": ()}, "--value: no column of values is named; expected one of `kernel`"),
        ({"arm": ""}, "--arm: no column to compare is named; expected one of `kernel`"),
        ({"baseline": "Old"}, "kernel: unknown level `Old`; expected one of `old`, `new` (did you mean `old`?)"),
        ({"better": ("higher", "lower")}, "--better: expected 1 direction, found 2"),
    ],
)
def test_a_wrong_name_is_answered_with_those_there_are(asked: dict[str, object], message: str) -> None:
    assert message in problem(TABLE, **asked)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "standard input: the file is empty"),
        (b" \n\n", "standard input: the file is empty"),
        (b"kernel,block,tpm\n", "standard input: the table has a header but no rows"),
        (b"kernel,block,tpm,tpm\n", "standard input:1:1: two columns have the name `tpm`"),
        (
            b"kernel,block,tpm\nold,1,10\nold,2,9\n",
            "standard input: kernel: expected at least two levels, found only `old`",
        ),
        (
            b"kernel,block,tpm\nold,1,\xff\x00\n",
            "standard input:2:1: neither UTF-8, UTF-16 nor Latin-1 text, nor Parquet",
        ),
        (
            b"kernel,block,tpm\nold,1,\x81\n",
            "standard input:2:1: neither UTF-8, UTF-16 nor Latin-1 text, nor Parquet",
        ),
        (b"\xff\xfeb\x00\x0a\x00\x00", "standard input:2:1: damaged UTF-16 text"),
        (b'{"rows": [1, 2]}', "standard input:1:1: the file looks like JSON of a format that fairtrial does not read"),
        (b"<table/>", "standard input:1:1: the file looks like XML of a format that fairtrial does not read"),
        (b"# only a comment", "standard input: the table is empty"),
        (b"PAR1 and no more", "standard input: not a complete Parquet file"),
    ],
)
def test_what_is_no_table_is_refused(text: bytes, message: str) -> None:
    assert problem(text).startswith(message)


@settings(max_examples=50, deadline=None)
@given(st.binary(max_size=200) | st.text('ab,\n"#;1 ', max_size=60).map(str.encode))
def test_no_bytes_whatever_are_a_bug(content: bytes) -> None:
    with contextlib.suppress(InputError):
        judged(rows_of(content), values=("a",), arm="b")
