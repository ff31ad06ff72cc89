"""The native subcommands of the agent's binary: what each takes on standard input and gives as its last line."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from types import NoneType
from typing import Annotated, Final, Generic, TypeVar

from pydantic import BaseModel, BeforeValidator, TypeAdapter, ValidationError

from fairtrial.protocol import generated as wire

I = TypeVar("I", bound=BaseModel | None)  # noqa: E741 - takes
O = TypeVar("O", bound=BaseModel | None)  # noqa: E741 - gives


@dataclass(frozen=True)
class Subcommand(Generic[I, O]):
    """A native subcommand.

    Attributes:
        name: on the command line.
        takes: its parameters.
        gives: its result. None where it has none, or leaves it in files, which are longer than a line may be.
    """

    name: str
    takes: type[I]
    gives: type[O]

    @property
    def argv(self) -> list[str]:
        """The command line, as the agent takes it for its own binary."""
        return ["fairtrial-agent", self.name]

    def document(self, parameters: I) -> str:
        """What it reads from standard input."""
        return TypeAdapter(self.takes).dump_json(parameters, by_alias=True).decode()

    def result(self, line: str | None) -> O:
        """Its result, from its last line that is no progress.

        Raises:
            ValueError: it is something else.
        """
        return TypeAdapter(self.gives).validate_json("null" if line is None or self.gives is NoneType else line)


SEE: Final = "see the message above"


class Failure(BaseModel):
    """What a subcommand that fails says on standard error."""

    error: str
    hint: Annotated[str, BeforeValidator(lambda hint: hint or SEE)] = SEE


def failure(lines: Iterable[str]) -> Failure | None:
    """What a subcommand said of why it failed, among all its lines; None if it said nothing."""
    for line in reversed(list(lines)):
        try:
            return Failure.model_validate_json(line)
        except ValidationError:
            continue
    return None


TPCC_LOAD: Final = Subcommand("tpcc-load", wire.TpccLoad, wire.Loaded)
TPCC_DRIVE: Final = Subcommand("tpcc-drive", wire.TpccDrive, NoneType)
TPCC_CHECK: Final = Subcommand("tpcc-check", wire.TpccCheck, wire.Checked)
OLTP_LOAD: Final = Subcommand("oltp-load", wire.OltpLoad, wire.Loaded)
OLTP_DRIVE: Final = Subcommand("oltp-drive", wire.OltpDrive, NoneType)
OLTP_CHECK: Final = Subcommand("oltp-check", wire.OltpCheck, wire.Checked)
SCRIPT_LOAD: Final = Subcommand("script-load", wire.ScriptLoad, wire.Loaded)
SCRIPT_PREFLIGHT: Final = Subcommand("script-preflight", wire.ScriptPreflight, wire.Preflighted)
SCRIPT_DRIVE: Final = Subcommand("script-drive", wire.ScriptDrive, NoneType)
FILE_LOAD: Final = Subcommand("file-load", wire.FileLoad, wire.Loaded)
FILE_DRIVE: Final = Subcommand("file-drive", wire.FileDrive, NoneType)
FILE_COUNTERS: Final = Subcommand("file-counters", wire.FileCountersOf, wire.FileCounters)
LOCK_DRIVE: Final = Subcommand("lock-drive", wire.LockDrive, NoneType)
SQL: Final = Subcommand("sql", wire.Sql, wire.Rows)
SQL_HOLD: Final = Subcommand("sql-hold", wire.SqlHold, wire.Rows)
CEILING: Final = Subcommand("ceiling", wire.Ceiling, wire.ClientCeiling)
SAMPLE: Final = Subcommand("sample", wire.Sample, NoneType)
GOVERN_PURGE: Final = Subcommand("govern-purge", wire.GovernPurge, wire.Governed)
FACTS: Final = Subcommand("facts", NoneType, wire.Facts)
COVARIATES: Final = Subcommand("covariates", NoneType, wire.Covariates)
RESTORE: Final = Subcommand("restore", wire.Restore, wire.Restored)
HTTP_GET: Final = Subcommand("http-get", wire.HttpGet, wire.HttpAnswer)
SETTLE: Final = Subcommand("settle", wire.Settle, wire.Settled)
