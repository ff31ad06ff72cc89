"""Published studies, analysed again from their raw data: what they print, and where they disagree with their data."""

from fairtrial.analyse.publications.auditing import Audit, audit
from fairtrial.analyse.publications.beside import Beside, beside
from fairtrial.analyse.publications.checking import check
from fairtrial.analyse.publications.comparisons import Compared, Table, tables
from fairtrial.analyse.publications.facts import facts
from fairtrial.analyse.publications.findings import Checked, Disagreement, Finding
from fairtrial.analyse.publications.reading import Dataset, audited, folder, load, names, rerun_by

__all__ = [
    "Audit",
    "Beside",
    "Checked",
    "Compared",
    "Dataset",
    "Disagreement",
    "Finding",
    "Table",
    "audit",
    "audited",
    "beside",
    "check",
    "facts",
    "folder",
    "load",
    "names",
    "rerun_by",
    "tables",
]
