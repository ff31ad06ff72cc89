"""Commands tried once before they are compared: do they work, how long do they take, and what does starting cost?"""

from __future__ import annotations

import io
import math
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

import numpy as np

from fairtrial.analyse.inference import t_tests
from fairtrial.compare import compiling
from fairtrial.compare.compiling import CompareOptions
from fairtrial.errors import AgentError, InputError, Problem
from fairtrial.protocol.generated import FileOutput
from fairtrial.run.trial import workspace
from fairtrial.wire.agent import STREAM
from fairtrial.wire.open_place import OpenPlace
from fairtrial.wire.process import how
from fairtrial.workloads.command import numbers
from fairtrial.workloads.command.parameters import CommandMetric

TRIAL_S: Final = 0.1  # a trial of short commands runs them for this long: as long as opening the trial takes
MOST_RUNS: Final = 100
TRIES: Final = 3
FLOOR_PAIRS: Final = 20
OUTPUT_LINES: Final = 10  # of a command that failed
PRINTED: Final = "compare-tried.txt"  # in the state directory
NO_FILE: Final = Path("/dev/null")  # a comparison's figure is in the output
SETUP_S: Final = 24 * 3600.0  # a setup may build a kernel; a day is a mistake


@dataclass(frozen=True)
class StartupFloor:
    """What an empty program takes, started as the commands are: nothing below it can be told apart.

    Attributes:
        program: what was run.
        elapsed_s: median wall time.
        reach: two equal series of it differ by up to this share (95 %), by chance alone.
        max_resident_bytes: its largest resident set, which is that of the process that started it.
    """

    program: str
    elapsed_s: float
    reach: float
    max_resident_bytes: int


@dataclass(frozen=True)
class Calibration:
    """What one run of each command showed.

    Attributes:
        elapsed_s: wall time by name.
        runs: of each command in each trial.
        floor: cost of a start.
    """

    elapsed_s: Mapping[str, float]
    runs: int
    floor: StartupFloor


def try_out(place: OpenPlace, options: CompareOptions, *, runs: int | None) -> Calibration:
    """Sets up, runs every command once, and measures what starting costs.

    Args:
        place: open.
        options: checked.
        runs: of each command in each trial; None: as many as make a trial of `TRIAL_S`.

    Raises:
        InputError: a command cannot be started, or fails, or does not print the figure that is asked for.
    """
    if options.setup:
        _succeed(place, options, options.setup, option="--setup")
    elapsed = {}
    for label, command in options.by_label.items():
        elapsed[label] = _shortest(place, options, command, label=label)
    floor = _floor(place, options)
    return Calibration(elapsed_s=elapsed, runs=runs or _runs(options, elapsed.values()), floor=floor)


def _shortest(place: OpenPlace, options: CompareOptions, command: str, *, label: str) -> float:
    """Wall time of a command in seconds: of a short one the best of a few, for the first one reads files from disk."""
    times: list[float] = []
    while len(times) < (TRIES if not times or times[-1] < TRIAL_S else 1):
        if options.prepare:
            _succeed(place, options, options.prepare, option="--prepare", directory=options.directory_of(label))
        times.append(_succeed(place, options, command, option=label, directory=options.directory_of(label)))
    return min(times)


def _runs(options: CompareOptions, elapsed: Iterable[float]) -> int:
    """One where runs are long, where each is prepared, or where a figure is read from its output."""
    if options.metric or options.prepare:
        return 1
    return max(1, min(MOST_RUNS, math.ceil(TRIAL_S / max(elapsed))))


def _succeed(
    place: OpenPlace, options: CompareOptions, command: str, *, option: str, directory: str | None = None
) -> float:
    """Runs a command to its end, and looks for the figure where one is asked for; its wall time in seconds."""
    compared = not option.startswith("--")
    printed = place.state_directory / PRINTED if compared and options.metric else None
    if printed is not None:
        workspace.remove(place, printed)  # what is printed is added to a file
    lines: list[str] = []
    try:
        process = place.agent.spawn(
            name="command",
            argv=shlex.split(options.run(command)),
            directory=directory or options.directory,
            on_line=lambda _stream, line: lines.append(line),
            stdout=STREAM if printed is None else FileOutput(path=str(printed)),
        )
    except AgentError as error:
        problem = Problem(f"cannot start `{command}`: {error}", option)
        raise InputError([problem], hint="check its spelling; what only a shell understands needs --shell") from error
    is_setup = option == "--setup"
    limit_s = SETUP_S if is_setup else options.timeout_s
    try:
        exited = process.wait(limit_s)
    except TimeoutError as error:
        process.stop(1.0)
        problem = Problem(f"`{command}` did not end within {limit_s:g} s", option)
        hint = "give the command less to do" if is_setup else "raise --timeout, or give the command less to do"
        raise InputError([problem], hint=hint) from error
    text = "" if printed is None else _text(place, printed)
    said = "".join(f"\n  {line}" for line in [*text.splitlines()[-OUTPUT_LINES:], *lines][-OUTPUT_LINES:])
    if exited.code not in (options.exit_codes if compared else (0,)):
        problem = Problem(f"`{command}` ended with {how(exited)}{said}", option)
        codes = ", or name the exit codes that mean success: --exit-code 0 --exit-code 1"
        raise InputError([problem], hint=f"fix the command{codes if compared else ''}")
    if printed is not None:
        _require_metric(options, command, text, said=said)
    return (exited.time_ns - process.started_ns) / 1e9


def _text(place: OpenPlace, printed: PurePosixPath) -> str:
    """As each trial will read it: standard output alone, whole, with the ends of its lines."""
    content = place.agent.get(str(printed))
    workspace.remove(place, printed)
    return io.TextIOWrapper(io.BytesIO(content), encoding="utf-8", errors="replace").read()


def _require_metric(options: CompareOptions, command: str, text: str, *, said: str) -> None:
    for metric in compiling.metrics(options).values():
        try:
            numbers.read(CommandMetric.model_validate(metric), text, file=NO_FILE)
        except ValueError as error:
            problem = Problem(f"cannot read it from the output of `{command}`: {error}{said}", "--metric")
            raise InputError([problem], hint="fix the expression, or the path, so that it finds one number") from error


def _floor(place: OpenPlace, options: CompareOptions) -> StartupFloor:
    """An empty program against itself, in alternating order."""
    program = "sh -c :" if options.shell else "true"
    first: list[float] = []
    second: list[float] = []
    largest = 0
    for pair in range(FLOOR_PAIRS):
        for series in (first, second) if pair % 2 else (second, first):
            process = place.agent.spawn(name="floor", argv=shlex.split(program), directory=options.directory)
            exited = process.wait(options.timeout_s)
            series.append((exited.time_ns - process.started_ns) / 1e9)
            largest = max(largest, exited.usage.max_resident_bytes)
    return StartupFloor(
        program=program,
        elapsed_s=float(np.median([*first, *second])),
        reach=_reach(first, second),
        max_resident_bytes=largest,
    )


def _reach(first: Sequence[float], second: Sequence[float]) -> float:
    """How far from 1 the interval of the ratio of two equal series goes, each as a trial of so many runs."""
    test = t_tests.paired(np.log(first), np.log(second), confidence=0.95)
    return math.nan if test is None else math.expm1((test.high - test.low) / 2)
