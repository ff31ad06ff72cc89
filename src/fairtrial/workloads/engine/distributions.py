"""How keys and other numbers of a range are drawn: sysbench's distributions, by the load engine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

Distribution = Literal["uniform", "gaussian", "special", "pareto", "zipfian"]


def wire(kind: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """A distribution as the engine takes it, with its own parameters only."""
    own = {
        "uniform": {},
        "gaussian": {"iterations": "iterations"},
        "special": {name: name for name in ("iterations", "hot_percent", "hot_draws_percent")},
        "pareto": {"h": "pareto_h"},
        "zipfian": {"exponent": "zipfian_exponent"},
    }[kind]
    return {"kind": kind, **{name: parameters[ours] for name, ours in own.items()}}
