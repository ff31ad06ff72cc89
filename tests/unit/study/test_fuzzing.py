"""Whatever stands in a study file, `load` returns a study or raises an `InputError` that helps: nothing else."""

from __future__ import annotations

import copy
import io
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from fairtrial import study
from fairtrial.errors import InputError

EXAMPLES = 20
Tree = dict[str, Any]

name = st.from_regex(r"[A-Za-z][A-Za-z0-9_.-]{0,8}", fullmatch=True).filter(lambda text: text.lower() != "null")
sizes = st.sampled_from(["384MiB", "1GB", "100 B", 4096])
times = st.sampled_from(["250ms", "60s", "10min", 1.5])
places = st.one_of(st.just({"local": {}}), sizes.map(lambda size: {"vm": {"memory": size}}))
systems = st.one_of(
    st.dictionaries(name, st.one_of(st.integers(0, 9), st.booleans(), name), max_size=3).map(
        lambda options: {"mariadb": {"options": options}}
    ),
    st.just({"sqlite": {}}),
)
metrics = st.sampled_from(["throughput_tpm", "throughput_nopm", "latency_ns_p99", "cpu_user_share"])


@st.composite
def trees(draw: st.DrawFn) -> Tree:
    """A valid study: one arm that differs in users, up to two conditions that set paths of their own."""
    workload = {"warehouses": draw(st.integers(1, 50)), "ramp_up": draw(times), "duration": draw(times)}
    arms = draw(st.lists(name, min_size=2, max_size=3, unique=True))
    factors: Tree = {
        "arm": {arm: {"workload": {"tpcc": {"virtual_users": index + 1}}} for index, arm in enumerate(arms)}
    }
    if draw(st.booleans()):
        factors["lru"] = {"off": {"settings": {"lru_gen": "off"}}, "on": {"settings": {"lru_gen": "on"}}}
    if draw(st.booleans()):
        levels = draw(st.lists(name, min_size=1, max_size=3, unique=True))
        factors["swappiness"] = {
            level: {"settings": {"sysctl": {"vm.swappiness": index}}} for index, level in enumerate(levels)
        }
    roles = draw(st.lists(metrics, min_size=1, max_size=3, unique=True))
    return {
        "study": draw(name),
        "question": draw(st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), max_size=20)),
        "place": draw(places),
        "system": draw(systems),
        "workload": {"tpcc": workload},
        "factors": factors,
        "arm": "arm",
        "trials": {"blocks": draw(st.integers(1, 30)), "seed": draw(st.integers(0, 2**63 - 1)), "margin": "2 %"},
        "metrics": {"primary": roles[0], "secondary": roles[1:]},
    }


def written(tree: Mapping[str, Any]) -> str:
    yaml = YAML(typ="safe", pure=True)
    yaml.default_flow_style = False
    yaml.sort_base_mapping_type_on_output = False
    stream = io.StringIO()
    yaml.dump(dict(tree), stream)
    return stream.getvalue()


