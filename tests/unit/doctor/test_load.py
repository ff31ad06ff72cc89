"""Who else uses the processors: shares of a second, of machines that are busy and machines that are not."""

from __future__ import annotations

from typing import Any

import pytest
from support.facts import EMULATED
from support.seen import process, sampled, seen, stat

from fairtrial.doctor.load import OTHER_LOAD, STEAL, other_load, steal
from fairtrial.doctor.looking import PlaceObservation, processes, spent


def second(**ticks: Any) -> PlaceObservation:
    """Two processors, a second apart; what is not said is idle."""
    busy = ticks.get("user", 0) + ticks.get("steal", 0)
    after = stat(idle=1000 + 200 - busy, **ticks)
    return sampled({"/proc/stat": stat(idle=1000)}, {"/proc/stat": after}, {"/proc/loadavg": "0.50 0.40 0.30 1/99 7"})


@pytest.mark.parametrize(("ticks", "grade"), [(0, "fine"), (1, "fine"), (2, "caution"), (19, "caution"), (20, "unfit")])
def test_steal_is_graded_by_its_share_of_all_ticks(ticks: int, grade: str) -> None:
    found = steal(second(steal=ticks))
    assert (found.grade, found.biases) == (grade, True)
    assert found.value == f"{ticks / 2:.3g} % of 200 ticks"


@pytest.mark.parametrize(
    ("ticks", "grade"), [(0, "fine"), (9, "fine"), (10, "caution"), (49, "caution"), (50, "unfit")]
)
def test_other_load_is_graded_by_what_others_did_in_a_second(ticks: int, grade: str) -> None:
    found = other_load(second(user=ticks, running=3))
    assert (found.grade, found.biases) == (grade, True)
    assert found.value == f"{ticks / 2:.3g} % busy, 2 runnable, load average 0.50"


def test_a_guest_that_has_just_booted_has_nobody_else_in_it() -> None:
    before, after = {"/proc/stat": stat(idle=1000)}, {"/proc/stat": stat(user=150, idle=1050)}
    found = other_load(sampled(before, after, facts={"guest": EMULATED}))
    assert (found.grade, found.fix) == ("fine", "")
    assert found.value.startswith("75 % busy")


def test_limits_rise() -> None:
    for limits in (STEAL, OTHER_LOAD):
        assert 0 < limits.caution < limits.unfit < 1


def test_the_processes_that_ran_most_are_named_each_once() -> None:
    before = {f"/proc/{n}/stat": process(name, 100, number=n) for n, name in enumerate(("cc1", "cc1", "cron", "idle"))}
    after = {
        "/proc/0/stat": process("cc1", 140),
        "/proc/1/stat": process("cc1", 160),
        "/proc/2/stat": process("cron", 101),
        "/proc/3/stat": process("idle", 100),
        "/proc/9/stat": process("began meanwhile", 500),
    }
    found = sampled(
        before | {"/proc/stat": stat(idle=1000)}, after | {"/proc/stat": stat(user=101, idle=1099, running=3)}
    )
    assert processes(found) == [("cc1", 60), ("cc1", 40), ("cron", 1)]
    assert other_load(found).value.endswith("most by cc1, cron")
    assert "(cc1, cron)" in other_load(found).fix


def test_the_advice_is_to_stop_programs_and_no_threads_of_the_kernel() -> None:
    names = ("rustc", "kcompactd0", "cron")
    flags = {"kcompactd0": "2097216"}  # 0x200040

    def reading(ticks: int) -> dict[str, str]:
        lines = {name: process(name, ticks).replace("4194304", flags.get(name, "4194304")) for name in names}
        return {f"/proc/{number}/stat": line for number, line in enumerate(lines.values())}

    before, after = {"/proc/stat": stat(idle=1000)}, {"/proc/stat": stat(user=101, idle=1099, running=3)}
    found = other_load(sampled(before | reading(0), after | reading(50)))
    assert found.value.endswith("most by cron, kcompactd0, rustc")
    assert found.fix == "stop the other programs (cron, rustc), or wait for their end"


def test_a_process_may_be_called_anything() -> None:
    odd = "a) R (b c"
    before, after = {"/proc/5/stat": process(odd, 10)}, {"/proc/5/stat": process(odd, 30)}
    assert processes(sampled(before, after)) == [(odd, 20)]


def test_a_guest_of_this_machine_counts_once_though_the_kernel_counts_it_twice() -> None:
    before = "cpu  100 0 0 100 0 0 0 0 100 0"
    after = "cpu  150 0 0 150 0 0 0 0 150 0"
    sample = spent(sampled({"/proc/stat": before}, {"/proc/stat": after}))
    assert sample is not None
    assert (sample.busy, sample.ticks) == (0.5, 100)


def test_a_counter_that_goes_back_is_no_negative_share() -> None:
    before, after = "cpu  0 0 0 500 90 0 0 0 0 0", "cpu  50 0 0 550 80 0 0 0 0 0"
    sample = spent(sampled({"/proc/stat": before}, {"/proc/stat": after}))
    assert sample is not None
    assert sample.busy == 0.5


@pytest.mark.parametrize("place", [seen(), sampled({"/proc/stat": stat(idle=5)}, {"/proc/stat": stat(idle=5)})])
def test_without_two_readings_nothing_is_claimed(place: PlaceObservation) -> None:
    assert steal(place).grade == other_load(place).grade == "unknown"
