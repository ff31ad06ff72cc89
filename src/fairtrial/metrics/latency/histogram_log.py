"""HdrHistogram interval logs, decoded whole: a trial of 45 minutes has ten thousand lines of them.

Owns the format; the library's own reader builds an object of 20,000 counts per line and takes ten times as long.
Tests compare every value class with the library's. Source: HdrHistogram's `HistogramLogReader` and
`EncodableHistogram.encodeIntoByteBuffer` (V2, ZigZag LEB128-64b9B; a negative number skips as many empty classes).
"""

from __future__ import annotations

import base64
import math
import struct
import zlib
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

import numpy as np
import numpy.typing as npt

COMPRESSED: Final = 0x1C849304  # V2 compressed, without the word size in bits 4 to 7
ENCODED: Final = 0x1C849303  # V2 within it
WORD_BITS: Final = 0xF0
OUTER: Final = struct.Struct(">II")  # cookie, bytes of the deflated rest
HEADER: Final = struct.Struct(">IIiIqqd")  # cookie, bytes, normalising offset, digits, lowest, highest, conversion
FIELDS: Final = 4  # start, length, largest value, histogram; a tag comes before them
TAG: Final = "Tag="
NOT_INTERVALS: Final = ('"StartTimestamp"', "#")
LONGEST: Final = 8  # bytes of a number here: the ninth would carry counts from 2^56 on
DIGITS: Final = range(1, 6)
ROUNDING_S: Final = 1e-3  # the log tells starts in milliseconds
LONGEST_LINE: Final = 1 << 22  # what takes `MOST_BYTES` at worst, and more
MOST_BYTES: Final = 1 << 20  # of one histogram's numbers: at 3 digits there are 55,296 classes, of 8 bytes at most
INFLATION: Final = 32  # how many times their size a log's histograms may have inflated: real ones have less than 4
LEAST_INFLATED: Final = 4 << 20  # beside that: equal counts in all classes shrink to nothing
MOST_COUNTED: Final = 1 << 53
SPARSE: Final = 64  # classes for each number, from which indices are sorted

Numbers = npt.NDArray[np.int64]
Counted = tuple[Numbers, Numbers]  # indices of value classes, ascending, and their counts, none of them 0
Shape = tuple[int, int]  # lowest discernible value and significant digits: what decides the value classes
K = TypeVar("K")


def counts(path: Path) -> dict[str, dict[Shape, Counted]]:
    """Counts of every value class, all lines added up, by tag (empty for lines without one) and shape.

    Raises:
        ValueError: a line is no interval, or cannot be decoded.
    """
    return _summed_by((tag, line) for tag, _start_s, line in _lines(path))


def by_second(path: Path, *, zero_s: float) -> dict[int, dict[Shape, Counted]]:
    """Counts of every value class of all tags, by the whole second after `zero_s` in which intervals began.

    Raises:
        ValueError: a line is no interval, or cannot be decoded.
    """
    return _summed_by((math.floor(start_s - zero_s + ROUNDING_S), line) for _tag, start_s, line in _lines(path))


def _summed_by(lines: Iterable[tuple[K, str]]) -> dict[K, dict[Shape, Counted]]:
    payloads: dict[K, dict[Shape, list[bytes]]] = {}
    left = LEAST_INFLATED
    for key, line in lines:
        shape, payload = _payload(line)
        left += INFLATION * len(line) - len(payload)
        if left < 0:
            raise ValueError(f"its histograms inflate to more than {INFLATION} times their size")
        payloads.setdefault(key, {}).setdefault(shape, []).append(payload)
    return {
        key: {shape: _summed(parts, most=most_classes(shape)) for shape, parts in shapes.items()}
        for key, shapes in payloads.items()
    }


def most_classes(shape: Shape) -> int:
    """Classes of a shape whose values have 63 bits; 0 or less where there is none."""
    return (64 - _magnitude(shape) - _unit(shape)) << _magnitude(shape)


def _unit(shape: Shape) -> int:
    """Bits below the lowest discernible value."""
    return shape[0].bit_length() - 1


def _magnitude(shape: Shape) -> int:
    """Bits of half of a bucket's classes."""
    return math.ceil(math.log2(2 * 10 ** shape[1])) - 1


def bounds(index: Numbers, shape: Shape) -> tuple[Numbers, Numbers]:
    """Lowest and highest value of the classes at these indices, both inclusive."""
    unit, magnitude = _unit(shape), _magnitude(shape)
    half = 1 << magnitude
    bucket = (index >> magnitude) - 1
    sub_bucket = np.where(bucket < 0, index & (half - 1), (index & (half - 1)) + half)
    shift = np.maximum(bucket, 0) + unit
    lowest = sub_bucket << shift
    return lowest, lowest + (1 << shift) - 1


