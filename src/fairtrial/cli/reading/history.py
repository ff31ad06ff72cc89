"""`fairtrial history`: series over many runs, their change points, and what the newest run says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from fairtrial.cli.terminal import say
from fairtrial.errors import InputError, Problem

if TYPE_CHECKING:
    from fairtrial.history import History, HistoryOptions

CSV_SUFFIXES = (".csv", ".tsv")


@dataclass(frozen=True)
class DetectionLevels:
    """How sure is sure, as shares; a margin of None is each series' own."""

    alpha: float
    alarm_alpha: float
    margin: float | None


def levels(*, alpha: str, alarm_alpha: str, margin: str | None) -> DetectionLevels:
    """Reads the options of the same names.

    Raises:
        InputError: one of them is no share.
    """
    return DetectionLevels(
        alpha=share("--alpha", alpha),
        alarm_alpha=share("--alarm-alpha", alarm_alpha),
        margin=None if margin is None else share("--margin", margin),
    )


def history(
    paths: Sequence[Path],
    *,
    metrics: Sequence[str],
    by: str,
    acknowledged: Path | None,
    levels: DetectionLevels,
    as_json: bool,
) -> None:
    """Prints what the histories say."""
    result = examined(paths, metrics=metrics, by=by, options=options(paths, acknowledged=acknowledged, levels=levels))
    if as_json:
        typer.echo(result.model_dump_json(indent=1))
        return
    from fairtrial.history import text as report

    say("\n".join(report.text(result)))


def options(paths: Sequence[Path], *, acknowledged: Path | None, levels: DetectionLevels) -> HistoryOptions:
    """Levels, and acknowledgements from the file named or from those beside the records."""
    from fairtrial.history import HistoryOptions, KnownChange
    from fairtrial.record import acknowledgements

    beside = dict.fromkeys(
        file
        for path in paths
        for folder in ((path, path.parent) if path.is_dir() else (path.parent,))
        if (file := folder / acknowledgements.NAME).is_file()
    )
    files = [acknowledged] if acknowledged else list(beside)
    known = [KnownChange(**each.model_dump()) for file in files for each in acknowledgements.read(file)]
    return HistoryOptions(alpha=levels.alpha, alarm_alpha=levels.alarm_alpha, margin=levels.margin, known=tuple(known))


def examined(paths: Sequence[Path], *, metrics: Sequence[str], by: str, options: HistoryOptions) -> History:
    """Reads records and CSV files and looks at every series.

    Raises:
        InputError: nothing there gives a series.
    """
    from fairtrial.history import examine, otava
    from fairtrial.history import series as across_runs
    from fairtrial.study.tree.problems import did_you_mean, listed

    tables = [path for path in paths if path.suffix.lower() in CSV_SUFFIXES]
    directories = across_runs.record_directories([path for path in paths if path not in tables])
    runs = across_runs.read(directories, metrics=metrics, by=[name.strip() for name in by.split(",") if name.strip()])
    read = [runs, *(otava.read(table, metrics=metrics) for table in tables)]
    series = [one for each in read for one in each.series]
    left_out = {name: reason for each in read for name, reason in each.left_out.items()}
    if not series:
        if metrics and runs.measured:
            message = f"no run measures {', '.join(metrics)}; expected one of {listed(runs.measured)}"
            problem = Problem(message, "--metric", suggestion=did_you_mean(metrics[0], runs.measured))
            raise InputError([problem], hint="name a metric that the runs measure")
        reasons = "; ".join(f"{name}: {reason}" for name, reason in left_out.items())
        which = f" of {', '.join(metrics)}" if metrics else ""
        problem = Problem(message=f"found no series{which}: {reasons or 'no finished run'}", file=str(paths[0]))
        raise InputError([problem], hint="name finished runs, and with --metric a metric that they measure")
    return examine(series, options=options, left_out=left_out)


def share(option: str, text: str) -> float:
    """`1 %` or `0.01` as a number in (0, 1).

    Raises:
        InputError: it is neither.
    """
    from fairtrial.study.tree.quantities import parse_share

    try:
        value = parse_share(text)
    except ValueError as error:
        raise InputError([Problem(message=str(error), file=option)], hint="write a share as `1 %` or `0.01`") from error
    if not 0 < value < 1:
        raise InputError(
            [Problem(message=f"expected a share between 0 and 1, found {text}", file=option)],
            hint="write `1 %` or `0.01`",
        )
    return value
