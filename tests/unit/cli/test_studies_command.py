"""`fairtrial studies` as installed."""

from __future__ import annotations

from pathlib import Path

import pytest
from ruamel.yaml import YAML
from support.command_line import desk

from fairtrial.studies.ready import bundled, planned
from fairtrial.words import duration

GOLDEN = Path(__file__).parents[2] / "golden"
PAGES = Path(__file__).parents[3] / "docs"


def test_ready_studies_and_publications_are_listed() -> None:
    with desk() as here:
        sizes, studies, *lacks, publications = here.fairtrial("studies").stdout.split("\n\n")
    names, published = ([line.split()[0] for line in part.splitlines()] for part in (studies, publications))
    assert [line.split()[0] for line in sizes.splitlines()[1:]] == ["ci", "laptop", "published", "large"]
    ready = [
        "file-engines",
        "innodb-adaptive-purge",
        "innodb-screening",
        "lock-kinds",
        "mariadb-fast-mutex",
        "mariadb-oltp",
        "mariadb-script",
        "mariadb-tune",
        "mglru-fio-pmem",
        "mglru-mariadb-tpcc",
        "nginx-sendfile",
        "postgres-screening",
        "redis-appendfsync",
        "sqlite-highest-rate",
        "sqlite-wal",
        "tpcc-pmem-native",
        "tpcc-pmem",
    ]
    assert names == ["study", *ready]
    assert published[1:] == ["mariadb-fast-mutex", "mglru-fio-pmem", "mglru-mariadb-tpcc"]
    assert all("ci, laptop, large" in line for line in studies.splitlines() if line.startswith("  sqlite"))
    # A machine that can run everything has nothing to say there.
    assert all(part.startswith("what the others lack") for part in lacks)


def is_republished(study: Path) -> bool:
    """Whether a page about a publication says how to run this study."""
    return any(
        f"studies/{study.name}" in page.read_text(encoding="utf-8")
        for page in PAGES.glob("reference/publications/*.md")
    )


@pytest.mark.parametrize("study", bundled(), ids=lambda study: study.stem)
def test_every_ready_study_has_three_sizes_and_calls_none_published_that_no_publication_had(study: Path) -> None:
    sizes = YAML(typ="safe").load(study)["sizes"]
    largest = "published" if is_republished(study) else "large"
    assert {"ci", "laptop", "published", "large"} & sizes.keys() == {"ci", "laptop", largest}
    assert sizes["laptop"] == {}, "it is the study as written: what runs without a size"
    durations = [planned(study, size=size).duration_s for size in ("ci", "laptop", largest)]
    assert durations == sorted(durations)


def is_tuned(study: Path) -> bool:
    """Whether `fairtrial tune` runs it, whose trials are not planned one by one; not parsed, for every worker asks."""
    return "\ntune:" in study.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "study",
    [study for study in bundled() if not is_republished(study) and not is_tuned(study)],
    ids=lambda study: study.stem,
)
def test_the_page_tells_what_a_plan_says_of_studies_that_re_run_nothing(study: Path) -> None:
    plans = [planned(study, size=size) for size in ("ci", "laptop", "large")]
    row = " | ".join(f"{len(plan.trials)} trials, {duration(plan.duration_s)}" for plan in plans)
    (told,) = [
        line
        for line in (PAGES / "guides" / "auditing.md").read_text().splitlines()
        if line.startswith(f"| `{study.stem}` ")
    ]
    assert told.endswith(f" | {row} |")


@pytest.mark.parametrize("name", ["mariadb-fast-mutex", "mglru-fio-pmem", "mglru-mariadb-tpcc"])
def test_a_publication_is_printed_whole(name: str) -> None:
    with desk() as here:
        printed = here.fairtrial("studies", "published", name).stdout
    assert printed == (GOLDEN / f"published-{name}.txt").read_text(encoding="utf-8")


def test_an_unknown_publication_is_refused_with_the_known_ones() -> None:
    with desk() as here:
        done = here.fairtrial("studies", "published", "mglru", code=2)
    assert "mglru-fio-pmem" in done.stderr
    assert "hint: " in done.stderr
    assert done.stdout == ""
