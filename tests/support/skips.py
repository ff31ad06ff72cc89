"""What a skipped test lacks. Where continuous integration runs, only what it cannot have may be lacking."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Generator
from typing import Final

import pytest

VARIABLE: Final = "CI"
SERVERS: Final = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
# What reasons call a thing → the Debian package that has it. `scripts/install-servers` installs all of the first part.
PACKAGES: Final = {
    r"mariadbd?|MariaDB": "mariadb-server",
    r"postgres|PostgreSQL|pgbench": "postgresql-15",
    r"sshd|OpenSSH": "openssh-server",
    r"Rscript": "r-base-core",
    r"Chromium": "chromium",
    r"QEMU": "qemu-system-x86",
    r"qemu-img": "qemu-utils",
    r"mkfs\.xfs": "xfsprogs",
    r"fio": "fio",
    r"sysbench": "sysbench",
    r"perf": "linux-perf",
    r"dmsetup": "dmsetup",
    r"prometheus-node-exporter": "prometheus-node-exporter",
    r"prometheus-mysqld-exporter": "prometheus-mysqld-exporter",
    r"podman": "podman",
    r"sudo": "sudo",
    r"runc": "runc",
    r"mmdebstrap": "mmdebstrap",
    r"redis-server": "redis-server",
    r"grub-editenv": "grub-common",
    r"sfdisk": "fdisk",
    r"nginx": "nginx-light",
    r"wrk": "wrk",
    r"pgrep": "procps",
    # What every machine that compiles fairtrial has, and a kernel, which apt downloads while tests run.
    r"C compiler": "gcc",
    r"readelf": "binutils",
    r"setpriv": "util-linux",
    r"ip": "iproute2",
    r"cargo or maturin": "cargo",
    r"kernel to boot": "linux-image-amd64",
}
ABSENT: Final = {
    r"bpftrace": "containers in which CI runs refuse the kernel's BPF, so it would not start",
    r"docker": "its client is not in Debian without an engine, and podman stands for both",
    r"HammerDB": "Debian has no package of it",
    r"MySQL": "Debian has no package of it: its builds come from a server that CI may not reach",
    r"https://\S+": "a server of builds that CI may not reach",
    r"Rust's standard library for musl": "it comes from a server of toolchains that CI may not reach",
}


def subject(reason: str) -> str:
    """What a reason is about: what stands after a colon explains it, often in the words of a program."""
    return reason.removeprefix("Skipped: ").partition(": ")[0]


def is_absent(reason: str) -> bool:
    """Whether the thing whose absence skipped a test may be absent from any machine."""
    return any(re.search(rf"\b(?:{words})", subject(reason)) for words in ABSENT)


def package(reason: str) -> str | None:
    """The package whose absence skipped a test; None if the reason is another, or the thing may be absent."""
    if is_absent(reason):
        return None
    return next((found for words, found in PACKAGES.items() if re.search(rf"\b(?:{words})\b", subject(reason))), None)


def in_ci() -> bool:
    """Whether this is continuous integration, where whatever can be installed has been."""
    return os.environ.get(VARIABLE) == "true"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Names the missing package of a skipped test; in continuous integration the test fails by it."""
    report = yield
    if not report.skipped or hasattr(report, "wasxfail") or not isinstance(report.longrepr, tuple):
        return report
    path, line, reason = report.longrepr
    missing = package(reason)
    if missing is not None and in_ci():
        report.outcome = "failed"
        report.longrepr = f"{path}:{line}: {reason}\nwith CI=true no test is skipped for want of a package: {missing}"
    elif missing is not None:
        report.longrepr = (path, line, f"{reason} [Debian package: {missing}]")
    return report


def require(program: str) -> None:
    """Skips the test where a program is missing."""
    __tracebackhide__ = True  # the reason names the test's line, not this one
    if shutil.which(program, path=SERVERS) is None:
        pytest.skip(f"needs {program}")
