"""How keys and other numbers of a range are drawn: sysbench's distributions, by the load engine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Protocol

Distribution = Literal["uniform", "gaussian", "special", "pareto", "zipfian"]


class Shaped(Protocol):
    """A model that says what shapes each distribution."""

    @property
    def iterations(self) -> int:
        """Uniform draws behind one of `gaussian` and `special`."""

    @property
    def hot_percent(self) -> int:
        """Size of the hot part of `special`."""

    @property
    def hot_draws_percent(self) -> int:
        """Draws that go to it."""

    @property
    def pareto_h(self) -> float:
        """Share of the range that gets the rest of the draws."""

    @property
    def zipfian_exponent(self) -> float:
        """How steeply frequency falls with rank."""


def wire(kind: Distribution, shaped: Shaped) -> dict[str, Any]:
    """A distribution as the engine takes it, with its own parameters only."""
    own: Mapping[Distribution, Mapping[str, float]] = {
        "uniform": {},
        "gaussian": {"iterations": shaped.iterations},
        "special": {
            "iterations": shaped.iterations,
            "hot_percent": shaped.hot_percent,
            "hot_draws_percent": shaped.hot_draws_percent,
        },
        "pareto": {"h": shaped.pareto_h},
        "zipfian": {"exponent": shaped.zipfian_exponent},
    }
    return {"kind": kind, **own[kind]}
