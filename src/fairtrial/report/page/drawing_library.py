"""The page's drawing library: one script, bundled once per version and kept.

Bundling takes seconds, as much as the rest of a small report, and gives the same script every time.
"""

from __future__ import annotations

import hashlib
import tempfile
from importlib import metadata
from pathlib import Path
from typing import Final

import altair as alt
import vl_convert

from fairtrial.caching import cache_directory, others_write

EXPORTS: Final = "window.vegaEmbed = vegaEmbed;"


def vega_lite_version() -> str:
    """The version that Altair's specifications are written for, as vl-convert names it: `6.1`."""
    major, minor, _ = alt.SCHEMA_VERSION.removeprefix("v").split(".")
    return f"{major}.{minor}"


def bundle() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script that can stand inside a page."""
    name = f"vega-embed-{vega_lite_version()}-vl-convert-{metadata.version('vl-convert-python')}.js"
    path = cache_directory() / "pages" / name
    script = _kept(path)
    if script is None:
        bundled: str = vl_convert.javascript_bundle(EXPORTS, vl_version=vega_lite_version())
        script = bundled.replace("</script", "<\\/script")  # in a string literal of the library it would end the script
        _keep(path, script.encode())
    return script


def _kept(path: Path) -> str | None:
    """The script in the cache, unless others can change it or it is damaged: its first line is the hash of the rest."""
    try:
        if others_write(path):
            return None
        digest, _, script = path.read_bytes().partition(b"\n")
    except OSError:
        return None
    return script.decode() if digest.decode(errors="replace") == hashlib.sha256(script).hexdigest() else None


def _keep(path: Path, script: bytes) -> None:
    """Puts a script into the cache; a cache that cannot be written costs time only."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(hashlib.sha256(script).hexdigest().encode() + b"\n" + script)
        Path(file.name).replace(path)
    except OSError:
        return
