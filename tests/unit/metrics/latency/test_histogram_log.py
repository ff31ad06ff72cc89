"""Our decoder of histogram logs beside the library's own, class by class; and everything that is no log."""

from __future__ import annotations

import base64
import math
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader
from hypothesis import given, settings
from hypothesis import strategies as st

from fairtrial.metrics.latency import histogram_log

HOUR_NS = 3_600_000_000_000
HEAD = "#[Histogram log format version 1.3]\n"


def histogram(*values: int, lowest: int = 1, highest: int = HOUR_NS, digits: int = 3) -> HdrHistogram:
    made = HdrHistogram(lowest, highest, digits)
    for value in values:
        assert made.record_value(value)
    return made


def line(made: HdrHistogram, tag: str = "a", *, start: float = 1.0) -> str:
    named = f"Tag={tag}," if tag else ""
    return f"{named}{start:.3f},1.000,{made.get_max_value()},{made.encode().decode()}\n"


def written(directory: Path, *lines: str) -> Path:
    path = directory / "latency.hlog"
    path.write_text(HEAD + "".join(lines), encoding="utf-8")
    return path


def classes(path: Path, tag: str = "a") -> dict[tuple[int, int], int]:
    """Bounds of every class that has counts, and its counts, over all shapes."""
    found: dict[tuple[int, int], int] = {}
    for shape, (index, counts) in histogram_log.counts(path)[tag].items():
        for low, high, count in zip(*histogram_log.bounds(index, shape), counts, strict=True):
            found[int(low), int(high)] = found.get((int(low), int(high)), 0) + int(count)
    return found


def by_library(path: Path, tag: str = "a", *, lowest: int = 1, digits: int = 3) -> dict[tuple[int, int], int]:
    """The same from the library's reader, one value class after the other."""
    reader = HistogramLogReader(str(path), HdrHistogram(lowest, HOUR_NS, digits))
    found: dict[tuple[int, int], int] = {}
    while (each := reader.get_next_interval_histogram(range_start_time_sec=-math.inf)) is not None:
        if (each.get_tag() or "") != tag:
            continue
        for index in range(each.counts_len):
            if count := each.get_count_at_index(index):
                low = each.get_value_from_index(index)
                bounds = (each.get_lowest_equivalent_value(low), each.get_highest_equivalent_value(low))
                found[bounds] = found.get(bounds, 0) + count
    reader.close()
    return found


@settings(max_examples=40, deadline=None)
@given(st.lists(st.lists(st.integers(1, HOUR_NS), max_size=20), min_size=1, max_size=5))
def test_every_class_has_the_counts_that_the_library_reads(
    tmp_path_factory: pytest.TempPathFactory, intervals: list[list[int]]
) -> None:
    path = written(tmp_path_factory.mktemp("log"), *(line(histogram(*values)) for values in intervals))
    assert classes(path) == by_library(path)


