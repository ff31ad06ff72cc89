from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fairtrial.record import Record
from fairtrial.record.events import JournalLine
from fairtrial.record.models import ClientRecord, ClockShift, TrialRecord
from fairtrial.report import background
from fairtrial.report.background import Background, Fact
from fairtrial.study.resolved import Section


def _background(record: Record, *, contrast: str = "journal") -> Background:
    return background.background(record, contrast=contrast)


def _with_trials(record: Record, trials: tuple[TrialRecord, ...]) -> Record:
    changed = replace(record)
    changed.__dict__["trials"] = trials  # the cached property, as if it had been read so
    return changed


def test_a_value_all_trials_share_is_said_once_and_others_say_who_has_them(record: Record) -> None:
    options = _background(record).options
    assert Fact("synchronous", "2") in options
    assert Fact("journal_mode", "delete (journal delete); wal (journal wal)") in {
        Fact(fact.label, "; ".join(sorted(fact.value.split("; ")))) for fact in options
    }


def _reading(options: dict[str, dict[str, str]], record: Record) -> tuple[Fact, ...]:
    """Options as read back where a trial's are those of its arm; a trial that is not valid reads nothing."""
    read = (
        trial.model_copy(update={"options": options[trial.trial.arm] if trial.valid else {}}) for trial in record.trials
    )
    return _background(_with_trials(record, tuple(read))).options


def test_a_value_that_some_trials_lack_says_who_has_it(record: Record) -> None:
    assert _reading({"delete": {}, "wal": {"governor": "on"}}, record) == (Fact("governor", "on (journal wal)"),)
    assert _reading({"delete": {"governor": "on"}, "wal": {"governor": "on"}}, record) == (Fact("governor", "on"),)


def test_a_value_of_several_levels_names_these_and_no_level_that_every_trial_has(record: Record) -> None:
    read = [
        trial.model_copy(
            update={"levels": {"kernel": "6.1", "arm": arm}, "options": {} if arm == "a" else {"swap": "on"}}
        )
        for trial, arm in zip(record.trials, "abcabc", strict=False)
    ]
    assert background._common_or_each(read, lambda trial: trial.options) == (Fact("swap", "on (arm b or c)"),)


class _Levels(dict[str, str]):
    reads = 0

    def __getitem__(self, factor: str) -> str:
        _Levels.reads += 1
        return super().__getitem__(factor)


def test_the_levels_of_all_trials_are_not_read_again_for_each_value(record: Record) -> None:
    read = [
        record.trials[0].model_copy(update={"levels": _Levels(arm="ab"[number % 2]), "options": {"port": str(number)}})
        for number in range(100)
    ]
    (fact,) = background._common_or_each(read, lambda trial: trial.options)
    assert fact.value.startswith("0 (arm a); 1 (arm b); 2 (arm a); ")
    assert _Levels.reads <= 2 * len(read)


def test_facts_of_places_are_in_a_reader_s_units(record: Record) -> None:
    (place,) = _background(record).places
    assert place.name == "local"
    facts = {fact.label: fact.value for fact in place.facts}
    assert facts["memory"] == "8.000 GiB"
    assert facts["swap"] == "none"
    assert facts["processors"] == "4"
    assert facts["file system"] == "ext4"
    assert facts["server's user"] == "nobody"


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("memory_bytes", "memory"),
        ("client_operations_per_core_s", "client's ceiling, operations per second and core"),
        ("processors", "processors"),
        ("container.run_options", "container's options"),
    ],
)
@pytest.mark.parametrize("value", ["64 GiB", 10**400, [["a"], 1], {"a": 1}], ids=["text", "large", "list", "mapping"])
def test_a_fact_that_no_agent_tells_is_shown_as_it_stands(*, name: str, label: str, value: Any, record: Record) -> None:
    (opened,) = record.places
    part, _, own = name.partition(".")
    other = opened.model_copy(update={"facts": {**opened.facts, part: {own: value} if own else value}})
    (place,) = _background(replace(record, journal=(JournalLine(sequence=0, time="", entry=other),))).places
    expected = {"processors": "2", "container.run_options": '["a"] 1'} if isinstance(value, list) else {}
    assert Fact(label, expected.get(name, background.shown(value))) in place.facts


