from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from fairtrial import plan, study
from fairtrial.record.models import Plan

NAME = "fairtrial_small_catalogue"


@pytest.fixture(scope="session")
def small() -> ModuleType:
    """The study tests' small catalogue, loaded by path: test folders are not packages."""
    if NAME not in sys.modules:
        path = Path(__file__).parents[1] / "study" / "small_catalogue.py"
        spec = importlib.util.spec_from_file_location(NAME, path)
        assert spec is not None
        assert spec.loader is not None
        sys.modules[NAME] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[NAME])
    return sys.modules[NAME]


@pytest.fixture
def make(tmp_path: Path, small: ModuleType) -> Callable[..., Plan]:
    """Plans a study given as text; the MGLRU study without one."""

    def make_text(text: str | None = None, **options: object) -> Plan:
        path = tmp_path / "study.yaml"
        path.write_text(text or small.MGLRU, encoding="utf-8")
        return plan.make(study.load(path, catalogue=small.SMALL, **options), catalogue=small.SMALL)

    return make_text
