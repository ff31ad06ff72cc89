"""Numeric factors and the curve over one of them: what they become, and every mistake at its line."""

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import jsonschema
import pytest
from ruamel.yaml import YAML

from fairtrial import plan, study
from fairtrial.catalogue import catalogue
from fairtrial.errors import InputError
from fairtrial.record.models import Plan

STUDY = """\
study: growth
system: {mariadb: {}}
workload: {tpcc: {duration: 1s}}
factors:
  lru:
    old: {settings: {lru_gen: "off"}}
    new: {settings: {lru_gen: "on"}}
  users: {values: [1, 2, 4, 8], of: workload.tpcc.virtual_users}
arm: lru
curve: {over: users, model: usl}
metrics: {primary: throughput_tpm}
"""


def test_each_value_is_a_level_that_sets_the_path_and_carries_its_number(
    load: Callable[..., study.Study], small: ModuleType
) -> None:
    made = plan.make(load(STUDY), catalogue=small.SMALL)
    assert made.factors["users"] == ["1", "2", "4", "8"]
    assert made.values == {"users": {"1": 1.0, "2": 2.0, "4": 4.0, "8": 8.0}}
    assert made.curve is not None
    assert (made.curve.over, made.curve.model) == ("users", "usl")
    users = [made.resolved[cell]["old"].workload.parameters["virtual_users"] for cell in made.resolved]
    assert users == [1, 2, 4, 8]
    assert Plan.model_validate_json(made.model_dump_json()) == made


def test_a_plan_without_numbers_has_no_word_of_them(load: Callable[..., study.Study], small: ModuleType) -> None:
    plain = STUDY.replace("{values: [1, 2, 4, 8], of: workload.tpcc.virtual_users}", "{few: {}}")
    made = plan.make(load(plain.replace("curve: {over: users, model: usl}\n", "")), catalogue=small.SMALL)
    assert not {"values", "curve"} & made.model_dump().keys()


def test_a_value_may_set_several_paths_and_have_a_unit(load: Callable[..., study.Study], small: ModuleType) -> None:
    text = STUDY.replace(
        "values: [1, 2, 4, 8], of: workload.tpcc.virtual_users",
        'values: [256MiB, 512MiB, 1GiB], of: [place.vm.memory, settings.sysctl."vm.x"]',
    ).replace("system:", "place: {vm: {}}\nsystem:")
    loaded = load(text)
    assert plan.make(loaded, catalogue=small.SMALL).values["users"] == {
        "256MiB": 2.0**28,
        "512MiB": 2.0**29,
        "1GiB": 2.0**30,
    }
    trial = loaded.resolve({"lru": "old", "users": "512MiB"})
    assert trial.place.parameters["memory"] == 1 << 29
    assert trial.settings["sysctl"] == {"vm.x": "512MiB"}


def test_a_study_written_out_loads_again(load: Callable[..., study.Study]) -> None:
    loaded = load(STUDY)
    assert load(study.dump(loaded)) == loaded


def test_a_level_has_the_same_name_however_its_number_is_written(load: Callable[..., study.Study]) -> None:
    text = STUDY.replace("curve: {over: users, model: usl}\n", "").replace("[1, 2, 4, 8]", "[0x1, 0o2, 16]")
    loaded = load(text + 'expect: {users.2: {throughput_tpm: ">= 0"}}\n')
    again = load(study.dump(loaded))
    assert loaded.factors[1].level_names == again.factors[1].level_names == ("1", "2", "16")


OPTION = "of: system.mariadb.options.x"
FREE = STUDY.replace("curve: {over: users, model: usl}\n", "").replace("of: workload.tpcc.virtual_users", OPTION)


