"""The base of every statistical result: frozen, and refuses keys it does not know."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Result(BaseModel):
    """Frozen base of every result."""

    model_config = ConfigDict(frozen=True, extra="forbid")
