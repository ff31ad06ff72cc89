"""Settings are pure: a value and facts in, steps out."""

import pytest
from pydantic import JsonValue, ValidationError
from support.facts import facts_of
from support.machines.set_here import validated as all_validated

from fairtrial.errors import PlaceError, RecordError
from fairtrial.settings import ANY_TRIAL, SETTINGS, TrialContext, effects, kind_of, setting_of
from fairtrial.settings.affinity import processors
from fairtrial.study.resolved import Section

FACTS = facts_of(user_id=0)


def validated(name: str, value: object) -> object:
    return all_validated({name: value})[name]


def test_a_sysctl_is_written_read_back_and_restored() -> None:
    effect = effects({"sysctl": validated("sysctl", {"vm.swappiness": 10})}, FACTS, ANY_TRIAL)
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
    effect = effects({"sysfs": validated("sysfs", {"/sys/kernel/mm/x": value})}, FACTS, ANY_TRIAL)
    ((_, step),) = effect.steps
    assert step.check is not None
    assert step.check.model_dump(mode="json")["normalise"] == normalise


def test_a_scheduler_is_written_before_what_it_would_reset() -> None:
    queue = "/sys/block/vda/queue"
    files = {f"{queue}/nr_requests": 32, f"{queue}/scheduler": "none", f"{queue}/wbt_lat_usec": 0}
    effect = effects({"sysfs": validated("sysfs", files)}, FACTS, ANY_TRIAL)
    written = [step.name.removeprefix(f"{queue}/") for _, step in effect.steps]
    assert written == ["scheduler", "nr_requests", "wbt_lat_usec"]


@pytest.mark.parametrize("names", [("nmi_watchdog", "watchdog"), ("watchdog", "nmi_watchdog")])
def test_the_switch_of_all_watchdogs_is_off_while_none_of_them_is_written(names: tuple[str, str]) -> None:
    off, on = ["kernel.nmi_watchdog", "kernel.watchdog"], ["kernel.watchdog", "kernel.nmi_watchdog"]
    for value, order in ((0, off), ("0", off), (1, on), ("1", on)):
        chosen = {f"kernel.{name}": value for name in names}
        steps = setting_of(Section({"sysctl": chosen})).effect(FACTS, ANY_TRIAL).steps
        setting_of.cache_clear()  # it takes the other order for the same
        assert [step.name for _, step in steps] == order


@pytest.mark.parametrize("path", ["/etc/passwd", "/sys/../etc/passwd", "kernel/mm/x"])
def test_sysfs_refuses_paths_outside_sys(path: str) -> None:
    with pytest.raises(ValidationError):
        validated("sysfs", {path: 1})


def test_drop_caches_acts_right_before_ramp_up_and_leaves_nothing_to_undo() -> None:
    effect = effects({"drop_caches": "page_cache"}, FACTS, ANY_TRIAL)
    ((phase, step),) = effect.steps
    assert phase == "before_ramp_up"
    assert step.check is None
    assert step.model_dump(mode="json")["inverse"] == {"kind": "none"}
    assert effects({"drop_caches": "nothing"}, FACTS, ANY_TRIAL).steps == ()


@pytest.mark.parametrize(("text", "numbers"), [("0", (0,)), ("0-2,5", (0, 1, 2, 5)), ("3,1", (1, 3)), ("1-1", (1,))])
def test_processor_lists_read_as_the_kernel_writes_them(text: str, numbers: tuple[int, ...]) -> None:
    assert processors(text) == numbers


