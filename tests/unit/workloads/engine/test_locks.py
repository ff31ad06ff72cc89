"""`locks`: what a study may ask for, what reaches the agent, and real locks through a real agent."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any, get_args

import pytest
from pydantic import ValidationError
from support.driven import driven_of
from support.machines.places import place_here, place_in_memory, spawned

from fairtrial.protocol.generated import LockDrive
from fairtrial.run.trial import sampling as telemetry
from fairtrial.settings import locks as locks_setting
from fairtrial.wire.fake import FakeProgram
from fairtrial.wire.open_place import OpenPlace
from fairtrial.workloads import Drive, DriveOutcome
from fairtrial.workloads.engine.locks import DEFAULT_SPINS, Locks, LocksParameters

OUT = PurePosixPath("/w/out")
KINDS = get_args(LocksParameters.model_fields["kind"].annotation)
RESULT = driven_of(effective={"lock_bytes": "128"})
THREAD = {"acquisitions": 5, "handed": 1, "sampled": 2, "contended": 1, "longest_gap_ns": 7}
CONTENTION = {
    "threads": [THREAD],
    "sample_every": 16,
    "turn_ns": 1.5,
    "clock_ns": 20.0,
    "lock_bytes": 128,
    "acquired": 9,
    "guarded": 9,
    "intruded": 0,
    "torn_lines": 0,
}


def locks(**given: Any) -> Locks:
    asked = {"duration": "5s", **given}
    return Locks(LocksParameters.model_validate({name: value for name, value in asked.items() if value is not None}))


def drive_of(out: PurePosixPath, *, processors: tuple[int, ...] | None = None, groups: tuple[str, ...] = ()) -> Drive:
    return Drive(
        endpoint=None,
        seed=99,
        directory=out,
        work_directory=out,
        environment={},
        processors=processors,
        groups=groups,
        on_progress=lambda _line: None,
    )


def asked(told: dict[str, Any] | None = None, **given: Any) -> tuple[LockDrive, DriveOutcome]:
    with place_in_memory(lambda _spawn: FakeProgram(stdout=["{}"])) as (place, fake):
        fake.files[str(OUT / "result.json")] = RESULT.model_dump_json().encode()
        fake.files[str(OUT / "contention.json")] = json.dumps({**CONTENTION, **(told or {})}).encode()
        driven = locks(**given).drive(place, drive_of(OUT))
        return LockDrive.model_validate_json(spawned(fake, "lock-drive").stdin or ""), driven


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"kind": "mutex"}, "kind"),
        ({"threads": 0}, "threads"),
        ({"threads": 513}, "threads"),
        ({"locks": 65_537}, "locks"),
        ({"padding": "wide"}, "padding"),
        ({"critical": -1}, "critical"),
        ({"outside": 100_000_001}, "outside"),
        ({"lines": 65}, "lines"),
        ({"locks": 65_536, "lines": 17}, "`locks` times `lines` must be at most 1048576"),
        ({"sample_every": 0}, "sample_every"),
        ({"interval": "1ms"}, "interval"),
        ({"spins": 8}, "`pthread` does not"),
        ({"kind": "spin", "spins": 8}, "`spin` does not"),
        ({"kind": "mcs", "spins": 1_000_001}, "spins"),
        ({"acquisitions": 500}, "exactly one of `duration` and `acquisitions`"),
        ({"duration": None}, "exactly one of `duration` and `acquisitions`"),
        ({"duration": None, "acquisitions": 15}, "at least `sample_every`"),
    ],
)
def test_mistakes_are_named(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError) as raised:
        locks(**wrong)
    assert message in str(raised.value)


def test_the_agent_is_asked_for_everything_the_study_says() -> None:
    found, driven = asked(
        kind="fast-local",
        threads=3,
        locks=7,
        padding=False,
        spins=4,
        critical=11,
        outside=22,
        spacing="exponential",
        lines=2,
        sample_every=5,
        ramp_up="250ms",
        interval="20ms",
    )
    assert (found.kind, found.threads, found.locks, found.padding, found.spins) == ("fast-local", 3, 7, False, 4)
    assert (found.critical_turns, found.outside_turns, found.spacing, found.lines) == (11, 22, "exponential", 2)
    assert (found.sample_every, found.ramp_up_s, found.duration_s, found.acquisitions) == (5, 0.25, 5.0, None)
    assert (found.seed, found.interval_ms, found.output_directory) == (99, 20, str(OUT))
    assert driven.effective == RESULT.effective
    assert driven.invalid_reason == ""


def test_it_starts_on_the_processors_and_in_the_groups_of_the_trial() -> None:
    with place_in_memory(lambda _spawn: FakeProgram(stdout=["{}"])) as (place, fake):
        fake.files[str(OUT / "result.json")] = RESULT.model_dump_json().encode()
        fake.files[str(OUT / "contention.json")] = json.dumps(CONTENTION).encode()
        locks().drive(place, drive_of(OUT, processors=(1, 2), groups=("/sys/fs/cgroup/client",)))
        started = spawned(fake, "lock-drive")
    assert started.processors == [1, 2]
    assert started.groups == ["/sys/fs/cgroup/client"]


@pytest.mark.parametrize("wrong", [{"guarded": 8}, {"intruded": 1}, {"torn_lines": 3}])
def test_a_lock_that_did_not_exclude_makes_the_trial_invalid(wrong: dict[str, int]) -> None:
    _, driven = asked(wrong)
    assert driven.invalid_reason.startswith("the lock failed to exclude: of 9 acquisitions")


def test_a_window_in_which_nothing_was_timed_is_no_trial() -> None:
    _, driven = asked({"threads": [{**THREAD, "acquisitions": 0, "sampled": 0}]})
    assert driven.invalid_reason == "no timed acquisition ended inside the measurement window"


def test_it_says_when_its_window_begins() -> None:
    assert Locks.announces
    assert not Locks.is_native


def test_its_expected_length_is_ramp_up_and_window() -> None:
    assert locks(ramp_up="2s", duration="3s").duration_s() == 5.0
    assert locks(duration=None, ramp_up="0s", acquisitions=200_000).duration_s() == 2.0


def test_it_needs_no_data_and_no_check_afterwards() -> None:
    assert locks().data() is None
    assert locks().checks_after() == "never"


def test_kinds_that_the_preloaded_library_has_too_spin_as_often_there() -> None:
    shared = locks_setting.DEFAULT_SPINS
    assert {kind: DEFAULT_SPINS[kind] for kind in shared} == dict(shared)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[OpenPlace]:
    (tmp_path / "out").mkdir()
    with place_here(tmp_path) as found:
        yield found


def taken(place: OpenPlace, here: Path, **given: Any) -> tuple[DriveOutcome, dict[str, float]]:
    """Real locks, really taken; the trial's scalars."""
    chosen = locks(**{"ramp_up": "20ms", "duration": "300ms", "interval": "20ms", **given})
    driven = chosen.drive(place, drive_of(PurePosixPath(here / "out")))
    telemetry.to_parquet(here / "out")
    return driven, chosen.scalars(here / "out", driven.window)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_gives_a_trial_whose_files_agree(place: OpenPlace, tmp_path: Path, kind: str) -> None:
    driven, scalars = taken(place, tmp_path, kind=kind, threads=4, sample_every=4)
    assert driven.invalid_reason == ""
    assert driven.window.end_ns - driven.window.start_ns == 300_000_000
    assert scalars["acquisitions_per_s"] == pytest.approx(scalars["acquisitions"] / 0.3)
    assert locks().contradictions(tmp_path / "out") == []
    expected = str(DEFAULT_SPINS.get(kind, "the lock's own"))
    assert driven.effective["spins"] == expected
    assert scalars.keys() <= locks().metrics().keys()
    assert all(math.isfinite(value) for value in scalars.values())
    assert 0.25 <= scalars["fairness_jain"] <= 1
    assert 0 <= scalars["handed_over_share"] <= 1


def test_a_window_by_count_ends_with_the_first_thread_to_get_there(place: OpenPlace, tmp_path: Path) -> None:
    _, scalars = taken(place, tmp_path, duration=None, acquisitions=1000, threads=2)
    told = json.loads((tmp_path / "out" / "contention.json").read_text())
    assert max(thread["acquisitions"] for thread in told["threads"]) == 1000
    assert 1000 <= scalars["acquisitions"] <= 2000


def test_a_thread_alone_hands_nothing_over_and_shares_with_nobody(place: OpenPlace, tmp_path: Path) -> None:
    _, scalars = taken(place, tmp_path, threads=1)
    assert (scalars["handed_over_share"], scalars["contended_share"], scalars["fairness_jain"]) == (0, 0, 1)


def test_longer_sections_let_fewer_through(place: OpenPlace, tmp_path: Path) -> None:
    _, short = taken(place, tmp_path, threads=1, critical=100, outside=0)
    _, long = taken(place, tmp_path, threads=1, critical=10_000, outside=0)
    assert long["acquisitions"] < short["acquisitions"] / 5
