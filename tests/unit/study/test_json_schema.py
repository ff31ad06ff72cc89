from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import jsonschema
import pytest

from fairtrial import study
from fairtrial.catalogue import catalogue
from fairtrial.cli import schema as command
from fairtrial.study.tree.nodes import plain
from fairtrial.study.tree.problems import Problems
from fairtrial.study.tree.reading import parse


@pytest.fixture(scope="module")
def validator(small: ModuleType) -> jsonschema.Draft202012Validator:
    document = study.schema(small.SMALL)
    jsonschema.Draft202012Validator.check_schema(document)
    return jsonschema.Draft202012Validator(document)


def document(text: str) -> Any:
    node = parse(text, file="study.yaml", problems=Problems())
    assert node is not None
    return plain(node)


def test_a_whole_study_fits(validator: jsonschema.Draft202012Validator, small: ModuleType) -> None:
    assert list(validator.iter_errors(document(small.MGLRU))) == []


def test_a_dump_fits(validator: jsonschema.Draft202012Validator, small: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "study.yaml").write_text(small.MGLRU, encoding="utf-8")
    loaded = study.load(tmp_path / "study.yaml", catalogue=small.SMALL)
    assert list(validator.iter_errors(document(study.dump(loaded)))) == []


@pytest.mark.parametrize(
    ("old", "new", "path"),
    [
        ("memory: 1GiB", "memoryy: 1GiB", "$.place.vm"),
        ("memory: 1GiB", "memory: 1gib", "$.place.vm.memory"),
        ("ramp_up: 10s", "ramp_up: 10 parsecs", "$.workload.tpcc.ramp_up"),
        ("warehouses: 16", "warehouses: many", "$.workload.tpcc.warehouses"),
        ("{lru_gen: on}", "{lru_gen: yes}", "$.factors.kernel.mglru.settings.lru_gen"),
        ("{lru_gen: on}", "{lrugen: on}", "$.factors.kernel.mglru.settings"),
        ("mglru:    {settings", "mglru:    {zettings", "$.factors.kernel.mglru"),
        ("mglru:    {", "bad name: {", "$.factors.kernel"),
        ("randomised_blocks", "random", "$.trials.order"),
        ("blocks: 2}", "bloqs: 2}", "$.sizes.ci.trials"),
        ("arm: kernel", "amr: kernel", "$"),
        ("primary: refaults_per_transaction, ", "", "$.metrics"),
    ],
)
def test_a_mistake_is_found_where_it_is(
    validator: jsonschema.Draft202012Validator, small: ModuleType, *, old: str, new: str, path: str
) -> None:
    assert old in small.MGLRU
    errors = validator.iter_errors(document(small.MGLRU.replace(old, new, 1)))
    assert path in [error.json_path for error in errors]


def test_a_study_that_includes_another_may_leave_out_anything_but_may_not_add(
    validator: jsonschema.Draft202012Validator,
) -> None:
    assert list(validator.iter_errors({"include": "whole.yaml", "trials": {"blocks": 2}, "settings": None})) == []
    assert list(validator.iter_errors({"include": "whole.yaml", "trails": {}})) != []


WHOLE = """\
study: plain
question: which?
system: {sqlite: {}}
workload: {tpcc: {warehouses: 1, ramp_up: 1s, duration: 10s}}
settings: {}
factors: {users: {one: {}, two: {workload: {tpcc: {virtual_users: 2}}}}, 6.10: {a: {}, b: {settings: {swappiness: 1}}}}
arm: users
sizes: {}
metrics: {primary: throughput_tpm}
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("study: plain", "study: 2024"),
        ("which?", "5"),
        ("arm: users", "arm: 6.10"),
        ("arm: users", "arm: users\nalso_compare: 6.10"),
        ("arm: users", "arm: users\nalso_compare: [6.10]"),
        ("sizes: {}", "sizes: {ci: null}"),
        ("sizes: {}", "sizes: {ci: {arm: 6.10}}"),
        ("ramp_up: 1s", "ramp_up: 500µs"),
        ("{sqlite: {}}", "{sqlite: {pragmas: {cache_size: -2000}}}"),
        ("settings: {}", "settings: {lru_gen: true}"),
        ("settings: {}", "settings: {affinity: {server: 0, client: '1-2'}}"),
        ("settings: {}", "settings: {numa: {server: 0, client: {processors: 1, memory: 0-1}}}"),
    ],
)
def test_what_is_loaded_is_not_marked_as_wrong(tmp_path: Path, *, old: str, new: str) -> None:
    assert old in WHOLE
    path, known = tmp_path / "study.yaml", catalogue()
    path.write_text(WHOLE.replace(old, new, 1), encoding="utf-8")
    study.load(path, catalogue=known)
    errors = jsonschema.Draft202012Validator(study.schema(known)).iter_errors(document(path.read_text("utf-8")))
    assert [error.message for error in errors] == []


def test_null_removes_in_levels(validator: jsonschema.Draft202012Validator, small: ModuleType) -> None:
    text = small.MGLRU.replace("virtual_users: 38", "transactions: null, duration: 1s")
    assert list(validator.iter_errors(document(text))) == []


def test_editors_get_descriptions_choices_and_defaults(small: ModuleType) -> None:
    found = study.schema(small.SMALL)
    assert found["properties"]["question"]["description"].startswith("Question of the study")
    assert found["$defs"]["Trials"]["properties"]["order"]["default"] == "randomised_blocks"
    assert found["$defs"]["place.vm"]["properties"]["memory"]["description"] == "Its memory."
    assert set(found["$defs"]["workload"]["properties"]) == {"tpcc", "command", "place", "address", "tls"}
    assert found["$defs"]["workload.tpcc"]["description"] == "TPC-C's mix."


def test_the_command_prints_the_schema_as_json(small: ModuleType) -> None:
    assert json.loads(command.render(small.SMALL)) == study.schema(small.SMALL)