@pytest.mark.parametrize(
    ("setting", "value", "said"),
    [
        ("affinity", {"client": "3-1"}, "the lower number first, found 3-1"),
        ("affinity", {"server": "0,2-99999999999"}, "up to 65535, found 2-99999999999"),
        ("numa", {"server": {"memory": "1-0"}}, "the lower number first, found 1-0"),
        ("sysfs", {"/sys/devices/system/cpu/intel_pstate/status": "off"}, "boot with `intel_pstate="),
        ("io_limit", {"reads_per_s": "1000/min"}, r"whole number per second, found 16\.6"),
        ("memory", 512, "at least a page of 4096 bytes, found 512 bytes"),
        ("memory", {"client": {"min": 64}}, "at least a page of 4096 bytes, found 64 bytes"),
        ("memory", {"server": {"limit": "1GiB", "swap": 1}}, "at least a page of 4096 bytes, found 1 bytes"),
    ],
)
def test_values_that_would_set_nothing_or_too_much_are_refused(setting: str, value: JsonValue, said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        validated(setting, value)


def test_affinity_goes_to_its_side_only() -> None:
    effect = effects({"affinity": validated("affinity", {"client": 3})}, FACTS, ANY_TRIAL)
    assert effect.client_processors == (3,)
    assert effect.server_processors is None


def test_affinity_names_processors_the_place_lacks() -> None:
    with pytest.raises(PlaceError, match=r"affinity\.server: processors \[7\] are not online"):
        effects({"affinity": {"server": "0-1,7", "client": None}}, FACTS, ANY_TRIAL)


def test_one_process_has_one_set_of_processors() -> None:
    within = TrialContext(ANY_TRIAL.directory, load="within")
    assert effects({"affinity": {"server": "0", "client": "0"}}, FACTS, within).server_processors == (0,)
    with pytest.raises(PlaceError, match="two processor sets, but system and load are one process"):
        effects({"affinity": {"server": "0", "client": "1"}}, FACTS, within)


def test_environment_variables_reach_the_effect_and_bad_names_do_not() -> None:
    assert effects({"environment": {"MALLOC_ARENA_MAX": "1"}}, FACTS, ANY_TRIAL).environment == {
        "MALLOC_ARENA_MAX": "1"
    }
    with pytest.raises(ValidationError):
        validated("environment", {"A=B": "1"})
    with pytest.raises(ValidationError):
        validated("environment", {"A": "1\0"})


def test_several_settings_keep_their_own_steps() -> None:
    effect = effects(
        {"drop_caches": "all", "sysctl": {"vm.swappiness": 1}, "environment": {"A": "b"}}, FACTS, ANY_TRIAL
    )
    assert {step.name for _, step in effect.steps} == {"drop_caches", "vm.swappiness"}
    assert effect.environment == {"A": "b"}


@pytest.mark.parametrize(
    ("value", "enabled"),
    [("on", "7"), ("off", "0"), (True, "7"), (False, "0"), ("0x5", "5"), (3, "3"), ({"enabled": "on"}, "7")],
)
def test_multigenerational_lru_is_said_in_words_or_bits(value: object, enabled: str) -> None:
    effect = effects({"lru_gen": validated("lru_gen", value)}, FACTS, ANY_TRIAL)
    ((phase, step),) = effect.steps
    assert phase == "before_server"
    assert step.check is not None
    assert step.check.expect == enabled
    assert step.check.normalise == "integer", "the kernel answers 0x0007"
    assert step.model_dump(mode="json")["action"]["path"] == "/sys/kernel/mm/lru_gen/enabled"
    assert step.model_dump(mode="json")["inverse"] == {"kind": "restore"}


def test_a_protected_age_is_a_step_of_its_own() -> None:
    effect = effects({"lru_gen": validated("lru_gen", {"enabled": "on", "min_ttl_ms": 1000})}, FACTS, ANY_TRIAL)
    assert [step.name for _, step in effect.steps] == ["lru_gen.enabled", "lru_gen.min_ttl_ms"]


@pytest.mark.parametrize(
    "value", ["yes", 8, -1, "0x8", {"enabled": 9}, {"min_ttl_ms": 1}, {"enabled": 1, "ttl": 2}, None]
)
def test_what_the_kernel_would_not_take_as_lru_gen_is_refused(value: object) -> None:
    with pytest.raises(ValidationError):
        validated("lru_gen", value)


def test_huge_pages_are_read_back_by_their_brackets() -> None:
    effect = effects({"transparent_huge_pages": validated("transparent_huge_pages", "never")}, FACTS, ANY_TRIAL)
    ((_, step),) = effect.steps
    assert step.check is not None
    assert (step.check.expect, step.check.normalise) == ("never", "brackets")
    both = {"enabled": "always", "defrag": "defer+madvise"}
    steps = effects({"transparent_huge_pages": validated("transparent_huge_pages", both)}, FACTS, ANY_TRIAL).steps
    assert [step.name for _, step in steps] == ["transparent_huge_pages.enabled", "transparent_huge_pages.defrag"]


@pytest.mark.parametrize("value", ["sometimes", {"defrag": "never"}, {"enabled": "never", "defrag": "later"}])
def test_what_huge_pages_cannot_be_is_refused(value: object) -> None:
    with pytest.raises(ValidationError):
        validated("transparent_huge_pages", value)


def test_a_governor_is_that_of_every_processor() -> None:
    steps = effects({"governor": validated("governor", "performance")}, FACTS, ANY_TRIAL).steps
    assert [step.name for _, step in steps] == [f"governor.{number}" for number in FACTS.processors]
    paths = {step.model_dump(mode="json")["action"]["path"] for _, step in steps}
    assert len(paths) == 4
    with pytest.raises(ValidationError):
        validated("governor", "../../etc/passwd")


def test_locks_are_variables_and_what_must_be_announced() -> None:
    effect = effects({"locks": validated("locks", {"kind": "ticket", "count": True})}, FACTS, ANY_TRIAL)
    assert effect.environment["FAIRTRIAL_LOCK"] == "ticket"
    assert "FAIRTRIAL_LOCK_SPINS" not in effect.environment
    assert effect.environment["LD_PRELOAD"].endswith("/server/libfairtrial_locks.so")
    assert effect.preloaded is not None
    assert effect.preloaded.words == "kind=ticket spins=100 count=yes"
    replaced = effects({"locks": validated("locks", {"fast_mutex": "local"})}, FACTS, ANY_TRIAL)
    assert replaced.preloaded is not None
    assert replaced.preloaded.words == "kind=passthrough count=no fastmutex=local"


def test_two_settings_do_not_both_preload() -> None:
    both = {"locks": validated("locks", {}), "environment": {"LD_PRELOAD": "other.so"}}
    with pytest.raises(PlaceError, match="both set LD_PRELOAD"):
        effects(both, FACTS, ANY_TRIAL)
    with pytest.raises(ValidationError, match="adaptive does as glibc does"):
        validated("locks", {"kind": "adaptive", "spins": 5})
    with pytest.raises(ValidationError, match="leave one of them out"):
        validated("locks", {"kind": "fast", "fast_mutex": "off"})


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"swappiness": 10, "sysctl": {"vm.swappiness": 1}}, "settings.swappiness and settings.sysctl both write"),
        ({"sysctl": {"vm.swappiness": 1, "vm/swappiness": 2}}, "both write /proc/sys/vm/swappiness"),
        ({"sysctl": {"vm.dirty_bytes": 4096, "vm.dirty_ratio": 5}}, "dirty_bytes and .*dirty_ratio, which undo each"),
        ({"lru_gen": "on", "sysfs": {"/sys/kernel/mm/lru_gen/enabled": 0}}, "lru_gen/enabled"),
    ],
)
def test_two_settings_do_not_write_one_file(settings: dict[str, JsonValue], said: str) -> None:
    with pytest.raises(PlaceError, match=said):
        effects({name: validated(name, value) for name, value in settings.items()}, FACTS, ANY_TRIAL)


@pytest.mark.parametrize("name", list(SETTINGS))
def test_every_kind_has_an_example_that_a_plan_holds_and_gives_back(name: str) -> None:
    held = validated(name, kind_of(SETTINGS[name]).example)
    assert validated(name, held) == held
    assert isinstance(setting_of(Section({name: held})), SETTINGS[name])


def test_what_another_version_set_is_not_left_out_without_a_word() -> None:
    with pytest.raises(RecordError, match="unknown setting `hugetlb`") as refused:
        effects({"hugetlb": 1}, FACTS, ANY_TRIAL)
    assert "plug-ins" in refused.value.hint
    with pytest.raises(RecordError, match="parameters of setting `swappiness` are not those of this version"):
        effects({"swappiness": "high"}, FACTS, ANY_TRIAL)
