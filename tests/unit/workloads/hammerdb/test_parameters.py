"""What a study may say of HammerDB, with the line of what it may not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from fairtrial.catalogue import catalogue
from fairtrial.errors import InputError, Problem
from fairtrial.study import load
from fairtrial.workloads.hammerdb import Hammerdb
from fairtrial.workloads.hammerdb.parameters import RESERVED, HammerdbParameters

STUDY = """\
study: one
question: Does it?
system: {mariadb: {}}
workload:
  hammerdb:
    duration: 1min
WORKLOAD
factors:
  users:
    one: {}
    two: {workload: {hammerdb: {virtual_users: 2}}}
arm: users
metrics: {primary: METRIC}
"""


def valid(**given: Any) -> HammerdbParameters:
    return HammerdbParameters.model_validate({"duration": "5min", **given})


def problems(directory: Path, workload: str = "", metric: str = "throughput_nopm") -> list[Problem]:
    path = directory / "study.yaml"
    lines = "\n".join(f"    {line}" for line in workload.splitlines())
    path.write_text(STUDY.replace("WORKLOAD", lines).replace("METRIC", metric))
    try:
        load(path, catalogue=catalogue())
    except InputError as error:
        return error.problems
    return []


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"duration": "90s"}, "expected whole minutes, as HammerDB requires, found 90 s"),
        ({"duration": "0s"}, "duration"),
        ({"ramp_up": "30s"}, "expected whole minutes, as HammerDB requires, found 30 s"),
        ({"interval": "7s"}, "divide a minute, as HammerDB requires, found 7 s"),
        ({"interval": "1500ms"}, "divide a minute, as HammerDB requires, found 1.5 s"),
        ({"directory": "hammerdb"}, "directory"),
        ({"db": "ora"}, "db"),
        ({"virtual_users": 0}, "virtual_users"),
        ({"options": {"history_pk": True}}, "`history_pk` makes the data: move it to `data`"),
        ({"options": {"pg_vacuum": True}}, "write `vacuum`: the run adds `pg_` itself"),
        ({"data": {"mysql_partition": True}}, "write `partition`: the run adds `mysql_` itself"),
        ({"data": {"vacuum": True}, "options": {"vacuum": True}}, "`vacuum` is given twice"),
        ({"options": {"vacuum": "[exec rm x]"}}, "vacuum"),
        ({"options": {"Vacuum": True}}, "Vacuum"),
    ],
)
def test_a_mistake_is_told_in_words_of_the_study(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message.replace("[", r"\[")):
        valid(**wrong)


def test_minutes_may_be_said_in_any_unit_and_options_as_yaml_has_them() -> None:
    given = valid(ramp_up="2min", duration="3600s", options={"vacuum": True, "purge": False})
    assert (given.ramp_up, given.duration) == (120, 3600)
    assert given.options == {"vacuum": "true", "purge": "false"}


def test_errors_are_seen_unless_a_study_wants_them_counted() -> None:
    assert valid().raise_error
    assert not valid(raise_error=False).raise_error


@pytest.mark.parametrize(
    ("option", "suggestion"),
    [
        ("data: {count_ware: 4}", "use `warehouses` instead"),
        ("options: {rampup: 1}", "use `ramp_up` instead"),
        ("options: {no_stored_procs: true}", "use `procedures` instead"),
        ("options: {raiseerror: true}", "use `raise_error` instead"),
        ("options: {pass: secret}", "leave it out"),
        ("options: {async_scale: true}", "leave it out"),
    ],
)
def test_what_the_run_sets_is_refused_with_its_line_and_its_key(tmp_path: Path, option: str, suggestion: str) -> None:
    (problem,) = problems(tmp_path, option)
    assert problem.message.startswith("HammerDB's `")
    assert problem.message.endswith("` is set by the run")
    assert problem.suggestion == suggestion
    assert problem.line == 7


def test_all_other_options_are_hammerdbs_business(tmp_path: Path) -> None:
    assert "vacuum" not in RESERVED
    assert problems(tmp_path, "options: {purge: true}") == []


def test_latencies_are_metrics_only_where_a_time_profile_is_asked_for(tmp_path: Path) -> None:
    assert problems(tmp_path, metric="new_order_latency_ns_p95")
    assert problems(tmp_path, "time_profile: true", metric="new_order_latency_ns_p95") == []


def test_data_are_what_the_build_is_told_and_nothing_of_the_run() -> None:
    plain = Hammerdb(valid()).data()
    same = {"virtual_users": 9, "ramp_up": "5min", "options": {"vacuum": True}, "load_users": 8, "prepared": True}
    assert Hammerdb(valid(**same)).data() == plain
    for other in (
        {"warehouses": 2},
        {"data": {"history_pk": True}},
        {"procedures": True},
        {"db": "maria"},
        {"directory": "/h"},
    ):
        assert Hammerdb(valid(**other)).data() != plain


def test_a_trial_takes_its_minutes_and_its_warehouses() -> None:
    given = Hammerdb(valid(ramp_up="1min", warehouses=10))
    assert given.duration_s() == 360
    assert given.disk_bytes() > 10 * 100e6
