"""Scalars of a search, from the files of its probes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hdrh.histogram import HdrHistogram
from support.driven import driven_of

from fairtrial.errors import RecordError
from fairtrial.metrics import drive, latency
from fairtrial.protocol import generated as wire
from fairtrial.record.models import Window
from fairtrial.workloads.engine import oltp_scalars as oltp
from fairtrial.workloads.engine import search_scalars as search

SECOND_NS = 1_000_000_000
ASKED = {
    "percentile": "p99",
    "limit_s": 0.01,
    "lowest_per_s": 50.0,
    "highest_per_s": 800.0,
    "precision": 0.5,
    "window_s": 1.0,
    "settle_s": 0.0,
    "spacing": "exponential",
}
FAST_NS, SLOW_NS = 2_000_000, 30_000_000
WAY = [(100, True), (200, False), (200, False), (100, True)]  # bounds of 100/s and 200/s


def wrote(directory: Path, found: wire.Driven, latency_ns: int) -> None:
    """A drive of 100 transactions of one latency."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / drive.FILE).write_text(found.model_dump_json(), encoding="utf-8")
    histogram = HdrHistogram(1, 3_600_000_000_000, 3)
    histogram.record_value(latency_ns, 100)
    line = f"Tag=point_select,1.000,1.000,20.000,{histogram.encode().decode()}\n"
    (directory / latency.FILE).write_text(line, encoding="utf-8")


def written(directory: Path) -> wire.Searched:
    """The search that a drive's file tells of."""
    found = wire.Driven.model_validate_json((directory / drive.FILE).read_bytes()).search
    assert found is not None
    return found


def searched(directory: Path, way: list[tuple[int, bool]], **changes: Any) -> drive.DriveResult:
    """A search whose probes had these rates and verdicts."""
    outcomes = {"committed": 100, "statements": 100}
    probes = []
    for number, (rate, met) in enumerate(way):
        window = {"start_ns": number * 2 * SECOND_NS, "end_ns": (number * 2 + 1) * SECOND_NS}
        arrived = wire.Arrived(offered=100, waiting=0, waiting_most=0)
        own = driven_of(window=window, transactions={"point_select": outcomes}, arrivals=arrived)
        name = f"probes/{number + 1:02}"
        latency_ns = FAST_NS if met else SLOW_NS
        wrote(directory / name, own, latency_ns)
        (found,) = latency.read(directory / name).values()
        value = int(found.max_ns)
        quantiles = dict.fromkeys(("p50_ns", "p95_ns", "p99_ns", "p999_ns", "max_ns"), value)
        probes.append(
            {"directory": name, "rate_per_s": rate, "window": window, "offered": 100, "done": 100, "latency": quantiles}
            | {"client_busy_share": 0.1 * (number + 1), "met": met, "connections_lost": 0}
            | {"waiting": 0, "timed_out": 0}
        )
    result = {"asked": ASKED, "met_per_s": 100, "missed_per_s": 200, "complete": True, "probes": probes} | changes
    last = driven_of(window=probes[-1]["window"], transactions={"point_select": outcomes}, search=result)
    wrote(directory, last, FAST_NS)
    return drive.read(directory)


def test_the_bounds_and_the_busiest_client_at_them_come_from_the_probes_files(tmp_path: Path) -> None:
    found = search.compute(tmp_path, searched(tmp_path, [(50, True), *WAY]))
    assert found.pop("client_busy_share") == pytest.approx(0.5)
    assert found == {"highest_rate_per_s": 100, "lowest_rate_missed_per_s": 200, "probes": 5}
    assert set(found) == set(search.DEFINITIONS)
    window = Window(start_ns=8 * SECOND_NS, end_ns=9 * SECOND_NS)
    assert found.items() <= oltp.compute(tmp_path, window=window).items()


