"""What a study may say of pgbench, with the line of what it may not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import ValidationError
from support.pgbench import MIX, SCRIPTS, parameters

from fairtrial.catalogue import catalogue
from fairtrial.errors import InputError, Problem
from fairtrial.study import load
from fairtrial.workloads.pgbench import Pgbench, arguments
from fairtrial.workloads.pgbench.parameters import PgbenchParameters, limit_text, limit_us, reserved
from fairtrial.workloads.tool import Life

STUDY = """\
study: one
question: Does it?
system: {postgres: {}}
workload:
  pgbench:
    duration: 5s
WORKLOAD
factors:
  users:
    one: {}
    two: {workload: {pgbench: {clients: 2}}}
arm: users
metrics: {primary: throughput_tps}
"""


def written(directory: Path, workload: str) -> Path:
    if "file:" not in workload and "mix:" not in workload:
        workload += "\nscript: tpcb-like"
    path = directory / "study.yaml"
    path.write_text(STUDY.replace("WORKLOAD", "\n".join(f"    {line}" for line in workload.splitlines())))
    return path


def problems(directory: Path, workload: str) -> list[Problem]:
    try:
        load(written(directory, workload), catalogue=catalogue())
    except InputError as error:
        return error.problems
    return []


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"duration": None}, "exactly one of `duration` and `transactions`"),
        ({"transactions": 5, "duration": "5s"}, "exactly one of `duration` and `transactions`"),
        ({"transactions": 40, "clients": 3}, "a multiple of the 3 `clients`, each of which runs as many: 39"),
        ({"transactions": 1, "clients": 4}, "each of which runs as many: 4"),
        ({"duration": "1500ms"}, "whole seconds, as pgbench requires, found 1.5 s"),
        ({"ramp_up": "100ms"}, "whole seconds, as pgbench requires, found 0.1 s"),
        ({"interval": "50ms"}, "interval"),
        ({"script": "tpcb"}, "script"),
        ({"script": "tpcb-like", "file": SCRIPTS["pay"]}, "exactly one of `script`, `file` and `mix`"),
        ({"script": None}, "exactly one of `script`, `file` and `mix`"),
        ({"mix": {"select": 1}}, "`select` is not a script: expected `tpcb-like`"),
        ({"mix": {"select": 1}}, "did you mean `select-only`?"),
        ({"mix": {"select-only": 0}}, "all weights of `mix` are 0"),
        ({"mix": {"select-only": -1}}, "weight"),
        ({"mix": {"select-only": 1, "select_only.sql": {"weight": 1, "file": {"name": "select_only.sql", "text": ""}}}},
         "two scripts of `mix` have the same name"),
        ({"data": {"fillfactor": 90}, "init": SCRIPTS["pay"], "file": SCRIPTS["pay"]}, "give their `scale`"),
        ({"init": SCRIPTS["pay"]}, "pgbench's own scripts need pgbench's own tables: give their `scale`"),
        ({"data": {"fill-factor": 90}}, "fillfactor"),
        ({"data": {"fillfactor": 0}}, "`data.fillfactor` must be a whole number from 10 to 100"),
        ({"data": {"fillfactor": "most"}}, "`data.fillfactor` must be a whole number from 10 to 100"),
        ({"data": {"partitions": True}}, "`data.partitions` must be a whole number from 0 to 32767"),
        ({"mix": {"all.sql": {"weight": 1, "file": {"name": "all.sql", "text": ""}}}}, "rename it"),
        ({"latency_limit": "0.4us"}, "latency_limit"),
        ({"options": {"--connect": True}}, "options"),
        ({"options": {"verbose-errors": "1\n2"}}, "options"),
        ({"define": {"a b": 1}}, "define"),
        ({"define": {"a": ""}}, "define"),
        ({"protocol": "binary"}, "protocol"),
        ({"max_tries": 0}, "max_tries"),
        ({"rate": -1}, "rate"),
        ({"rate": 0}, "rate"),
        ({"clients": 0}, "clients"),
        ({"scale": 0}, "scale"),
    ],
)  # fmt: skip
def test_mistakes_are_named(wrong: dict[str, Any], message: str) -> None:
    named = {} if wrong.keys() & {"file", "mix", "script"} else {"script": "tpcb-like"}
    lasting = {} if wrong.keys() & {"transactions", "duration"} else {"duration": "5s"}
    with pytest.raises(ValidationError) as raised:
        PgbenchParameters.model_validate({**named, **lasting, **wrong})
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("option", "suggestion"),
    [
        ("time", "use `duration` instead"),
        ("random-seed", "use `trials.seed` instead"),
        ("client", "use `clients` instead"),
        ("select-only", "use `script` instead"),
        ("partitions", "use `data` instead"),
        ("log-prefix", "leave it out"),
        ("sampling-rate", "leave it out"),
        ("username", "leave it out"),
        ("hos", "leave it out"),
        ("trans", "use `transactions` instead"),
        ("vacuum", "leave it out"),
    ],
)
def test_what_the_run_sets_is_refused_with_the_key_that_says_it(tmp_path: Path, option: str, suggestion: str) -> None:
    (found,) = problems(tmp_path, f"options:\n  connect: true\n  {option}: 4")
    assert found.message == f"pgbench's `{option}` is set by the run"
    assert (found.line, found.field) == (9, f"workload.pgbench.options.{option}")
    assert found.suggestion == suggestion


@pytest.mark.parametrize("option", ["connect", "report-per-command", "verbose-errors", "exit-on-abort"])
def test_other_options_are_the_studys(option: str) -> None:
    assert reserved(option) is None


def test_scripts_of_ones_own_are_read_beside_the_study_and_become_part_of_it(tmp_path: Path) -> None:
    (tmp_path / "sql").mkdir()
    (tmp_path / "sql" / "mine.sql").write_text("SELECT 1;\n")
    (tmp_path / "make.sql").write_text("CREATE TABLE t (i int);\n")
    path = written(tmp_path, "mix: {select-only: 9, sql/mine.sql: 1}\ninit: make.sql\nscale: 2")
    given = load(path, catalogue=catalogue()).resolve({"users": "two"}).workload.parameters
    assert isinstance(given, dict)
    assert given["mix"] == {
        "select-only": {"weight": 9, "file": None},
        "sql/mine.sql": {"weight": 1, "file": {"name": "mine.sql", "text": "SELECT 1;\n"}},
    }
    assert given["init"] == {"name": "make.sql", "text": "CREATE TABLE t (i int);\n"}
    assert PgbenchParameters.model_validate(given).types == ("select_only", "mine")


@pytest.mark.parametrize("key", ["file: mine.sql", "mix: {select-only: 1, mine.sql: 2}", "init: mine.sql"])
def test_a_script_that_is_not_there_is_said_with_its_line(tmp_path: Path, key: str) -> None:
    (found,) = problems(tmp_path, f"clients: 3\n{key}\n")
    assert f"cannot read {tmp_path}/mine.sql: No such file or directory" in found.message
    assert found.line == 8


@pytest.mark.parametrize("key", ["file: mine.sql", "mix: {mine.sql: 2}"])
def test_what_pgbench_will_not_take_of_a_script_is_said_with_the_scripts_line(tmp_path: Path, key: str) -> None:
    (tmp_path / "mine.sql").write_text("SELECT 1;\n\\sett a 1\n")
    (found,) = problems(tmp_path, key)
    assert (found.file, found.line) == ("mine.sql", 2)
    assert found.message == "pgbench does not have the command `\\sett`"
    assert found.suggestion == "did you mean `\\set`?"
    assert found.field.startswith("workload.pgbench.")


def test_data_are_those_of_the_tables_whichever_script_runs() -> None:
    def data(**given: Any) -> Any:
        return Pgbench(parameters(**given)).data()

    own = {"file": SCRIPTS["pay"]}
    make = {"name": "make.sql", "text": "CREATE TABLE t (i int)"}
    assert data(script="select-only", clients=9, rate=5) == data(scale=1)
    assert data(**own) == data(scale=1)
    different = [
        data(),
        data(scale=2),
        data(data={"fillfactor": 80}),
        data(data={"unlogged-tables": True}),
        data(**own, init=make),
        data(**own, init={**make, "text": "CREATE TABLE u (i int)"}),
        data(**own, init=make, scale=1),
    ]
    assert len({str(each) for each in different}) == len(different)


def test_types_are_beginnings_of_metrics() -> None:
    mixed = PgbenchParameters.model_validate({"mix": MIX, "duration": 5})
    assert mixed.types == ("pay", "dead", "select_only")
    defined = Pgbench(mixed).metrics()
    assert {"pay_latency_ns_p99", "select_only_latency_ns_mean", "latency_ns_p50", "retries"} <= defined.keys()
    assert not {"skipped", "over_limit_share", "lateness_ns_p50"} & defined.keys()
    one = Pgbench(parameters(rate=9, latency_limit="1s")).metrics()
    assert {"skipped", "over_limit_share", "lateness_ns_p50", "arrived_per_s"} <= one.keys()
    assert not [name for name in one if name.startswith("tpcb_like")]


def test_room_is_that_of_the_tables_and_of_the_log() -> None:
    def disk_bytes(**given: Any) -> int:
        return Pgbench(parameters(**given)).disk_bytes()

    by_count = {"transactions": 1000}
    assert disk_bytes(scale=10, **by_count) == (160 << 20) + 45_000
    assert disk_bytes(scale=10, data={"fillfactor": 50}, **by_count) == (320 << 20) + 45_000
    own = {"file": SCRIPTS["pay"], "init": SCRIPTS["dead"]}
    assert disk_bytes(**own, rate=100) == 5 * 100 * 45
    assert disk_bytes(**own) == 5 * 20_000 * 45


def test_it_says_when_its_window_begins_so_that_probes_wait_for_it() -> None:
    assert Pgbench.announces


def test_a_trial_lasts_its_ramp_up_and_its_window() -> None:
    assert Pgbench(parameters(ramp_up="3s")).duration_s() == 8
    assert Pgbench(parameters(transactions=1000, ramp_up=0)).duration_s() == 2


@given(st.floats(1e-6, 3600))
@example(0.0157)
@example(0.0323)
@example(1.001)
@example(0.000249)
def test_a_limit_is_cut_as_pgbench_cuts_it(limit_s: float) -> None:
    told_ms = float(limit_text(limit_s))  # atof
    assert limit_us(limit_s) == int(told_ms * 1000)  # pgbench.c: (int64) (limit_ms * 1000)
    asked = parameters(latency_limit=limit_s)
    (option,) = (each for each in arguments.run(asked, Life(5, None, 1)) if each.startswith("--latency-limit="))
    assert asked.latency_limit is not None
    taken_us = limit_us(asked.latency_limit)
    assert taken_us == int(float(option.partition("=")[2]) * 1000)
    assert abs(taken_us - limit_s * 1e6) < 1.001
