"""docs/reference/record.md: the files of a record, from its models and from the schemas of what the agent writes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, get_args

from pydantic import BaseModel

from fairtrial.record import events, models
from fairtrial.study.resolved import ResolvedTrial
from reference.markdown import fields, part, render, summary, table, value

WIRE_SCHEMA: Final = Path(__file__).parents[2] / "schemas" / "wire.schema.json"

_TRIAL_FIELDS: Final[Mapping[str, str]] = {
    "format_version": "of this file",
    "trial": "the trial as planned",
    "resolved": "place, system, workload and settings, merged and validated, in base units",
    "started": "time of day",
    "finished": "time of day",
    "clock": "a simultaneous reading of both clocks, to convert one time into the other",
    "window": "the measured window; null if the trial did not get that far",
}
_PLAN_FIELDS: Final[Mapping[str, str]] = {
    "format_version": "of this file",
    "fairtrial_version": "that made the plan",
    "study": "its name",
    "question": "as the study asks it",
    "size": "the size chosen, if any",
    "also_compare": "other factors contrasted as well",
    "cells": "every combination of conditions",
    "expectations": "what telemetry must show for a cell to get a verdict",
    "metrics": "roles, and the definition of every metric named",
    "design": "how trials are ordered, stopped and judged",
    "telemetry_interval_ms": "width of a sampling interval",
    "warnings": "what `fairtrial plan` warns about",
}
_PARTS: Final = {
    "trial.json": (
        models.PlannedTrial,
        ResolvedTrial,
        models.Clock,
        models.Window,
        models.EffectiveSetting,
        models.Check,
        models.ClockShift,
    ),
    "plan.json": (
        models.Cell,
        models.Difference,
        models.RangeExpectation,
        models.PlannedMetrics,
        models.Design,
    ),
    "journal.jsonl": (models.Finding,),
}


def page() -> str:
    """The page as Markdown."""
    return render(
        "record.md",
        trial=fields(models.TrialRecord, also=_TRIAL_FIELDS),
        trial_parts=_parts("trial.json"),
        driven=list(_driven()),
        plan=fields(models.Plan, also=_PLAN_FIELDS),
        plan_parts=_parts("plan.json"),
        line=summary(events.JournalLine),
        journal_parts=_parts("journal.jsonl"),
        events=table(("event", "fields", "meaning"), (_event(model) for model in get_args(events.Event))),
    )


def _parts(file: str) -> str:
    return "\n".join(part(model) for model in _PARTS[file])


def _driven() -> Iterator[Mapping[str, str]]:
    definitions: Mapping[str, Any] = json.loads(WIRE_SCHEMA.read_text(encoding="utf-8"))["$defs"]
    root = {"$defs": definitions}
    for name in ("Driven", "Outcomes", "ErrorCount", "Usage"):
        properties = definitions[name]["properties"].items()
        rows = ((f"`{key}`", value(field, root), field.get("description", "")) for key, field in properties)
        yield {
            "name": name,
            "description": definitions[name]["description"],
            "table": table(("field", "value", "meaning"), rows),
        }


def _event(model: type[BaseModel]) -> tuple[str, str, str]:
    names = [f"`{name}`" for name in model.model_fields if name != "event"]
    return f"`{model.model_fields['event'].default}`", ", ".join(names), summary(model)
