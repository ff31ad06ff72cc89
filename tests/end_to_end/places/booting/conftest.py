"""A host that boots, for each file of tests, so that two of them boot side by side."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator

import pytest
from support.machines import booting_host
from support.machines.booting_host import BootingHost


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BootingHost]:
    for program in ("qemu-system-x86_64", "qemu-img", "mmdebstrap", "sfdisk", "mke2fs"):
        if shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin:/sbin") is None:
            pytest.skip(f"needs {program}")
    with booting_host.started(booting_host.made(), tmp_path_factory.mktemp("host") / "h") as found:
        yield found


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch, host: BootingHost) -> Iterator[None]:
    monkeypatch.setenv("FAIRTRIAL_LIMITS", "silence_s=30")
    yield
    sys.stderr.write(host.shown())  # pytest shows it of a test that failed
