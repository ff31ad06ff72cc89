from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from fairtrial import study
from fairtrial.catalogue import catalogue
from fairtrial.errors import InputError
from fairtrial.study.tuning import TunedOption
from fairtrial.study.tuning.levels import defaults, overlay

STUDY = """\
study: tuned
system: {mariadb: {options: {innodb_io_capacity: 200}}}
workload: {oltp: {profile: read_write, tables: 1, table_size: 100, duration: 1s}}
tune:
  options:
    pool: {of: system.mariadb.options.innodb_buffer_pool_size, from: 32M, to: 512M, scale: log}
    capacity: {of: system.mariadb.options.innodb_io_capacity, from: 100, to: 1000}
    users: {of: workload.oltp.virtual_users, choices: [1, 2, 4]}
metrics: {primary: throughput_tps, guardrails: [latency_ns_p95]}
"""


@pytest.fixture
def load(tmp_path: Path) -> Callable[[str], study.Study]:
    def loaded(text: str) -> study.Study:
        path = tmp_path / "study.yaml"
        path.write_text(text, encoding="utf-8")
        return study.load(path, catalogue=catalogue())

    return loaded


def test_a_study_that_tunes_compares_the_default_with_a_proposal_and_is_written_back(
    load: Callable[[str], study.Study],
) -> None:
    loaded = load(STUDY)
    tuning = loaded.file.tune
    assert tuning is not None
    assert defaults(tuning, loaded.base) == {"capacity": 200}
    assert loaded.arm.level_names == ("default", "proposal")
    proposal = loaded.resolve({"options": "proposal"})
    assert proposal.system.root["mariadb"]["options"] == {  # type: ignore[index, call-overload]
        "innodb_buffer_pool_size": "512M",
        "innodb_io_capacity": 1000,
    }
    text = study.dump(loaded)
    assert "factors" not in text
    assert load(text) == loaded


def test_an_option_without_a_path_replaces_its_name_in_braces(load: Callable[[str], study.Study]) -> None:
    loaded = load(
        "study: named\nworkload: {command: {run: 'prog -j {jobs} {jobs}', metrics: {score: {regex: '(1)'}}}}\n"
        "tune: {options: {jobs: {from: 1, to: 8, default: 2}}}\nmetrics: {primary: score}\n"
    )
    tuning = loaded.file.tune
    assert tuning is not None
    assert loaded.resolve({"options": "default"}).workload.root["command"]["run"] == "prog -j 2 2"  # type: ignore[index, call-overload]
    level = overlay(tuning, loaded.base, {"jobs": 5})
    assert level.tree("workload").tree("command").entries["run"].value == "prog -j 5 5"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("from: 32M", "from: 1G", ":6:11: tune.options.pool: expected `from` and `to` in one unit"),
        ("from: 100, to: 1000", "from: 100, to: 100", ":7:15: tune.options.capacity: expected `from` below `to`"),
        ("from: 100, to: 1000", "from: 100, to: 1e999M", ":7:15: tune.options.capacity: expected a number up to"),
        ("from: 100, to: 1000", "from: 0, to: 9, scale: log", "`scale: log` needs a range above 0"),
        ("choices: [1, 2, 4]", "choices: [0, 2]", ":8:46: workload.oltp.virtual_users:"),
        ("of: workload.oltp.virtual_users", "of: workload.tpcc.virtual_users", ":8:17: tune.options.users.of: the"),
        ("of: workload.oltp.virtual_users", "of: place.local", "expected the path of one value below"),
        ("of: workload.oltp.virtual_users, ", "default: 1, ", ":8:5: tune.options.users: nothing in the base trial"),
        ("of: workload.oltp.virtual_users, ", "", "expected `default`, as there is no `of`"),
        ("capacity: {of: system.mariadb.options.innodb_io_capacity", "capacity: {of: workload.oltp.virtual_users",
         "options `capacity` and `users` have the same path"),
        ("metrics:", "arm: options\nmetrics:", ":9:1: arm: a study that tunes has no `arm`"),
        ("metrics:", "trials: {stop: sequential}\nmetrics:", ":9:16: trials.stop: a study that tunes"),
        ("metrics:", "trials: {design: definitive}\nmetrics:", ":9:18: trials.design: a study searches or screens"),
        ("metrics:", "trials: {blocks: 3}\nmetrics:", ":9:10: trials.blocks: `tune` says how many trials"),
        ("primary: throughput_tps", "primary: [throughput_tps, latency_ns_p99]", "a search has one objective, found 2"),
    ],
)  # fmt: skip
def test_mistakes_are_named_where_they_stand(
    load: Callable[[str], study.Study], *, old: str, new: str, message: str
) -> None:
    assert old in STUDY
    with pytest.raises(InputError) as raised:
        load(STUDY.replace(old, new))
    assert message in str(raised.value)


def test_values_are_rounded_stay_in_their_range_and_keep_their_unit() -> None:
    pool = TunedOption.model_validate({"of": "system.x.y", "from": "32M", "to": "512M"})
    assert [pool.value(number) for number in (32, 117.4, 600)] == ["32M", "117M", "512M"]
    assert (pool.number("117M"), pool.number("1G"), pool.number("600M")) == (117, None, None)
    assert pool.number("117.5M") is None, "its values are whole"
    share = TunedOption.model_validate({"of": "system.x.y", "from": 0.1, "to": 90.0})
    assert [share.value(number) for number in (0.123456, 12.34567, 0.0)] == [0.1235, 12.35, 0.1]


def test_small_and_large_numbers_are_numbers_too() -> None:
    cost = TunedOption.model_validate({"of": "system.x.y", "from": 0.00001, "to": 1e17, "scale": "log"})
    assert cost.ends == (1e-5, 1e17)
    assert cost.number(cost.value(0.0000234567)) == pytest.approx(2.346e-5)
    pause = TunedOption.model_validate({"of": "system.x.y", "from": "0s", "to": "0.01s"})
    assert pause.value(0.0000234567) == "0.00002346s"
    assert pause.number("0.00002346s") == pytest.approx(2.346e-5)
