"""`script`: a user's own transactions from a small file, by the native load engine."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Self

from pydantic import Field, model_validator

from fairtrial.errors import InputError, Problem
from fairtrial.metrics import fidelity, fleet, latency
from fairtrial.programs import Act
from fairtrial.protocol import generated as wire
from fairtrial.protocol import subcommands
from fairtrial.protocol.endpoints import Database, Endpoint, database
from fairtrial.record.models import Check, Window
from fairtrial.study.catalogue import MetricDefinition
from fairtrial.study.tree.nodes import Branch, dotted
from fairtrial.study.tree.problems import Problems
from fairtrial.wire.native import OnProgress
from fairtrial.wire.open_place import OpenPlace
from fairtrial.workloads.engine import drive as native
from fairtrial.workloads.engine import oltp_scalars
from fairtrial.workloads.engine.script import checking, sql, task
from fairtrial.workloads.engine.script.file import Fill, ScriptFile, Setup, TextDraw
from fairtrial.workloads.workload import Drive, DriveOutcome, When

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

    file: str | None = Field(None, description="Script, a YAML file; the path is relative to the file that names it.")
    content: ScriptFile | None = Field(
        None, description="Content of the script; `file` becomes this when a study is read."
    )

    pipelining: bool = Field(
        default=False, description=native.PIPELINING.format(what="statements that take nothing from each other")
    )

    @model_validator(mode="after")
    def _a_script(self) -> Self:
        if self.file is None and self.content is None:
            raise ValueError("expected a script: name its `file`")
        return self

    @property
    def types(self) -> tuple[str, ...]:
        """Names of the transactions."""
        return tuple(self.content.transactions) if self.content else ()

    @property
    def script(self) -> ScriptFile:
        """The script of a study that has been read."""
        assert self.content is not None  # noqa: S101 - what `file` names was read with the study
        return self.content

    @property
    def fills(self) -> Collection[Fill]:
        """Rows that the script makes, by table."""
        return self.script.setup.fill.values() if self.script.setup else ()


class Script(native.NativeWorkload[ScriptParameters]):
    """A user's own transactions by the native load generator."""

    name = "script"
    summary = (
        "A user's own transactions from a small file, driven by the native load engine: see "
        "[scripts](../guides/workloads.md#scripts)."
    )
    model = ScriptParameters
    throughput = "throughput_tps"
    example = MappingProxyType(
        {"duration": "60s", "content": {"transactions": {"order": {"statements": ["SELECT 1"]}}}}
    )
    files = MappingProxyType({"file": "content"})
    guessed_per_s = GUESSED_PER_S
    checked_by = "sql"

    def acts(self) -> Iterator[Act]:
        """The load generator, and every statement that it sends."""
        yield from super().acts()
        script = self.parameters.script
        for transaction in script.transactions.values():
            yield from (Act("runs", f"SQL: {each.sql}") for each in transaction.statements)
        yield from (Act("runs", f"SQL: {each}", "after every trial") for each in script.checks.values())

    def loading(self) -> Iterator[Act]:
        """Our own loader, and the script's statements around it."""
        yield from super().loading()
        setup = self.parameters.script.setup or Setup()
        yield from (Act("runs", f"SQL: {each}", "once, to make data") for each in (*setup.create, *setup.finish))

    @classmethod
    def check(cls, parameters: ScriptParameters, branch: Branch, problems: Problems) -> None:
        """Notes every mistake in the script's statements and their parameters."""
        if parameters.content is not None:
            checking.check(parameters.content, branch.below("content"), problems)

    def metrics(self) -> Mapping[str, MetricDefinition]:
        """Throughput, errors, latency by type; those of an open loop or a search."""
        latencies = latency.definitions(self.parameters.types)
        return {**oltp_scalars.DEFINITIONS, **latencies, **self.parameters.loop_metrics()}

    def disk_bytes(self) -> int:
        """Of all rows that are filled."""
        return sum(fill.rows * _row_bytes(fill) for fill in self.parameters.fills)

    def data(self) -> Mapping[str, object] | None:
        """What makes the data, with seed and version of the loader; None for a script that makes none."""
        setup = self.parameters.script.setup
        if setup is None:
            return None
        return {
            "workload": "script",
            "create": task.statements(setup.create),
            "fill": [each.model_dump(mode="json") for each in task.fills(setup)],
            "finish": task.statements(setup.finish),
            "seed": self.parameters.data_seed,
            "loader_version": LOADER_VERSION,
        }

    def load(self, place: OpenPlace, endpoint: Endpoint, *, on_progress: OnProgress) -> wire.Loaded:
        """Makes the tables and rows of `setup`, and prepares every statement on them.

        Raises:
            InputError: the system refuses a statement of a transaction.
        """
        setup = self.parameters.script.setup or Setup()
        reached = database(endpoint)
        request = wire.ScriptLoad(
            endpoint=reached,
            create=task.statements(setup.create),
            fill=task.fills(setup),
            finish=task.statements(setup.finish),
            seed=self.parameters.data_seed,
            threads=self.parameters.load_threads,
        )
        limit_s = LOAD_GRACE_S + sum(fill.rows for fill in self.parameters.fills) / LOAD_ROWS_PER_S
        result = place.native(subcommands.SCRIPT_LOAD, request, timeout_s=limit_s, on_progress=on_progress)
        self._preflight(place, reached)
        # Rows made by statements are in no hash of the engine's: what makes them stands for them.
        made = json.dumps([result.content_sha256, request.create, request.finish])
        return wire.Loaded(content_sha256=hashlib.sha256(made.encode()).hexdigest(), rows=result.rows)

    def drive(self, place: OpenPlace, drive: Drive) -> DriveOutcome:
        """Runs the transactions; leaves `result.json`, `latency.hlog` and `timeline.arrows` in the drive's directory.

        Raises:
            InputError: the system refuses a statement: no other trial would fare better.
        """
        self._preflight(place, database(drive.endpoint))
        request = wire.ScriptDrive(
            drive=native.task(place, self.parameters, drive),
            transactions=task.transactions(self.parameters.script),
            pipelining=self.parameters.pipelining,
        )
        outcome = native.run(place, subcommands.SCRIPT_DRIVE, request, parameters=self.parameters, drive=drive)
        return replace(outcome, effective={**outcome.effective, SCRIPT_SHA256: sha256(self.parameters.script)})

    def _preflight(self, place: OpenPlace, endpoint: Database) -> None:
        """Has the system prepare every statement."""
        script = self.parameters.script
        request = wire.ScriptPreflight(endpoint=endpoint, transactions=task.transactions(script))
        refused = place.native(subcommands.SCRIPT_PREFLIGHT, request, timeout_s=PREFLIGHT_S).refused
        problems = [_refused(script, each) for each in refused]
        if problems:
            raise InputError(problems, hint="fix the script; the text after the statement is the system's message")

    def checks_after(self) -> When:
        """Only its author knows what a script leaves true."""
        return "every_trial" if self.parameters.script.checks else "never"

    def check_data(self, place: OpenPlace, endpoint: Endpoint) -> list[Check]:
        """The script's own checks."""
        results = []
        for name, query in self.parameters.script.checks.items():
            # On a line of its own, the bracket is in no comment. The query is the user's, for a database of this trial.
            limited = f"SELECT * FROM ({sql.read(query).sql}\n) AS violations LIMIT {VIOLATIONS_LIMIT}"  # noqa: S608
            request = wire.Sql(endpoint=database(endpoint), statements=[limited])
            answer = place.native(subcommands.SQL, request, timeout_s=CHECK_S)
            rows = [
                ", ".join(f"{key}={value}" for key, value in zip(answer.columns, row, strict=True))
                for row in answer.rows
            ]
            words = " ".join(query.split())
            results.append(Check(name=name, statement=words, violations=len(rows), examples=rows[:EXAMPLES_LIMIT]))
        return results

    def scalars(self, directory: Path, window: Window) -> dict[str, float]:
        """Throughput, errors and latency from `result.json` and `latency.hlog`."""
        own = oltp_scalars.compute(directory, window=window, objective_s=self.parameters.objective)
        return {**own, **latency.compute(directory), **fleet.scalars(directory)}

    def contradictions(self, directory: Path) -> list[str]:
        """Where the engine's files disagree, and transactions that ended and were never drawn."""
        return [*super().contradictions(directory), *fidelity.contradictions(directory)]


def _row_bytes(fill: Fill) -> int:
    """Of a row whose texts are as long as they can be."""
    sizes = (draw.bounds[1] if isinstance(draw, TextDraw) else BYTES_PER_NUMBER for draw in fill.columns.values())
    return BYTES_PER_ROW + sum(sizes)


def sha256(script: ScriptFile) -> str:
    """The hash of a script's content, whatever its layout and comments."""
    return hashlib.sha256(json.dumps(script.model_dump(mode="json"), sort_keys=True).encode()).hexdigest()


def _refused(script: ScriptFile, refused: wire.Refused) -> Problem:
    name, number = refused.transaction, refused.statement
    statement = " ".join(script.transactions[name].statements[number - 1].sql.split())
    message = f"the system rejects statement {number} of `{name}`, `{statement}`: {refused.message}"
    field = dotted((*FIELD, "transactions", name, "statements", str(number - 1), "sql"))
    return Problem(f"{message} ({refused.code})", "script", field=field)
