"""What is downloaded without a hash is a warning of the plan; what has one is not."""

import pytest
from support.records import RESOLVED

from fairtrial.plan.unpinned import warnings
from fairtrial.study.resolved import Section

HASH = "0" * 64
MAVEN = "system.mariadb.maven: `a:b:1` is downloaded without a `sha256`"
IMAGE = "place.container.image: `db:11` is pulled without a digest or `sha256`"


@pytest.mark.parametrize(
    ("section", "parameters", "said"),
    [
        ("system", {"maven": "a:b:1"}, MAVEN),
        ("system", {"maven": "a:b:1", "sha256": HASH}, ""),
        ("system", {"archive": "/a.zip"}, ""),
        ("place", {"image": "db:11", "pull": "missing"}, IMAGE),
        ("place", {"image": "db:11", "pull": "never"}, ""),
        ("place", {"image": f"db@sha256:{HASH}", "pull": "missing"}, ""),
        ("place", {"image": "db:11", "pull": "missing", "sha256": HASH}, ""),
    ],
)
def test_only_downloads_without_a_hash_are_warned_of(section: str, parameters: dict[str, str], said: str) -> None:
    kind = {"system": "mariadb", "place": "container"}[section]
    trial = RESOLVED.model_copy(update={section: Section.model_validate({kind: parameters})})
    found = warnings({"one": {"a": trial, "b": trial}, "two": {"a": RESOLVED}})
    assert [each[: len(said)] for each in found] == ([said] if said else [])
