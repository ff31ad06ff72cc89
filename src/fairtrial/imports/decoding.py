"""Text of files from anyone's machine: UTF-8, UTF-16 with its byte order mark, or Latin-1 as Windows writes it."""

from __future__ import annotations

import codecs
import contextlib
import re
from typing import Final, NamedTuple

from fairtrial.errors import InputError, Problem

UTF_16: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
LATIN_1: Final = "cp1252"  # Latin-1 with the signs that Windows has where Latin-1 has controls
_ASCII: Final = 0x7F
_CONTROLS: Final = re.compile(rb"[\x00-\x08\x0e-\x1f\x7f]")  # bytes that no text of one byte per character holds


class Decoded(NamedTuple):
    """A file's text; `guessed` characters of it are beyond ASCII and were read as Latin-1."""

    text: str
    guessed: int = 0


def decoded(content: bytes, name: str) -> Decoded:
    """The text of a file, without its byte order mark, lines ending as they do here.

    Raises:
        InputError: it is text in none of the encodings; the message names the line.
    """
    utf_16 = content.startswith(UTF_16)
    try:
        return Decoded(_lines(content.decode("utf-16" if utf_16 else "utf-8-sig")))
    except UnicodeDecodeError as error:
        if not utf_16 and not _CONTROLS.search(content):
            with contextlib.suppress(UnicodeDecodeError):
                return Decoded(_lines(content.decode(LATIN_1)), guessed=sum(byte > _ASCII for byte in content))
        line = content[: error.start].count(b"\n") + 1
        kind = "damaged UTF-16 text" if utf_16 else "neither UTF-8, UTF-16 nor Latin-1 text, nor Parquet"
        hint = "save the file as UTF-8; UTF-16 needs its byte order mark"
        raise InputError([Problem(kind, name, line=line, column=1)], hint=hint) from error


def _lines(text: str) -> str:
    return text.replace("\r\n", "\n")
