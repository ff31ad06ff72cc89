"""Arrow IPC streams as samplers leave them: whole, or cut anywhere by a kill.

Owns finding the last whole message of a stream that takes no more memory than its bytes, as every one of a sampler
does; Polars reads the rest. Sources: Apache Arrow columnar format, "Encapsulated message format" (continuation marker,
metadata size, metadata padded to 8 bytes, body), and its `Message.fbs` and `Schema.fbs`.
"""

from __future__ import annotations

import io
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

import polars as pl

CONTINUATION: Final = 0xFFFF_FFFF
Buffer = bytes | bytearray
PREFIX_BYTES: Final = 8  # continuation marker and metadata size
END_OF_STREAM: Final = struct.pack("<II", CONTINUATION, 0)
METADATA_LIMIT_BYTES: Final = 64 << 20  # a schema of thousands of columns is far below; more is a damaged size
BITS: Final = 8  # of a byte: no column has more values in one
# Fields of flatbuffers' tables, in their order in the schema; kinds of messages.
HEADER_TYPE, HEADER, BODY_LENGTH = 1, 2, 3
SCHEMA, RECORD_BATCH = 1, 3
FIELDS, DICTIONARY, CHILDREN = 1, 4, 5
LENGTH, NODES, BUFFERS, COMPRESSION, VARIADIC = 0, 1, 2, 3, 4


def read(path: Path) -> pl.DataFrame | None:
    """The rows of every whole batch; None if there is no whole schema or the stream is not one."""
    whole_bytes = whole_prefix_bytes(path)
    if not whole_bytes:
        return None
    with path.open("rb") as stream:
        content = stream.read(whole_bytes)
    try:
        return pl.read_ipc_stream(io.BytesIO(content + END_OF_STREAM))
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError):
        return None


def whole_prefix_bytes(path: Path) -> int:
    """How many bytes from the start are whole messages of a sampler; without the end-of-stream marker."""
    size = path.stat().st_size
    position = 0
    with path.open("rb") as stream:
        while (length := _message_bytes(stream, position)) and position + length <= size:
            position += length
    return position


def _message_bytes(stream: BinaryIO, position: int) -> int:
    """Length of the message at a position; 0 at the end of the stream or where none can be recognised."""
    stream.seek(position, os.SEEK_SET)
    head = stream.read(PREFIX_BYTES)
    if len(head) < PREFIX_BYTES:
        return 0
    marker = int.from_bytes(head[:4], "little")
    metadata_bytes = int.from_bytes(head[4:], "little")
    if marker != CONTINUATION or not 0 < metadata_bytes <= METADATA_LIMIT_BYTES:
        return 0
    metadata = stream.read(metadata_bytes)
    try:
        return PREFIX_BYTES + metadata_bytes + _body_bytes(metadata)
    except struct.error:  # cut, offsets that point outside, or what would take more memory than it has bytes
        return 0


def _body_bytes(metadata: Buffer) -> int:
    """`bodyLength` of a `Message`, whose header is a schema or a batch of plain columns."""
    message = _followed(metadata, 0)
    (kind,) = struct.unpack_from("<B", metadata, _field(metadata, message, HEADER_TYPE))
    header = _followed(metadata, _field(metadata, message, HEADER))
    at = _field(metadata, message, BODY_LENGTH)
    body = int(struct.unpack_from("<q", metadata, at)[0]) if at else 0
    if kind == SCHEMA:
        is_plain = not any(_is_nested(metadata, field) for field in _tables(metadata, header, FIELDS))
    else:
        is_plain = kind == RECORD_BATCH and _is_plain(metadata, header, body)
    if body < 0 or not is_plain:
        raise struct.error("not a message of a sampler")
    return body


def _is_nested(metadata: Buffer, field: int) -> bool:
    """Columns in a column can be so many inside each other that a reader's stack ends."""
    return _field(metadata, field, DICTIONARY) != 0 or _vector(metadata, field, CHILDREN)[1] != 0


def _is_plain(metadata: Buffer, batch: int, body: int) -> bool:
    """Whether a batch needs no more memory than its body: not compressed, and no byte of it is in two buffers."""
    if _field(metadata, batch, COMPRESSION) or _vector(metadata, batch, VARIADIC)[1]:
        return False
    at = _field(metadata, batch, LENGTH)
    (rows,) = struct.unpack_from("<q", metadata, at) if at else (0,)
    lengths = [rows, *_pairs(metadata, batch, NODES)[::2]]
    sizes = _pairs(metadata, batch, BUFFERS)[1::2]
    return max(lengths) <= BITS * body and min([*lengths, *sizes]) >= 0 and sum(sizes) <= body


def _field(metadata: Buffer, table: int, number: int) -> int:
    """Where a field of a table is; 0 if it has its default."""
    (to_vtable,) = struct.unpack_from("<i", metadata, table)
    vtable, slot = table - to_vtable, 4 + 2 * number  # behind two sizes
    if vtable < 0:  # Python would count from the end
        raise struct.error("a vtable outside the message")
    (vtable_bytes,) = struct.unpack_from("<H", metadata, vtable)
    (offset,) = struct.unpack_from("<H", metadata, vtable + slot) if slot < vtable_bytes else (0,)
    return table + int(offset) if offset else 0


def _followed(metadata: Buffer, at: int) -> int:
    return at + int(struct.unpack_from("<I", metadata, at)[0])


def _vector(metadata: Buffer, table: int, number: int) -> tuple[int, int]:
    """Where the items of a vector begin, and how many there are."""
    at = _field(metadata, table, number)
    start = _followed(metadata, at) if at else 0
    return start + 4, int(struct.unpack_from("<I", metadata, start)[0]) if at else 0


def _tables(metadata: Buffer, table: int, number: int) -> Iterator[int]:
    start, count = _vector(metadata, table, number)
    return (_followed(metadata, start + 4 * index) for index in range(count))


def _pairs(metadata: Buffer, table: int, number: int) -> tuple[int, ...]:
    """Of structures of two numbers: one behind the other."""
    start, count = _vector(metadata, table, number)
    if 16 * count > len(metadata):
        raise struct.error("a vector that is longer than the message")
    return struct.unpack_from(f"<{2 * count}q", metadata, start)