@pytest.mark.parametrize("digits", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("lowest", [1, 2, 1000, 1024])
def test_every_resolution_and_unit_is_the_librarys(tmp_path: Path, lowest: int, digits: int) -> None:
    values = [lowest, 3 * lowest, 12_345_678, 12_345_679 + lowest, HOUR_NS // 3]
    path = written(tmp_path, line(histogram(*values, lowest=lowest, digits=digits)))
    assert classes(path) == by_library(path, lowest=lowest, digits=digits)


@pytest.mark.parametrize("value", [1, 2, 1023, 1024, 2047, 2048, 2049, 4095, 4096, (1 << 40) - 1, 1 << 40])
def test_a_value_lies_between_the_bounds_of_its_class_and_a_thousandth_is_not_lost(tmp_path: Path, value: int) -> None:
    ((low, high),) = classes(written(tmp_path, line(histogram(value))))
    assert low <= value <= high
    assert high - low <= value / 1000


def test_classes_neither_overlap_nor_leave_gaps() -> None:
    low, high = histogram_log.bounds(np.arange(20_000), (1, 3))
    assert low[0] == 0
    assert (low[1:] == high[:-1] + 1).all()


def test_counts_of_all_lines_of_a_tag_are_added_and_tags_kept_apart(tmp_path: Path) -> None:
    one, other = histogram(1000, 1000, 2000), histogram(2000, 3000)
    path = written(tmp_path, line(one), line(other), line(one, "b"), line(other, ""))
    assert sum(classes(path).values()) == 5
    assert classes(path)[2000, 2000] == 2
    assert sum(classes(path, "b").values()) == 3
    assert sum(classes(path, "").values()) == 2


def test_a_count_of_many_bytes_is_whole(tmp_path: Path) -> None:
    many = HdrHistogram(1, HOUR_NS, 3)
    for count in (1, 63, 64, 8191, 8192, 1 << 20, (1 << 31) + 5, 1 << 50):
        many.record_value(1000 + 50 * count.bit_length(), count)
    path = written(tmp_path, line(many))
    assert sorted(classes(path).values()) == [1, 63, 64, 8191, 8192, 1 << 20, (1 << 31) + 5, 1 << 50]


def test_an_empty_histogram_is_a_tag_without_counts(tmp_path: Path) -> None:
    path = written(tmp_path, line(histogram()), line(histogram(5), "b"))
    assert classes(path) == {}
    assert classes(path, "b") == {(5, 5): 1}


def test_an_empty_histogram_between_others_moves_nothing(tmp_path: Path) -> None:
    path = written(tmp_path, line(histogram(7)), line(histogram()), line(histogram(9, 9)), line(histogram()))
    assert classes(path) == {(7, 7): 1, (9, 9): 2}


def test_logs_of_two_resolutions_in_one_file_are_kept_apart(tmp_path: Path) -> None:
    path = written(tmp_path, line(histogram(1_000_000)), line(histogram(1_000_000, digits=2)))
    assert sorted(digits for _, digits in histogram_log.counts(path)["a"]) == [2, 3]
    assert sum(classes(path).values()) == 2


def test_comments_titles_and_empty_lines_are_no_intervals(tmp_path: Path) -> None:
    titles = '"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"\n'
    path = written(tmp_path, "#[StartTime: 1]\n", titles, "\n", line(histogram(5)))
    assert classes(path) == {(5, 5): 1}


def remade(made: HdrHistogram, change: Callable[[bytearray], object], *, outer: bool = False) -> str:
    """A line whose histogram, inside or outside of its compression, was changed."""
    raw = base64.b64decode(made.encode())
    part = bytearray(raw if outer else zlib.decompress(raw[8:]))
    change(part)
    if outer:
        whole = bytes(part)
    else:
        packed = zlib.compress(bytes(part))
        whole = raw[:4] + struct.pack(">I", len(packed)) + packed
    return f"Tag=a,1.000,1.000,5,{base64.b64encode(whole).decode()}\n"


def put(layout: str, at: int, value: float) -> Callable[[bytearray], object]:
    return lambda part: struct.pack_into(layout, part, at, value)


def test_a_line_remade_without_a_change_is_read(tmp_path: Path) -> None:
    assert classes(written(tmp_path, remade(histogram(5), len))) == {(5, 5): 1}


@pytest.mark.parametrize(
    ("change", "outer", "message"),
    [
        (put(">I", 0, 0x1C849303), True, "not a whole V2"),
        (put(">I", 4, 3), True, "not a whole V2"),
        (lambda part: part.clear(), True, "cut or damaged"),
        (lambda part: part.__delitem__(slice(20, None)), True, "not a whole V2"),
        (lambda part: part.__setitem__(10, part[10] ^ 255), True, "cut or damaged"),
        (put(">I", 0, 0x1C849301), False, "not V2, or cut"),
        (lambda part: part.__delitem__(slice(-1, None)), False, "not V2, or cut"),
        (lambda part: part.__delitem__(slice(30, None)), False, "cut or damaged"),
        (put(">i", 8, 4), False, "shifted, scaled"),
        (put(">d", 32, 2.0), False, "shifted, scaled"),
        (put(">q", 16, 0), False, "without a resolution"),
        (put(">i", 12, 9), False, "without a resolution"),
        (lambda part: part.__setitem__(-1, 0x80), False, "ends within a number"),
    ],
)
def test_what_is_no_whole_histogram_is_refused(
    tmp_path: Path, *, change: Callable[[bytearray], object], outer: bool, message: str
) -> None:
    path = written(tmp_path, remade(histogram(5, 500, 50_000), change, outer=outer))
    with pytest.raises(ValueError, match=message):
        histogram_log.counts(path)


def longer(numbers: bytes) -> Callable[[bytearray], object]:
    def change(part: bytearray) -> None:
        part[40:] = numbers
        struct.pack_into(">I", part, 4, len(numbers))

    return change


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        (b"\x80" * 8 + b"\x01", "2\\^56"),
        (b"\xff\xff\xff\xff\x7f\x02", "more classes"),
        (b"\x02\x80", "ends within a number"),
        (b"\xfe" + b"\xff" * 6 + b"\x7f" + b"\x02", "more observations"),
        (bytes(2 << 20), "inflates to more than 1048576 bytes"),
    ],
)
def test_numbers_that_no_histogram_has_are_refused(tmp_path: Path, numbers: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        histogram_log.counts(written(tmp_path, remade(histogram(5), longer(numbers))))


def test_a_number_must_not_go_on_in_the_next_line(tmp_path: Path) -> None:
    """Added up, all lines are decoded at once: a cut number must not take the next line's first byte."""
    path = written(tmp_path, remade(histogram(5), longer(b"\x02\x80")), remade(histogram(5), longer(b"\x02")))
    with pytest.raises(ValueError, match="ends within a number"):
        histogram_log.counts(path)


def test_a_small_log_that_inflates_without_end_is_refused_before_it_fills_memory(tmp_path: Path) -> None:
    bomb = remade(histogram(5), longer(bytes(1_000_000)))
    assert len(bomb) < 1500
    assert classes(written(tmp_path, bomb)) == {}
    with pytest.raises(ValueError, match="inflate to more than 32 times their size"):
        histogram_log.counts(written(tmp_path, bomb * 200))


def test_a_line_without_end_is_refused_before_it_fills_memory(tmp_path: Path) -> None:
    path = tmp_path / "long.hlog"
    with path.open("wb") as file:
        file.truncate(1 << 40)  # takes no room
    with pytest.raises(ValueError, match="line 1 is longer than 4,194,304 characters"):
        histogram_log.counts(path)


def test_counts_of_many_lines_are_added_up_in_pieces(tmp_path: Path) -> None:
    """As in one piece: of fifty thousand bytes each, twenty are decoded together."""
    every_class = remade(histogram(5), longer(b"\x02" * 50_000))
    rare = line(histogram(7, 10**12, highest=10**13))
    one, many = (classes(written(tmp_path, every_class * number + rare)) for number in (1, 30))
    assert many.keys() == one.keys()
    assert sum(many.values()) == 30 * 50_000 + 2
    assert max(many.values()) == 31


@pytest.mark.parametrize(("lowest", "digits"), [(1 << 50, 5), (1 << 62, 1)])
def test_values_beyond_63_bits_are_refused(tmp_path: Path, lowest: int, digits: int) -> None:
    def change(part: bytearray) -> None:
        struct.pack_into(">iq", part, 12, digits, lowest)

    with pytest.raises(ValueError, match="without a resolution"):
        histogram_log.counts(written(tmp_path, remade(histogram(5), change)))


@pytest.mark.parametrize(
    "text",
    [
        "Tag=a,1.0,1.0,5\n",
        "Tag=a,1.0,1.0,5,x,y\n",
        "Tag=a,soon,1.0,5,HISTF\n",
        "Tag=a,inf,1.0,5,HISTF\n",
        "Tag=a,1.0,nan,5,HISTF\n",
        "Tag=a,1.0,,5,HISTF\n",
        "nothing\n",
        "Tag=a\n",
    ],
)
def test_a_line_that_is_no_interval_is_refused_by_its_number(tmp_path: Path, text: str) -> None:
    path = written(tmp_path, line(histogram(5)), text)
    with pytest.raises(ValueError, match="line 3 is no interval"):
        histogram_log.counts(path)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(0, 255))
def test_a_changed_byte_gives_an_error_or_counts_and_never_anything_else(
    tmp_path_factory: pytest.TempPathFactory, at: int, byte: int
) -> None:
    def change(part: bytearray) -> None:
        part[at % len(part)] = byte

    path = written(tmp_path_factory.mktemp("log"), remade(histogram(5, 500, 50_000, 10**9), change))
    try:
        found = histogram_log.counts(path)
    except ValueError:
        return
    assert all((counts > 0).all() for shapes in found.values() for _, counts in shapes.values())