def test_a_drive_that_searched_for_nothing_has_none_of_them(tmp_path: Path) -> None:
    driven = searched(tmp_path, WAY)
    assert search.compute(tmp_path, driven.model_copy(update={"search": None})) == {}


@pytest.mark.parametrize(
    ("way", "changes", "reason"),
    [
        ([(100, False)] * 2, {"met_per_s": None, "missed_per_s": 100}, "not even the lowest rate of the search, 50/s"),
        ([(200, True)] * 2, {"met_per_s": 200, "missed_per_s": None}, "even the highest rate of the search, 800/s"),
        (WAY[:3], {"met_per_s": None, "missed_per_s": 200, "complete": False}, "ended after 3 probes"),
    ],
)
def test_a_bound_outside_the_range_is_no_number_and_a_reason(
    tmp_path: Path, *, way: list[tuple[int, bool]], changes: dict[str, Any], reason: str
) -> None:
    driven = searched(tmp_path, way, **changes)
    assert "highest_rate_per_s" not in search.compute(tmp_path, driven)
    assert reason in search.why_censored(written(tmp_path))


def test_a_search_that_found_its_bounds_has_no_reason(tmp_path: Path) -> None:
    searched(tmp_path, WAY)
    assert search.why_censored(written(tmp_path)) == ""


def test_bounds_need_two_probes_that_agree_and_a_rate_above_a_miss_does_not_count() -> None:
    assert search.bounds([]) == (None, None)
    assert search.bounds([(100, True), (200, True), (200, False)]) == (None, None)
    assert search.bounds([(100, True), (200, False), (100, True), (200, False)]) == (100, 200)
    assert search.bounds([(100, False), (100, False), (200, True), (200, True)]) == (None, 100)
    assert search.bounds([(100, True), (100, False), (100, True)]) == (100, None)


@pytest.mark.parametrize("wrong", [{"done": 99}, {"met": False}, {"offered": 50}, {"latency": None}])
def test_what_the_engine_says_of_a_probe_must_follow_from_its_files(tmp_path: Path, wrong: dict[str, Any]) -> None:
    searched(tmp_path, WAY)
    path = tmp_path / drive.FILE
    found = json.loads(path.read_text(encoding="utf-8"))
    found["search"]["probes"][0] |= wrong
    path.write_text(json.dumps(found), encoding="utf-8")
    with pytest.raises(RecordError, match="probes/01"):
        search.compute(tmp_path, drive.read(tmp_path))


def test_bounds_that_the_probes_do_not_give_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="its probes give the bounds 100"):
        search.compute(tmp_path, searched(tmp_path, WAY, met_per_s=150))


def test_overload_misses_the_objective_however_fast_the_few_were_that_ended(tmp_path: Path) -> None:
    driven = searched(tmp_path, WAY)
    below = tmp_path / "probes/01"
    own = json.loads((below / drive.FILE).read_text(encoding="utf-8"))
    own["arrivals"]["offered"] = 102
    (below / drive.FILE).write_text(json.dumps(own), encoding="utf-8")
    assert driven.search is not None
    probe = driven.search.probes[0].model_copy(update={"offered": 102})
    overloaded = driven.search.model_copy(update={"probes": [probe, *driven.search.probes[1:]]})
    with pytest.raises(RecordError, match="another verdict"):
        search.compute(tmp_path, driven.model_copy(update={"search": overloaded}))


def with_first_probe(tmp_path: Path, driven: drive.DriveResult, *, offered: int, **changes: Any) -> drive.DriveResult:
    """The same search with another number of transactions that should have begun in the first probe's window."""
    below = tmp_path / "probes/01"
    own = json.loads((below / drive.FILE).read_text(encoding="utf-8"))
    own["arrivals"]["offered"] = offered
    (below / drive.FILE).write_text(json.dumps(own), encoding="utf-8")
    assert driven.search is not None
    probe = driven.search.probes[0].model_copy(update={"offered": offered, **changes})
    again = driven.search.model_copy(update={"probes": [probe, *driven.search.probes[1:]]})
    return driven.model_copy(update={"search": again})


