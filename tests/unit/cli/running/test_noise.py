"""Where the noise floor of an A/A run is kept, and that keeping it boots nothing."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.progress import Told
from support.records import RESOLVED, planned, tiny_plan, trial_record

from fairtrial.analyse.noise.models import NoiseProfile
from fairtrial.analyse.selection import Selection
from fairtrial.cli.running import noise
from fairtrial.record.models import Clock, PlaceOpened, Plan
from fairtrial.study.resolved import Section

BOOTS = {"ssh": {"host": "h", "port": 2222, "boot": {"by": "kexec", "kernel": "debian-6.12"}}}


def kept(
    monkeypatch: pytest.MonkeyPatch, place: dict[str, Any], *, host: str = "", blocks: tuple[str, ...] = ()
) -> tuple[list[Section], Told, list[int]]:
    """The places that are opened to keep a floor of a run at this one, and the blocks that it is of.

    Args:
        host: of a farm, which opened the place.
        blocks: who ran each block.
    """
    seen: list[Section] = []
    used: list[int] = []

    @contextlib.contextmanager
    def opened(at: Section, **_: object) -> Iterator[None]:
        seen.append(at)
        yield

    profile = NoiseProfile.model_construct(metrics=["one"])
    monkeypatch.setattr(noise, "opened", opened)
    monkeypatch.setattr(noise, "keep", lambda *_args, **_options: None)
    monkeypatch.setattr(NoiseProfile, "model_dump", lambda _profile, **_options: {})

    def of(_plan: Plan, selection: Selection, **_: object) -> NoiseProfile:
        used.extend(sorted({trial.trial.block for trial in selection.used}))
        return profile

    monkeypatch.setattr(noise.noise, "profile", of)
    at = Section(place)
    plan = tiny_plan()
    resolved = {arm: RESOLVED.model_copy(update={"place": at}) for arm in ("a", "b")}
    opening = PlaceOpened(
        place=at, facts={}, agent_sha256="", clock=Clock(monotonic_ns=1, realtime_ns=2), server_user=None, host=host
    )
    trials = [
        trial_record(planned(block, arm)).model_copy(update={"host": ran})
        for block, ran in enumerate(blocks, start=1)
        for arm in ("a", "b")
    ]
    plan = plan.model_copy(update={"resolved": {"all": resolved}})
    run = SimpleNamespace(places=[opening], plan=plan, trials=trials, directory=Path("run"))
    told = Told()
    noise.keep_noise(run, progress=told)  # type: ignore[arg-type]
    return seen, told, used


def test_a_floor_is_kept_at_its_place_and_nothing_boots_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert kept(monkeypatch, {"local": {}})[0] == [Section({"local": {}})]
    assert kept(monkeypatch, BOOTS)[0] == [Section({"ssh": {"host": "h", "port": 2222}})]


def test_hosts_of_a_farm_keep_no_floor_that_is_of_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    seen, told, _ = kept(monkeypatch, {"local": {}}, host="alpha")
    assert seen == []
    assert told.notes == ["the noise floor is of all hosts together, so that none of them keeps it"]


def test_what_hosts_ran_is_no_noise_of_this_machine_where_the_run_went_on(monkeypatch: pytest.MonkeyPatch) -> None:
    *_, used = kept(monkeypatch, {"local": {}}, blocks=("alpha", "", "beta", ""))
    assert used == [2, 4]
