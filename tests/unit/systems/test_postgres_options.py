"""What was asked of PostgreSQL compared with what it says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairtrial.systems.postgres import PostgresParameters
from fairtrial.systems.postgres_options import RESERVED, creating, differences, initial, line, normal


@pytest.mark.parametrize(
    ("asked", "setting", "unit"),
    [
        ("128MB", "16384", "8kB"),
        ("1GB", "1024", "MB"),
        (16384, "16384", "8kB"),
        ("5min", "300", "s"),
        ("1s", "1000", "ms"),
        (-1, "-1", "8kB"),
        (True, "on", ""),
        ("false", "off", ""),
        ("Read Committed", "read committed", ""),
        (1.1, "1.1", ""),
        ("a, b", "a,b", ""),
    ],
)
def test_the_same_value_in_other_words_is_the_same(asked: object, setting: str, unit: str) -> None:
    assert differences({"option": asked}, {"option": (setting, unit)}) == []


@pytest.mark.parametrize(
    ("asked", "setting", "unit"), [("128MB", "16385", "8kB"), (True, "off", ""), ("1s", "1000", "s"), ("a", "b", "")]
)
def test_another_value_is_named_with_both_sides(asked: object, setting: str, unit: str) -> None:
    (sentence,) = differences({"option": asked}, {"option": (setting, unit)})
    assert f"the server reports {setting}" in sentence


def test_an_option_that_is_no_setting_cannot_be_read_back_and_says_so() -> None:
    (sentence,) = differences({"no_such_option": 1}, {})
    assert "not a setting of this server" in sentence


def test_one_option_in_two_spellings_is_refused() -> None:
    with pytest.raises(ValueError, match="given twice"):
        PostgresParameters(options={"shared_buffers": "1GB", "Shared_Buffers": "2GB"})


@pytest.mark.parametrize("name", sorted(RESERVED))
def test_options_that_keep_the_instance_private_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="set by fairtrial itself"):
        PostgresParameters(options={name.upper(): "x"})


def test_only_options_fixed_at_creation_are_part_of_the_key_and_initdb_gets_them() -> None:
    options = {"data_checksums": True, "wal_segment_size": "64MB", "shared_buffers": "1GB"}
    assert initial(options) == {"data_checksums": "on", "wal_segment_size": "64MB"}
    assert creating(options, version="postgres (PostgreSQL) 15.12") == ["--data-checksums", "--wal-segsize=64"]
    assert creating({"data_checksums": False}, version="postgres (PostgreSQL) 17.5") == []
    assert creating({"data_checksums": False}, version="postgres (PostgreSQL) 18beta1") == ["--no-data-checksums"], (
        "they are the default"
    )


def test_units_of_ours_reach_the_server_as_bytes() -> None:
    assert PostgresParameters(options={"shared_buffers": "128MiB"}).options == {"shared_buffers": "134217728B"}


def test_no_value_can_end_its_quotes() -> None:
    assert line("archive_command", "echo 'a'") == "archive_command = 'echo ''a'''"


@given(st.text(max_size=20), st.sampled_from(["", "8kB", "ms", "MB"]))
def test_normalising_never_fails(text: str, unit: str) -> None:
    assert isinstance(normal(text, unit), str | float)
