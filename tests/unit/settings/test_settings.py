"""Settings are pure: a value and facts in, steps out."""

import pytest
from pydantic import TypeAdapter, ValidationError

from fairtrial.errors import PlaceError
from fairtrial.settings import SETTINGS, effects
from fairtrial.settings.affinity import processors

FACTS = {"processors": [0, 1, 2, 3], "user_id": 0}


def validated(name: str, value: object) -> object:
    adapter: TypeAdapter[object] = SETTINGS[name].KIND.parameters
    return adapter.dump_python(adapter.validate_python(value), mode="json")


def test_a_sysctl_is_written_read_back_and_restored() -> None:
    effect = effects({"sysctl": validated("sysctl", {"vm.swappiness": 10})}, FACTS)
    ((phase, step),) = effect.steps
    assert phase == "before_server"
    assert step.model_dump(mode="json") == {
        "name": "vm.swappiness",
        "action": {"kind": "write", "path": "/proc/sys/vm/swappiness", "value": "10"},
        "check": {
            "read": {"kind": "file", "path": "/proc/sys/vm/swappiness"},
            "expect": "10",
            "normalise": "words",
        },
        "inverse": {"kind": "restore"},
    }


@pytest.mark.parametrize(
    ("value", "normalise"), [("0x7", "integer"), (7, "integer"), ("madvise", "brackets"), ("y", "brackets")]
)
def test_sysfs_compares_numbers_as_numbers_and_words_by_brackets(value: object, normalise: str) -> None:
    effect = effects({"sysfs": validated("sysfs", {"/sys/kernel/mm/x": value})}, FACTS)
    ((_, step),) = effect.steps
    assert step.check is not None
    assert step.check.model_dump(mode="json")["normalise"] == normalise


@pytest.mark.parametrize("path", ["/etc/passwd", "/sys/../etc/passwd", "kernel/mm/x"])
def test_sysfs_refuses_paths_outside_sys(path: str) -> None:
    with pytest.raises(ValidationError):
        validated("sysfs", {path: 1})


def test_drop_caches_acts_right_before_ramp_up_and_leaves_nothing_to_undo() -> None:
    effect = effects({"drop_caches": "page_cache"}, FACTS)
    ((phase, step),) = effect.steps
    assert phase == "before_ramp_up"
    assert step.check is None
    assert step.model_dump(mode="json")["inverse"] == {"kind": "none"}
    assert effects({"drop_caches": "nothing"}, FACTS).steps == ()


@pytest.mark.parametrize(("text", "numbers"), [("0", (0,)), ("0-2,5", (0, 1, 2, 5)), ("3,1", (1, 3)), ("1-1", (1,))])
def test_processor_lists_read_as_the_kernel_writes_them(text: str, numbers: tuple[int, ...]) -> None:
    assert processors(text) == numbers


def test_affinity_goes_to_its_side_only() -> None:
    effect = effects({"affinity": validated("affinity", {"client": 3})}, FACTS)
    assert effect.client_processors == (3,)
    assert effect.server_processors is None


def test_affinity_names_processors_the_place_lacks() -> None:
    with pytest.raises(PlaceError, match=r"affinity\.server: processors \[7\] are not online"):
        effects({"affinity": {"server": "0-1,7", "client": None}}, FACTS)


def test_environment_variables_reach_the_effect_and_bad_names_do_not() -> None:
    assert effects({"environment": {"MALLOC_ARENA_MAX": "1"}}, FACTS).environment == {"MALLOC_ARENA_MAX": "1"}
    with pytest.raises(ValidationError):
        validated("environment", {"A=B": "1"})


def test_several_settings_keep_their_own_steps() -> None:
    effect = effects({"drop_caches": "all", "sysctl": {"vm.swappiness": 1}, "environment": {"A": "b"}}, FACTS)
    assert {step.name for _, step in effect.steps} == {"drop_caches", "vm.swappiness"}
    assert effect.environment == {"A": "b"}
