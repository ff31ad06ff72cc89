from __future__ import annotations

import pytest

from fairtrial.systems.service import read_back
from fairtrial.systems.service.parameters import ServiceParameters


@pytest.mark.parametrize(
    ("expected", "reported"),
    [("/Data/X", " /Data/X"), ("100", "1e2"), ("0.10", "0.1"), ("true", "ON"), ("no", "0"), ("", "")],
)
def test_texts_numbers_and_switches_are_equal(expected: str, reported: str) -> None:
    assert read_back.is_same(expected, reported)


@pytest.mark.parametrize(
    ("expected", "reported"),
    [
        ("/Data/X", "/data/x"),
        ("1GB", "1073741824"),
        ("9007199254740993", "9007199254740992"),
        ("a, b", "a,b"),
        ("on", "0"),
        ("on", "2"),
        ("", "0"),
    ],
)
def test_what_a_service_may_tell_apart_is_not_equal(expected: str, reported: str) -> None:
    assert not read_back.is_same(expected, reported)


def test_what_another_arm_sets_is_not_recorded_where_it_may_be_a_secret() -> None:
    given = {"at": {"host": "db1"}, "read_back": "show {option}"}
    names = ["timeout", "admin_password", "client_secret"]
    assert read_back.readable(ServiceParameters.model_validate(given), names) == ["timeout"]
