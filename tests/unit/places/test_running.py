"""What a place's programs leave when they hang: nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.command_line import eventually, shell_program

from fairtrial.errors import PlaceError
from fairtrial.places import open_place
from fairtrial.places.container.parameters import ContainerParameters
from fairtrial.places.container.runtime import Runtime


def hanging(directory: Path, name: str) -> Path:
    """A program that waits for a child of its own, whose number it writes down."""
    return shell_program(
        directory / name, f'case "$*" in *inspect*) exit 1; esac\nsleep 600 & echo $! >{directory}/child; wait'
    )


def ends(directory: Path) -> bool:
    """Whether the child has ended; who has it now may not have reaped it."""
    try:
        return not Path(f"/proc/{(directory / 'child').read_text().strip()}/cmdline").read_bytes()
    except FileNotFoundError:
        return True


def test_a_way_that_hangs_leaves_no_children(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRTRIAL_LIMITS", "connect_s=1")
    with pytest.raises(PlaceError, match="did not answer within 1 s"):
        open_place("through", {"command": str(hanging(tmp_path, "way"))}, holder="a test")
    eventually(lambda: ends(tmp_path), "the child still runs")


def test_a_container_runtime_that_hangs_leaves_no_children(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As podman's own do where a disk does not answer."""
    hanging(tmp_path, "podman")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr("fairtrial.places.container.runtime.PULL_S", 1.0)
    with pytest.raises(PlaceError, match="`podman pull` did not answer within 1 s"):
        _ = Runtime(ContainerParameters(image="nobody/has:1", oci_runtime=None, pull="missing")).image_id
    eventually(lambda: ends(tmp_path), "the child still runs")
