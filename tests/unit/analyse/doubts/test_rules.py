"""Metrics that kernels and policies count by different rules are doubted where the arms differ in those, else not."""

from __future__ import annotations

import pytest

from fairtrial.analyse.doubts import rules as rule_doubts
from fairtrial.analyse.models import DOUBT_CODES

OLD, NEW = "6.1.0-56-amd64", "6.12.90+deb13-amd64"
METRICS = ["throughput_tpm", "refaults_per_transaction", "refaults_per_access", "pages_scanned_direct_per_access"]


def messages(*metrics: str, paths: tuple[str, ...] = ("settings.lru_gen",), kernels: tuple[str, ...]) -> list[str]:
    found = list(rule_doubts.about(metrics, paths=paths, kernels=kernels))
    assert {doubt.code for doubt in found} <= {"other_rule"} <= set(DOUBT_CODES)
    return [doubt.message for doubt in found]


def test_refaults_and_scans_are_doubted_where_the_policy_is_the_arm() -> None:
    refaults, scans = messages(*METRICS, kernels=(OLD,))
    assert refaults.startswith("refaults_per_transaction, refaults_per_access: before Linux 6.5")
    assert scans.startswith("pages_scanned_direct_per_access: multi-generational LRU counts as scanned")


def test_a_kernel_that_counts_refaults_alike_leaves_the_scans() -> None:
    (scans,) = messages(*METRICS, kernels=(NEW,))
    assert scans.startswith("pages_scanned_direct_per_access")


@pytest.mark.parametrize("kernels", [(OLD, NEW), ("something of mine", NEW), ("9" * 5000 + ".1", NEW), ()])
def test_the_oldest_kernel_decides_and_an_unknown_one_is_the_worst(kernels: tuple[str, ...]) -> None:
    found = messages(*METRICS, paths=("place.vm.kernel",), kernels=kernels)
    assert found[0].startswith("refaults_per_transaction")


@pytest.mark.parametrize("path", ["system.mariadb.version", "system.mysql"])
def test_what_servers_call_written_is_doubted_between_servers_on_any_kernel(path: str) -> None:
    names = ("server_data_written_bytes_per_transaction", "log_written_bytes", "disk_written_share", "throughput_tpm")
    (found,) = messages(*names, paths=(path,), kernels=(NEW,))
    assert found.startswith(f"{', '.join(names[:3])}: what InnoDB counts as written includes the redo log")


@pytest.mark.parametrize(
    ("metrics", "paths"),
    [
        (METRICS, ("system.mariadb.options.sync_binlog",)),
        (["throughput_tpm", "major_faults", "pages_reclaimed"], ("settings.lru_gen",)),
        (["disk_written_share"], ("settings.lru_gen", "system.mysql.options.innodb_doublewrite")),
        (["disk_written_bytes_per_transaction", "disk_read_share"], ("system.mariadb.version",)),
    ],
)
def test_other_arms_and_other_metrics_raise_none(metrics: list[str], paths: tuple[str, ...]) -> None:
    assert messages(*metrics, paths=paths, kernels=(OLD,)) == []
