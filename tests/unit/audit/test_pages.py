"""The pages of the published studies say what an audit finds today."""

from importlib import resources
from pathlib import Path

import pytest

from fairtrial import audit as publications
from fairtrial.audit import Audit
from fairtrial.audit import text as report
from fairtrial.audit.claims import file as claims_file

ROOT = Path(__file__).parents[3]
PAGES = ROOT / "docs" / "reference" / "publications"
PROSE = ROOT / "scripts" / "reference" / "pages" / "studies"
AUDITED = "\n## What the audit finds\n"
PARTS = ["The question", "What was published", "What our run shows", "At full scale", "What the audit finds"]
NAMES = publications.audited()


def audited(name: str) -> Audit:
    with resources.as_file(publications.folder(name)) as folder:
        return publications.audit(claims_file.read(folder / "claims.yaml"))


def test_there_are_five_publications() -> None:
    assert len(NAMES) == 5
    assert set(publications.names()) < set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_studys_page_is_not_stale(name: str) -> None:
    """If this fails: scripts/generate-audits."""
    audit = report.page(audited(name), name=name)
    source, begin, findings = audit.partition("What `fairtrial audit ")
    prose = (PROSE / f"{name}.md.jinja").read_text(encoding="utf-8")
    page = (PAGES / f"{name}.md").read_text(encoding="utf-8")
    assert page == f"{source}{prose}{AUDITED}{begin}{findings}"
    assert [line.removeprefix("## ") for line in page.splitlines() if line.startswith("## ")][:5] == PARTS


@pytest.mark.parametrize("name", publications.names())
def test_an_audit_and_the_published_command_share_their_findings(name: str) -> None:
    assert audited(name).findings == publications.audit(publications.load(name)).findings


@pytest.mark.parametrize("name", sorted(set(NAMES) - set(publications.names())))
def test_without_raw_data_only_arithmetic_is_checked(name: str) -> None:
    findings = audited(name).findings
    assert {each.what.partition(":")[0] for each in findings if each.verdict != "not checkable"} == {"arithmetic"}
    assert all(each.why for each in findings if each.verdict == "not checkable")


@pytest.mark.parametrize("name", NAMES)
def test_the_text_shows_every_claim_that_does_not_hold(name: str) -> None:
    audit = audited(name)
    shown = "\n".join(report.text(audit))
    assert report.summary(audit) in shown
    for each in audit.findings:
        assert each.verdict == "confirmed" or each.what in shown


def test_every_row_of_a_page_has_five_fields() -> None:
    for page in PAGES.glob("*.md"):
        findings = page.read_text(encoding="utf-8").partition(AUDITED)[2]
        rows = [line for line in findings.splitlines() if line.startswith("| ")]
        assert rows
        assert all(row.replace("\\|", "").count("|") == 6 for row in rows)