def loaded(content: str | bytes, small: ModuleType) -> study.Study:
    """Loads from a file of its own: a test's `tmp_path` is shared by all examples."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "study.yaml")
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return study.load(path, catalogue=small.SMALL)


def refused(content: str | bytes, small: ModuleType) -> InputError:
    """The refusal, checked for what every refusal must have."""
    with pytest.raises(InputError) as raised:
        loaded(content, small)
    assert raised.value.hint
    assert raised.value.problems
    for problem in raised.value.problems:
        assert problem.file.endswith("study.yaml")
        assert problem.message
        assert (problem.line > 0) == (problem.column > 0)
    return raised.value


def mappings(tree: Tree, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Tree]]:
    """Every mapping whose keys belong to the language, with its path: levels, factors and options name themselves."""
    own = len(path) in (1, 2) and path[0] == "factors"
    if not own and "options" not in path and "sysctl" not in path:
        yield path, tree
    for key, below in tree.items():
        if isinstance(below, dict):
            yield from mappings(below, (*path, key))


@settings(max_examples=EXAMPLES)
@given(tree=trees())
def test_a_study_of_the_grammar_loads_and_its_dump_gives_it_back(tree: Tree, small: ModuleType) -> None:
    first = loaded(written(tree), small)
    text = study.dump(first)
    again = loaded(text, small)
    assert again == first
    assert study.dump(again) == text
    assert first.name == tree["study"]
    assert {factor.name: list(factor.level_names) for factor in first.factors} == {
        factor: list(levels) for factor, levels in tree["factors"].items()
    }


@settings(max_examples=EXAMPLES)
@given(tree=trees(), data=st.data())
def test_a_key_misspelt_by_one_letter_is_found_at_its_line_with_the_right_name(
    tree: Tree, data: st.DataObject, small: ModuleType
) -> None:
    known = [(path, key) for path, mapping in mappings(tree) for key in mapping if len(key) > 3]
    path, key = data.draw(st.sampled_from(known))
    at = data.draw(st.integers(0, len(key) - 1))
    misspelt = key[:at] + "q" + key[at + 1 :]
    assume(misspelt != key)
    broken = copy.deepcopy(tree)
    owner = broken
    for part in path:
        owner = owner[part]
    renamed = {misspelt if each == key else each: value for each, value in owner.items()}
    owner.clear()
    owner.update(renamed)
    text = written(broken)
    problems = refused(text, small).problems
    lines = [
        number for number, line in enumerate(text.splitlines(), start=1) if line.strip().startswith(f"{misspelt}:")
    ]
    found = [each for each in problems if misspelt in each.field or misspelt in each.message]
    assert found, problems
    assert any(f"`{key}`" in each.suggestion and each.line in lines for each in found), problems


@settings(max_examples=EXAMPLES)
@given(tree=trees(), data=st.data())
def test_one_random_mutation_loads_or_is_refused_with_a_position(
    tree: Tree, data: st.DataObject, small: ModuleType
) -> None:
    broken = copy.deepcopy(tree)
    _, owner = data.draw(st.sampled_from([(path, mapping) for path, mapping in mappings(broken) if mapping]))
    key = data.draw(st.sampled_from(sorted(owner)))
    action = data.draw(st.sampled_from(["delete", "type", "extra", "unit"]))
    if action == "delete":
        del owner[key]
    elif action == "extra":
        owner["surplus"] = 1
    elif action == "unit":
        owner[key] = "5 parsecs"
    else:
        owner[key] = data.draw(st.sampled_from([None, [], {}, True, -1, 1e300, "", [{"a": 1}], {"a": {"b": []}}]))
    text = written(broken)
    try:
        result = loaded(text, small)
    except InputError:
        assert all(problem.line > 0 for problem in refused(text, small).problems)
        return
    assert action != "extra"
    assert loaded(study.dump(result), small) == result


@settings(max_examples=EXAMPLES)
@given(tree=trees(), data=st.data())
def test_a_key_given_twice_names_both_places(tree: Tree, data: st.DataObject, small: ModuleType) -> None:
    key = data.draw(st.sampled_from(sorted(tree)))
    text = written(tree) + f"{key}: {{}}\n"
    first = next(number for number, line in enumerate(text.splitlines(), start=1) if line.startswith(f"{key}:"))
    messages = [(each.line, each.message) for each in refused(text, small).problems]
    assert (text.count("\n"), f"key `{key}` is given twice (first at {first}:1)") in messages


@settings(max_examples=200)
@given(content=st.one_of(st.binary(max_size=200), st.text(max_size=200).map(lambda text: text.encode())))
def test_bytes_are_a_study_or_a_refusal(content: bytes, small: ModuleType) -> None:
    refused(content, small)


@settings(max_examples=100)
@given(data=st.data())
def test_a_damaged_study_is_a_study_or_a_refusal(data: st.DataObject, small: ModuleType) -> None:
    """Cut anywhere, or with anything put anywhere: tabs, marks, other encodings, NUL, YAML's own signs."""
    whole = small.MGLRU.encode()
    at = data.draw(st.integers(0, len(whole)))
    junk = st.sampled_from(
        [b"\t", b"\0", b"\xff", b"\xe9", b"&a ", b"*a", b"!!python/name:os ", b"<<: ", b"---\n", b"{", b"\r"]
    )
    tail = data.draw(st.one_of(st.just(b""), junk.map(lambda bad: bad + whole[at:])))
    try:
        result = loaded(whole[:at] + tail, small)
    except InputError:
        refused(whole[:at] + tail, small)
    else:
        assert loaded(study.dump(result), small) == result


@pytest.mark.parametrize(
    "change",
    [
        lambda text: b"\xef\xbb\xbf" + text.encode(),
        lambda text: text.replace("\n", "\r\n").encode(),
        lambda text: text.rstrip("\n").encode(),
        lambda text: b"---\n" + text.encode() + b"...\n",
    ],
    ids=["byte order mark", "CRLF", "no last newline", "document marks"],
)
def test_what_editors_do_to_a_file_changes_nothing(change: Any, small: ModuleType) -> None:
    assert loaded(change(small.MGLRU), small) == loaded(small.MGLRU, small)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"study: caf\xe9\n", "not UTF-8 at byte 10"),
        (b"study: a\0b\n", "not YAML"),
        (b"study:\n\tname\n", "not YAML"),
        (b"study: x\n" + b"#" * (5 << 20), "larger than 512 KiB"),
        (b"a: " + b"[" * 300 + b"]" * 300, "more than 40 levels"),
        (b"a: " + b"[" * 20_000, "more than 40 levels"),
        (b"a: &a [*a]\n", "does an alias contain itself?"),
        (b"study: x\nfactors: *nowhere\n", "not YAML"),
        (b'study: "\\UFFFFFFFF"\n', "not YAML"),
        (b'study: "\\uD800"\n', "a surrogate is not a character"),
        (b"study: !!int x\n", "expected a value of the tag `int`, found 'x'"),
        (b"study: !!int ''\n", "expected a value of the tag `int`"),
        (b"study: !!bool maybe\n", "expected a value of the tag `bool`"),
        (b"study: " + b"9" * 5000, "expected a value of the tag `int`"),
        (b"study: 0x" + b"f" * 5000, "expected a number below 2^64"),
        (b"a:\n" + b" - b\n" * 20_000, "more than 10000 values"),
    ],
    ids=[
        *("Latin-1", "NUL", "tab", "5 MiB", "nested", "nested without end", "own parent", "no anchor"),
        *(
            "beyond Unicode",
            "half a pair",
            "no number",
            "empty number",
            "no truth",
            "5,000 digits",
            "hex",
            "many values",
        ),
    ],
)
def test_what_no_editor_should_have_written_is_named(content: bytes, message: str, small: ModuleType) -> None:
    assert message in str(refused(content, small))


def test_an_alias_is_the_value_it_names(small: ModuleType) -> None:
    """Anchors are YAML, and short: two levels may share an overlay's part."""
    text = small.MGLRU.replace("{settings: {lru_gen: off}}", "&off {settings: {lru_gen: off}}", 1).replace(
        "low:    {workload: {tpcc: {virtual_users: 6}}}", "low:    {workload: {tpcc: &six {virtual_users: 6}}}"
    )
    assert loaded(text, small) == loaded(small.MGLRU, small)
