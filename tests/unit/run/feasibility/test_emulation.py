"""Under emulation clocks cannot decide."""

from __future__ import annotations

import pytest
from support.records import tiny_plan

from fairtrial.errors import PlaceError
from fairtrial.record.models import Plan
from fairtrial.run.feasibility.emulation import require_counts
from fairtrial.study.catalogue import MetricKind


def plan(kind: MetricKind) -> Plan:
    found = tiny_plan()
    definition = found.metrics.definitions["elapsed_s"].model_copy(update={"kind": kind})
    return found.model_copy(
        update={"metrics": found.metrics.model_copy(update={"definitions": {"elapsed_s": definition}})}
    )


def test_a_clock_is_refused_as_primary_by_name() -> None:
    with pytest.raises(PlaceError, match="elapsed_s cannot be primary") as refused:
        require_counts(plan("wall_clock"), emulated=True)
    assert refused.value.exit_code == 3
    assert "per_transaction" in refused.value.hint


def test_a_count_is_evidence_anywhere() -> None:
    require_counts(plan("count"), emulated=True)


def test_a_clock_is_evidence_where_a_processor_is_real() -> None:
    require_counts(plan("wall_clock"), emulated=False)


def test_a_clock_that_is_only_looked_at_is_not_refused() -> None:
    found = plan("wall_clock")
    secondary = found.metrics.model_copy(update={"primary": [], "secondary": ["elapsed_s"]})
    require_counts(found.model_copy(update={"metrics": secondary}), emulated=True)
