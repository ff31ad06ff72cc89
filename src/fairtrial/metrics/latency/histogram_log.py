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
from collections.abc import Iterator
from pathlib import Path
from typing import Final

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
MOST_CLASSES: Final = 1 << 23  # 63 bits at 5 digits have 46 half buckets of 2^17, and one more

Numbers = npt.NDArray[np.int64]
Shape = tuple[int, int]  # lowest discernible value and significant digits: what decides the value classes


def counts(path: Path) -> dict[str, dict[Shape, Numbers]]:
    """Counts of every value class, all lines added up, by tag (empty for lines without one) and shape.

    Raises:
        ValueError: a line is no interval, or cannot be decoded.
    """
    payloads: dict[str, dict[Shape, list[bytes]]] = {}
    for tag, _start_s, line in _lines(path):
        shape, payload = _payload(line)
        payloads.setdefault(tag, {}).setdefault(shape, []).append(payload)
    return {tag: {shape: _summed(parts) for shape, parts in shapes.items()} for tag, shapes in payloads.items()}


def by_second(path: Path, *, zero_s: float) -> dict[int, dict[Shape, Numbers]]:
    """Counts of every value class of all tags, by the whole second after `zero_s` in which intervals began.

    Raises:
        ValueError: a line is no interval, or cannot be decoded.
    """
    payloads: dict[int, dict[Shape, list[bytes]]] = {}
    for _tag, start_s, line in _lines(path):
        shape, payload = _payload(line)
        payloads.setdefault(math.floor(start_s - zero_s + ROUNDING_S), {}).setdefault(shape, []).append(payload)
    return {second: {shape: _summed(parts) for shape, parts in shapes.items()} for second, shapes in payloads.items()}


def bounds(index: Numbers, shape: Shape) -> tuple[Numbers, Numbers]:
    """Lowest and highest value of the classes at these indices, both inclusive."""
    lowest_value, digits = shape
    unit = lowest_value.bit_length() - 1
    magnitude = math.ceil(math.log2(2 * 10**digits)) - 1
    half = 1 << magnitude
    bucket = (index >> magnitude) - 1
    sub_bucket = np.where(bucket < 0, index & (half - 1), (index & (half - 1)) + half)
    shift = np.maximum(bucket, 0) + unit
    lowest = sub_bucket << shift
    return lowest, lowest + (1 << shift) - 1


def _lines(path: Path) -> Iterator[tuple[str, float, str]]:
    """Tag, start and encoded histogram of every line that is not a comment or the titles."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
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
        float(text)
    except ValueError:
        return False
    return True


def _payload(encoded: str) -> tuple[Shape, bytes]:
    """One histogram's shape and its numbers, still encoded."""
    raw = base64.b64decode(encoded, validate=True)
    try:
        cookie, length = OUTER.unpack_from(raw)
        if cookie & ~WORD_BITS != COMPRESSED or length != len(raw) - OUTER.size:
            raise ValueError("not a whole V2 histogram")
        inner = zlib.decompress(raw[OUTER.size :])
        cookie, length, offset, digits, lowest, _highest, conversion = HEADER.unpack_from(inner)
    except (struct.error, zlib.error) as error:
        raise ValueError(f"a histogram is cut or damaged: {error}") from error
    if cookie & ~WORD_BITS != ENCODED or length != len(inner) - HEADER.size:
        raise ValueError("a histogram's content is not V2, or cut")
    if offset or conversion != 1.0 or lowest < 1 or digits not in DIGITS:
        raise ValueError("a histogram that is shifted, scaled or without a resolution")
    return (lowest, digits), inner[HEADER.size :]


def _summed(payloads: list[bytes]) -> Numbers:
    """Counts by class index over histograms of one shape."""
    data = np.frombuffer(b"".join(payloads), dtype=np.uint8)
    if not len(data):
        return np.empty(0, dtype=np.int64)
    values, last = _numbers(data)
    lengths = np.fromiter(map(len, payloads), dtype=np.int64, count=len(payloads))
    ends = np.cumsum(lengths)
    after = np.searchsorted(last, ends - 1, side="right")  # numbers until each histogram's end
    if not np.isin(ends[lengths > 0] - 1, last).all():
        raise ValueError("a histogram ends within a number")
    steps = np.where(values < 0, -values, 1)
    before = np.concatenate([[0], np.cumsum(steps)])  # classes passed before each number
    begins = np.concatenate([[0], after[:-1]])
    index = before[:-1] - np.repeat(before[begins], after - begins)
    counted = values > 0
    classes = int(index[counted].max(initial=-1)) + 1
    if classes > MOST_CLASSES:
        raise ValueError("a histogram with more classes than there are values")
    summed = np.zeros(classes, dtype=np.int64)
    np.add.at(summed, index[counted], values[counted])
    return summed


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
