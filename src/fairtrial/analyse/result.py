"""The base of every statistical result, frozen, which refuses keys it does not know; and what a verdict can be."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

Verdict = Literal["faster", "slower", "equivalent", "undecided", "none"]


class Result(BaseModel):
    """Frozen base of every result."""

    model_config = ConfigDict(frozen=True, extra="forbid")
