"""report.json: the analysis, dumped, beside the facts of the record it came from."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any, Final

from fairtrial.report.scene import Scene

# 2: `fidelity`; 3: of scripts too; 4: rank tests, guardrails, looks, `latency_shift`, noise, why and `diagnostics`;
# 5: expectations by arm; 7: hosts; 8: interactions
REPORT_FORMAT_VERSION: Final = 8


def document(scene: Scene) -> dict[str, Any]:
    """What report.json holds: `analysis` is `Analysis` as it is, `record` says what it was made from.

    `latency_shift` has the curves, `diagnostics` what probes gave.
    """
    return {
        "format_version": REPORT_FORMAT_VERSION,
        "analysis": scene.analysis.model_dump(mode="json"),
        "latency_shift": [curve.model_dump(mode="json") for curve in scene.curves],
        "diagnostics": [each.model_dump(mode="json") for each in scene.diagnostics],
        "record": {
            "name": scene.name,
            **origin(scene),
            "fidelity": [each.model_dump(mode="json") for each in scene.fidelity],
        },
    }


def origin(scene: Scene) -> dict[str, Any]:
    """What `record` says that needs no raw file."""
    record = scene.record
    return {
        "fairtrial_version": record.plan.fairtrial_version,
        "size": record.plan.size,
        "factors": record.plan.factors,
        "design": record.plan.design.model_dump(mode="json"),
        "finished": record.finished,
        **asdict(scene.background),
    }


def render(scene: Scene) -> str:
    """report.json. A figure that is not finite is null: JSON has no name for it."""
    return json.dumps(finite(document(scene)), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def finite(value: Any) -> Any:
    """The same tree with NaN and infinities as None."""
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    if isinstance(value, float) and not float("-inf") < value < float("inf"):
        return None
    return value
