"""CSV files as Apache Otava reads them."""

import os
from pathlib import Path

import pytest

from fairtrial.errors import InputError
from fairtrial.history import HistoryOptions, examine, otava

# The form of the sample in Otava's documentation, with figures of our own.
SAMPLE = """\
time,commit,throughput,latency
2024.01.01 3:00:00 +0100,aaa0,1503,10.4
2024.01.02 3:00:00 +0100,aaa1,1484,10.2
2024.01.03 3:00:00 +0100,aaa2,1511,10.3
2024.01.04 3:00:00 +0100,aaa3,1491,10.9
2024.01.05 3:00:00 +0100,aaa4,1520,10.5
2024.01.06 3:00:00 +0100,aaa5,1513,10.6
2024.01.07 3:00:00 +0100,aaa6,1505,8.2
2024.01.08 3:00:00 +0100,aaa7,1488,8.1
2024.01.09 3:00:00 +0100,aaa8,1494,8.1
2024.01.10 3:00:00 +0100,aaa9,1502,8.0
2024.01.11 3:00:00 +0100,aab0,1499,8.2
2024.01.12 3:00:00 +0100,aab1,1508,8.1
"""


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "nightly.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_every_column_of_numbers_is_a_series_named_by_file_and_commit(tmp_path: Path) -> None:
    throughput, latency = otava.read(written(tmp_path, SAMPLE)).series
    assert (throughput.name, throughput.metric, latency.metric) == ("nightly", "throughput", "latency")
    assert [point.run for point in latency.points][:2] == ["aaa0", "aaa1"]
    assert latency.points[0].estimate == 10.4


def test_a_file_name_that_is_not_utf_8_is_escaped(tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"night\xff\x1b[31m.csv")
    rows = "".join(f"{day},{day},{1000 + day // 6} tps\n" for day in range(1, 12))
    path.write_text(f"time,m,other\n{rows}", encoding="utf-8")
    read = otava.read(path)
    found = examine(read.series, options=HistoryOptions(), left_out=read.left_out)
    assert [each.series for each in found.series] == [r"night\udcff\x1b[31m"]
    assert list(found.left_out) == [r"column other of night\udcff\x1b[31m.csv"]
    assert r"night\\udcff" in found.model_dump_json()


def test_the_change_of_the_sample_is_found_at_its_commit(tmp_path: Path) -> None:
    found = examine(otava.read(written(tmp_path, SAMPLE)).series, options=HistoryOptions()).series
    assert [[change.run for change in each.changes] for each in found] == [[], ["aaa6"]]


@pytest.mark.parametrize(
    "times",
    [
        ("2024-01-02T03:00:00+01:00", "2024-01-01T03:00:00+01:00"),
        ("2024.01.02 3:00 +0100", "2024.01.01 3:00 +0100"),
        ("1704160800", "1704074400"),
        ("2024-01-02", "2024-01-01"),
        ("2024.01.01 9:00:00 +0000", "2024.01.01 9:00:00 +0200"),  # zones count
    ],
)
def test_rows_are_put_in_the_order_of_time(times: tuple[str, str], tmp_path: Path) -> None:
    (found,) = otava.read(written(tmp_path, f"time,commit,m\n{times[0]},late,2\n{times[1]},early,1\n")).series
    assert [point.run for point in found.points] == ["early", "late"]


def test_branches_are_series_of_their_own(tmp_path: Path) -> None:
    text = "time,commit,branch,m\n1,a,main,1\n2,b,feature,2\n3,c,main,3\n"
    found = otava.read(written(tmp_path, text)).series
    assert {each.name: [point.run for point in each.points] for each in found} == {
        "nightly · main": ["a", "c"],
        "nightly · feature": ["b"],
    }


def test_a_branch_without_a_number_is_no_series_and_a_newest_row_without_one_is_known(tmp_path: Path) -> None:
    text = "time,commit,branch,tpm\n1,a,main,5\n2,b,main,\n3,c,side,\n"
    (found,) = otava.read(written(tmp_path, text)).series
    assert (found.name, [point.run for point in found.points], found.newest) == ("nightly · main", ["a"], "b")


def test_a_newest_row_without_a_number_is_not_an_earlier_row_of_its_commit(tmp_path: Path) -> None:
    (found,) = otava.read(written(tmp_path, "time,commit,tpm\n1,a,5\n2,b,6\n3,b,\n")).series
    assert ([point.run for point in found.points], found.newest) == (["a", "b"], "b (3)")


def test_other_delimiters_empty_cells_and_a_byte_order_mark_are_read(tmp_path: Path) -> None:
    (found,) = otava.read(written(tmp_path, "\ufefftime;commit;note;m\n1;a;x;1\n2;b;y;\n3;c;z;3\n")).series
    assert [point.estimate for point in found.points] == [1, 3]


def of_column(tmp_path: Path, *values: str, metrics: tuple[str, ...] = ()) -> list[list[float]]:
    """Reads a column `m` beside a column of numbers, and says what they hold."""
    rows = "".join(f'{row},a{row},"{value}",{row}\n' for row, value in enumerate(values))
    found = otava.read(written(tmp_path, f"time,commit,m,known\n{rows}"), metrics=metrics).series
    return [[point.estimate for point in each.points] for each in found if each.metric == "m"]


