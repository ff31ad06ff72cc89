"""Processors as kernels of real and virtual machines show them, each with its grade."""

from __future__ import annotations

import pytest
from support.facts import EMULATED
from support.seen import CPU, sampled, seen

from fairtrial.doctor import processors
from fairtrial.doctor.processors import boost, clock_source, frequency_scaling, numa, smt, throttling, virtualisation

CLOCKS = "/sys/devices/system/clocksource/clocksource0"


def governors(*names: str, driver: str = "intel_pstate") -> dict[str, str]:
    files = {f"{CPU}/cpu{number}/cpufreq/scaling_governor": name for number, name in enumerate(names)}
    return files | {f"{CPU}/cpu{number}/cpufreq/scaling_driver": driver for number in range(len(names))}


def test_every_processor_at_a_fixed_pace_is_fine() -> None:
    found = frequency_scaling(seen(governors("performance", "performance")))
    assert (found.grade, found.value, found.fix) == ("fine", "governor performance, driver intel_pstate", "")


@pytest.mark.parametrize("governor", ["powersave", "schedutil", "ondemand"])
def test_a_pace_that_follows_load_biases_and_the_setting_mends_it(governor: str) -> None:
    found = frequency_scaling(seen(governors(governor, governor)))
    assert (found.grade, found.biases) == ("caution", True)
    assert "settings: {governor: performance}" in found.fix


def test_one_processor_of_another_governor_is_seen_and_counted() -> None:
    found = frequency_scaling(seen(governors("performance", "performance", "powersave")))
    assert found.grade == "caution"
    assert found.value.startswith("governor performance (2), powersave (1)")


def test_a_virtual_machine_that_shows_no_frequency_is_unknown_not_fine() -> None:
    found = frequency_scaling(seen())
    assert (found.grade, found.value) == ("unknown", "not visible at this place")
    assert "host" in found.fix


@pytest.mark.parametrize(
    ("files", "grade", "value"),
    [
        ({f"{CPU}/intel_pstate/no_turbo": "0"}, "caution", "on"),
        ({f"{CPU}/intel_pstate/no_turbo": "1"}, "fine", "off"),
        ({f"{CPU}/cpufreq/boost": "1"}, "caution", "on"),
        ({f"{CPU}/cpufreq/boost": "0"}, "fine", "off"),
        ({f"{CPU}/cpu0/cpufreq/boost": "0", f"{CPU}/cpu1/cpufreq/boost": "1"}, "caution", "on"),
        ({}, "unknown", "not visible at this place"),
    ],
)
def test_boost_is_read_from_whichever_switch_the_driver_has(files: dict[str, str], grade: str, value: str) -> None:
    found = boost(seen(files))
    assert (found.grade, found.value) == (grade, value)
    assert not found.biases  # it adds noise, which intervals tell


def test_the_fix_of_boost_is_a_setting_of_the_switch_that_is_there() -> None:
    assert f"{CPU}/intel_pstate/no_turbo: 1" in boost(seen({f"{CPU}/intel_pstate/no_turbo": "0"})).fix
    assert f"{CPU}/cpufreq/boost: 0" in boost(seen({f"{CPU}/cpufreq/boost": "1"})).fix
    each = {f"{CPU}/cpu{number}/cpufreq/boost": "1" for number in range(2)}
    files = f"{{{CPU}/cpu0/cpufreq/boost: 0, {CPU}/cpu1/cpufreq/boost: 0}}"
    assert boost(seen(each)).fix == f"add `settings: {{sysfs: {files}}}` to the study"


def siblings(*lists: str) -> dict[str, str]:
    return {f"{CPU}/cpu{number}/topology/thread_siblings_list": each for number, each in enumerate(lists)}


def test_threads_of_one_core_are_named_as_siblings() -> None:
    found = smt(seen(siblings("0,2", "1,3", "0,2", "1,3")))
    assert (found.grade, found.value) == ("caution", "on, siblings 0,2; 1,3")
    assert "affinity" in found.fix


