"""A trial with nothing left to resolve: what a study says, once a level of every factor is chosen."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict


class ResolvedTrial(BaseModel):
    """Everything one arm in one cell means, merged and validated, in base units (bytes, seconds).

    `place`, `system` and `workload` hold exactly one key, the kind; so does `workload_place`, if the workload runs
    elsewhere than its system.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    place: dict[str, Any]
    system: dict[str, Any]
    workload: dict[str, Any]
    settings: dict[str, Any] = {}
    workload_place: dict[str, Any] | None = None
