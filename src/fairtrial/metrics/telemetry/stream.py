"""Arrow IPC streams as samplers leave them: whole, or cut anywhere by a kill.

Owns finding the last whole message of a stream; Polars reads the rest. Source of the framing: Apache Arrow columnar
format, "Encapsulated message format" (continuation marker, metadata size, metadata padded to 8 bytes, body).
"""

from __future__ import annotations

import io
import os
import struct
from pathlib import Path
from typing import BinaryIO, Final

import polars as pl

CONTINUATION: Final = 0xFFFF_FFFF
PREFIX_BYTES: Final = 8  # continuation marker and metadata size
END_OF_STREAM: Final = struct.pack("<II", CONTINUATION, 0)
METADATA_LIMIT_BYTES: Final = 64 << 20  # a schema of thousands of columns is far below; more is a damaged size
BODY_LENGTH_SLOT: Final = 4 + 2 * 3  # in the vtable: two sizes, then `bodyLength` is the fourth field of `Message`


def read(path: Path) -> pl.DataFrame | None:
    """The rows of every whole batch; None if there is no whole schema or the stream is not one."""
    whole_bytes = whole_prefix_bytes(path)
    if not whole_bytes:
        return None
    with path.open("rb") as stream:
        content = stream.read(whole_bytes)
    try:
        return pl.read_ipc_stream(io.BytesIO(content + END_OF_STREAM))
    except (pl.exceptions.PolarsError, OSError):
        return None


def whole_prefix_bytes(path: Path) -> int:
    """How many bytes from the start are whole messages; without the end-of-stream marker."""
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
    except struct.error:  # cut, or offsets that point outside
        return 0


def _body_bytes(metadata: bytes) -> int:
    """`bodyLength` of a flatbuffers `Message`: root offset, its vtable, the field's slot there."""
    (table,) = struct.unpack_from("<I", metadata, 0)
    (to_vtable,) = struct.unpack_from("<i", metadata, table)
    vtable = table - to_vtable
    if vtable < 0:  # Python would count from the end
        raise struct.error("a vtable outside the message")
    (vtable_bytes,) = struct.unpack_from("<H", metadata, vtable)
    if vtable_bytes <= BODY_LENGTH_SLOT:
        return 0
    (offset,) = struct.unpack_from("<H", metadata, vtable + BODY_LENGTH_SLOT)
    body = struct.unpack_from("<q", metadata, table + offset)[0] if offset else 0
    if body < 0:
        raise struct.error("a negative body")
    return int(body)