def test_a_trial_s_facts_are_those_of_its_place(record: Record) -> None:
    trial = record.trials[0]
    assert background.place_facts(record, trial)["ticks_per_s"] == 100
    elsewhere = trial.resolved.model_copy(update={"place": Section({"ssh": {"host": "other"}})})
    assert background.place_facts(record, trial.model_copy(update={"resolved": elsewhere})) == {}


def test_a_trial_s_facts_are_those_of_its_host(record: Record) -> None:
    (opened,) = record.places
    lines = [
        JournalLine(sequence=number, time="", entry=opened.model_copy(update={"host": host, "facts": {"kernel": host}}))
        for number, host in enumerate(("one", "two"))
    ]
    trial = record.trials[0].model_copy(update={"host": "two"})
    assert background.place_facts(replace(record, journal=tuple(lines)), trial) == {"kernel": "two"}


def test_a_place_reached_by_ssh_is_called_by_its_host(record: Record) -> None:
    (opened,) = record.places
    elsewhere = opened.model_copy(update={"place": Section({"ssh": {"host": "bench-7"}})})
    changed = replace(record, journal=(JournalLine(sequence=0, time="", entry=elsewhere),))
    assert [found.name for found in _background(changed).places] == ["ssh bench-7"]


def test_a_container_is_called_by_its_image_and_told_by_what_it_was_made_from(record: Record) -> None:
    (opened,) = record.places
    container = {
        "image": "db:1",
        "image_id": "ab12",
        "runtime": "podman 4.3.1, runc",
        "run_options": ["--cpus=1", "-x"],
    }
    boxed = opened.model_copy(
        update={"place": Section({"container": {"image": "db:1"}}), "facts": {**opened.facts, "container": container}}
    )
    (place,) = _background(replace(record, journal=(JournalLine(sequence=0, time="", entry=boxed),))).places
    assert place.name == "container db:1"
    assert {
        Fact("image", "db:1"),
        Fact("image's identifier", "ab12"),
        Fact("container runtime", "podman 4.3.1, runc"),
        Fact("container's options", "--cpus=1 -x"),
    } <= set(place.facts)


def test_what_was_lost_and_checked_is_counted(record: Record) -> None:
    found = _background(record)
    assert found.invalid == (Fact("0015-high-wal-b3", "the server restarted"),)
    assert found.added == ("high, block 6 in round 6 replaces block 3",)
    assert found.checks == (("3.3.2.1", 26, 0),)


def test_violations_are_added_up(record: Record) -> None:
    first, *others = record.trials
    broken = first.model_copy(update={"checks": [first.checks[0].model_copy(update={"violations": 4})]})
    found = _background(_with_trials(record, (broken, *others)))
    assert found.checks == (("3.3.2.1", 26, 4),)


def test_values_of_a_study_are_shown_as_written() -> None:
    assert background.shown("WAL") == "WAL"
    assert background.shown(None) == "–"
    assert background.shown({"a": [1, True]}) == '{"a": [1, true]}'


def test_differences_are_those_of_the_factor_compared(record: Record) -> None:
    assert [path for path, _ in _background(record).differences] == [
        "system.sqlite.pragmas.journal_mode",
        "system.sqlite.pragmas.wal_autocheckpoint",
    ]
    assert _background(record, contrast="users").differences == (
        ("workload.tpcc.virtual_users", {"low": "2", "high": "8"}),
    )


def test_clients_are_told_with_their_share_and_how_busy_they_got(record: Record) -> None:
    shift = ClockShift(shift_ns=0, error_ns=1)
    trials = [
        trial.model_copy(
            update={
                "clients": [
                    ClientRecord(place=f"ssh {name}", users=users, start_ns=0, clock_shift=shift)
                    for name, users in (("east", 3), ("west", number))
                ],
                "scalars": {"client_1_busy_share": 0.2 * number, "client_2_busy_share": 0.5},
            }
        )
        for number, trial in enumerate(record.trials[:2], start=1)
    ]
    assert background.clients(record.trials) == ()
    first, second = background.clients(trials)
    assert first == Fact(
        "client 1",
        "ssh east: 60 % to 75 % of the virtual users; its busiest event loop was busy for 40 % of a trial at most",
    )
    assert second.value.startswith("ssh west: 25 % to 40 % of the virtual users")
