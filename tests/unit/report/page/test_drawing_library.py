"""The page's drawing library is bundled once and kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairtrial.caching import CACHE_VARIABLE
from fairtrial.report.page import drawing_library as bundling
from fairtrial.report.page.drawing_library import bundle


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def bundled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Versions that were bundled; the bundler itself takes seconds."""
    versions: list[str] = []

    def bundler(exports: str, *, vl_version: str) -> str:
        versions.append(vl_version)
        return f"{exports} '</script>' – {vl_version}\r\n"

    monkeypatch.setattr(bundling.vl_convert, "javascript_bundle", bundler)
    return versions


def test_a_version_is_bundled_once(cache: Path, bundled: list[str]) -> None:
    first = bundle()
    assert bundle() == first
    assert bundled == [bundling.vega_lite_version()]
    assert "</script" not in first
    assert len(list(cache.rglob("*.js"))) == 1


@pytest.mark.parametrize("damage", [b"", b"cut", b"\xff\xfe\n\xff"])
def test_a_damaged_script_is_bundled_again(damage: bytes, cache: Path, bundled: list[str]) -> None:
    first = bundle()
    (kept,) = cache.rglob("*.js")
    kept.write_bytes(damage)
    assert bundle() == first
    assert len(bundled) == 2
    assert bundle() == first
    assert len(bundled) == 2


def test_a_script_that_others_can_change_is_not_shown(cache: Path, bundled: list[str]) -> None:
    bundle()
    (kept,) = cache.rglob("*.js")
    kept.chmod(0o666)
    bundle()
    assert len(bundled) == 2


def test_another_version_of_the_bundler_bundles_anew(
    cache: Path, bundled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle()
    monkeypatch.setattr(bundling.metadata, "version", lambda _name: "99.0")
    bundle()
    assert len(bundled) == 2
    assert len(list(cache.rglob("*.js"))) == 2


def test_a_cache_that_cannot_be_written_costs_time_only(
    tmp_path: Path, bundled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "file"))
    assert bundle() == bundle()
    assert len(bundled) == 2