def test_siblings_are_written_as_ranges_too_and_many_are_cut_short() -> None:
    found = smt(seen(siblings(*(f"{core * 2}-{core * 2 + 1}" for core in range(8)))))
    assert found.value == "on, siblings 0-1; 10-11; 12-13; …"


def test_one_thread_for_each_core_is_fine_and_a_place_that_does_not_say_is_unknown() -> None:
    assert smt(seen(siblings("0", "1"))).value == "off"
    assert smt(seen({f"{CPU}/smt/active": "0"})).grade == "fine"
    assert smt(seen({f"{CPU}/smt/active": "1"})).value == "on"
    assert smt(seen()).grade == "unknown"


def test_several_nodes_are_a_caution() -> None:
    assert numa(seen({"/sys/devices/system/node/online": "0"})).value == "one node"
    assert numa(seen({"/sys/devices/system/node/online": "0-1"})).value == "nodes 0-1"
    assert numa(seen({"/sys/devices/system/node/online": "0-1"})).grade == "caution"
    assert numa(seen()).grade == "unknown"


@pytest.mark.parametrize(
    ("clock", "grade"),
    [("tsc", "fine"), ("kvm-clock", "fine"), ("hpet", "caution"), ("acpi_pm", "caution"), ("jiffies", "unfit")],
)
def test_a_clock_is_graded_by_what_reading_it_costs(clock: str, grade: str) -> None:
    found = clock_source(seen({f"{CLOCKS}/current_clocksource": clock}))
    assert (found.grade, found.value) == (grade, clock)
    assert bool(found.fix) == (grade != "fine")


def test_where_times_are_no_evidence_a_slow_clock_is_no_doubt_of_its_own() -> None:
    clock = {f"{CLOCKS}/current_clocksource": "hpet"}
    assert clock_source(seen(clock)).biases
    assert not clock_source(seen(clock, facts={"guest": EMULATED})).biases


def test_a_better_clock_that_is_there_is_named() -> None:
    files = {f"{CLOCKS}/current_clocksource": "hpet", f"{CLOCKS}/available_clocksource": "hpet acpi_pm tsc"}
    assert clock_source(seen(files)).fix.startswith("write tsc to")
    assert clock_source(seen()).grade == "unknown"


def heat(*counts: int) -> dict[str, str]:
    return {f"{CPU}/cpu{n}/thermal_throttle/core_throttle_count": str(count) for n, count in enumerate(counts)}


def test_a_machine_that_never_was_too_hot_is_fine() -> None:
    found = throttling(sampled(heat(0, 0), heat(0, 0)))
    assert (found.grade, found.value) == ("fine", "never")


def test_heat_since_the_boot_is_a_caution_and_heat_now_makes_a_place_unfit() -> None:
    before = throttling(sampled(heat(12, 3), heat(12, 3)))
    assert (before.grade, before.value, before.biases) == ("caution", "up to 12 times since boot", False)
    now = throttling(sampled(heat(12, 3), heat(12, 5)))
    assert (now.grade, now.value, now.biases) == ("unfit", "2 times in one second", True)


def test_uncounted_heat_is_unknown() -> None:
    assert throttling(sampled({}, {})).grade == "unknown"


def test_a_hypervisor_is_a_caution_and_emulation_says_what_it_is_good_for() -> None:
    assert virtualisation(seen()).grade == "fine"
    assert virtualisation(seen(facts={"virtualisation": "kvm"})).value == "kvm"
    emulated = virtualisation(seen(facts={"guest": EMULATED}))
    assert (emulated.grade, emulated.value) == ("caution", "emulated (tcg)")
    assert "counts" in emulated.why


def test_every_finding_says_why_and_those_that_are_not_fine_what_to_do() -> None:
    found = list(processors.findings(seen()))
    assert len({finding.name for finding in found}) == len(found) == 7
    assert all(finding.why for finding in found)
    assert all(finding.fix for finding in found if finding.grade != "fine")
