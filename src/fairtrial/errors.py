"""Every error fairtrial raises on purpose.

FairtrialError            has a message, a hint (what the user can do next) and an exit code
├── InputError            exit 2: the user's input is wrong; may carry several problems, each with its source position
├── PlaceError            exit 3: the environment: a place, a missing program, a full disk, a busy place
│   ├── AgentError        the agent refused or failed a request
│   ├── StreamLostError   the stream to the agent ended
│   ├── HostBootError     a host did not boot the kernel of an arm
│   ├── StuckError        a process does not end, not even killed
│   └── SystemStartError  the system under test did not start, with its own last log lines
└── RecordError           exit 3: a record that is damaged or not one

Only the command line catches them. An exception that is none of these is our bug: exit 4. Exit 1 is a finding, not an
error, and is returned, never raised.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

LONGEST: Final = 32 << 10  # characters of a message: what it quotes can be of any length, and nobody reads on
INTERRUPTED: Final = 130  # what shells expect of a program that Ctrl-C ended
CLOSED = 141  # whoever read the output closed it: as a shell says of a program that SIGPIPE ended
NOT_FOUND: Final = "not_found"  # the wire's code for a file, program or user that is not there


class FairtrialError(Exception):
    """Base of every error raised on purpose.

    Attributes:
        hint: what the user can do next, in one sentence.
    """

    exit_code = 4

    def __init__(self, message: str, *, hint: str) -> None:
        super().__init__(message if len(message) <= LONGEST else f"{message[:LONGEST]}…")
        self.hint = hint


@dataclass(frozen=True)
class Problem:
    """One mistake in the user's input, with its place in the file.

    Attributes:
        message: what was found and what was expected.
        file: the file as the user named it, or `--set`.
        line: 1-based line, 0 if it has none.
        column: 1-based column, 0 if it has none.
        field: dotted path of the field, empty for the whole file.
        suggestion: the nearest valid name, or another fix; empty if there is none.
    """

    message: str
    file: str
    line: int = 0
    column: int = 0
    field: str = ""
    suggestion: str = ""

    def __str__(self) -> str:
        where = self.file + (f":{self.line}:{self.column}" if self.line else "")
        field = f"{self.field}: " if self.field else ""
        suggestion = f" ({self.suggestion})" if self.suggestion else ""
        return f"{where}: {field}{self.message}{suggestion}"


class InputError(FairtrialError):
    """The user's input is wrong. Reports all problems at once."""

    exit_code = 2

    def __init__(self, problems: list[Problem], *, hint: str) -> None:
        super().__init__("\n".join(str(problem) for problem in problems), hint=hint)
        self.problems = problems


class PlaceError(FairtrialError):
    """The environment is not what the study needs.

    Attributes:
        field: dotted path of the study's field that asks for it; empty if none does, or the message says where it is.
    """

    exit_code = 3

    def __init__(self, message: str, *, hint: str, field: str = "") -> None:
        super().__init__(message, hint=hint)
        self.field = field


class AgentError(PlaceError):
    """The agent refused or failed a request.

    Attributes:
        code: the wire's failure code (`busy`, `check`, `not_found`, …).
    """

    def __init__(self, message: str, *, code: str, hint: str, field: str = "") -> None:
        super().__init__(message, hint=hint, field=field)
        self.code = code


class StreamLostError(PlaceError):
    """The stream to the agent ended or fell silent."""


class HostBootError(PlaceError):
    """A host did not boot the kernel that a trial asks for, however often it was tried; it runs its default kernel."""


class StuckError(PlaceError, TimeoutError):
    """A process does not end though it was killed: the kernel keeps it, as for a disk that does not answer."""


class SystemStartError(PlaceError):
    """The system under test did not start; the message holds its own last log lines."""


class RecordError(FairtrialError):
    """A record is damaged, or not a record."""

    exit_code = 3
