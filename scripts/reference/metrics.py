"""docs/reference/metrics.md: every metric of the catalogue, and the sampler's own list of server counters."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from fairtrial.study.catalogue import Catalogue, Kind, MetricDefinition
from fairtrial.workloads.engine import arrival_scalars as arrivals
from fairtrial.workloads.engine import search_scalars as search
from fairtrial.workloads.pgbench import scalars as pgbench
from reference.markdown import render, table

COUNTERS = Path(__file__).parents[2] / "crates" / "sample" / "src" / "server" / "counters.json"


def page(catalogue: Catalogue) -> str:
    """The page as Markdown."""
    return render(
        "metrics.md",
        kinds=[{"name": kind.name, "table": definitions(of_kind(kind))} for kind in catalogue.workloads.values()],
        open_loop=definitions(arrivals.DEFINITIONS.values()),
        timed_out=definitions(arrivals.TIMED_OUT.values()),
        search=definitions(search.DEFINITIONS.values()),
        pgbench=definitions((*pgbench.OPEN, *pgbench.LIMITED)),
        telemetry=definitions(catalogue.telemetry_metrics.values()),
        counters=server_counters(),
    )


def of_kind(kind: Kind) -> Iterable[MetricDefinition]:
    """The metrics that a workload measures with its example parameters."""
    return kind.metrics(kind.parameters.validate_python(kind.example)).values()


def definitions(metrics: Iterable[MetricDefinition]) -> str:
    """A table of metrics."""
    return table(
        ("metric", "label", "unit", "better", "kind", "where from"),
        (
            (f"`{each.name}`", each.label, each.unit, each.better, each.kind.replace("_", " "), each.source)
            for each in metrics
        ),
    )


def server_counters() -> str:
    """A table of server counters: their names in order of preference, a dash where a family lacks one."""
    rows = (
        (f"`{each['column']}`", each["kind"], each["meaning"], _names(each["mysql"]), _names(each["postgres"]))
        for each in json.loads(COUNTERS.read_text(encoding="utf-8"))
    )
    return table(("column", "kind", "meaning", "MariaDB, MySQL", "PostgreSQL"), rows)


def _names(candidates: list[str]) -> str:
    return "<br>".join(f"`{name}`" for name in candidates) or "–"