def test_one_transaction_in_a_hundred_may_still_be_under_way(tmp_path: Path) -> None:
    """100 of 101 ended: more than 99 %; of 102 it would be less."""
    found = search.compute(tmp_path, with_first_probe(tmp_path, searched(tmp_path, WAY), offered=101))
    assert found["highest_rate_per_s"] == 100


@pytest.mark.parametrize(
    ("unserved", "meets"),
    [
        ({}, True),
        ({"overdue": 1}, True),
        ({"overdue": 2}, False),
        ({"overdue": 1, "timed_out": 1}, False),
        ({"overdue": 1, "failed": 1}, False),
    ],
)
def test_what_has_no_latency_exceeds_every_limit_and_what_is_younger_than_it_does_not_count(
    tmp_path: Path, *, unserved: dict[str, int], meets: bool
) -> None:
    """100 of 150 ended: p99 is the rank 100 of 101, and 101 of 102. The others began too late to say anything."""
    driven = searched(tmp_path, WAY)
    below = tmp_path / "probes/01"
    own = json.loads((below / drive.FILE).read_text(encoding="utf-8"))
    own["arrivals"] |= {"overdue": unserved.get("overdue", 0), "timed_out": unserved.get("timed_out")}
    own["transactions"]["point_select"]["failed"] = unserved.get("failed", 0)
    (below / drive.FILE).write_text(json.dumps(own), encoding="utf-8")
    driven = with_first_probe(tmp_path, driven, offered=150)
    if meets:
        assert search.compute(tmp_path, driven)["highest_rate_per_s"] == 100
    else:
        with pytest.raises(RecordError, match=r"probes/01: .* another verdict"):
            search.compute(tmp_path, driven)


def test_a_percentile_right_at_the_limit_meets_it_and_one_class_above_does_not(tmp_path: Path) -> None:
    driven = searched(tmp_path, WAY)
    (fast,) = latency.read(tmp_path / "probes/01").values()
    at = fast.percentile_ns(99) / 1e9
    assert driven.search is not None
    for limit_s, meets in ((at, True), (at * (1 - 1e-9), False)):
        asked = driven.search.asked.model_copy(update={"limit_s": limit_s})
        changed = driven.model_copy(update={"search": driven.search.model_copy(update={"asked": asked})})
        if meets:
            assert search.compute(tmp_path, changed)["highest_rate_per_s"] == 100
        else:
            with pytest.raises(RecordError, match=r"probes/01: .* another verdict"):
                search.compute(tmp_path, changed)


def test_a_rate_that_both_met_and_missed_twice_is_missed() -> None:
    both = [(200.0, True), (200.0, False)] * 2
    assert search.bounds(both) == (None, 200)
    assert search.bounds([*both, (100, True), (100, True)]) == (100, 200)


def test_of_several_rates_the_closest_bounds_are_believed() -> None:
    met = [(rate, True) for rate in (50.0, 100.0, 150.0)] * 2
    missed = [(rate, False) for rate in (200.0, 300.0, 400.0)] * 2
    assert search.bounds([*met, *missed]) == (150, 200)
    assert search.bounds([*reversed(missed), *met]) == (150, 200)


def test_the_client_is_as_busy_as_at_the_bounds_and_not_elsewhere(tmp_path: Path) -> None:
    """Probes far above the bounds overload the client without saying anything about the result."""
    driven = searched(tmp_path, [*WAY, (400, False)])
    assert search.compute(tmp_path, driven)["client_busy_share"] == pytest.approx(0.4)
    assert driven.search is not None
    idle = [probe.model_copy(update={"client_busy_share": None}) for probe in driven.search.probes]
    unknown = driven.model_copy(update={"search": driven.search.model_copy(update={"probes": idle})})
    assert "client_busy_share" not in search.compute(tmp_path, unknown)
