"""An audit: every claim of a publication with its verdict, and problems of its design."""

from __future__ import annotations

from fairtrial.analyse.result import Result
from fairtrial.audit.checking import findings
from fairtrial.audit.facts import facts
from fairtrial.audit.findings import AuditFinding, Verdict
from fairtrial.audit.noise_floor import Floors, RepeatedConfiguration
from fairtrial.audit.reading import Dataset


class Audit(Result):
    """What came of it.

    Attributes:
        findings: every claim, in the order of printing.
        repeated: configurations that were measured in several stretches, which give the noise floor.
        problems: of order, multiplicity and data, in sentences.
    """

    title: str
    source: str
    findings: tuple[AuditFinding, ...]
    repeated: tuple[RepeatedConfiguration, ...]
    problems: tuple[str, ...]

    def count(self, verdict: Verdict) -> int:
        """How many claims got a verdict."""
        return sum(each.verdict == verdict for each in self.findings)


def audit(dataset: Dataset) -> Audit:
    """Checks everything that a publication claims."""
    floors = Floors(dataset)
    return Audit(
        title=dataset.description.title,
        source=dataset.description.source,
        findings=tuple(findings(dataset, floors)),
        repeated=floors.repeated,
        problems=tuple(facts(dataset)),
    )
