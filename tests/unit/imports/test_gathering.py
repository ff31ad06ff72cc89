"""Files of one kind become rows, whatever they are called; sysbench's figures become columns."""

from __future__ import annotations

import io
from datetime import timedelta

import polars as pl
import pytest

from fairtrial.errors import InputError
from fairtrial.imports import ImportSource, gather
from fairtrial.imports.outputs import sysbench

TABLE = b"kernel,tpm\nold,10\nnew,12\n"
SYSBENCH = """\
sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)

SQL statistics:
    queries performed:
        read:                            14000
    transactions:                        1000   (99.50 per sec.)
    queries:                             20000  (1990.00 per sec.)
    ignored errors:                      3      (0.30 per sec.)
    reconnects:                          0      (0.00 per sec.)

General statistics:
    total time:                          10.0500s
    total number of events:              1000

Latency (ms):
         min:                                    1.23
         avg:                                   10.05
         max:                                   99.90
         95th percentile:                       20.50
         sum:                                10050.00
"""


def source(content: bytes | str, name: str = "f", *, label: str = "", number: int = 1, **fields: str) -> ImportSource:
    raw = content if isinstance(content, bytes) else content.encode()
    return ImportSource(name=name, content=raw, label=label, number=number, fields=tuple(fields.items()))


def parquet(**columns: list[object]) -> bytes:
    stream = io.BytesIO()
    pl.DataFrame(columns).write_parquet(stream)
    return stream.getvalue()


def refused(*sources: ImportSource) -> str:
    with pytest.raises(InputError) as caught:
        gather(sources)
    return str(caught.value)


def test_tables_stand_one_below_the_other_in_the_order_given() -> None:
    rows = gather([source(TABLE, "a"), source(b"kernel,tpm\nnewer,13\n", "b")])
    assert rows.frame["kernel"].to_list() == ["old", "new", "newer"]
    assert rows.name == "a and 1 more"


def test_a_column_that_a_file_lacks_is_empty_there() -> None:
    rows = gather([source(TABLE, "a"), source(b"kernel\nnewer\n", "b")])
    assert rows.frame["tpm"].to_list() == ["10", "12", None]


def test_a_table_as_csv_and_one_as_parquet_are_of_one_kind() -> None:
    rows = gather([source(TABLE, "a"), source(parquet(kernel=["newer"], tpm=[13.0]), "b")])
    assert rows.frame.height == 3
    assert float(rows.frame["tpm"][-1]) == 13


def test_a_label_is_a_column_and_the_arm_unless_another_is_named() -> None:
    rows = gather([source(TABLE, "a", label="base"), source(TABLE, "b", label="new")])
    assert rows.arm == "label"
    assert rows.frame["label"].to_list() == ["base", "base", "new", "new"]
    assert gather([source(TABLE, "a")]).arm == ""


def test_fields_of_names_are_columns() -> None:
    rows = gather([source(TABLE, "a", memory="low", block="3")])
    assert rows.frame.select("memory", "block").unique().rows() == [("low", "3")]


@pytest.mark.parametrize(("added", "column"), [({"label": "x"}, "label"), ({"kernel": "x"}, "kernel")])
def test_what_is_added_does_not_hide_a_column_of_the_table(added: dict[str, str], column: str) -> None:
    table = b"kernel,label,tpm\nold,l,1\n"
    given = source(table, "a", **added) if column != "label" else source(table, "a", label="x")
    assert f"the table already has a column `{column}`" in refused(given)


def test_kinds_are_told_by_content_not_by_name() -> None:
    rows = gather([source(SYSBENCH, "run.csv")])
    assert rows.value == "events_per_s"
    assert "tpm" in gather([source(TABLE, "sysbench.log")]).frame.columns


def test_kinds_are_not_mixed_and_both_are_named() -> None:
    said = refused(source(TABLE, "a.csv"), source(SYSBENCH, "b.txt"))
    assert "a.csv (table)" in said
    assert "b.txt (sysbench)" in said


def test_an_empty_file_among_others_is_named() -> None:
    assert refused(source(TABLE, "a.csv"), source(b" \n", "b.csv")).startswith("b.csv: the file is empty")


def test_outputs_carry_their_file_and_their_number() -> None:
    rows = gather([source(SYSBENCH, f"{n}.txt", label="base", number=n) for n in (1, 2)])
    assert rows.frame.select("label", "file", "number").rows() == [("base", "1.txt", 1), ("base", "2.txt", 2)]