@pytest.mark.parametrize("missing", ["", "NA", "NaN", "null"])
def test_a_missing_value_is_no_point_and_makes_no_attribute_of_a_metric(missing: str, tmp_path: Path) -> None:
    assert of_column(tmp_path, missing, "5", "6") == of_column(tmp_path, "5", missing, "6") == [[5, 6]]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (("1000,25", "1001,5", "990,25"), ":2:1: m: expected a number, found `1000,25` (did you mean 1000.25?)"),
        (("998.25", "6,000.25", "6,100.5"), ":3:1: m: expected a number, found `6,000.25` (write 6000.25)"),
        (("1.000,25", "1.001,5"), ":2:1: m: expected a number, found `1.000,25`"),
        (("1000 tps", "1001 tps"), ":2:1: m: expected a number, found `1000 tps` (write it without the unit)"),
        (("NA", "3.5 MB/s", "4 MB/s"), ":3:1: m: expected a number, found `3.5 MB/s`"),
        (("fast", "1", "2"), ":2:1: m: expected a number, found `fast`"),
        (("inf", "1", "2"), ":2:1: m: expected a number, found `inf`"),
        (("1000", "failed", "failed", "failed"), ":3:1: m: expected a number, found `failed`"),
        (("NA", "1000", "failed", "failed"), ":4:1: m: expected a number, found `failed`"),
        (("12,5", "12,5", "25,5", "25,5"), ":2:1: m: expected a number, found `12,5` (did you mean 12.5?)"),
        (("1,000", "999", "1,000", "999"), ":2:1: m: expected a number, found `1,000`"),
        (("3 ms", "4 ms", "3 ms"), ":2:1: m: expected a number, found `3 ms` (write it without the unit)"),
    ],
)
def test_a_metric_that_cannot_be_read_is_refused_not_left_out(
    values: tuple[str, ...], expected: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError) as refused:
        of_column(tmp_path, *values)
    assert expected in str(refused.value)
    assert of_column(tmp_path, *values, metrics=("known",)) == []


@pytest.mark.parametrize(
    "values",
    [
        ("9fceb02", "1234567", "deadbee"),
        ("9fceb02", "1234567"),
        ("16 GB", "16 GB"),
        ("16 cores", "16 cores", "32 cores", "32 cores"),
        ("16beta", "16beta", "16beta", "17rc"),
        ("1234567a", "2345678b", "3456789c"),
        ("16beta", "17rc", "18"),
        ("8.0.36", "8.0.37"),
        ("2024-01-02", "2024-01-03"),
        ("NA", ""),
    ],
)
def test_what_names_a_run_is_no_metric(values: tuple[str, ...], tmp_path: Path) -> None:
    assert of_column(tmp_path, *values) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("commit,m\na,1\n", "expected a column `time`, found `commit`, `m`"),
        (
            "time,commit,m\nyesterday,a,1\n",
            ":2:1: time: expected a time such as `2024-01-31 12:00:00 +0100`, found `yesterday`",
        ),
        ("time,commit,m\n1,a,1\n2,b,fast\n", ":3:1: m: expected a number, found `fast`"),
        ("time,commit,m\n1,a,1\n2,b\n", ":3:1: expected 3 fields"),
        ("time,commit,m\n1,a,1\n\n2,b,1\n3,c,fast\n", ":5:1: m: expected a number, found `fast`"),
        ("time,commit,m, m\n1,a,1,2\n", ":1:1: expected each column once, found `m` twice"),
        ("time,commit\n1,a\n", "expected a column of numbers, found none"),
        ("", "expected a column `time`, found nothing"),
        ("time,m\n", "expected rows below the names of the columns, found none"),
    ],
)
def test_mistakes_are_named_with_their_line(text: str, expected: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as refused:
        otava.read(written(tmp_path, text))
    assert expected in str(refused.value)


@pytest.mark.parametrize(
    "unit", ["ms", " us", "µs", "s", "%", "k", "M", "G", " KiB", "MB/s", "/s", " tpm", "ops/s", "TPS", " ns/op"]
)
def test_a_number_with_a_known_unit_is_a_metric(unit: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="m: expected a number, found `1000"):
        of_column(tmp_path, f"1000{unit}", f"1001{unit}")


def test_a_column_that_may_be_meant_as_numbers_is_named_and_refused_where_it_is_a_metric(tmp_path: Path) -> None:
    path = written(tmp_path, "time,build,m,known,note\n1,123a,10 fish,1,x\n2,124b,11 fish,2,y\n")
    found = otava.read(path)
    assert [each.metric for each in found.series] == ["known"]
    assert list(found.left_out) == ["column build of nightly.csv", "column m of nightly.csv"]
    assert found.left_out["column m of nightly.csv"].startswith("`10 fish` is text; if it is a metric, --metric m says")
    with pytest.raises(InputError, match=r":2:1: m: expected a number, found `10 fish` \(write it without the unit\)"):
        otava.read(path, metrics=["m"])
    assert otava.read(path, metrics=["known"]).left_out == {}


def test_an_unknown_metric_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="`throughput`, `latency`"):
        otava.read(written(tmp_path, SAMPLE), metrics=["speed"])


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read the file"):
        otava.read(tmp_path / "none.csv")
