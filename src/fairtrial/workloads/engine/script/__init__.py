"""`script`: a user's own transactions from a small file, by the native load engine."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from pydantic import Field, TypeAdapter, model_validator

from fairtrial.errors import InputError, Problem
from fairtrial.metrics import consistency, fidelity, latency
from fairtrial.record.models import Check, Window
from fairtrial.study.catalogue import Kind, MetricDefinition
from fairtrial.study.tree.nodes import Branch, dotted
from fairtrial.study.tree.problems import Problems
from fairtrial.wire.open_place import OpenPlace
from fairtrial.workloads.engine import drive as native
from fairtrial.workloads.engine import oltp_scalars
from fairtrial.workloads.engine.script import sql, wire
from fairtrial.workloads.engine.script.checking import check as check_script
from fairtrial.workloads.engine.script.file import Script, TextDraw
from fairtrial.workloads.workload import Drive, Driven, Loaded, OnProgress

LOADER_VERSION = 1  # part of the key of prepared data: raise it when the loader writes other data
LOAD_ROWS_PER_S = 500.0  # a hung load ends some day; the slowest disk seen loads ten times as fast
LOAD_GRACE_S = 3600.0  # statements of `create` and `finish` may compute rows of their own
PREFLIGHT_S = 300.0
GUESSED_PER_S = 500.0  # to estimate a drive by count before anything was measured
BYTES_PER_ROW = 40  # of headers and the key's index, beside the values
BYTES_PER_NUMBER = 8
CHECK_S = 3600.0
VIOLATIONS_LIMIT = 1000  # a database that is wrong throughout need not be sent whole
EXAMPLES_LIMIT = 20
SCRIPT_SHA256 = "script_sha256"
FIELD = ("workload", "script", "content")  # of a study: what the script becomes when it is read


class ScriptParameters(native.DriveParameters):
    """A user's own transactions: statements, parameters with distributions, weights."""

    file: str | None = Field(None, description="The script, a YAML file; relative to the file that names it.")
    content: Script | None = Field(None, description="The script itself; what `file` becomes when a study is read.")

    pipelining: bool = Field(
        default=False, description=native.PIPELINING.format(what="statements that take nothing from each other")
    )

    @model_validator(mode="after")
    def _a_script(self) -> Self:
        if self.file is None and self.content is None:
            raise ValueError("no script: name its `file`")
        return self

    @property
    def types(self) -> tuple[str, ...]:
        """Names of the transactions."""
        return tuple(self.content.transactions) if self.content else ()


def _definitions(parameters: ScriptParameters) -> Mapping[str, MetricDefinition]:
    latencies = latency.definitions(parameters.types)
    return {**oltp_scalars.DEFINITIONS, **latencies, **parameters.loop_metrics()}


def _check(parameters: ScriptParameters, branch: Branch, problems: Problems) -> None:
    if parameters.content is not None:
        check_script(parameters.content, branch.below("content"), problems)


def _script(parameters: Mapping[str, Any]) -> Script:
    return Script.model_validate(parameters["content"])


def _rows(script: Script) -> int:
    return sum(fill.rows for fill in script.setup.fill.values()) if script.setup else 0


def _disk_bytes(parameters: Mapping[str, Any]) -> int:
    script = _script(parameters)
    fills = script.setup.fill.values() if script.setup else ()
    return sum(
        fill.rows
        * (
            BYTES_PER_ROW
            + sum(draw.bounds[1] if isinstance(draw, TextDraw) else BYTES_PER_NUMBER for draw in fill.columns.values())
        )
        for fill in fills
    )


KIND = Kind(
    name="script",
    summary="A user's own transactions from a small file, by the native load engine: see "
    "[scripts](../guides/workloads.md#scripts).",
    parameters=TypeAdapter(ScriptParameters),
    metrics=_definitions,
    throughput="throughput_tps",
    example={"duration": "60s", "content": {"transactions": {"order": {"statements": ["SELECT 1"]}}}},
    duration_s=lambda parameters: native.duration_s(parameters, guessed_per_s=GUESSED_PER_S),
    disk_bytes=_disk_bytes,
    systems=frozenset({"mariadb", "mysql", "postgres", "sqlite"}),
    files={"file": "content"},
    check=_check,
)


