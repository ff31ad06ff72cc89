from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from fairtrial import study
from fairtrial.errors import InputError

NAME = "fairtrial_small_catalogue"


def small_module() -> ModuleType:
    """Test folders are not packages, so their shared data are loaded by path, once."""
    if NAME not in sys.modules:
        path = Path(__file__).with_name("small_catalogue.py")
        spec = importlib.util.spec_from_file_location(NAME, path)
        assert spec is not None
        assert spec.loader is not None
        sys.modules[NAME] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[NAME])
    return sys.modules[NAME]


@pytest.fixture(scope="session")
def small() -> ModuleType:
    return small_module()


@pytest.fixture
def load(tmp_path: Path, small: ModuleType) -> Callable[..., study.Study]:
    """Loads a study given as text; `files` are further files beside it."""

    def load_text(text: str, *, files: dict[str, str] | None = None, **options: object) -> study.Study:
        for name, content in ({"study.yaml": text} | (files or {})).items():
            (tmp_path / name).write_text(content, encoding="utf-8")
        return study.load(tmp_path / "study.yaml", catalogue=small.SMALL, **options)

    return load_text


@pytest.fixture
def mistakes(load: Callable[..., study.Study]) -> Callable[..., list[str]]:
    """The problems of a study, as `line:column field: message (suggestion)`, file names left out."""

    def problems(text: str, **options: object) -> list[str]:
        with pytest.raises(InputError) as raised:
            load(text, **options)
        assert raised.value.hint
        assert raised.value.exit_code == 2
        return [str(problem).replace(str(Path(problem.file).parent) + "/", "") for problem in raised.value.problems]

    return problems
