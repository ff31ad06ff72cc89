"""Mutations of real inputs, by what they are made of: documents of JSON and YAML, lines of them, text, bytes.

Hypothesis draws the seed and a number that says what is changed. What is put in is what breaks readers: numbers that no
type holds, text that no terminal prints, trees without bottom, a million of one thing.
"""

from __future__ import annotations

import base64
import json
import re
import struct
import zlib
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import Any, Final

from hypothesis import strategies as st
from ruamel.yaml import YAML

MILLION: Final = 1_000_000
# Values of JSON as they are written: some of them no encoder writes.
VALUES: Final = (
    *("null", "true", "false", "0", "-1", "1", "2", "0.5", "-0.0", "1e-320", "1e308", "-1e308", "1e400", "NaN"),
    *("Infinity", "-Infinity", "2147483648", "9007199254740993", "9223372036854775807", "18446744073709551616"),
    *("-9223372036854775809", "1" + "0" * 400, "9" * 5000, '""', '"0"', '"nan"', '"x"', '"\\u0000"', '"\\ud800"'),
    *('"\\u001b[2J"', '"../../x"', '"/etc/passwd"', '"a/b"', '"=1+1"', '"<script>"', '"\\u202e"', '"%s{0}{x}"'),
    *('"2026-01-01T00:00:00"', '"0001-01-01T00:00:00+23:59"', '"9999-12-31T23:59:59-23:59"', "[]", "{}", "[[]]"),
    *('{"":{"":[]}}', '{"a":1,"a":2}', "[null]", "[0,0]", "[" * 300 + "]" * 300, "[" * 100_000 + "]" * 100_000),
    *('{"a":' * 300 + "1" + "}" * 300, '"' + "x" * MILLION + '"', "[" + "0," * 100_000 + "0]"),
)
NUMBERS: Final = (
    *("0", "-1", "-0", "1", "0.1", "1e308", "1e400", "-1e400", "nan", "inf", "1e-320", "9223372036854775808"),
    *("9" * 5000, "1" * 100_000, "0x10", "1_0", "1,5", "", "x", "\u0661", "1e", "." * 1000),
)
JUNK: Final = (
    *(b"\0", b"\t", b"\r", b"\xff", b"\xe9", b"\xef\xbb\xbf", b"\xff\xfe", b"\x1b[2J", b"\n" * 100_000),
    *(b" " * 100_000, b"\xe2\x80\xa8", b'"', b"'", b",", b";", b":", b"#", b"{", b"}", b"[", b"]", b"<", b"&a "),
    *(b"*a", b"!!int x", b"!!bool x", b'"\\UFFFFFFFF"', b"<<: ", b"---\n", b"...\n", b"- " * 5000, b"? ", b"|\n"),
    *(b"a" * MILLION, b"1" * MILLION, b'"a",' * 100_000, b"a\n" * 100_000, b"%YAML 1.1\n", b"\xf0\x9f\x98\x80"),
)
HALF, RARELY = 0.5, 0.1
HEADER_BYTES: Final = 40  # of a histogram, before its numbers
DOCUMENTS: Final = (".json", ".jsonl")
_NUMBERS: Final = st.integers(0, (1 << 64) - 1)
_NUMBER: Final = re.compile(rb"-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_PLACE: Final = "\u2039{}\u203a"  # stands for a value of VALUES until the tree is written


def mutations(kind: str, seeds: Sequence[bytes]) -> st.SearchStrategy[bytes]:
    """Inputs near these seeds. Were every change drawn, most would be at the beginning: that is how drawing shrinks."""
    changed = KINDS[kind]
    return st.builds(lambda seed, number: changed(seed, Random(number)), st.sampled_from(list(seeds)), _NUMBERS)


def documents(seed: bytes, random: Random) -> bytes:
    """A JSON document with one to three values changed; sometimes changed as bytes as well."""
    text = _written(_changed(_parsed(seed), random)).encode(errors="surrogatepass")
    return damaged(text, random) if random.random() < RARELY else text


def yaml(seed: bytes, random: Random) -> bytes:
    """A YAML document, changed as a tree and written in YAML's flow style, or as text."""
    if random.random() < HALF:
        return texts(seed, random)
    return _written(_changed(_parsed_yaml(seed), random)).encode(errors="surrogatepass")


def json_lines(seed: bytes, random: Random) -> bytes:
    """Lines of JSON: one left out, twice, elsewhere, changed as a document, or all of it changed as text."""
    lines = seed.splitlines(keepends=True)
    at, other = random.randrange(len(lines)), random.randrange(len(lines))
    action = random.choice(["value", "value", "value", "value", "delete", "twice", "swap", "text"])
    if action == "value":
        lines[at] = _written(_changed(_parsed(lines[at]), random)).encode(errors="surrogatepass") + b"\n"
    elif action == "delete":
        del lines[at]
    elif action == "twice":
        lines.insert(other, lines[at])
    elif action == "swap":
        lines[at], lines[other] = lines[other], lines[at]
    else:
        return texts(seed, random)
    return b"".join(lines)


def texts(seed: bytes, random: Random) -> bytes:
    """Text with numbers changed, lines left out, repeated or exchanged, junk in it, or cut."""
    text = seed
    for _ in range(random.randint(1, 3)):
        numbers = [*_NUMBER.finditer(text[: 1 << 16])]
        lines = text.splitlines(keepends=True)
        action = random.choice(["number", "number", "line", "bytes"])
        if action == "number" and numbers:
            found = random.choice(numbers)
            text = text[: found.start()] + random.choice(NUMBERS).encode() + text[found.end() :]
        elif action == "line" and lines:
            at = random.randrange(len(lines))
            lines[at : at + 1] = [random.choice(lines)] * random.choice([0, 2, 3, 1000])
            text = b"".join(lines)[: 4 * MILLION]
        else:
            text = damaged(text, random)
    return text


def damaged(seed: bytes, random: Random) -> bytes:
    """Bytes cut anywhere, with junk anywhere, a stretch left out or twice, or single bytes changed."""
    at, length = random.randint(0, len(seed)), random.randint(0, 64)
    return {
        "cut": lambda: seed[:at],
        "junk": lambda: seed[:at] + random.choice(JUNK) + seed[at:],
        "delete": lambda: seed[:at] + seed[at + length :],
        "twice": lambda: seed[:at] + seed[at : at + length] * 2 + seed[at + length :],
        "byte": lambda: seed[:at] + bytes([random.randrange(256)]) + seed[at + 1 :],
    }[random.choice(["cut", "junk", "delete", "twice", "byte"])]()


def histogram_logs(seed: bytes, random: Random) -> bytes:
    """A histogram log changed inside the compression of one line, or as text."""
    lines = seed.splitlines(keepends=True)
    at = random.randrange(len(lines))
    head, _, encoded = lines[at].rstrip(b"\n").rpartition(b",")
    if not encoded.startswith(b"HIST") or random.random() < HALF / 2:
        return texts(seed, random)
    raw = base64.b64decode(encoded)
    inner = bytearray(zlib.decompress(raw[8:]))
    numbers = random.choice([None, None, bytes(900_000), b"\x02" * 900_000, b"\xfe\xff\x7f\x02", b"\x80" * 9])
    if numbers is not None:
        inner[HEADER_BYTES:] = numbers
    else:
        where = random.randrange(len(inner))
        inner[where : where + 1] = random.randbytes(random.randint(0, 9))
    if random.random() < HALF and len(inner) >= HEADER_BYTES:
        struct.pack_into(">I", inner, 4, len(inner) - HEADER_BYTES)
        struct.pack_into(">iq", inner, 12, random.randint(0, 6), 1 << random.randint(0, 62))
    packed = zlib.compress(bytes(inner))
    whole = raw[:4] + struct.pack(">I", len(packed)) + packed
    lines[at] = head + b"," + base64.b64encode(whole) + b"\n"
    return b"".join([*lines[: at + 1], *[lines[at]] * random.choice([0, 1, 300]), *lines[at + 1 :]])


def parts(seed: bytes, random: Random) -> bytes:
    """One file of several, which stand one after the other behind their names: see `several`."""
    files = apart(seed)
    end = random.choice([*DOCUMENTS, *sorted({Path(name).suffix for name in files})])  # a trial has many tables
    name = random.choice(sorted(name for name in files if name.endswith(end)) or sorted(files))
    return several({name: KINDS[kind_of(name)](files[name], random)})


def several(files: dict[str, bytes]) -> bytes:
    """Files as one input: a line of JSON with their names and sizes, then all of them."""
    sizes = {name: len(content) for name, content in files.items()}
    return json.dumps(sizes).encode() + b"\n" + b"".join(files.values())


def apart(content: bytes) -> dict[str, bytes]:
    """The files in such an input."""
    head, _, rest = content.partition(b"\n")
    files, at = {}, 0
    for name, size in json.loads(head).items():
        files[name] = rest[at : at + size]
        at += size
    return files


def kind_of(name: str) -> str:
    """By the end of a file's name."""
    ends = {".json": "json", ".jsonl": "lines", ".yaml": "yaml", ".hlog": "histograms", ".parquet": "bytes"}
    return next((kind for end, kind in ends.items() if name.endswith(end)), "text")


KINDS: Final[dict[str, Callable[[bytes, Random], bytes]]] = {
    "json": documents,
    "lines": json_lines,
    "yaml": yaml,
    "text": texts,
    "bytes": damaged,
    "histograms": histogram_logs,
    "record": parts,
}


@lru_cache(maxsize=256)
def _parsed(seed: bytes) -> Any:
    return json.loads(seed)


@lru_cache(maxsize=64)
def _parsed_yaml(seed: bytes) -> Any:
    return json.loads(json.dumps(YAML(typ="safe", pure=True).load(seed.decode()), default=str))


def _changed(tree: Any, random: Random) -> Any:
    """A copy of a tree with one to three nodes changed."""
    made = {"": json.loads(json.dumps(tree))}
    for _ in range(random.randint(1, 3)):
        owners = _owners(made)
        owner, key = random.choice(owners)
        other, other_key = random.choice(owners)
        action = random.choice(["value", "value", "value", "delete", "move", "rename"])
        if action == "value":
            owner[key] = _PLACE.format(random.randrange(len(VALUES)))
        elif action == "move":
            owner[key] = json.loads(json.dumps(other[other_key]))
        elif owner is made:
            continue
        elif action == "delete" or isinstance(owner, list):
            del owner[key]
        else:
            owner[_PLACE.format(random.randrange(len(VALUES)))] = owner.pop(key)
    return made[""]


def _owners(node: Any) -> list[tuple[Any, Any]]:
    """Every place in a tree, as what holds it and the key or number there."""
    found = []
    waiting = [node]
    while waiting:
        owner = waiting.pop()
        for key, value in owner.items() if isinstance(owner, dict) else enumerate(owner):
            found.append((owner, key))
            if isinstance(value, dict | list):
                waiting.append(value)
    return found


def _written(tree: Any) -> str:
    text = json.dumps(tree, ensure_ascii=False)
    for number, value in enumerate(VALUES):
        place = _PLACE.format(number)
        if place in text:
            as_key = value if value.startswith('"') else json.dumps(value[:100])
            text = text.replace(f'"{place}":', f"{as_key}:").replace(f'"{place}"', value)
    return text