def data(parameters: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """What makes the data, with seed and version of the loader; None for a script that makes none."""
    script = _script(parameters)
    if script.setup is None:
        return None
    return {
        "workload": "script",
        **wire.setup(script),
        "seed": parameters["data_seed"],
        "loader_version": LOADER_VERSION,
    }


def load(
    place: OpenPlace, parameters: Mapping[str, Any], endpoint: Mapping[str, Any], *, on_progress: OnProgress
) -> Loaded:
    """Makes the tables and rows of `setup`, and prepares every statement on them.

    Raises:
        InputError: the system refuses a statement of a transaction.
    """
    script = _script(parameters)
    task = {
        "endpoint": endpoint,
        **wire.setup(script),
        "seed": parameters["data_seed"],
        "threads": parameters["load_threads"],
    }
    limit = LOAD_GRACE_S + _rows(script) / LOAD_ROWS_PER_S
    result = place.native("script-load", task, timeout_s=limit, on_progress=on_progress)
    _preflight(place, script, endpoint)
    # Rows made by statements are in no hash of the engine's: what makes them stands for them.
    made = json.dumps([result["content_sha256"], task["create"], task["finish"]])
    return Loaded(content_sha256=hashlib.sha256(made.encode()).hexdigest(), rows=result["rows"])


def drive(place: OpenPlace, parameters: Mapping[str, Any], drive: Drive) -> Driven:
    """Runs the transactions; leaves `result.json`, `latency.hlog` and `timeline.arrows` in the drive's directory.

    Raises:
        InputError: the system refuses a statement: no other trial would fare better.
    """
    script = _script(parameters)
    if drive.endpoint is not None:
        _preflight(place, script, drive.endpoint)
    own = {"transactions": wire.transactions(script), "pipelining": parameters["pipelining"]}
    driven = native.run(place, "script-drive", parameters, drive=drive, own=own)
    return replace(driven, effective={**driven.effective, SCRIPT_SHA256: sha256(script)})


def sha256(script: Script) -> str:
    """The hash of a script's content, whatever its layout and comments."""
    return hashlib.sha256(json.dumps(script.model_dump(mode="json"), sort_keys=True).encode()).hexdigest()


def _preflight(place: OpenPlace, script: Script, endpoint: Mapping[str, Any]) -> None:
    """Has the system prepare every statement."""
    task = {"endpoint": endpoint, "transactions": wire.transactions(script)}
    refused = place.native("script-preflight", task, timeout_s=PREFLIGHT_S)["refused"]
    problems = [_refused(script, each) for each in refused]
    if problems:
        raise InputError(problems, hint="mend the script; the words after the statement are the system's own")


def _refused(script: Script, refused: Mapping[str, Any]) -> Problem:
    name, number = refused["transaction"], refused["statement"]
    statement = " ".join(script.transactions[name].statements[number - 1].sql.split())
    message = f"the system refuses statement {number} of `{name}`, `{statement}`: {refused['message']}"
    field = dotted((*FIELD, "transactions", name, "statements", str(number - 1), "sql"))
    return Problem(f"{message} ({refused['code']})", "script", field=field)


def checks_after(parameters: Mapping[str, Any]) -> str:
    """Only its author knows what a script leaves true."""
    return "every_trial" if _script(parameters).checks else "never"


def check(place: OpenPlace, parameters: Mapping[str, Any], endpoint: Mapping[str, Any]) -> list[Check]:
    """The script's own checks."""
    found = []
    for name, query in _script(parameters).checks.items():
        # On a line of its own, the bracket is in no comment. The query is the user's own, for a database of this trial.
        limited = f"SELECT * FROM ({sql.read(query).sql}\n) AS violations LIMIT {VIOLATIONS_LIMIT}"  # noqa: S608
        answer = place.native("sql", {"endpoint": endpoint, "statements": [limited]}, timeout_s=CHECK_S)
        rows = [
            ", ".join(f"{key}={value}" for key, value in zip(answer["columns"], row, strict=True))
            for row in answer["rows"]
        ]
        words = " ".join(query.split())
        found.append(Check(name=name, statement=words, violations=len(rows), examples=rows[:EXAMPLES_LIMIT]))
    return found


def scalars(directory: Path, _parameters: Mapping[str, Any], window: Window) -> dict[str, float]:
    """Throughput, errors and latency from `result.json` and `latency.hlog`."""
    return {**oltp_scalars.compute(directory, window=window), **latency.compute(directory)}


def contradictions(directory: Path, _parameters: Mapping[str, Any]) -> list[str]:
    """Where the engine's files disagree, and transactions that ended and were never drawn."""
    return [*consistency.contradictions(directory), *fidelity.contradictions(directory)]
