"""Tables as colleagues send them: UTF-16 and Latin-1, decimal commas, separators of thousands."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.inference.tables import judged, only_comparison, rows_of

from fairtrial.errors import InputError
from fairtrial.imports import Numerals
from fairtrial.imports.decoding import decoded

TABLE = "größe;kernel;tpm\nklein;alt;10\nklein;neu;12\nklein;alt;10,5\nklein;neu;12,5\n"
ASKED = {"values": ("tpm",), "arm": "kernel", "by": ("größe",), "baseline": "alt", "numerals": Numerals(",")}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1", "cp1252"])
def test_a_table_is_the_same_in_every_encoding(encoding: str) -> None:
    raw = TABLE.encode(encoding)
    found, same = judged(rows_of(raw), **ASKED), judged(TABLE, **ASKED)
    assert found.cells == same.cells
    assert [cell.levels for cell in found.cells] == [{"größe": "klein"}]
    guessed = [doubt.message for doubt in found.doubts if doubt.code == "guessed_encoding"]
    assert (guessed != []) == (encoding in {"latin-1", "cp1252"})
    if guessed:
        assert guessed == [
            "standard input: not UTF-8; 2 characters beyond ASCII are read as Latin-1 (Windows-1252)",
        ]


def test_big_endian_utf_16_is_known_by_its_mark() -> None:
    assert decoded(b"\xfe\xff" + TABLE.encode("utf-16-be"), "t").text == TABLE


@given(st.text(st.characters(codec="cp1252", exclude_categories=["Cc"]), max_size=30))
def test_a_text_of_windows_comes_back(text: str) -> None:
    raw = text.encode("cp1252")
    assert decoded(raw, "t").text in {text, raw.decode("utf-8", errors="replace")}


@pytest.mark.parametrize(
    ("numerals", "written", "value"),
    [
        (Numerals(), "1234.5", 1234.5),
        (Numerals(","), "1234,5", 1234.5),
        (Numerals(","), "-0,5e3", -500.0),
        (Numerals(","), "7", 7.0),
        (Numerals(","), "1.5", None),
        (Numerals(",", "."), "1.234.567,5", 1234567.5),
        (Numerals(",", "."), "1234,5", 1234.5),
        (Numerals(",", "."), "1.23,5", None),
        (Numerals(",", "."), "12.34", None),
        (Numerals(",", "."), "0.853", None),
        (Numerals(",", "."), "-000.123", None),
        (Numerals(",", "."), "0,853", 0.853),
        (Numerals(",", "."), "0", 0.0),
        (Numerals(",", "."), "100.000", 100000.0),
        (Numerals(thousands=","), "0,853", None),
        (Numerals(",", "."), ",5", 0.5),
        (Numerals(",", "."), ",", None),
        (Numerals(thousands=","), "1,234.5", 1234.5),
        (Numerals(thousands=","), "1,23", None),
        (Numerals(",", " "), "1\u202f234,5", 1234.5),
        (Numerals(",", " "), "1\u00a0234 567,5", 1234567.5),
        (Numerals(thousands="’"), "1’234.5", 1234.5),
        (Numerals(","), "٣", None),
    ],
)
def test_a_number_is_read_as_it_is_said_to_be_written(numerals: Numerals, written: str, value: float | None) -> None:
    assert numerals.floats(pl.Series([written])).to_list() == [value]


def test_numbers_in_a_spelling_that_nobody_named_are_refused_with_the_options() -> None:
    with pytest.raises(
        InputError, match=r"2:5: tpm: expected a number, found '10,5' \(did you mean 10\.5\?\)"
    ) as caught:
        judged("arm;n;tpm\na;1;10,5\nb;1;1\n", values=("tpm",), arm="arm")
    assert "--decimal and --thousands" in caught.value.hint
    with pytest.raises(InputError, match=r"found '10\.5'$"):
        judged("arm;tpm\na;10.5\nb;1\n", values=("tpm",), arm="arm", numerals=Numerals(","))


def test_a_decimal_comma_holds_for_times_as_well() -> None:
    rows = "arm;when;tpm\n" + "".join(f"{'ab'[n % 2]};{n},5;{100 + n}\n" for n in (9, 10, 11, 8))
    found = judged(rows, values=("tpm",), arm="arm", time="when", baseline="a", numerals=Numerals(","))
    assert only_comparison(found, "tpm").n == 2
    (cell,) = found.cells
    assert [arm.values for arm in cell.summaries["tpm"]] == [(103.0 + 5, 110.0), (109.0, 111.0)]