def _lines(path: Path) -> Iterator[tuple[str, float, str]]:
    """Tag, start and encoded histogram of every line that is not a comment or the titles."""
    with path.open(encoding="utf-8") as file:
        for number, ended in enumerate(iter(partial(file.readline, LONGEST_LINE), ""), start=1):
            if len(ended) == LONGEST_LINE:
                raise ValueError(f"line {number} is longer than {LONGEST_LINE:,} characters")
            line = ended.rstrip("\n")
            if not line or line.startswith(NOT_INTERVALS):
                continue
            tag, rest = "", line
            if line.startswith(TAG):
                tag, _, rest = line.removeprefix(TAG).partition(",")
            fields = rest.split(",")
            if len(fields) != FIELDS or not all(map(_is_number, fields[:-1])):
                raise ValueError(f"line {number} is no interval")
            yield tag, float(fields[0]), fields[-1]


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _payload(encoded: str) -> tuple[Shape, bytes]:
    """One histogram's shape and its numbers, still encoded."""
    raw = base64.b64decode(encoded, validate=True)
    try:
        cookie, length = OUTER.unpack_from(raw)
        if cookie & ~WORD_BITS != COMPRESSED or length != len(raw) - OUTER.size:
            raise ValueError("not a whole V2 histogram")
        inflating = zlib.decompressobj()
        inner = inflating.decompress(raw[OUTER.size :], MOST_BYTES)
        if not inflating.eof:
            raise ValueError(f"a histogram is cut or damaged, or inflates to more than {MOST_BYTES} bytes")
        cookie, length, offset, digits, lowest, _highest, conversion = HEADER.unpack_from(inner)
    except (struct.error, zlib.error) as error:
        raise ValueError(f"a histogram is cut or damaged: {error}") from error
    if cookie & ~WORD_BITS != ENCODED or length != len(inner) - HEADER.size:
        raise ValueError("a histogram's content is not V2, or cut")
    if offset or conversion != 1.0 or lowest < 1 or digits not in DIGITS or most_classes((lowest, digits)) <= 0:
        raise ValueError("a histogram that is shifted, scaled or without a resolution")
    return (lowest, digits), inner[HEADER.size :]


def _summed(payloads: list[bytes], *, most: int) -> Counted:
    """Classes that have counts, and these, over histograms of one shape; decoding takes ninety times their bytes."""
    parts = [_totals(*_observed(batch, most=most)) for batch in _batches(payloads)]
    if len(parts) == 1:
        return parts[0]
    index, values = (np.concatenate(each) for each in zip(*parts, strict=True))
    return _totals(index, values)


def _batches(payloads: list[bytes]) -> Iterator[list[bytes]]:
    """At least one, each of up to `MOST_BYTES`, as no histogram is longer."""
    batch: list[bytes] = []
    left = MOST_BYTES
    for payload in payloads:
        if len(payload) > left:
            yield batch
            batch, left = [], MOST_BYTES
        batch.append(payload)
        left -= len(payload)
    yield batch


def _totals(index: Numbers, values: Numbers) -> Counted:
    """Values added up by index: the indices, ascending, and the sums."""
    if float(values.sum(dtype=np.float64)) > MOST_COUNTED:
        raise ValueError("more observations than a program can have made")
    classes = int(index.max(initial=-1)) + 1
    if classes > SPARSE * len(index):  # an array of all classes would be empty for the most part
        present, at = np.unique(index, return_inverse=True)
        sums = np.zeros(len(present), dtype=np.int64)
        np.add.at(sums, at, values)
        return present, sums
    summed = np.zeros(classes, dtype=np.int64)
    np.add.at(summed, index, values)
    present = np.flatnonzero(summed)
    return present, summed[present]


def _observed(payloads: list[bytes], *, most: int) -> Counted:
    """Every count that is not 0, with the index of its class."""
    data = np.frombuffer(b"".join(payloads), dtype=np.uint8)
    if not len(data):
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    values, last = _numbers(data)
    lengths = np.fromiter(map(len, payloads), dtype=np.int64, count=len(payloads))
    ends = np.cumsum(lengths)
    after = np.searchsorted(last, ends - 1, side="right")  # numbers until each histogram's end
    if not np.isin(ends[lengths > 0] - 1, last).all():
        raise ValueError("a histogram ends within a number")
    steps = np.where(values < 0, -values, 1)
    if int(steps.max()) > most:
        raise ValueError("a histogram with more classes than there are values")
    before = np.concatenate([[0], np.cumsum(steps)])  # classes passed before each number
    begins = np.concatenate([[0], after[:-1]])
    index = before[:-1] - np.repeat(before[begins], after - begins)
    counted = values > 0
    if int(index[counted].max(initial=-1)) >= most:
        raise ValueError("a histogram with more classes than there are values")
    return index[counted], values[counted]


def _numbers(data: npt.NDArray[np.uint8]) -> tuple[Numbers, Numbers]:
    """The signed numbers of a run of ZigZag LEB128, and where the last byte of each is."""
    last = np.flatnonzero(data < 1 << 7)
    if not len(last) or last[-1] != len(data) - 1:
        raise ValueError("a histogram ends within a number")
    first = np.concatenate([[0], last[:-1] + 1])
    width = last - first + 1
    if int(width.max()) > LONGEST:
        raise ValueError("a count from 2^56 on")
    value = np.zeros(len(last), dtype=np.int64)
    for byte in range(int(width.max())):
        longer = np.flatnonzero(width > byte)
        value[longer] |= (data[first[longer] + byte].astype(np.int64) & 0x7F) << (7 * byte)
    return (value >> 1) ^ -(value & 1), last
