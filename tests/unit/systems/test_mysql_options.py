"""What was asked of MariaDB or MySQL compared with what it says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairtrial.systems.mariadb import MariadbParameters
from fairtrial.systems.mysql_options import differences, initial, normal, text


@pytest.mark.parametrize(
    ("asked", "answered"),
    [
        ("384M", "402653184"),
        (402653184, "402653184"),
        ("7", "7"),
        ("3k", "3072"),
        ("1g", "1073741824"),
        ("2T", "2199023255552"),
        ("1p", "1125899906842624"),
        ("1e", "1152921504606846976"),
        (True, "ON"),
        (0, "OFF"),
        ("on", "1"),
        ("O_DIRECT_NO_FSYNC", "O_DIRECT_NO_FSYNC"),
        ("read-committed", "READ-COMMITTED"),
        (0.75, "0.750000"),
        ("/tmp/x/", "/tmp/x"),
    ],
)
def test_the_same_value_in_other_words_is_the_same(asked: object, answered: str) -> None:
    assert differences({"option": asked}, {"option": answered}) == []


@pytest.mark.parametrize(("asked", "answered"), [("384M", "402653183"), (True, "OFF"), ("fsync", "O_DIRECT")])
def test_another_value_is_named_with_both_sides(asked: object, answered: str) -> None:
    (sentence,) = differences({"option": asked}, {"option": answered})
    assert "option" in sentence
    assert answered in sentence


def test_a_binary_log_is_asked_for_by_name_and_read_back_as_a_switch() -> None:
    on = {"log_bin": "ON", "log_bin_basename": "/work/data/binlog"}
    assert differences({"log_bin": "binlog"}, on) == []
    assert differences({"log_bin": "/work/data/binlog"}, on) == []
    assert differences({"log_bin": "/other/binlog"}, on) == [
        "log_bin: expected /other/binlog, the server reports /work/data/binlog"
    ]
    assert differences({"log_bin": True}, on) == []
    assert differences({"log_bin": False}, {"log_bin": "OFF", "log_bin_basename": ""}) == []
    assert differences({"log_bin": "other"}, on) == ["log_bin: expected other, the server reports binlog"]
    assert differences({"log_bin": "binlog"}, {"log_bin": "OFF", "log_bin_basename": ""})


def test_an_option_that_is_no_variable_cannot_be_read_back_and_says_so() -> None:
    (sentence,) = differences({"no_such_option": 1}, {})
    assert "not a variable of this server" in sentence


def test_plugins_of_the_command_line_are_in_effect_once_their_libraries_are_loaded() -> None:
    loaded = "auth_pam.so;ha_archive.so;ha_rocksdb.so"
    for name in ("early_plugin_load", "plugin_load", "plugin_load_add"):
        for asked in ("ha_rocksdb", "ha_archive.so", "archive=ha_archive.so; rocksdb=ha_rocksdb", ""):
            assert differences({name: asked}, {name: loaded}) == []
        assert differences({name: "ha_archive;ha_spider"}, {name: loaded}) == [
            f"{name}: expected ha_spider, the server loaded {loaded}"
        ]
        assert differences({name: "ha_spider"}, {name: ""}) == [f"{name}: expected ha_spider, the server loaded none"]


def test_a_whole_number_is_written_as_one_however_the_study_writes_it() -> None:
    options = MariadbParameters(options={"innodb_io_capacity": 1e3, "a": -0.0, "b": 0.5, "c": 1e300, "d": True}).options
    assert {name: text(value) for name, value in options.items()} == {
        "innodb_io_capacity": "1000",
        "a": "0",
        "b": "0.5",
        "c": "1e+300",
        "d": "ON",
    }


def test_one_option_in_two_spellings_is_refused() -> None:
    with pytest.raises(ValueError, match="given twice"):
        MariadbParameters(options={"innodb-doublewrite": 0, "innodb_doublewrite": 1})


@pytest.mark.parametrize("name", ["socket", "datadir", "skip-networking", "USER"])
def test_options_that_keep_the_instance_private_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="set by fairtrial itself"):
        MariadbParameters(options={name: "x"})


def test_only_options_fixed_at_creation_are_part_of_the_key() -> None:
    asked = {"innodb_page_size": "8k", "innodb_buffer_pool_size": "1G"}
    assert initial(asked, ["innodb_page_size", "lower_case_table_names"]) == {"innodb_page_size": "8k"}


def test_an_older_servers_name_stands_for_an_option_only_where_it_has_no_other() -> None:
    asked = {"transaction_isolation": "READ-COMMITTED"}
    assert differences(asked, {"tx_isolation": "READ-COMMITTED"}) == []
    assert differences(asked, {"transaction_isolation": "READ-COMMITTED", "tx_isolation": "SERIALIZABLE"}) == []
    assert differences(asked, {"tx_isolation": "SERIALIZABLE"})


@given(st.integers(0, 10**6), st.sampled_from(["", "k", "m", "g", "t", "p", "e"]))
def test_sizes_are_numbers_whatever_their_unit(number: int, unit: str) -> None:
    if unit or number > 1:  # a bare 0 or 1 is a switch as well: both normalise to themselves
        assert normal(f"{number}{unit.upper()}") == float(number * 1024 ** " kmgtpe".index(unit or " "))


@given(st.text(max_size=20))
def test_normalising_never_fails(text: str) -> None:
    assert normal(text) == normal(text.upper()) or not text.isascii()
