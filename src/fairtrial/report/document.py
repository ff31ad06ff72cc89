"""report.json: the analysis, dumped, beside the facts of the record it came from."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any, Final

from fairtrial.analyse.models import Analysis
from fairtrial.metrics import fidelity
from fairtrial.record import Record
from fairtrial.report.background import background
from fairtrial.report.concerns import tail_doubts

REPORT_FORMAT_VERSION: Final = 3  # 2: `fidelity`; 3: of scripts too


def document(record: Record, analysis: Analysis) -> dict[str, Any]:
    """What report.json holds: `analysis` is `Analysis` as it is, `record` says what it was made from."""
    return {
        "format_version": REPORT_FORMAT_VERSION,
        "analysis": analysis.model_dump(mode="json"),
        "record": {
            "name": record.directory.name,
            "fairtrial_version": record.plan.fairtrial_version,
            "size": record.plan.size,
            "factors": record.plan.factors,
            "design": record.plan.design.model_dump(mode="json"),
            "finished": record.finished,
            "fidelity": [each.model_dump(mode="json") for each in fidelity.of_record(record)],
            "tail_doubts": [doubt.model_dump(mode="json") for doubt in tail_doubts(record, analysis)],
            **asdict(background(record, contrast=analysis.contrast)),
        },
    }


def render(record: Record, analysis: Analysis) -> str:
    """report.json. A figure that is not finite is null: JSON has no name for it."""
    return json.dumps(finite(document(record, analysis)), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def finite(value: Any) -> Any:
    """The same tree with NaN and infinities as None."""
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    if isinstance(value, float) and not float("-inf") < value < float("inf"):
        return None
    return value
