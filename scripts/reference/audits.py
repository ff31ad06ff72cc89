"""docs/reference/publications: each publication's question and findings, what our run shows, and what the audit finds.

The prose of a page is in `pages/studies`; it stands between the source and the audit.
"""

from __future__ import annotations

import sys
from importlib import resources
from pathlib import Path

from fairtrial import audit as publications
from fairtrial.audit import text as audit
from fairtrial.audit.claims import file as claims_file

PROSE = Path(__file__).parent / "pages" / "studies"
AUDITED = "What `fairtrial audit "  # how the audit's own first paragraph begins


def write(directory: Path) -> None:
    """Writes every page."""
    directory.mkdir(parents=True, exist_ok=True)
    for name in publications.audited():
        with resources.as_file(publications.folder(name)) as folder:
            found = publications.audit(claims_file.read(folder / "claims.yaml"))
        before, begin, after = audit.page(found, name=name).partition(AUDITED)
        prose = (PROSE / f"{name}.md.jinja").read_text(encoding="utf-8")
        page = f"{before}{prose}\n## What the audit finds\n{begin}{after}"
        (directory / f"{name}.md").write_text(page, encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
