"""What a study may say of fio's jobs, and what contradicts itself."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from fairtrial.study.resolved import Section
from fairtrial.workloads import workload_of
from fairtrial.workloads.fio import Fio
from fairtrial.workloads.fio.output import RESOLUTION
from fairtrial.workloads.fio.parameters import FioParameters


def valid(**given: Any) -> FioParameters:
    return FioParameters.model_validate({"accesses": 10, **given})


def fio(**given: Any) -> Fio:
    return Fio(valid(**given))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"accesses": None}, "exactly one of `accesses` and `duration`"),
        ({"duration": "5s"}, "exactly one of `accesses` and `duration`"),
        ({"warm_up": "5s", "warm_up_accesses": 3}, "leave one out"),
        ({"size": 5000}, "whole pages of 4096 bytes"),
        ({"size": 0}, "whole pages"),
        ({"block_size": 100}, "a multiple of 512"),
        ({"size": "1MiB", "block_size": 3 * 512}, "`size` must be a multiple"),
        ({"jobs": 0}, "jobs"),
        ({"rw": "trim"}, "randread"),
        ({"engine": "psync:x"}, "engine"),
        ({"distribution": "ZIPF:1"}, "distribution"),
        ({"options": {"Thinktime": 1}}, "options"),
        ({"options": {"thinktime": "1\nunlink=1"}}, "options"),
        ({"numjobs": 2}, "numjobs"),
    ],
)
def test_mistakes_are_named(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError) as raised:
        valid(**wrong)
    assert message in str(raised.value)


def test_defaults_are_fios_plainest_job() -> None:
    found = valid()
    assert (found.jobs, found.block_size, found.rw, found.engine, found.iodepth) == (1, 4096, "randread", "psync", 1)
    assert not found.direct
    assert found.distribution == "random"


def test_numbers_among_options_become_text_and_a_flag_stays_empty() -> None:
    assert valid(options={"fsync": 32, "fadvise_hint": ""}).options == {"fsync": "32", "fadvise_hint": ""}


@pytest.mark.parametrize(
    ("rw", "distribution", "hashed"),
    [
        ("randread", "zipf:0.8", True),
        ("randrw", "normal:40", True),
        ("randwrite", "pareto:0.2:0.5", True),
        ("randread", "random", False),
        ("randread", "zoned:60/10:40/90", False),
        ("read", "zipf:0.8", False),
    ],
)
def test_skewed_random_access_is_hashed(rw: str, distribution: str, *, hashed: bool) -> None:
    assert valid(rw=rw, distribution=distribution).reaches_by_hash == hashed


def test_percentiles_say_that_bins_are_a_64th_wide_and_means_are_exact() -> None:
    definitions = fio().metrics()
    assert definitions["latency_ns_p99"].resolution == RESOLUTION == 1 / 64
    assert definitions["read_latency_ns_p50"].resolution == RESOLUTION
    assert definitions["latency_ns_mean"].resolution == 0
    assert definitions["latency_ns_max"].kind == "wall_clock"
    assert definitions["miss_ratio"].kind == "count"


def test_sequential_access_has_no_footprint() -> None:
    assert "footprint_share" in fio().metrics()
    assert "footprint_share" not in fio(rw="read").metrics()


def test_a_trial_lasts_as_long_as_warm_up_and_window() -> None:
    assert fio(accesses=None, duration="60s", warm_up="30s").duration_s() == 90
    assert fio(accesses=5000, warm_up_accesses=10_000).duration_s() == 3


def test_files_decide_what_is_prepared_and_accesses_do_not() -> None:
    one = fio(jobs=2, size="8MiB").data()
    assert one == fio(jobs=2, size="8MiB", rw="randwrite", engine="mmap", accesses=7).data()
    assert one != fio(jobs=2, size="16MiB").data()
    assert one != fio(jobs=2, size="8MiB", data_seed=2).data()
    assert fio(jobs=2, size="8MiB").disk_bytes() == 16 << 20


def test_a_plan_gives_the_same_parameters_back() -> None:
    asked = valid(size="8MiB", warm_up="1.5s", interval="10ms", options={"fsync": 32, "fadvise_hint": ""})
    assert workload_of(Section({"fio": asked.model_dump(mode="json")})).parameters == asked
