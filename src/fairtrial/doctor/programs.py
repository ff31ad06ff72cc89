"""Findings about programs that studies run: where they are, and of which version."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from fairtrial.doctor.grading import graded
from fairtrial.doctor.looking import PROGRAMS, Seen
from fairtrial.record.models import Finding

# Debian's packages.
PACKAGES: Final[Mapping[str, str]] = {
    "mariadbd": "mariadb-server",
    "mariadb-install-db": "mariadb-server",
    "postgres": "postgresql",
    "initdb": "postgresql",
    "pgbench": "postgresql",
    "qemu-system-x86_64": "qemu-system-x86",
    "qemu-img": "qemu-utils",
    "mkfs.xfs": "xfsprogs",
    "mkswap": "util-linux",
    "perf": "linux-perf",
    "apt-get": "apt",
    "dpkg-deb": "dpkg",
}
USES: Final[Mapping[str, str]] = {
    "mariadbd": "the system `mariadb` runs it",
    "postgres": "the system `postgres` runs it",
    "fio": "studies of disks and page caches run it",
    "sysbench": "it is the second opinion on the `oltp` workload",
    "pgbench": "the workload `pgbench` runs it",
    "qemu-system-x86_64": "the place `vm` runs it",
    "qemu-img": "the place `vm` lays a trial's disk over the kept one with it",
    "mkfs.xfs": "the place `vm` makes its disk with it",
    "perf": "probes count and profile with it",
    "bpftrace": "probes trace with it",
    "apt-get": "the place `vm` downloads kernels with it",
    "dpkg-deb": "the place `vm` unpacks kernels with it",
}


def findings(seen: Seen) -> Iterator[Finding]:
    """One for each program; none where programs were not looked for."""
    if seen.looked_for_programs:
        for program in PROGRAMS:
            yield program_found(seen, program)


def program_found(seen: Seen, program: str) -> Finding:
    """A missing program makes no place unfit: it is only needed where a study uses it."""
    found = seen.programs.get(program)
    return graded(
        name=f"program {program}",
        value=f"{found[1] or 'version unknown'} ({found[0]})" if found else "not installed",
        grade="fine" if found else "caution",
        why=USES[program],
        fix=install(program),
    )


def install(program: str) -> str:
    """How to get a program."""
    return f"`apt install {PACKAGES.get(program, program)}` at the place, as root"
