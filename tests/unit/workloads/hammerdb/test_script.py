"""HammerDB's scripts say what the study says, in HammerDB's words for that server."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

import pytest

from fairtrial.errors import PlaceError
from fairtrial.protocol.endpoints import Server
from fairtrial.protocol.generated import MysqlEndpoint, PostgresEndpoint
from fairtrial.workloads.hammerdb import script
from fairtrial.workloads.hammerdb.parameters import HammerdbParameters

OBSERVER = PurePosixPath("/work/observing.tcl")
HERE = MysqlEndpoint(socket="/work/mysqld.sock", user="root", password="", database="fairtrial")
THERE = MysqlEndpoint(host="10.0.0.2", port=3310, user="fairtrial", password="5ec2e7", database="fairtrial")
POSTGRES = PostgresEndpoint(socket_directory="/work/server", port=5432, user="fairtrial", database="fairtrial")


def driving(endpoint: Server, **given: Any) -> list[str]:
    asked = HammerdbParameters.model_validate({"duration": "5min", **given})
    return script.driving(asked, endpoint, observer=OBSERVER).splitlines()


def building(endpoint: Server, **given: Any) -> list[str]:
    asked = HammerdbParameters.model_validate({"duration": "5min", **given})
    return script.building(asked, endpoint, observer=OBSERVER).splitlines()


def test_a_build_is_told_the_server_and_what_makes_the_data() -> None:
    given = {"warehouses": 4, "load_users": 9, "data": {"history_pk": True}, "virtual_users": 7}
    assert building(HERE, **given) == [
        "source {/work/observing.tcl}",
        "dbset db mysql",
        "dbset bm TPC-C",
        "diset connection mysql_host {127.0.0.1}",
        "diset connection mysql_socket {/work/mysqld.sock}",
        "diset tpcc mysql_dbase {fairtrial}",
        "diset tpcc mysql_user {root}",
        r"diset tpcc mysql_pass {\"\"}",
        "diset tpcc mysql_count_ware {4}",
        "diset tpcc mysql_num_vu {4}",  # HammerDB refuses more users than warehouses
        "diset tpcc mysql_history_pk {true}",
        "buildschema",
        "fairtrial_end 120",
    ]


def test_a_run_ramps_up_measures_and_raises_errors() -> None:
    told = driving(HERE, virtual_users=3, ramp_up="1min", all_warehouses=True, options={"purge": True})
    for line in (
        "diset tpcc mysql_driver {timed}",
        "diset tpcc mysql_rampup {1}",
        "diset tpcc mysql_duration {5}",
        "diset tpcc mysql_allwarehouse {true}",
        "diset tpcc mysql_keyandthink {false}",
        "diset tpcc mysql_raiseerror {true}",
        "diset tpcc mysql_timeprofile {false}",
        "diset tpcc mysql_purge {true}",
        "vuset vu 3",
        "tcset refreshrate 1",
    ):
        assert line in told
    assert told[-3:] == ["tcstart", "vurun", "fairtrial_end 120"]
    assert not any("prepared" in line for line in told), "PostgreSQL has no such setting, and HammerDB would complain"


def test_a_time_profile_gives_users_time_to_hand_it_over() -> None:
    assert driving(HERE, time_profile=True)[-1] == "fairtrial_end 600"


def test_another_place_is_reached_by_tcp() -> None:
    told = driving(THERE)
    assert "diset connection mysql_host {10.0.0.2}" in told
    assert "diset connection mysql_port {3310}" in told
    assert "diset connection mysql_socket {null}" in told
    assert "diset tpcc mysql_pass {5ec2e7}" in told


def test_mariadbs_own_kind_has_its_own_words() -> None:
    told = driving(HERE, db="maria", prepared=True, procedures=False)
    assert "dbset db maria" in told
    assert "diset tpcc maria_pass {null}" in told
    assert "diset tpcc maria_prepared {true}" in told
    assert "diset tpcc maria_no_stored_procs {true}" in told


def test_postgres_has_one_user_for_everything() -> None:
    told = building(POSTGRES, procedures=True)
    assert "dbset db pg" in told
    assert "diset connection pg_host {/work/server}" in told
    assert "diset connection pg_port {5432}" in told
    for key in ("pg_user", "pg_superuser"):
        assert f"diset tpcc {key} {{fairtrial}}" in told
    assert "diset tpcc pg_defaultdbase {postgres}" in told
    assert "diset tpcc pg_storedprocs {true}" in told


def test_all_users_run_before_half_of_the_ramp_up_is_over() -> None:
    assert script.start_delay_ms(120, 4) == 500  # HammerDB's own
    assert script.start_delay_ms(60, 300) == 100
    assert script.start_delay_ms(0, 4) == 1  # the least it takes
    told = driving(HERE, ramp_up="1min", virtual_users=300)
    assert {"vuset delay 100", "vuset repeat 100"} <= set(told)  # before 6.0 it takes one for the other


@pytest.mark.parametrize("password", ["two words", "[exec]", "a$b", 'a"b', "a{b", "a;b", "a\\b"])
def test_a_password_that_tcl_would_read_is_refused_and_not_shown(password: str) -> None:
    with pytest.raises(PlaceError) as caught:
        driving(THERE.model_copy(update={"password": password}))
    assert "`mysql_pass`" in str(caught.value)
    assert password not in str(caught.value)


def test_a_socket_with_a_blank_in_its_path_is_refused() -> None:
    with pytest.raises(PlaceError, match="does not accept `/my work/s` as `mysql_socket`"):
        driving(HERE.model_copy(update={"socket": "/my work/s"}))
