"""Profiles kept at a place, by a real agent: written, read as facts, the newest first, damaged ones left out."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fairtrial.places import open_place
from fairtrial.run import noise
from fairtrial.study.resolved import Section
from fairtrial.wire.open_place import OpenPlace

LOCAL = Section({"local": {}})


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FAIRTRIAL_STATE_DIRECTORY", str(tmp_path / "state"))
    return tmp_path / "state"


def kept(*studies: str) -> dict[str, object]:
    """The place's facts after profiles were kept there."""
    with open_place("local", {}, holder="a test") as agent:
        place = OpenPlace(agent=agent)
        for study in studies:
            noise.keep(place, {"study": study}, study=study, size=None)
        return noise.facts(place)


def test_a_place_without_an_aa_run_has_no_such_fact(state: Path) -> None:
    assert kept() == {}
    assert not (state / "noise").exists()


@pytest.mark.usefixtures("state")
def test_a_later_profile_of_the_same_study_takes_the_place_of_the_earlier() -> None:
    assert kept("a", "a") == {"noise": [{"study": "a"}]}


def test_profiles_are_facts_newest_first_and_what_is_no_profile_is_left_out(state: Path) -> None:
    kept("old", "new", "cut")
    (state / "noise" / "cut.json").write_text("{")
    (state / "noise" / "list.json").write_text("[]")
    os.utime(state / "noise" / "old.json", (1, 1))
    assert kept() == {"noise": [{"study": "new"}, {"study": "old"}]}


@pytest.mark.usefixtures("state")
def test_a_studys_own_profile_is_read_without_the_places_lock() -> None:
    kept("a")
    with open_place("local", {}, holder="a run"):
        assert noise.kept(LOCAL, study="a", size=None) == {"study": "a"}
        assert noise.kept(LOCAL, study="b", size=None) is None


@pytest.mark.usefixtures("state")
def test_each_size_of_a_study_has_a_profile_of_its_own() -> None:
    with open_place("local", {}, holder="a test") as agent:
        for size in (None, "ci", "b"):
            noise.keep(OpenPlace(agent=agent), {"size": size}, study="a", size=size)
    assert [noise.kept(LOCAL, study="a", size=size) for size in (None, "ci", "b", "c")] == [
        {"size": None},
        {"size": "ci"},
        {"size": "b"},
        None,
    ]


def test_planning_boots_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A guest would take this machine's disk and its processors, perhaps beside a run that measures."""
    asked: list[str] = []
    monkeypatch.setattr(noise, "open_place", lambda kind, *_given, **_named: asked.append(kind))
    assert noise.kept(Section({"vm": {"kernel": "debian-6.1"}}), study="a", size=None) is None
    assert asked == []
