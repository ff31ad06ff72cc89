"""Workloads: one file per kind.

A module offers `KIND`, `data`, `load`, `drive`, `checks_after`, `check`, `scalars` and `contradictions` (see
`workload.Workload`). It must not know which system it loads beyond the endpoint.
"""

from __future__ import annotations

from collections.abc import Mapping

from fairtrial.workloads import command, fio, hammerdb, pgbench, sysbench
from fairtrial.workloads.engine import file_access, locks, oltp, script, tpcc
from fairtrial.workloads.workload import Drive, Driven, Loaded, OnProgress, Workload

__all__ = ["WORKLOADS", "Drive", "Driven", "Loaded", "OnProgress", "Workload"]

WORKLOADS: Mapping[str, Workload] = {
    module.KIND.name: module
    for module in (command, file_access, fio, hammerdb, locks, oltp, pgbench, script, sysbench, tpcc)
}
