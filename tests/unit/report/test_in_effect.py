"""Options in effect that differ between arms, and what is not one of them."""

from __future__ import annotations

from time import process_time
from types import SimpleNamespace
from typing import Any

from fairtrial.report.in_effect import apart


def trial(arm: str, cell: str = "all", **options: str) -> Any:
    return SimpleNamespace(levels={"server": arm, "users": cell}, options=options)


def rows(*trials: Any) -> list[tuple[str, dict[str, str]]]:
    return list(apart(trials, contrast="server", levels=["a", "b"]))


def test_what_another_build_brought_with_it_is_shown_and_what_is_equal_is_not() -> None:
    assert rows(trial("a", size="1", mode="fast"), trial("b", size="2", mode="fast")) == [
        ("size", {"a": "1", "b": "2"})
    ]


def test_an_option_that_only_one_has_comes_after_those_that_both_have() -> None:
    found = rows(trial("a", ancient="ON", size="1"), trial("b", size="2"))
    assert found == [("size", {"a": "1", "b": "2"}), ("ancient", {"a": "ON", "b": "–"})]


def test_a_trials_own_directory_is_no_difference_and_a_directory_of_its_own_choosing_is() -> None:
    first = trial("a", socket="/var/lib/fairtrial/work/0123456789ab/server/s", basedir="/opt/a/work/here")
    second = trial("b", socket="/var/lib/fairtrial/work/ba9876543210/server/s", basedir="/opt/b/work/here")
    assert [name for name, _ in rows(first, second)] == ["basedir"]


def test_a_directory_of_a_trial_is_found_in_words_and_behind_an_equals_sign() -> None:
    first, second = (
        f"/etc/x --dir=/v/work/{name}/a:/b/work/{name}/c --log=/v/work/{name}" for name in ("0" * 12, "f" * 12)
    )
    told = "/etc/x --dir=TRIAL/c --log=TRIAL"
    assert rows(trial("a", words=first), trial("b", words="y " + second)) == [("words", {"a": told, "b": "y " + told})]


def test_slashes_without_end_are_looked_at_once() -> None:
    began = process_time()
    assert rows(trial("a", path="/" * 20_000), trial("b", path="/" * 20_001))
    assert process_time() - began < 1


def test_what_differs_between_trials_of_one_arm_says_nothing_of_arms() -> None:
    assert rows(trial("a", uuid="1"), trial("a", uuid="2"), trial("b", uuid="3"), trial("b", uuid="4")) == []


def test_a_condition_that_sets_an_option_is_no_difference_between_arms() -> None:
    trials = [trial(arm, cell, pool=cell, size=arm) for arm in "ab" for cell in ("small", "large")]
    assert rows(*trials) == [("size", {"a": "a", "b": "b"})]


def test_an_option_that_differs_in_one_condition_only_varies_there() -> None:
    trials = [
        trial(arm, cell, size="8" if (arm, cell) == ("b", "large") else "4") for arm in "ab" for cell in ("large", "x")
    ]
    assert rows(*trials) == [("size", {"a": "4", "b": "varies"})]


def test_an_arm_that_was_never_measured_in_a_condition_lacks_nothing_there() -> None:
    assert rows(trial("a", "x", size="4"), trial("a", "y", size="4"), trial("b", "x", size="4")) == []
