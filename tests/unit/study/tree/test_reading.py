from __future__ import annotations

from pathlib import Path

import pytest

from fairtrial.errors import InputError
from fairtrial.study.tree.nodes import Scalar, Tree, plain
from fairtrial.study.tree.problems import Problems
from fairtrial.study.tree.reading import MAXIMUM_BYTES, parse, read_documents


def parsed(text: str) -> Tree:
    problems = Problems()
    node = parse(text, file="study.yaml", problems=problems)
    problems.raise_if_any()
    assert isinstance(node, Tree)
    return node


def refusal(text: str) -> str:
    with pytest.raises(InputError) as raised:
        parsed(text)
    return str(raised.value)


def test_yaml_1_2_keeps_on_off_yes_times_and_dates_as_text() -> None:
    text = "a: on\nb: off\nc: yes\nd: 1:30\ne: 2026-11-20\nf: true\ng: 010\nh: 0x1F\ni: ~\nj: '5'\nk: 1e3\nl: =\n"
    assert plain(parsed(text)) == {
        "a": "on",
        "b": "off",
        "c": "yes",
        "d": "1:30",
        "e": "2026-11-20",
        "f": True,
        "g": 10,
        "h": 31,
        "i": None,
        "j": "5",
        "k": 1000.0,
        "l": "=",
    }


def test_every_value_and_key_knows_its_line_and_column() -> None:
    tree = parsed("a: 1\nb:\n  c: [x, yy]\n")
    inner = tree.tree("b")
    assert (inner.where("c").line, inner.where("c").column) == (3, 3)
    values = inner.entries["c"]
    assert not isinstance(values, Scalar | Tree)
    assert [(item.at.line, item.at.column) for item in values.items] == [(3, 7), (3, 10)]


def test_a_name_keeps_its_source_text() -> None:
    value = parsed("version: 6.10\n").entries["version"]
    assert isinstance(value, Scalar)
    assert (value.value, value.text) == (6.1, "6.10")


def test_true_is_not_one() -> None:
    assert parsed("a: true") != parsed("a: 1")
    assert parsed("a: 1") == parsed("\n\na: 1")


def test_every_duplicate_key_is_reported_where_it_stands() -> None:
    message = refusal("a: 1\nb: {c: 1, c: 2}\na: 3\n")
    assert "study.yaml:2:11: b.c: key `c` is given twice (first at 2:5)" in message
    assert "study.yaml:3:1: a: key `a` is given twice (first at 1:1)" in message


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: [1\nb: 2", "study.yaml:2:2: not YAML"),
        ("a: *nobody", "study.yaml:1:4: not YAML: found undefined alias"),
        ("a: >= 3", "study.yaml:1:5: not YAML"),
        ("a: 1\n---\nb: 2", "study.yaml:2:1: not YAML"),
        ("a: &a [*a]", "does an alias contain itself?"),
        ("a: .nan", "study.yaml:1:4: a: expected a finite number, found .nan"),
        ("a: !custom x", "study.yaml:1:4: a: the YAML tag `!custom` is not supported"),
        ("base: &b {x: 1}\n<<: *b", "study.yaml:2:1: a key must be plain text"),
        ("? [a, b]\n: 1", "a key must be plain text"),
        ("a: \x00", "not YAML"),
        ('include: "a\\0b"', "study.yaml:1:10: no file name, command line or option can hold a NUL"),
        ("%YAML 1.1\n---\na: on", "a %YAML directive; studies are YAML 1.2"),
    ],
)
def test_what_is_no_study_yaml_is_refused_with_its_position(text: str, expected: str) -> None:
    assert expected in refusal(text)


@pytest.mark.parametrize(
    ("text", "fix"),
    [("a: what: why?", "quote values that hold `: `"), ("a:\n\tb: 1", "indent with spaces"), ("a: >= 3", "start with")],
)
def test_what_is_no_yaml_is_refused_with_what_would_mend_it(text: str, fix: str) -> None:
    with pytest.raises(InputError) as raised:
        parsed(text)
    assert fix in raised.value.hint


def test_aliases_that_multiply_are_stopped() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 8)]
    assert "10000 values" in refusal("\n".join(lines))


def test_includes_come_before_their_includer_relative_to_it(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "study.yaml").write_text("include: [parts/one.yaml, two.yaml]\nname: study\n", encoding="utf-8")
    (tmp_path / "parts" / "one.yaml").write_text("include: deep.yaml\nname: one\n", encoding="utf-8")
    (tmp_path / "parts" / "deep.yaml").write_text("name: deep\n", encoding="utf-8")
    (tmp_path / "two.yaml").write_text("name: two\n", encoding="utf-8")
    documents = read_documents(tmp_path / "study.yaml", Problems())
    assert [plain(document) for document in documents] == [{"name": name} for name in ("deep", "one", "two", "study")]


def test_an_include_cycle_is_shown_as_a_chain(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("x: 1\ninclude: b.yaml\n", encoding="utf-8")
    (tmp_path / "b.yaml").write_text("include:\n  - a.yaml\n", encoding="utf-8")
    with pytest.raises(
        InputError, match=r"b\.yaml:2:5: files include each other in a circle: a.yaml → b.yaml → a.yaml"
    ):
        read_documents(tmp_path / "a.yaml", Problems())


def test_files_that_include_each_other_twice_are_not_read_for_ever(tmp_path: Path) -> None:
    for number in range(20):
        (tmp_path / f"{number}.yaml").write_text(f"include: [{number + 1}.yaml, {number + 1}.yaml]\n", encoding="utf-8")
    (tmp_path / "20.yaml").write_text("name: last\n", encoding="utf-8")
    with pytest.raises(InputError, match="more than 100 files are included"):
        read_documents(tmp_path / "0.yaml", Problems())


def test_a_missing_include_is_reported_where_it_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("x: 1\ninclude: gone.yaml\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"a\.yaml:2:10: cannot read .*gone\.yaml: No such file") as refused:
        read_documents(tmp_path / "a.yaml", Problems())
    assert refused.value.hint == "check the path, which is relative to the file that names it"


def test_a_missing_file_of_the_command_line_is_relative_to_no_other_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot read .*nope\.yaml: No such file") as refused:
        read_documents(tmp_path / "nope.yaml", Problems())
    assert refused.value.hint == "check the path, which is relative to this directory"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "expected a mapping, found nothing"),
        (b"- a\n", "expected a mapping, found a list"),
        (b"a: \xff\n", "not UTF-8 at byte 3"),
        (b"#" * (MAXIMUM_BYTES + 1), "not a study"),
    ],
)
def test_files_that_are_no_study(tmp_path: Path, content: bytes, expected: str) -> None:
    path = tmp_path / "study.yaml"
    path.write_bytes(content)
    with pytest.raises(InputError, match=expected):
        read_documents(path, Problems())
