"""Published studies, analysed again from their raw data: what they print, and where they disagree with their data."""

from fairtrial.audit.auditing import Audit, audit
from fairtrial.audit.beside import RerunComparison, beside
from fairtrial.audit.comparisons import ArmComparison, Table, tables
from fairtrial.audit.facts import facts
from fairtrial.audit.findings import AuditFinding
from fairtrial.audit.reading import Dataset, audited, folder, load, names, rerun_by

__all__ = [
    "ArmComparison",
    "Audit",
    "AuditFinding",
    "Dataset",
    "RerunComparison",
    "Table",
    "audit",
    "audited",
    "beside",
    "facts",
    "folder",
    "load",
    "names",
    "rerun_by",
    "tables",
]
