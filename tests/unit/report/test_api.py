"""`fairtrial.read`: a run as Polars frames."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import polars as pl
import pytest

import fairtrial
from fairtrial.errors import InputError, RecordError
from fairtrial.metrics import latency
from fairtrial.record import Record


@pytest.fixture(scope="module")
def run(record: Record) -> fairtrial.RunFrames:
    return fairtrial.read(str(record.directory))


def test_importing_fairtrial_loads_none_of_the_heavy_libraries() -> None:
    script = (
        "import sys, fairtrial; print(sorted({'polars', 'numpy', 'pydantic', 'scipy', 'altair'} & set(sys.modules)))"
    )
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert loaded.stdout.strip() == "[]"


def test_an_unknown_attribute_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'raed'"):
        _ = fairtrial.raed


def test_trials_has_one_row_per_trial_with_levels_fate_and_scalars(run: fairtrial.RunFrames, record: Record) -> None:
    trials = run.trials
    assert trials["id"].to_list() == [trial.trial.id for trial in record.trials]
    assert set(run.plan.factors) <= set(trials.columns)
    assert trials["position"].is_sorted()
    assert trials.filter(~pl.col("valid"))["invalid_reason"].to_list() == ["the server restarted"]
    assert trials.filter(~pl.col("used"))["id"].to_list() == ["0014-high-delete-b3", "0015-high-wal-b3"]
    assert trials["throughput_tpm"].to_list() == [trial.scalars["throughput_tpm"] for trial in record.trials]


def test_timelines_integrate_to_the_transactions_of_each_trial(run: fairtrial.RunFrames) -> None:
    measured = run.timelines.filter("measured")
    done = measured.group_by("trial").agg(done=(pl.col("transactions_per_s") * pl.col("width_s")).sum())
    compared = run.trials.join(done, left_on="id", right_on="trial")
    assert compared.height == 26
    assert np.allclose(compared["done"], compared["transactions"])
    assert run.timelines["second"].min() == -5.0


def test_telemetry_has_levels_and_rates_of_every_trial(run: fairtrial.RunFrames) -> None:
    cpu = run.telemetry("cpu")
    assert cpu["trial"].n_unique() == 26
    classes = pl.sum_horizontal("user_per_s", "system_per_s", "iowait_per_s", "steal_per_s", "idle_per_s")
    total = cpu.select(total=classes).drop_nulls()["total"].mean()
    assert total == pytest.approx(400, rel=0.05)
    assert "MemAvailable_per_s" not in run.telemetry("memory").columns


def test_latency_of_a_trial_and_type_is_the_frame_of_its_histogram(run: fairtrial.RunFrames, record: Record) -> None:
    trial = record.trials[0]
    frame = run.latency(trial=trial.trial.id, type="payment")
    assert frame["share_up_to"][-1] == pytest.approx(1.0)
    p99 = frame.filter(pl.col("share_up_to") >= 0.99)["highest_ns"][0]
    assert p99 == pytest.approx(trial.scalars["payment_latency_ns_p99"], rel=0.03)
    counted = latency.read(record.trial_directory(trial.trial.id))["payment"].n
    assert frame["count"].sum() == counted


def test_latency_merges_the_used_trials_only(run: fairtrial.RunFrames) -> None:
    used = run.trials.filter("used")
    assert run.latency()["count"].sum() == used["transactions"].sum()


@pytest.mark.parametrize("wrong", [{"trial": "none-such"}, {"type": "refund"}])
def test_a_wrong_name_is_answered_with_the_right_ones(run: fairtrial.RunFrames, wrong: dict[str, str]) -> None:
    with pytest.raises(InputError) as raised:
        run.latency(**wrong)
    assert "one of:" in raised.value.hint


def test_an_unknown_source_of_telemetry_names_the_known_ones(run: fairtrial.RunFrames) -> None:
    with pytest.raises(InputError) as raised:
        run.telemetry("gpu")
    assert "cpu, disks, memory, pressure" in raised.value.hint


def test_a_directory_that_is_no_record_is_an_error(record: Record) -> None:
    with pytest.raises(RecordError):
        fairtrial.read(record.directory / "trials")
