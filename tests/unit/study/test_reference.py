from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from types import ModuleType

from fairtrial import study
from fairtrial.catalogue import catalogue
from fairtrial.study.catalogue import MetricDefinition
from fairtrial.study.reference import page

ROOT = Path(__file__).parents[3]


def test_the_page_in_the_documentation_is_not_stale() -> None:
    """If this fails: scripts/generate-reference."""
    assert (ROOT / "docs" / "reference" / "study.md").read_text(encoding="utf-8") == page(catalogue())


def test_every_share_of_a_whole_has_a_total() -> None:
    """A mean and a median are no whole: a share of them may be more than 1."""
    listed = (ROOT / "docs" / "reference" / "metrics.md").read_text(encoding="utf-8")
    units = set(re.findall(r"\| (%|share[^|]*) \| (?:higher|lower) \|", listed))
    assert {"share", "share of acquisitions", "share of the mean", "share of the median"} <= units
    totals = {
        unit: MetricDefinition(name="m", label="m", unit=unit, better="lower", kind="count").total for unit in units
    }
    assert {unit for unit, total in totals.items() if not total} == {"share of the mean", "share of the median"}


def test_every_key_and_kind_of_a_catalogue_is_on_its_page(small: ModuleType) -> None:
    text = page(small.SMALL)
    schema = study.schema(small.SMALL)
    keys = {key for definition in [schema, *schema["$defs"].values()] for key in definition.get("properties", {})}
    missing = [key for key in keys if f"`{key}`" not in text]
    assert missing == []


def test_a_workload_that_measures_points_to_its_metrics(small: ModuleType) -> None:
    assert "What it measures" not in page(small.SMALL)
    tpcc = dataclasses.replace(small.SMALL.workloads["tpcc"], example={"duration": "60s"})
    shown = page(dataclasses.replace(small.SMALL, workloads={"tpcc": tpcc}))
    assert "Metrics: see [metrics](metrics.md#of-the-workload-tpcc)" in shown


def test_rows_show_type_limits_default_and_meaning(small: ModuleType) -> None:
    text = page(small.SMALL)
    assert "| `blocks` | whole number ≥ 1, ≤ 10000 | `10` | Blocks per cell" in text
    assert "| `kernel` | text | `debian-6.1` | Which kernel it boots. |" in text
    assert "| `memory` | size | `1GiB` | Its memory. |" in text
    assert "| `margin` | share | `2%` |" in text
    assert "Value: `on` or `off`." in text


def test_tables_are_whole(small: ModuleType) -> None:
    for block in re.findall(r"(?:^\|.*\n)+", page(small.SMALL), re.MULTILINE):
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}) == 1, block