@pytest.mark.parametrize("name", ["1.00", "users.1.00", "1", "1e0", "users.0x1"])
def test_a_level_is_named_by_its_number_however_that_is_written(load: Callable[..., study.Study], name: str) -> None:
    text = FREE.replace("[1, 2, 4, 8]", "[0.50, 1.00]") + f'expect: {{{name}: {{throughput_tpm: ">= 0"}}}}\n'
    loaded = load(text)
    assert [(each.factor, each.level) for each in loaded.expectations] == [("users", "1.0")]
    assert load(study.dump(loaded)).expectations == loaded.expectations
    lru, users = loaded.factors
    assert [users.level(text) for text in ("0.50", "1", "2", "half")] == ["0.5", "1.0", None, None]
    assert [lru.level(text) for text in ("old", "older")] == ["old", None]


def test_a_level_that_has_the_name_is_meant_before_one_of_the_same_number(load: Callable[..., study.Study]) -> None:
    other = "  more: {values: [1.0, 2.0], of: system.mariadb.options.y}\narm:"
    loaded = load(FREE.replace("arm:", other) + 'expect: {1: {throughput_tpm: ">= 0"}}\n')
    assert [(each.factor, each.level) for each in loaded.expectations] == [("users", "1")]


def test_a_version_is_no_number(mistakes: Callable[..., list[str]]) -> None:
    levels = '{"6.1": {}, "6.2": {settings: {sysctl: {x: 1}}}}'
    text = FREE.replace(f"{{values: [1, 2, 4, 8], {OPTION}}}", levels)
    (mistake,) = mistakes(text + 'expect: {6.10: {throughput_tpm: ">= 0"}}\n')
    assert "unknown level `6.10`" in mistake


def test_a_name_of_hundreds_of_digits_is_no_number(mistakes: Callable[..., list[str]]) -> None:
    (mistake,) = mistakes(FREE + f'expect: {{"0x{"f" * 300}": {{throughput_tpm: ">= 0"}}}}\n')
    assert "unknown level `0xfff" in mistake


def test_large_numbers_name_levels(load: Callable[..., study.Study]) -> None:
    text = FREE.replace("[1, 2, 4, 8]", "[1e15, 1e16]")
    loaded = load(text + 'expect: {1e+16: {throughput_tpm: ">= 0"}}\n')
    assert loaded.factors[1].level_names == ("1000000000000000.0", "1e16")
    assert load(study.dump(loaded)) == loaded


def test_a_curve_takes_numbers_however_they_are_written(load: Callable[..., study.Study]) -> None:
    assert load(STUDY.replace("[1, 2, 4, 8]", "[0x1, 0o2, 4]")).factors[1].level_names == ("1", "2", "4")


def test_a_size_replaces_the_values(load: Callable[..., study.Study]) -> None:
    text = STUDY + "sizes: {ci: {factors: {users: {values: [1, 3, 9]}}}}\n"
    assert load(text, size="ci").factors[1].level_names == ("1", "3", "9")


