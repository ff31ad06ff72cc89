"""Arrivals as a study says them: what the engine is told, and what is refused, with its line and column."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fairtrial import study
from fairtrial.catalogue import catalogue
from fairtrial.errors import InputError
from fairtrial.metrics import latency
from fairtrial.protocol import generated as wire
from fairtrial.study.resolved import ResolvedTrial
from fairtrial.workloads import workload_of
from fairtrial.workloads.engine import arrivals
from fairtrial.workloads.engine import drive as native

STUDY = """\
study: arrivals
system: {sqlite: {}}
workload:
  oltp:
    duration: 5s
    arrivals: ARRIVALS
factors: {users: {few: {}, many: {workload: {oltp: {virtual_users: 9}}}}}
arm: users
metrics: {primary: lateness_ns_p99}
"""
SEARCH = "{search: {objective: {p99: 10ms}, from: 100/s, to: 20000/s}}"
Load = Callable[..., study.Study]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    def loaded(text: str, *, times: str = "0\n1.5\n") -> study.Study:
        (tmp_path / "study.yaml").write_text(text, encoding="utf-8")
        (tmp_path / "times.txt").write_text(times, encoding="utf-8")
        return study.load(tmp_path / "study.yaml", catalogue=catalogue())

    return loaded


def resolved(load: Load, text: str) -> ResolvedTrial:
    return load(STUDY.replace("ARRIVALS", text)).resolve({"users": "few"})


def task(load: Load, text: str) -> dict[str, Any]:
    parameters = workload_of(resolved(load, text).workload).parameters
    offered = arrivals.offered(parameters.arrivals, spacing=parameters.spacing, path="/place/arrivals")
    return offered.model_dump(mode="json")


def test_rates_that_change_are_told_to_the_engine_per_second_and_in_seconds(load: Load) -> None:
    steps = task(load, "{steps: [{rate: 100/s, length: 250ms}, {rate: 0, length: 1min}]}")
    assert steps["steps"] == [{"rate_per_s": 100, "length_s": 0.25}, {"rate_per_s": 0, "length_s": 60}]
    assert task(load, "{ramp: {from: 0, to: 6000/min, over: 2min}}") == {
        "kind": "ramp",
        "from_per_s": 0,
        "to_per_s": 100,
        "over_s": 120,
        "spacing": "exponential",
    }
    assert task(load, "{sine: {mean: 50, amplitude: 50, period: 1h}}") == {
        "kind": "sine",
        "mean_per_s": 50,
        "amplitude_per_s": 50,
        "period_s": 3600,
        "spacing": "exponential",
    }


def test_a_replay_is_seen_from_the_file_that_names_it_and_kept_as_path_and_hash(load: Load, tmp_path: Path) -> None:
    text = "{replay: {file: times.txt, at_end: again}}"
    assert task(load, text) == {"kind": "replay", "path": "/place/arrivals", "again": True}
    file = resolved(load, text).workload.root["oltp"]["arrivals"]["replay"]["file"]
    assert file["path"] == str(tmp_path / "times.txt")
    assert (file["arrivals"], file["length_s"]) == (2, 1.5)


def test_a_search_has_its_objective_and_no_length(load: Load) -> None:
    with pytest.raises(InputError, match="leave `duration`, `transactions` and `ramp_up_transactions` out"):
        load(STUDY.replace("ARRIVALS", SEARCH))
    text = STUDY.replace("    duration: 5s\n", "").replace("ARRIVALS", SEARCH)
    parameters = workload_of(load(text).resolve({"users": "few"}).workload).parameters
    offered = arrivals.offered(parameters.arrivals, spacing="constant", path="")
    assert offered == wire.SearchArrivals(
        search=wire.Search(
            percentile="p99",
            limit_s=0.01,
            lowest_per_s=100,
            highest_per_s=20_000,
            precision=0.05,
            window_s=10,
            settle_s=2,
            spacing="constant",
        )
    )
    found = {name: each.resolution for name, each in parameters.loop_metrics().items()}
    assert found["highest_rate_per_s"] == -0.05, "the capacity may lie above it"
    assert found["lowest_rate_missed_per_s"] == pytest.approx(0.05 / 1.05)
    assert found["probes"] == 0
    # Eight doublings and one: half of them, three more for the bounds, and four halvings twice; two seconds settle.
    assert native.duration_s(parameters, guessed_per_s=1) == 10 + (5 + 3 + 8) * 13


@pytest.mark.parametrize("expected", ["few", "many"])
def test_a_rate_that_levels_search_with_different_precision_is_known_to_the_coarser(load: Load, expected: str) -> None:
    """Also if something is expected of one level alone."""
    text = STUDY.replace("    duration: 5s\n", "").replace("ARRIVALS", SEARCH)
    text = text.replace("{virtual_users: 9}", "{arrivals: {search: {precision: 20 %}}}").replace(
        "arm: users", "arm: log"
    )
    text = text.replace("}\narm", ", log: {a: {}, b: {system: {sqlite: {pragmas: {journal_mode: WAL}}}}}}\narm")
    text = text.replace("lateness_ns_p99", "highest_rate_per_s")
    found = load(f"{text}expect: {{{expected}: {{highest_rate_per_s: '>= 1'}}}}\n").definitions
    assert found["highest_rate_per_s"].resolution == -0.2


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{steps: []}", "6:23: workload.oltp.arrivals.steps: expected at least 1 item, found an empty list"),
        ("{steps: [{rate: -5/s, length: 1s}]}", "6:31: workload.oltp.arrivals.steps.0.rate: expected a rate such as"),
        ("{steps: [{rate: 5, length: 0s}]}", "6:42: workload.oltp.arrivals.steps.0.length: expected a value greater"),
        ("{steps: [{rate: 5}]}", "6:24: workload.oltp.arrivals.steps.0.length: required but missing"),
        ("{steps: [{rate: 5 kg, length: 1s}]}", "'kg' is not one of /s, /min, /h"),
        ("{steps: [{rate: 0, length: 1s}]}", "6:23: workload.oltp.arrivals.steps: steps whose rates are all 0"),
        ("{ramp: {from: 0, to: 0, over: 1s}}", "6:22: workload.oltp.arrivals.ramp: a ramp from 0 to 0"),
        ("{ramp: {from: 1, to: 5, ovr: 1s}}", "6:39: workload.oltp.arrivals.ramp.ovr: unknown key"),
        ("{ramp: {from: 1, to: 2e9, over: 1s}}", "6:36: workload.oltp.arrivals.ramp.to: expected a value less"),
        ("{sine: {mean: 5, amplitude: 6, period: 1s}}", "6:22: workload.oltp.arrivals.sine: `amplitude` (6/s) above"),
        ("{sine: {mean: 0, amplitude: 0, period: 1s}}", "6:29: workload.oltp.arrivals.sine.mean: expected a value"),
        ("{replay: {file: nothing.txt}}", "6:31: workload.oltp.arrivals.replay.file: cannot read"),
        ("{replay: {file: 7}}", "6:31: workload.oltp.arrivals.replay.file: expected"),
        ("{replay: {file: times.txt, at_end: stop}}", "6:50: workload.oltp.arrivals.replay.at_end: expected 'end'"),
        ("{}", "6:15: workload.oltp.arrivals: expected exactly one of `steps`"),
        (
            "{steps: [{rate: 5, length: 1s}], ramp: {from: 0, to: 5, over: 1s}}",
            "6:15: workload.oltp.arrivals: expected",
        ),
        (
            "{search: {objective: {p98: 1s}, from: 1, to: 2}}",
            "6:37: workload.oltp.arrivals.search.objective.p98: expected 'p50'",
        ),
        (
            "{search: {objective: {}, from: 1, to: 2}}",
            "6:36: workload.oltp.arrivals.search.objective: expected exactly",
        ),
        (
            "{search: {objective: {p50: 0}, from: 1, to: 2}}",
            "6:36: workload.oltp.arrivals.search.objective: no latency meets",
        ),
        (
            "{search: {objective: {p50: 1ms}, from: 200, to: 100}}",
            "6:24: workload.oltp.arrivals.search: `from` (200/s) above `to` (100/s)",
        ),
        (
            "{search: {objective: {p99: 1ms}, from: 50, to: 100}}",
            "6:24: workload.oltp.arrivals.search: a `window` of 10s at 50/s holds 500 transactions, but p99 needs 1000",
        ),
        (
            "{search: {objective: {p50: 1s}, from: 50, to: 100}}",
            "6:24: workload.oltp.arrivals.search: a `window` of 10s is too short for a limit of 1s",
        ),
        (
            "{search: {objective: {p50: 1ms}, from: 50, to: 100, precision: 0}}",
            "6:78: workload.oltp.arrivals.search.precision: expected a value greater",
        ),
    ],
)
def test_arrivals_that_mean_nothing_are_refused_where_they_stand(load: Load, text: str, expected: str) -> None:
    with pytest.raises(InputError) as raised:
        load(STUDY.replace("ARRIVALS", text))
    problems = [str(problem) for problem in raised.value.problems]
    assert any(f"study.yaml:{expected}" in problem or expected in problem for problem in problems), problems
    assert all(problem.line == 6 for problem in raised.value.problems)


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        ("0\n2\n1.5\n", "times.txt:3: expected times that do not decrease, found 1.5 after 2"),
        ("# seconds\n0\nsoon\n", "times.txt:3: expected a number of seconds, found 'soon'"),
        ("0\nnan\n", "times.txt:2: expected a number of seconds, found 'nan'"),
        ("", "times.txt has no times"),
    ],
)
def test_a_file_with_mistakes_is_named_with_its_line_and_the_study_with_its_own(
    load: Load, times: str, expected: str
) -> None:
    with pytest.raises(InputError) as raised:
        load(STUDY.replace("ARRIVALS", "{replay: {file: times.txt}}"), times=times)
    (problem,) = raised.value.problems
    assert (problem.line, problem.column) == (6, 31)
    assert expected in problem.message


def test_levels_that_name_another_kind_of_arrivals_replace_it_whole(load: Load) -> None:
    text = STUDY.replace("ARRIVALS", "{steps: [{rate: 5, length: 1s}]}").replace(
        "{virtual_users: 9}", "{arrivals: {sine: {mean: 5, amplitude: 1, period: 1s}}}"
    )
    found = load(text)
    kinds = [found.resolve({"users": level}).workload.root["oltp"]["arrivals"] for level in ("few", "many")]
    assert [next(kind for kind, asked in each.items() if asked) for each in kinds] == ["steps", "sine"]


def test_two_factors_that_name_different_kinds_of_arrivals_are_confounded(load: Load) -> None:
    text = STUDY.replace("ARRIVALS", "{steps: [{rate: 5, length: 1s}]}").replace(
        "factors: {",
        "factors: {a: {b: {workload: {oltp: {arrivals: {ramp: {from: 0, to: 5, over: 1s}}}}}}, "
        "c: {d: {workload: {oltp: {arrivals: {sine: {mean: 5, amplitude: 1, period: 1s}}}}}}, ",
    )
    with pytest.raises(InputError, match="factors `a` and `c` both set it"):
        load(text)


def test_a_level_with_its_own_rate_in_a_search_changes_only_that(load: Load) -> None:
    text = STUDY.replace("    duration: 5s\n", "").replace("ARRIVALS", SEARCH)
    text = text.replace("{virtual_users: 9}", "{arrivals: {search: {from: 500/s}}}")
    search = load(text).resolve({"users": "many"}).workload.root["oltp"]["arrivals"]["search"]
    assert (search["from"], search["to"], search["objective"]) == (500, 20_000, {"p99": 0.01})


def test_only_a_search_measures_the_highest_rate(load: Load) -> None:
    text = STUDY.replace("ARRIVALS", "{steps: [{rate: 5, length: 1s}]}")
    with pytest.raises(InputError, match="unknown metric `highest_rate_per_s`"):
        load(text.replace("lateness_ns_p99", "highest_rate_per_s"))
    searching = STUDY.replace("    duration: 5s\n", "").replace("ARRIVALS", SEARCH)
    assert "highest_rate_per_s" in load(searching.replace("lateness_ns_p99", "highest_rate_per_s")).definitions


def test_the_limits_of_a_search_are_those_of_its_scalars() -> None:
    assert set(latency.PERCENTILES) == {"p50", "p95", "p99", "p999"}
