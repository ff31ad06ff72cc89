"""Files of several clients as one: what adds up, what does not, and files that do not fit each other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hdrh.histogram import HdrHistogram
from support.driven import driven_of

from fairtrial.errors import RecordError
from fairtrial.metrics import fleet, latency

START_NS = 5_000_000_000


def histogram() -> str:
    """Of one latency of a millisecond, as the load generator writes it."""
    recorded = HdrHistogram(1, 3_600_000_000_000, 3)
    recorded.record_value(1_000_000)
    return str(recorded.encode().decode())


def client(directory: Path, number: int, **changed: Any) -> Path:
    """A client whose clock is ahead by as many seconds as its number, with two intervals of its window."""
    own = directory / fleet.DIRECTORY / str(number)
    own.mkdir(parents=True)
    start_ns = START_NS + number * 1_000_000_000
    counts = {"read_write": {"committed": 3 * number, "rolled_back": 0, "failed": 1, "retried": 0, "statements": 9}}
    result = driven_of(
        transactions=counts,
        window={"start_ns": start_ns, "end_ns": start_ns + 200},
        arrivals={"offered": 10, "waiting": number, "waiting_most": 4},
        errors=[{"transaction": "read_write", "code": "1213", "kind": "deadlock", "message": f"m{number}", "count": 2}],
        drawn={"read_write": 4, "nurand_c_item": 17, **({"only_mine": 1} if number == 2 else {})},
        effective={"isolation": "read"},
        loops=[{"busy_s": float(number), "idle_s": 3.0, "longest_turn_s": 0.1, "latest_timer_s": 0.0}],
    )
    document = json.loads(result.model_dump_json(exclude_none=True)) | changed.get("result", {})
    (own / "result.json").write_text(json.dumps(document))
    times = [start_ns - 100, start_ns, start_ns + 100]
    rows = pl.DataFrame(
        {
            "time_ns": times,
            "measured": [False, True, True],
            "read_write_committed": pl.Series([9, 1, 3 * number - 1], dtype=pl.UInt64),
            "waiting": pl.Series([50, 4 - number, number], dtype=pl.UInt64),
        }
    )
    changed.get("rows", lambda each: each)(rows).write_parquet(own / "timeline.parquet")
    lines = [f"Tag=read_write,{5 + number}.{tenth},0.100,1.0,{histogram()}" for tenth in ("000", "100")]
    text = "\n".join(["#Latencies", '"StartTimestamp",…', *lines[: changed.get("lines", 2)]]) + "\n"
    (own / "latency.hlog").write_text(text)
    return own


def pair(directory: Path, **changed: Any) -> Path:
    client(directory, 1)
    client(directory, 2, **changed)
    return directory


def test_counts_add_up_and_constants_do_not(tmp_path: Path) -> None:
    fleet.merge(pair(tmp_path))
    whole = json.loads((tmp_path / "result.json").read_bytes())
    assert whole["window"]["start_ns"] == START_NS + 1_000_000_000, "the first client's clock tells all"
    outcomes = whole["transactions"]["read_write"]
    assert (outcomes["committed"], outcomes["failed"], outcomes["statements"]) == (9, 2, 18)
    assert whole["drawn"] == {"read_write": 8, "nurand_c_item": 17, "only_mine": 1}
    assert [(error["message"], error["count"]) for error in whole["errors"]] == [("m1", 4)]
    assert [loop["busy_s"] for loop in whole["loops"]] == [1.0, 2.0]
    one = json.loads((tmp_path / "clients" / "1" / "result.json").read_bytes())["client"]
    assert whole["client"]["user_s"] == 2 * one["user_s"]
    assert whole["client"]["max_resident_bytes"] == one["max_resident_bytes"]
    rows = pl.read_parquet(tmp_path / "timeline.parquet")
    assert rows["read_write_committed"].to_list() == [18, 2, 7]
    assert rows["time_ns"].to_list() == [START_NS + 1_000_000_000 + each for each in (-100, 0, 100)]
    # The longest queue of all is of one interval: 3 + 2 or 1 + 2, not the sum of each client's longest.
    assert whole["arrivals"] == {"offered": 20, "waiting": 3, "waiting_most": 5}


def test_histograms_are_all_kept_at_the_first_clients_times(tmp_path: Path) -> None:
    fleet.merge(pair(tmp_path))
    lines = (tmp_path / "latency.hlog").read_text().splitlines()
    assert [line.split(",")[1] for line in lines[2:]] == ["6.000", "6.000", "6.100", "6.100"]
    merged = latency.read(tmp_path)["read_write"]
    own = [latency.read(each)["read_write"].n for each in fleet.directories(tmp_path)]
    assert merged.n == sum(own) > 0
    assert fleet.contradictions(tmp_path) == []


@pytest.mark.parametrize("name", ["result.json", "latency.hlog", "timeline.parquet"])
def test_files_that_are_not_the_clients_sum_are_named(tmp_path: Path, name: str) -> None:
    fleet.merge(pair(tmp_path))
    own = tmp_path / "clients" / "1" / name
    if name == "timeline.parquet":
        pl.read_parquet(own).with_columns(pl.col("waiting") + 0, read_write_committed=pl.col("waiting")).write_parquet(
            tmp_path / name
        )
    else:
        (tmp_path / name).write_bytes(own.read_bytes())
    assert fleet.contradictions(tmp_path) == [f"{name}: differs from the sum of the clients' files"]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"rows": lambda rows: rows[:2]}, "other intervals in timeline.parquet"),
        ({"rows": lambda rows: rows.with_columns(pl.col("time_ns") + 1)}, "other intervals in timeline.parquet"),
        ({"lines": 1}, "other intervals or types in latency.hlog"),
        ({"result": {"window": {"start_ns": START_NS + 2_000_000_000, "end_ns": START_NS + 2_000_000_199}}}, "shorter"),
    ],
)
def test_clients_that_measured_something_else_are_named(tmp_path: Path, changed: dict[str, Any], said: str) -> None:
    with pytest.raises(RecordError, match="client 2 has") as refused:
        fleet.merge(pair(tmp_path, **changed))
    assert said in str(refused.value)


def test_one_client_is_no_fleet(tmp_path: Path) -> None:
    fleet.merge(tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert fleet.contradictions(tmp_path) == []
    assert fleet.scalars(tmp_path) == {}


def test_each_client_has_scalars_of_its_own(tmp_path: Path) -> None:
    values = fleet.scalars(pair(tmp_path))
    assert values["client_1_busy_share"] == 0.25
    assert values["client_2_busy_share"] == 0.4
    assert values["client_2_latency_count"] == 2
