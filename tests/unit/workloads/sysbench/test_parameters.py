"""What a study may say of sysbench, with the line of what it may not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from support.machines.places import place_in_memory

from fairtrial.catalogue import catalogue
from fairtrial.errors import InputError, Problem
from fairtrial.study import load
from fairtrial.wire.fake import FakeProgram
from fairtrial.workloads.engine.oltp import Oltp, OltpParameters
from fairtrial.workloads.sysbench import Sysbench
from fairtrial.workloads.sysbench.parameters import LuaFile, SysbenchParameters, reserved

STUDY = """\
study: one
question: Does it?
system: {mariadb: {}}
workload:
  sysbench:
    duration: 5s
WORKLOAD
factors:
  users:
    one: {}
    two: {workload: {sysbench: {threads: 2}}}
arm: users
metrics: {primary: throughput_tps}
"""


def valid(**given: Any) -> SysbenchParameters:
    named = {} if "file" in given else {"script": "oltp_read_write"}
    return SysbenchParameters.model_validate({"duration": "5s", **named, **given})


def problems(directory: Path, workload: str) -> list[Problem]:
    if "file:" not in workload:
        workload += "\nscript: oltp_read_write"
    path = directory / "study.yaml"
    path.write_text(STUDY.replace("WORKLOAD", "\n".join(f"    {line}" for line in workload.splitlines())))
    try:
        load(path, catalogue=catalogue())
    except InputError as error:
        return error.problems
    return []


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"duration": None}, "exactly one of `duration` and `events`"),
        ({"events": 5}, "exactly one of `duration` and `events`"),
        ({"duration": "1500ms"}, "whole seconds, as sysbench requires, found 1.5 s"),
        ({"ramp_up": "100ms"}, "whole seconds, as sysbench requires, found 0.1 s"),
        ({"interval": "500ms"}, "interval"),
        ({"script": "../mine.lua"}, "script"),
        ({"script": None}, "exactly one of `script` and `file`"),
        ({"options": {"--tables": 1}}, "options"),
        ({"options": {"tables": "1\ndebug=on"}}, "options"),
        ({"data": {"auto-inc": 1}, "options": {"auto_inc": 2}}, "`auto-inc` is given twice"),
        ({"data": {"table-size": 1, "table_size": 2}}, "`table-size` is given twice"),
        ({"options": {"table_size": 2}}, "`table_size` makes the data: move it to `data`"),
        ({"script": "oltp_point_selects"}, "oltp_point_select"),
        ({"modules": [{"name": "a.lua", "text": ""}, {"name": "a.lua", "text": "x"}]}, "give each a different name"),
        ({"script": "oltp_insert", "file": {"name": "a.lua", "text": ""}}, "exactly one of `script` and `file`"),
        ({"threads": 0}, "threads"),
        ({"data_seed": -1}, "data_seed"),
        (
            {"data": {"auto-inc": "off"}},
            "the native loader does not have the option `auto-inc`: use `loader: sysbench`",
        ),
        ({"data": {"table_size": "1e6"}}, "`table_size` must be a whole number from 1 to 2147483647, found `1e6`"),
        ({"data": {"tables": 10_001}}, "`tables` must be a whole number from 1 to 10000, found `10001`"),
        ({"data": {"table-size": 2**31}}, "`table-size` must be a whole number from 1 to 2147483647"),
        ({"data": {"table-size": "9" * 5000}}, "`table-size` must be a whole number from 1 to 2147483647"),
        ({"loader": "native", "script": "bulk_insert"}, "`loader: native` fills the tables of"),
    ],
)
def test_mistakes_are_named(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError) as raised:
        valid(**wrong)
    assert message in str(raised.value)


@pytest.mark.parametrize("part", ["data", "options"])
@pytest.mark.parametrize(
    ("option", "key"),
    [("time", "duration"), ("rand_seed", "trials.seed"), ("threads", "threads"), ("report-interval", "interval")],
)
def test_what_the_run_sets_is_refused_with_the_key_that_says_it(
    tmp_path: Path, *, part: str, option: str, key: str
) -> None:
    (found,) = problems(tmp_path, f"loader: sysbench\n{part}:\n  range-size: 1\n  {option}: 4")
    assert found.message == f"sysbench's `{option}` is set by the run"
    assert (found.line, found.field) == (10, f"workload.sysbench.{part}.{option}")
    assert found.suggestion == f"use `{key}` instead"


@pytest.mark.parametrize("option", ["mysql-socket", "pgsql_host", "histogram", "percentile", "db-driver"])
def test_what_is_not_to_be_had_is_to_be_left_out(tmp_path: Path, option: str) -> None:
    (found,) = problems(tmp_path, f"options: {{{option}: x}}")
    assert found.suggestion == "leave it out"


@pytest.mark.parametrize("option", ["mysql-ignore-errors", "mysql_compression", "db-ps-mode", "tables", "rand-type"])
def test_other_options_are_the_studys(option: str) -> None:
    assert reserved(option) is None


def test_a_script_of_ones_own_is_read_beside_the_study_and_becomes_part_of_it(tmp_path: Path) -> None:
    (tmp_path / "mine.lua").write_text("function event() end\n")
    (tmp_path / "helping.lua").write_text("return 1\n")
    path = tmp_path / "study.yaml"
    path.write_text(STUDY.replace("WORKLOAD", "    file: mine.lua\n    modules: [helping.lua]"))
    given = load(path, catalogue=catalogue()).resolve({"users": "two"}).workload.parameters
    assert isinstance(given, dict)
    assert given["file"] == {"name": "mine.lua", "text": "function event() end\n"}
    assert given["modules"] == [{"name": "helping.lua", "text": "return 1\n"}]


def test_a_script_that_is_not_there_is_said_with_its_line(tmp_path: Path) -> None:
    (found,) = problems(tmp_path, "threads: 3\nfile: mine.lua")
    assert f"cannot read {tmp_path}/mine.lua: No such file or directory" in found.message
    assert found.line == 8


def test_scripts_that_share_their_tables_share_their_data() -> None:
    def data(**given: Any) -> Any:
        return Sysbench(valid(**given)).data()

    assert data(script="oltp_insert", options={"rand-type": "uniform"}, threads=9) == data(script="oltp_read_only")
    assert data(script="select_random_points") == data(script="oltp_read_only")
    prepared = {"loader": "sysbench"}
    assert data(**prepared) == data(data_seed=2, threads=5, **prepared)
    own = {"name": "mine.lua", "text": "function event() end"}
    different = [
        data(),
        data(**prepared),
        data(**prepared, data={"auto-inc": "off"}),
        data(script="oltp_insert", **prepared),
        data(script="bulk_insert"),
        data(script="bulk_insert", threads=5),
        data(data={"tables": 2}),
        data(data_seed=2),
        data(file=own),
        data(file={**own, "text": "function event() return end"}),
        data(file=own, modules=[{"name": "other.lua", "text": ""}]),
    ]
    assert len({str(each) for each in different}) == len(different)


def test_data_of_our_own_loader_are_those_of_oltp() -> None:
    ours = OltpParameters.model_validate({"duration": 60, "tables": 3, "table_size": 70, "data_seed": 4})
    theirs = valid(data={"tables": 3, "table-size": 70}, data_seed=4)
    assert Sysbench(theirs).data() == Oltp(ours).data()


def test_options_may_be_written_as_yaml_has_them() -> None:
    found = valid(options={"skip-trx": True, "histogram-ish": False, "range-size": 1e3, "rand-pareto-h": 0.25})
    assert list(found.options.values()) == ["on", "off", "1000", "0.25"]


def test_a_script_with_modules_of_ones_own_fills_its_tables_itself() -> None:
    assert valid().is_native
    assert not valid(modules=[{"name": "oltp_common.lua", "text": ""}]).is_native


def test_a_files_hash_is_of_its_text() -> None:
    assert LuaFile(name="a.lua", text="x").sha256.startswith("2d711642b726b044")


def test_room_is_that_of_the_tables_asked_for_or_unknown() -> None:
    tables = {"tables": 3, "table_size": 1000}
    assert Sysbench(valid(data=tables)).disk_bytes() == 780_000
    assert Sysbench(valid(data=tables, loader="sysbench")).disk_bytes() == 0


def test_it_says_when_its_window_begins_so_that_probes_wait_for_it() -> None:
    assert Sysbench.announces


def test_a_trial_lasts_its_ramp_up_and_its_window() -> None:
    assert Sysbench(valid(ramp_up="3s")).duration_s() == 8
    assert Sysbench(valid(duration=None, events=1000, ramp_up=0)).duration_s() == 2


@pytest.mark.parametrize(
    ("script", "told"), [("oltp_read_only", set()), ("bulk_insert", {"sysbench_version", "sysbench_sha256"})]
)
def test_sysbench_determines_the_data_that_its_own_prepare_makes(script: str, told: set[str]) -> None:
    answers = {"sh": "/usr/bin/sysbench", "/usr/bin/sysbench": "sysbench 1.0.20", "sha256sum": "abc  /usr/bin/sysbench"}
    with place_in_memory(lambda spawn: FakeProgram(stdout=[answers[spawn.argv[0]]])) as (place, _fake):
        assert Sysbench(valid(script=script)).loader(place).keys() == told


@pytest.mark.parametrize(
    ("options", "rate"), [({}, None), ({"rate": 500}, 500.0), ({"rate": 0}, None), ({"rate": "x"}, None)]
)
def test_a_rate_makes_an_open_loop(options: dict[str, Any], rate: float | None) -> None:
    assert valid(options=options).rate == rate
