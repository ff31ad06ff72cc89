"""What a trial gathers, and which of several reasons it is called invalid for."""

from typing import Any, cast

from support.facts import facts_of
from support.machines.places import place_in_memory
from support.records import RESOLVED, planned, tiny_plan

from fairtrial.record.models import Clock, ClockShift, Window
from fairtrial.run.trial.outcome import TrialOutcome
from fairtrial.run.trial.runner import TrialRunner
from fairtrial.wire.facts import BootFacts, GuestFacts

CLOCK = Clock(monotonic_ns=1, realtime_ns=2)


def test_the_first_reason_stays_because_it_is_the_cause() -> None:
    outcome = TrialOutcome()
    for reason in ("", "the load failed", "the server ended"):
        outcome.invalidate(reason)
    assert outcome.invalid_reason == "the load failed"


def test_a_lost_place_goes_before_what_went_wrong_on_it_and_takes_the_window() -> None:
    outcome = TrialOutcome(window=Window(start_ns=1, end_ns=2))
    outcome.invalidate("the load failed")
    outcome.lose("the stream was lost")
    assert outcome.invalid_reason == "the stream was lost; before that: the load failed"
    assert outcome.window is None


def test_a_kernel_of_which_only_modules_were_rebuilt_is_another_subject() -> None:
    """Its image, its release and what it says of its build are the same."""
    same = {"by": "kexec", "kernel_source": "/build", "kernel_sha256": "a" * 64, "boot_id": "1", "build_id": "b"}
    subjects = []
    for content in ("base", "patched"):
        boot = BootFacts(**same, microcode="", content_sha256=content)
        with place_in_memory(facts=facts_of(boot=boot)) as (place, _fake):
            runner = TrialRunner(place, cast("Any", None), cast("Any", None), cast("Any", None))
            subjects.append(runner.subject)
    assert subjects[0] | {"modules": "patched"} == subjects[1] != subjects[0]


def test_a_guest_of_which_only_modules_were_rebuilt_is_another_subject() -> None:
    subjects = []
    for content in ("base", "patched"):
        facts = facts_of(guest=GuestFacts(accelerator="kvm", emulated=False, content_sha256=content))
        with place_in_memory(facts=facts) as (place, _fake):
            runner = TrialRunner(place, cast("Any", None), cast("Any", None), cast("Any", None))
            subjects.append(runner.subject)
    assert subjects[0] | {"modules": "patched"} == subjects[1] != subjects[0]


def test_the_loads_end_is_told_by_the_servers_clock_wherever_the_load_ran() -> None:
    """The workload's place is 7 ahead: what it calls 100 is 93 where the server is."""
    window = Window(start_ns=1, end_ns=100)
    assert TrialOutcome().load_ended_ns is None
    assert TrialOutcome(window=window).load_ended_ns == 100
    assert TrialOutcome(window=window, clock_shift=ClockShift(shift_ns=7, error_ns=1)).load_ended_ns == 93


def test_a_trial_without_doubts_is_valid_and_knows_every_level() -> None:
    outcome = TrialOutcome(phases_s={"drive": 1.23456})
    record = outcome.record(planned(1, "b"), plan=tiny_plan(), resolved=RESOLVED, clock=CLOCK, subject={})
    assert record.valid
    assert record.levels == {"arm": "b"}
    assert record.phases_s == {"drive": 1.235}
    outcome.invalidate("no")
    assert not outcome.record(planned(1, "b"), plan=tiny_plan(), resolved=RESOLVED, clock=CLOCK, subject={}).valid
