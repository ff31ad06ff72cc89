"""The setting `purge_governor`: what a study may say, and what becomes of it on the wire."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from support.facts import facts_of

from fairtrial import study
from fairtrial.catalogue import catalogue
from fairtrial.errors import InputError
from fairtrial.protocol.generated import MysqlEndpoint
from fairtrial.settings import ANY_TRIAL, SETTINGS, effects
from fairtrial.settings.steps.purge import PurgeGovernor

FACTS = facts_of(user_id=0, processors=[0, 1])
STUDY = """\
study: governed
system: {{{system}}}
workload: {{oltp: {{profile: update_non_index, table_size: 1000, duration: 1s}}}}
settings: {{swappiness: 10}}
factors:
  purge:
    own: {{}}
    governed: {{settings: {{purge_governor: {value}}}}}
  period:
    quick: {{}}
arm: purge
metrics: {{primary: throughput_tps, secondary: [governor_cpu_ms_per_s]}}
"""


def validated(value: object) -> Any:
    return PurgeGovernor.model_validate(value).model_dump(mode="json")


def asked(value: object) -> dict[str, Any]:
    effect = effects({"purge_governor": validated(value)}, FACTS, ANY_TRIAL)
    assert effect.steps == (), "the way back is the run's to remember, once it knows the server"
    assert effect.governor is not None
    endpoint = MysqlEndpoint(socket="/s", user="root", database="mysql")
    sent = effect.governor.governing(endpoint)
    assert sent.endpoint == endpoint
    return sent.model_dump(mode="json", exclude={"endpoint", "duration_s", "originals", "output_directory"})


def test_nothing_said_is_the_algorithm_as_published_every_50_ms() -> None:
    assert asked({}) == {
        "period_ms": 50,
        "answer_limit_ms": 1000,
        "threads": {"least": 1, "most": None},
        "batch_size": {"least": 1, "most": None},
        "low_water_percent": 20,
        "stop_percent": 80,
        "hysteresis_percent": 2,
        "dry_run": False,
    }


def test_everything_said_is_on_the_wire() -> None:
    value = {
        "period": "10ms",
        "answer_limit": "250ms",
        "threads": {"min": 2, "max": 8},
        "batch_size": {"min": 10, "max": 600},
        "low_water": "29%",
        "stop": "57%",
        "hysteresis": "0%",
        "dry_run": True,
    }
    found = asked(value)
    assert found == {
        "period_ms": 10,
        "answer_limit_ms": 250,
        "threads": {"least": 2, "most": 8},
        "batch_size": {"least": 10, "most": 600},
        "low_water_percent": 29,
        "stop_percent": 57,
        "hysteresis_percent": 0,
        "dry_run": True,
    }


@given(st.integers(1, 60_000), st.integers(0, 99))
def test_every_whole_millisecond_and_percent_arrives_as_it_was_written(period_ms: int, low: int) -> None:
    found = asked({"period": f"{period_ms}ms", "low_water": f"{low}%", "stop": "100%"})
    assert (found["period_ms"], found["low_water_percent"]) == (period_ms, low)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"period": "0ms"}, "from 1ms to 60s"),
        ({"period": "1500us"}, "whole milliseconds"),
        ({"period": "61s"}, "from 1ms to 60s"),
        ({"answer_limit": "2min"}, "from 1ms to 60s"),
        ({"threads": {"min": 0}}, "greater than or equal to 1"),
        ({"threads": {"max": 33}}, "less than or equal to 32"),
        ({"threads": {"min": 5, "max": 4}}, "`min` 5 is above `max` 4"),
        ({"batch_size": {"max": 5001}}, "less than or equal to 5000"),
        ({"low_water": "20.5%"}, "whole percents"),
        ({"stop": "101%"}, "up to 100%"),
        ({"low_water": "80%"}, "`low_water` must be below `stop`"),
        ({"hysteresis": "80%"}, "`hysteresis` must be below `stop`"),
        ({"thread": {"min": 1}}, "Extra inputs"),
        ({"dry_run": "perhaps"}, "valid boolean"),
        (True, "dictionary"),
    ],
)
def test_what_cannot_be_is_refused(value: object, said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        validated(value)


@pytest.fixture
def load(tmp_path: Path) -> Callable[..., study.Study]:
    def loaded(*, system: str = "mariadb: {}", value: str = "{period: 20ms}") -> study.Study:
        path = tmp_path / "study.yaml"
        path.write_text(STUDY.format(system=system, value=value), encoding="utf-8")
        return study.load(path, catalogue=catalogue())

    return loaded


def test_a_level_turns_it_on_and_its_metrics_may_be_named(load: Callable[..., study.Study]) -> None:
    found = load()
    without, governed = (found.resolve({"purge": arm, "period": "quick"}).settings for arm in ("own", "governed"))
    assert "purge_governor" not in without
    assert governed["purge_governor"]["period"] == 0.02


def test_watching_and_governing_are_two_arms_that_differ_in_that_only(load: Callable[..., study.Study]) -> None:
    watched, governed = (
        load(value=value).resolve({"purge": "governed", "period": "quick"}).settings["purge_governor"]
        for value in ("{period: 10ms, dry_run: true}", "{period: 10ms}")
    )
    assert {name for name in governed if watched[name] != governed[name]} == {"dry_run"}
    assert (watched["dry_run"], governed["dry_run"]) == (True, False)


def test_a_wrong_value_is_told_with_its_line_and_field(load: Callable[..., study.Study]) -> None:
    with pytest.raises(InputError) as caught:
        load(value="{threads: {min: 9, max: 2}}")
    (problem,) = caught.value.problems
    assert (problem.line, problem.field) == (8, "settings.purge_governor.threads")
    assert "`min` 9 is above `max` 2" in problem.message


def test_a_misspelt_key_is_told_with_the_right_one(load: Callable[..., study.Study]) -> None:
    with pytest.raises(InputError) as caught:
        load(value="{perod: 10ms}")
    (problem,) = caught.value.problems
    assert problem.field == "settings.purge_governor.perod"
    assert "period" in problem.suggestion


def test_only_servers_with_innodb_are_governed(load: Callable[..., study.Study]) -> None:
    load(system="mysql: {}")
    with pytest.raises(InputError, match="`purge_governor` does not run on the system `postgres`") as caught:
        load(system="postgres: {}")
    (problem,) = caught.value.problems
    assert (problem.line, problem.field) == (8, "settings.purge_governor")
    assert "with purge=governed" in problem.message


def test_the_setting_is_registered_beside_the_others() -> None:
    assert SETTINGS["purge_governor"].systems == {"mariadb", "mysql"}
    both = effects({"purge_governor": validated({}), "affinity": {"server": "0", "client": "1"}}, FACTS, ANY_TRIAL)
    assert both.governor is not None, "settings are merged without losing it"
    assert both.client_processors == (1,)