def test_every_figure_that_sysbench_prints_is_read() -> None:
    (row,) = sysbench.read(source(SYSBENCH)).frame.to_dicts()
    assert row == {
        "transactions_per_s": 99.5,
        "queries_per_s": 1990.0,
        "ignored_errors_per_s": 0.3,
        "reconnects_per_s": 0.0,
        "events": 1000.0,
        "total_time_s": 10.05,
        "latency_ms_min": 1.23,
        "latency_ms_mean": 10.05,
        "latency_ms_max": 99.9,
        "latency_ms_p95": 20.5,
        "events_per_s": pytest.approx(1000 / 10.05),
    }


def test_every_figure_has_a_definition_with_unit_and_direction() -> None:
    rows = gather([source(SYSBENCH)])
    assert set(rows.definitions) == set(sysbench.read(source(SYSBENCH)).frame.columns)
    better = {name: each.better for name, each in rows.definitions.items()}
    assert better["events_per_s"] == better["queries_per_s"] == "higher"
    assert better["latency_ms_p95"] == better["total_time_s"] == better["ignored_errors_per_s"] == "lower"
    assert rows.definitions["latency_ms_p95"].unit == "ms"
    assert rows.definitions["events_per_s"].unit == "events/s"


@pytest.mark.parametrize("percentile", ["50th", "99th", "95"])
def test_the_percentile_that_was_asked_for_names_its_column(percentile: str) -> None:
    text = SYSBENCH.replace("95th percentile", f"{percentile} percentile")
    assert f"latency_ms_p{percentile.removesuffix('th')}" in sysbench.read(source(text)).frame.columns


def test_intervals_printed_on_the_way_are_not_taken_for_the_result() -> None:
    intervals = "[ 1s ] thds: 8 tps: 5.00 qps: 100.00 lat (ms,95%): 900.00 err/s: 0.00\n"
    text = SYSBENCH.replace("SQL statistics", intervals * 9 + "SQL statistics")
    assert sysbench.read(source(text)).frame.equals(sysbench.read(source(SYSBENCH)).frame)


def test_sysbench_1_1_words_its_time_otherwise() -> None:
    text = SYSBENCH.replace("General statistics:", "Throughput:").replace("total time:", "time elapsed:")
    assert sysbench.read(source(text)).frame.equals(sysbench.read(source(SYSBENCH)).frame)
    assert gather([source(text)]).value == "events_per_s"


def test_two_runs_in_a_file_are_refused() -> None:
    assert "expected one run of sysbench, found 2" in refused(source(SYSBENCH + SYSBENCH, "both.txt"))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("events:              1000", "events:              0"),
        ("10.0500s", "0.0000s"),
        ("total time:                          10.0500s\n", ""),
    ],
)
def test_a_run_that_did_nothing_is_no_trial(old: str, new: str) -> None:
    assert "sysbench processed no events in this run" in refused(source(SYSBENCH.replace(old, new)))


@pytest.mark.parametrize(("name", "labelled"), [("number", ""), ("file", ""), ("label", "old")])
def test_a_field_of_a_name_never_gives_way_to_a_column_that_is_added(name: str, labelled: str) -> None:
    file = ImportSource("f", SYSBENCH.encode(), label=labelled, number=1, fields=((name, "7"),))
    assert f"the column `{name}` is added to every file" in refused(file)


def test_columns_of_times_and_of_lists_are_one_kind_in_all_files() -> None:
    numbers, durations = parquet(arm=["a"], t=[1.0]), parquet(arm=["a"], t=[timedelta(seconds=1)])
    assert refused(source(numbers, "n"), source(durations, "d")).startswith("d: t: expected Float64, as in n, found D")
    assert "found List" in refused(source(TABLE, "a"), source(parquet(tpm=[[1]]), "b"))
    assert "found Duration" in refused(source(b"t\n1 s\n"), source(durations))


def test_dictionaries_of_text_differ_from_file_to_file() -> None:
    files = []
    for name in ("a", "b"):
        stream = io.BytesIO()
        pl.DataFrame({"arm": [name]}, schema={"arm": pl.Enum([name])}).write_parquet(stream)
        files.append(source(stream.getvalue()))
    assert gather(files).text("arm").to_list() == ["a", "b"]