NO_NAME = (
    "study.yaml:8:20: factors.users.values.0: `{}` cannot name a level: expected letters, digits, dots and dashes ({})"
)


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        (
            "of: workload.tpcc.virtual_users",
            "of: virtual_users",
            "study.yaml:8:37: factors.users.of: expected a path that begins with `place`, `system`, `workload`, `sett",
        ),
        (
            ", of: workload.tpcc.virtual_users",
            "",
            "study.yaml:8:10: factors.users.of: expected `of`: the path that each value sets",
        ),
        ("[1, 2, 4, 8]", "[1, 2, 4, many]", "study.yaml:8:29: factors.users.values.3: expected a number, or a size"),
        ("[1, 2, 4, 8]", "[1, 2, 4, 4.0]", "study.yaml:8:29: factors.users.values.3: the same value as `4`"),
        ("[1, 2, 4, 8]", "[1, 2, 4, -8]", "study.yaml:8:29: factors.users.values.3: `-8` cannot name a level"),
        ("[1, 2, 4, 8]", "[-8]", NO_NAME.format("-8", "make it a factor with levels")),
        ("[1, 2, 4, 8]", "[8 MiB]", NO_NAME.format("8 MiB", "write `8MiB`")),
        ("[1, 2, 4, 8]", "[]", "study.yaml:8:19: factors.users.values: expected a list of numbers"),
        ("of: workload", "few: {}, of: workload", "study.yaml:8:33: factors.users.few: a numeric factor has `values`"),
        (
            "[1, 2, 4, 8]",
            "[1, 2, 4, 0.5]",
            "study.yaml:8:29: workload.tpcc.virtual_users: expected a whole number, found 0.5, with users=0.5",
        ),
        ("over: users", "over: user", "study.yaml:10:15: curve.over: unknown factor `user`; expected one of `users`"),
        ("over: users", "over: lru", "study.yaml:10:15: curve.over: factor `lru` is not numeric"),
        ("arm: lru", "arm: users", "study.yaml:10:15: curve.over: `users` is the arm"),
        ("[1, 2, 4, 8]", "[1, 2]", "study.yaml:8:20: factors.users.values: `model: usl` needs at least 3 values"),
        (
            "arm: lru",
            "arm: lru\ntrials: {stop: sequential}",
            "study.yaml:10:16: trials.stop: a curve needs equally many blocks at every value",
        ),
        ("model: usl", "model: cubic", "study.yaml:10:29: curve.model: expected"),
    ],
)
def test_a_mistake_is_found_at_its_line(mistakes: Callable[..., list[str]], old: str, new: str, *, found: str) -> None:
    assert old in STUDY
    noted = mistakes(STUDY.replace(old, new))
    assert any(each.startswith(found) for each in noted), noted


def test_the_law_of_scalability_is_of_throughput(tmp_path: Path) -> None:
    (tmp_path / "study.yaml").write_text(
        """\
study: growth
workload: {command: {run: "true", metrics: {took: {regex: "(.+)", better: lower}}}}
factors:
  kind: {a: {settings: {environment: {KIND: a}}}, b: {settings: {environment: {KIND: b}}}}
  size: {values: ["1", "2", "4"], of: settings.environment.SIZE}
arm: kind
curve: {over: size, model: usl}
metrics: {primary: took}
"""
    )
    with pytest.raises(InputError) as raised:
        study.load(tmp_path / "study.yaml", catalogue=catalogue())
    (problem,) = raised.value.problems
    assert (problem.line, problem.field) == (7, "curve.model")
    assert "lower values of `took` are better" in problem.message
    assert study.load(tmp_path / "study.yaml", catalogue=catalogue(), overrides=["curve.model=linear"]).file.curve


def test_zero_is_a_value_without_a_curve_only(
    load: Callable[..., study.Study], mistakes: Callable[..., list[str]]
) -> None:
    values = "values: [1, 2, 4, 8], of: workload.tpcc.virtual_users"
    zero = STUDY.replace(values, "values: [0, 1, 2], of: settings.sysctl.x")
    (mistake,) = mistakes(zero)
    assert mistake.startswith("study.yaml:8:20: factors.users.values: a curve needs values above 0, found 0")
    assert load(zero.replace("curve: {over: users, model: usl}\n", "")).factors[1].level_names == ("0", "1", "2")


def test_the_schema_takes_values_in_place_of_levels_and_finds_a_mistake_in_them(small: ModuleType) -> None:
    validator = jsonschema.Draft202012Validator(study.schema(small.SMALL))

    def wrong(text: str) -> list[str]:
        return [error.json_path for error in validator.iter_errors(YAML(typ="safe").load(text))]

    sizes = "sizes: {ci: {factors: {users: {few: null, values: [1, 2, 3]}}}}\n"
    assert wrong(STUDY + sizes) == []
    assert wrong(STUDY.replace("of: workload.tpcc.virtual_users", "of: 7")) == ["$.factors.users.of"]
    assert wrong(STUDY.replace("values: [1, 2, 4, 8]", "values: []")) == ["$.factors.users.values"]
