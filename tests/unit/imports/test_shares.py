"""What anyone's column holds shares of: 0.99 and 99 are one hit ratio, and 0.99 and 0.999 are no equal ones."""

from __future__ import annotations

import polars as pl
import pytest
from support.inference.tables import judged, only_comparison

from fairtrial.imports import shares

NEAR_ONE = (0.99, 0.999)
NEAR_ALL = (99.0, 99.9)
HALF = (49.8, 50.2)


@pytest.mark.parametrize(
    ("name", "values", "unit"),
    [
        ("hit_ratio", NEAR_ONE, "share"),
        ("hit_ratio", NEAR_ALL, "%"),
        ("hit_ratio", (990.0, 999.0), ""),
        ("hit_ratio", (1.0, float("nan")), "share"),
        ("hit_ratio", (-0.1, 0.9), ""),
        ("hit_ratio", (float("nan"),), ""),
        ("busy share", NEAR_ONE, "share"),
        ("cacheHitRate", NEAR_ONE, "share"),
        ("L1 misses, rate", NEAR_ONE, "share"),
        ("hitrate", NEAR_ALL, "%"),
        ("utilization", NEAR_ALL, "%"),
        ("cpu-utilisation", NEAR_ONE, "share"),
        ("availability", NEAR_ONE, "share"),
        ("hit_rate_per_s", HALF, ""),
        ("market_share_usd", HALF, ""),
        ("hits [%]", NEAR_ALL, "%"),
        ("cpu_percent", (90.0, 350.0), ""),
        ("change_percent", (-3.0, 0.9), "%"),
        ("error_percent", (0.2, 0.8), "%"),
        ("speedup_ratio", NEAR_ONE, ""),
        ("miss_count", NEAR_ONE, ""),
        ("shared_buffers", NEAR_ONE, ""),
        ("7", NEAR_ONE, ""),
    ],
)
def test_a_columns_name_and_values_tell_shares(name: str, values: tuple[float, ...], unit: str) -> None:
    assert shares.unit(name, pl.Series(values)) == unit


@pytest.mark.parametrize(
    ("name", "values"), [("cache_hit_rate", NEAR_ONE), ("hit_ratio", NEAR_ALL), ("hit_percent", NEAR_ALL)]
)
def test_a_tenth_of_the_misses_is_no_equivalence(name: str, values: tuple[float, float]) -> None:
    rows = [f"{'ab'[arm]},{block},{values[arm] * (1 + block / 1e5)!r}" for block in range(10) for arm in (0, 1)]
    found = judged(f"arm,block,{name}\n" + "\n".join(rows), values=(name,), arm="arm", block="block")
    assert only_comparison(found, name).verdict == "faster"
