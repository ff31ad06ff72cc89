"""Arrow streams cut at every byte, as a killed sampler leaves them."""

from __future__ import annotations

import io
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from fairtrial.metrics import telemetry
from fairtrial.metrics.telemetry import stream as telemetry_stream

BATCHES = (3, 2, 4)


def _stream() -> tuple[bytes, list[int]]:
    """A stream of three batches, and where each of them is whole (without an end-of-stream marker)."""
    content = io.BytesIO()
    ends = []
    start = 0
    for rows in BATCHES:
        times = pl.Series(range(start, start + rows), dtype=pl.Int64)
        counters = pl.Series([2 * value if value != 1 else None for value in times], dtype=pl.UInt64)
        one = io.BytesIO()
        pl.DataFrame({"time_ns": times, "counter": counters}).write_ipc_stream(one)
        message = one.getvalue().removesuffix(telemetry_stream.END_OF_STREAM)
        schema_bytes = 8 + int.from_bytes(message[4:8], "little")
        content.write(message if not start else message[schema_bytes:])
        ends.append(content.tell())
        start += rows
    return content.getvalue(), ends


def _written(directory: Path, content: bytes) -> Path:
    path = directory / "telemetry-cpu.arrows"
    path.write_bytes(content)
    return path


def test_a_whole_stream_becomes_parquet_with_its_types_and_nulls(tmp_path: Path) -> None:
    content, _ends = _stream()
    arrows = _written(tmp_path, content + telemetry_stream.END_OF_STREAM)
    assert telemetry.to_parquet(arrows, tmp_path / "telemetry-cpu.parquet") == sum(BATCHES)
    frame = telemetry.read(tmp_path, "cpu")
    assert frame.schema == {"time_ns": pl.Int64, "counter": pl.UInt64}
    assert frame["time_ns"].to_list() == list(range(9))
    assert frame["counter"].to_list() == [0, None, 4, 6, 8, 10, 12, 14, 16]


def test_a_stream_cut_at_any_byte_gives_its_whole_batches(tmp_path: Path) -> None:
    content, ends = _stream()
    for cut in range(len(content) + 1):
        whole = sum(rows for rows, end in zip(BATCHES, ends, strict=True) if end <= cut)
        target = tmp_path / f"{cut}.parquet"
        assert telemetry.to_parquet(_written(tmp_path, content[:cut]), target) == whole, f"cut at {cut}"
        assert target.exists() == bool(whole)


def test_a_stream_that_goes_on_after_its_end_is_read_to_its_end(tmp_path: Path) -> None:
    content, ends = _stream()
    ended = content[: ends[1]] + telemetry_stream.END_OF_STREAM + content[ends[1] :]
    frame = telemetry_stream.read(_written(tmp_path, ended))
    assert frame is not None
    assert frame.height == BATCHES[0] + BATCHES[1]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"not a stream at all, but long enough to look at",
        b"\xff\xff\xff\xff\x10\x00\x00\x00" + b"\x00" * 16,
        b"\xff\xff\xff\xff\xff\xff\xff\x7f" + b"\x00" * 64,
        b"\xff\xff\xff\xff\x10\x00\x00\x00" + b"\xff" * 16,
        b"\xff\xff\xff\xff\x10\x00\x00\x00\x04\x00\x00\x00\xff\x00\x00\x00" + b"\x00" * 64,
    ],
    ids=["empty", "text", "zeros", "absurd size", "offsets outside", "vtable before the start"],
)
def test_what_is_no_stream_gives_no_rows_and_no_file(tmp_path: Path, content: bytes) -> None:
    assert telemetry.to_parquet(_written(tmp_path, content), tmp_path / "out.parquet") == 0
    assert not (tmp_path / "out.parquet").exists()


def test_damage_inside_a_message_gives_no_rows_rather_than_wrong_ones(tmp_path: Path) -> None:
    content, ends = _stream()
    damaged = bytearray(content)
    damaged[8:64] = b"\xaa" * 56  # the schema
    assert telemetry.to_parquet(_written(tmp_path, bytes(damaged)), tmp_path / "out.parquet") == 0
    assert ends


def _as_stream(frame: pl.DataFrame, **how: Any) -> bytes:
    content = io.BytesIO()
    frame.write_ipc_stream(content, compat_level=pl.CompatLevel.oldest(), **how)
    return content.getvalue()


def _shared(content: bytes) -> bytes:
    """The same rows, each column's values in the bytes of the first: a body that is read again and again."""
    schema_end = 8 + int.from_bytes(content[4:8], "little")
    body_at = schema_end + 8 + int.from_bytes(content[schema_end + 4 : schema_end + 8], "little")
    metadata = bytearray(content[schema_end + 8 : body_at])
    message = telemetry_stream._followed(metadata, 0)
    batch = telemetry_stream._followed(metadata, telemetry_stream._field(metadata, message, telemetry_stream.HEADER))
    start, count = telemetry_stream._vector(metadata, batch, telemetry_stream.BUFFERS)
    for index in range(1, count, 2):  # behind each column's validity, which is empty
        struct.pack_into("<q", metadata, start + 16 * index, 0)
    struct.pack_into("<q", metadata, telemetry_stream._field(metadata, message, telemetry_stream.BODY_LENGTH), 832)
    return content[: schema_end + 8] + bytes(metadata) + content[body_at : body_at + 832]


NUMBERS = pl.DataFrame({f"n{number}": pl.repeat(7, 100, eager=True, dtype=pl.Int64) for number in range(50)})
NESTED = pl.DataFrame({"time_ns": [1], "deep": [[[[1]]]]})
HOSTILE = {
    "compressed": lambda: _as_stream(NUMBERS, compression="zstd"),
    "nested": lambda: _as_stream(NESTED),
    "dictionary": lambda: _as_stream(NUMBERS.with_columns(text=pl.lit("a").cast(pl.Categorical))),
    "shared": lambda: _shared(_as_stream(NUMBERS)),
}


@pytest.mark.parametrize("made", HOSTILE.values(), ids=HOSTILE)
def test_a_stream_that_would_take_more_memory_than_its_bytes_is_not_read(
    tmp_path: Path, made: Callable[[], bytes]
) -> None:
    assert telemetry.to_parquet(_written(tmp_path, made()), tmp_path / "out.parquet") == 0


def test_numbers_and_texts_of_a_sampler_are_read(tmp_path: Path) -> None:
    frame = NUMBERS.with_columns(text=pl.lit("a"), flag=pl.lit(value=True))
    assert telemetry_stream.read(_written(tmp_path, _as_stream(frame))).equals(frame)  # type: ignore[union-attr]
