"""docs/studies: what an audit of each publication finds."""

from __future__ import annotations

import sys
from importlib import resources
from pathlib import Path

from fairtrial.analyse import publications
from fairtrial.analyse.publications import claims_file
from fairtrial.report import audit


def write(directory: Path) -> None:
    """Writes every page."""
    directory.mkdir(parents=True, exist_ok=True)
    for name in publications.audited():
        with resources.as_file(publications.folder(name)) as folder:
            found = publications.audit(claims_file.read(folder / "claims.yaml"))
        (directory / f"{name}.md").write_text(audit.page(found, name=name), encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
