from __future__ import annotations

import configparser
import json
import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from fairtrial.errors import InputError
from fairtrial.systems.service import rendering
from fairtrial.systems.service.parameters import Configuration

HANDED_IN = {"http": "21306", "data": "/d"}
NAMES = st.text("abcxyz_", min_size=1, max_size=8)
CHARACTERS = st.text("abc =#;:'\"\\é🎉{}[]&*!|%@`~-\n\r\t\x7f\u2028", max_size=8)
VALUES = st.one_of(st.booleans(), st.integers(-9, 10**12), st.floats(allow_nan=False, allow_infinity=False), CHARACTERS)
LINES = CHARACTERS.filter(lambda value: value == value.strip() and not {*"\n\r\u2028"} & {*value})


def document(kind: str, options: dict[str, Any], text: str = "") -> str:
    return rendering.document(Configuration(format=kind, text=text), options, HANDED_IN)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("space", "port {http}", "port 21306\na.b yes\nc 1\nd true\n"),
        ("equals", "", "a.b=yes\nc=1\nd=true\n"),
        ("ini", "", "c = 1\nd = true\n[a]\nb = yes\n"),
        ("toml", "", 'a.b = "yes"\nc = 1\nd = true\n'),
        ("json", '{"a": {"z": 0}}', '{\n  "a": {\n    "z": 0,\n    "b": "yes"\n  },\n  "c": 1,\n  "d": true\n}\n'),
        ("yaml", "a:\n  z: {http}\n", "a:\n  z: 21306\n  b: yes\nc: 1\nd: true\n"),
        ("template", "x {c} in {data}; y {d} {other}", "x 1 in /d; y true {other}"),
        ("flags", "", ""),
        ("environment", "", ""),
    ],
)
def test_options_in_each_format(kind: str, text: str, expected: str) -> None:
    options = {"a.b": "yes", "c": 1, "d": True}
    assert document(kind, options, text) == expected


@given(st.dictionaries(NAMES, VALUES, max_size=5))
def test_what_is_written_is_read_by_others_as_it_was_meant(options: dict[str, Any]) -> None:
    assert json.loads(document("json", options)) == options
    assert tomllib.loads(document("toml", options)) == options
    assert (YAML(typ="safe").load(document("yaml", options)) or {}) == options


@given(st.dictionaries(NAMES, LINES, min_size=1, max_size=5))
def test_lines_are_read_by_others_as_they_were_meant(options: dict[str, str]) -> None:
    parser = configparser.ConfigParser(interpolation=None)
    parser.read_string(document("ini", {f"section.{name}": value for name, value in options.items()}))
    assert dict(parser["section"]) == options
    for kind, between in (("space", " "), ("equals", "=")):
        lines = document(kind, options).split("\n")[:-1]
        assert dict(line.split(between, maxsplit=1) for line in lines) == options


def test_names_and_numbers_that_toml_writes_otherwise_than_json() -> None:
    written = document("toml", {"cache.größe 🎉.n": 1, "inf": float("inf"), "nan": float("nan"), "": "\x7f"})
    assert tomllib.loads(written.replace("nan = nan\n", "")) == {
        "cache": {"größe 🎉": {"n": 1}},
        "inf": float("inf"),
        "": "\x7f",
    }
    assert "nan = nan\n" in written


def test_a_number_that_json_does_not_have_is_refused() -> None:
    with pytest.raises(InputError, match="make no json document"):
        document("json", {"a": float("inf")})


def test_sections_are_read_as_such() -> None:
    parser = configparser.ConfigParser()
    parser.read_string(document("ini", {"mysqld.a": 1, "other.b": "two words", "mysqld.c": False}))
    assert dict(parser["mysqld"]) == {"a": "1", "c": "false"}
    assert dict(parser["other"]) == {"b": "two words"}


@pytest.mark.parametrize(("kind", "text"), [("json", "{"), ("yaml", "a: [")])
def test_a_text_that_is_no_document_is_refused(kind: str, text: str) -> None:
    with pytest.raises(InputError, match=r"configuration\.text"):
        document(kind, {"a": 1}, text)


def test_an_option_below_a_value_is_refused() -> None:
    with pytest.raises(InputError, match="make no json document"):
        document("json", {"a.b": 1}, '{"a": 1}')


def test_what_is_handed_in_stays_one_word() -> None:
    words = rendering.argv("d -c '{config} x' {options} {work}", {"config": "/a b"}, flags=("--n=1", "--m=two words"))
    assert words == ["d", "-c", "/a b x", "--n=1", "--m=two words", "{work}"]
