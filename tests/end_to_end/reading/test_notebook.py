"""The notebooks of the documentation: they run from top to bottom, as they are, and are kept without outputs."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

import nbclient
import nbformat
import pytest
from traitlets.config import Config

ROOT = Path(__file__).parents[3]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
PATIENCE_S = 300


def cells(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(path.read_bytes())["cells"]
    return found


def code(path: Path) -> str:
    return "\n".join("".join(cell["source"]) for cell in cells(path) if cell["cell_type"] == "code")


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Everything that a notebook makes, and fairtrial's own state, below one directory."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("FAIRTRIAL_STATE_DIRECTORY", str(tmp_path / "state"))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def execute(path: Path, directory: Path) -> Any:
    """Its cells, and one more that is wrong: without this, silence of the others would prove nothing."""
    notebook = nbformat.read(path, as_version=4)
    notebook.cells.append(nbformat.v4.new_code_cell("assert 1 == 2"))
    # Five ports that are free now may be taken when the kernel binds them; files of this test's directory may not.
    files = Config({"KernelManager": {"transport": "ipc", "ip": str(directory / "kernel")}})
    client = nbclient.NotebookClient(
        notebook,
        config=files,
        timeout=PATIENCE_S,
        startup_timeout=PATIENCE_S,
        iopub_timeout=PATIENCE_S,  # what comes later is left out in silence
        kernel_name="python3",
        resources={"metadata": {"path": str(directory)}},
    )
    with pytest.raises(nbclient.exceptions.CellExecutionError, match="assert 1 == 2"):
        client.execute()
    return notebook


def said(notebook: Any) -> str:
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    return "\n".join(output.get("text", "") + str(output.get("data", {}).get("text/plain", "")) for output in outputs)


def test_there_is_a_notebook_and_every_one_is_linked() -> None:
    linked = (ROOT / "README.md").read_text(encoding="utf-8") + (ROOT / "docs" / "first-study.md").read_text("utf-8")
    assert NOTEBOOKS
    assert [path.name for path in NOTEBOOKS if f"notebooks/{path.name}" not in linked] == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_without_what_it_printed(path: Path) -> None:
    for cell in cells(path):
        assert cell.get("outputs", []) == []
        assert cell.get("execution_count") is None


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_what_a_notebook_links_to_exists(path: Path) -> None:
    text = "\n".join("".join(cell["source"]) for cell in cells(path) if cell["cell_type"] == "markdown")
    targets = [part.split(")")[0] for part in text.split("](")[1:]]
    assert targets
    assert [target for target in targets if not (path.parent / target).exists()] == []


def test_the_walk_through_a_record_arrives_at_the_numbers_of_its_report(elsewhere: Path) -> None:
    """Its own assertions compare each step with fairtrial's; here is checked that the steps were gone."""
    (path,) = [each for each in NOTEBOOKS if each.stem == "one-record"]
    assert code(path).count("assert ") >= 12
    told = said(execute(path, elsewhere))
    (record,) = elsewhere.glob("fairtrial-notebook-*/runs/*")
    report = json.loads((record / "report" / "report.json").read_bytes())
    (cell,) = report["analysis"]["cells"]
    (comparison,) = cell["comparisons"]["throughput_tpm"]
    assert comparison["n"] == 5
    assert f"ratio {comparison['ratio']['estimate']:.3f}, 95 % interval {comparison['ratio']['low']:.3f}" in told
    assert f"'{comparison['verdict']}'" in told
    assert "payment_committed adds up to" in told or "timeline.parquet: changed" in told
    shutil.rmtree(record.parents[1])
