"""A cluster that answers nobody lets nobody in."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairtrial.farm import cluster


def test_a_cluster_that_does_not_answer_who_has_no_token_asks_for_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = tmp_path / "token"
    token.touch(mode=0o600)
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(token))
    monkeypatch.setattr(cluster, "PROBE_S", 0.001)
    cluster.require_token("127.0.0.1:1")
