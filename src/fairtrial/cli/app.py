"""The commands by name. Importing this must stay cheap: `fairtrial --help` waits for it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    name="fairtrial",
    help="Controlled performance experiments, with verdicts a sceptic can re-run.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
studies_app = typer.Typer(help="Ready studies, and the published data they re-run.", rich_markup_mode=None)
app.add_typer(studies_app, name="studies")

StudyFile = Annotated[Path, typer.Argument(metavar="STUDY", help="A study file (YAML).", show_default=False)]
RunDirectory = Annotated[Path, typer.Argument(metavar="RUN", help="The directory of a run.", show_default=False)]
Size = Annotated[str | None, typer.Option("--size", metavar="NAME", help="One of the study's sizes.")]
Overrides = Annotated[
    list[str] | None, typer.Option("--set", metavar="PATH=VALUE", help="Replaces one value of the study.")
]
Output = Annotated[Path, typer.Option("--output", metavar="DIR", help="Where runs are kept.")]


@app.callback(invoke_without_command=True)
def _version(
    context: typer.Context,
    *,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    if version:
        from fairtrial import __version__

        typer.echo(f"fairtrial {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command()
def run(
    study: StudyFile,
    size: Size = None,
    overrides: Overrides = None,
    output: Output = Path("runs"),
    *,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the newest unfinished run.")] = False,
) -> None:
    """Run a study and report its verdicts."""
    from fairtrial.cli import run as command

    command.run(study, size=size, overrides=overrides or [], output=output, resume=resume)


@app.command()
def plan(study: StudyFile, size: Size = None, overrides: Overrides = None) -> None:
    """Show every trial that would run, what differs between the arms, and how long it takes. Runs nothing."""
    from fairtrial.cli import plan as command

    command.plan(study, size=size, overrides=overrides or [])


@app.command()
def report(
    directory: RunDirectory,
    arm: Annotated[str | None, typer.Option("--arm", help="Compare this factor's levels instead.")] = None,
) -> None:
    """Analyse a run again and write its report."""
    from fairtrial.cli import report as command

    command.report(directory, arm=arm)


@app.command()
def verify(directory: RunDirectory) -> None:
    """Check a record's hashes and recompute every reported number from its raw files."""
    from fairtrial.cli import verify as command

    command.verify(directory)


@app.command()
def analyse(
    data: Annotated[
        list[str],
        typer.Argument(
            metavar="DATA...",
            help="A CSV or Parquet file, or outputs of fio or sysbench: paths, folders, patterns, each also as "
            "`LABEL=PATH`; `-` is standard input.",
            show_default=False,
        ),
    ],
    value: Annotated[
        list[str] | None, typer.Option("--value", metavar="COLUMN", help="What is judged: the first is primary.")
    ] = None,
    arm: Annotated[
        str | None, typer.Option("--arm", metavar="COLUMN", help="Whose levels are compared; labels if there are any.")
    ] = None,
    by: Annotated[
        list[str] | None, typer.Option("--by", metavar="COLUMN,…", help="Conditions, each combination judged apart.")
    ] = None,
    block: Annotated[
        str | None, typer.Option("--block", metavar="COLUMN", help="Trials measured side by side, to be paired.")
    ] = None,
    time: Annotated[
        str | None, typer.Option("--time", metavar="COLUMN", help="Order of time; without it, the order of rows.")
    ] = None,
    baseline: Annotated[
        str | None, typer.Option("--baseline", metavar="LEVEL", help="Level compared with; else the first row's.")
    ] = None,
    better: Annotated[
        list[str] | None, typer.Option("--better", metavar="higher|lower", help="Good direction, once or per value.")
    ] = None,
    margin: Annotated[str, typer.Option("--margin", help="Differences within this share do not matter.")] = "2%",
    confidence: Annotated[str, typer.Option("--confidence", help="Of every interval.")] = "95%",
    names: Annotated[
        str | None, typer.Option("--names", metavar="PATTERN", help="File names as columns: `{kernel}-{block}.json`.")
    ] = None,
    *,
    json: Annotated[bool, typer.Option("--json", help="Print the whole analysis as JSON.")] = False,
) -> None:
    """Judge numbers that others measured: comparisons, verdicts and doubts, as a report prints them."""
    from fairtrial.cli import analyse as command

    asked = command.Options(
        values=value or [],
        arm=arm,
        by=by or [],
        block=block,
        time=time,
        baseline=baseline,
        better=better or [],
        margin=margin,
        confidence=confidence,
    )
    command.analyse(data, asked, names=names, as_json=json)


@app.command()
def compare(
    commands: Annotated[
        list[str],
        typer.Argument(
            metavar="COMMAND...", help="Two commands or more, quoted; the first is the baseline.", show_default=False
        ),
    ],
    name: Annotated[list[str] | None, typer.Option("--name", help="Of a command, once for each, in order.")] = None,
    blocks: Annotated[int, typer.Option("--blocks", min=2, help="Blocks: each holds every command once.")] = 10,
    warm_up: Annotated[int, typer.Option("--warm-up", min=0, help="Runs before the measured one, in each trial.")] = 1,
    runs: Annotated[
        int | None, typer.Option("--runs", min=1, help="Measured runs in each trial; by default a tenth of a second's.")
    ] = None,
    prepare: Annotated[str | None, typer.Option("--prepare", metavar="COMMAND", help="Run before every run.")] = None,
    setup: Annotated[str | None, typer.Option("--setup", metavar="COMMAND", help="Run once, before all.")] = None,
    metric: Annotated[
        str | None,
        typer.Option(
            "--metric",
            metavar="WHERE",
            help="Judge a number of the output: an expression with one group, or a JSON path.",
        ),
    ] = None,
    unit: Annotated[str, typer.Option("--unit", help="Of --metric, to be printed.")] = "",
    better: Annotated[
        str | None, typer.Option("--better", metavar="higher|lower", help="Good direction of --metric.")
    ] = None,
    exit_code: Annotated[list[int] | None, typer.Option("--exit-code", help="An exit code of success.")] = None,
    timeout: Annotated[str, typer.Option("--timeout", help="A run that takes longer is invalid.")] = "1h",
    margin: Annotated[str, typer.Option("--margin", help="Differences within this share do not matter.")] = "2%",
    confidence: Annotated[str, typer.Option("--confidence", help="Of every interval.")] = "95%",
    seed: Annotated[int, typer.Option("--seed", min=0, help="Decides the order.")] = 1,
    save: Annotated[
        Path | None, typer.Option("--save", metavar="STUDY", help="Write the study, to be run again.")
    ] = None,
    export: Annotated[
        list[str] | None, typer.Option("--export", metavar="FILE", help="Write results: .csv, .json or .md.")
    ] = None,
    fail_if: Annotated[
        list[str] | None, typer.Option("--fail-if", metavar="VERDICT", help="Exit with 1 if a command gets it.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", metavar="DIR", help="Keep the record, with its report, below this folder."),
    ] = None,
    *,
    shell: Annotated[bool, typer.Option("--shell", help="Let `sh -c` run the commands.")] = False,
) -> None:
    """Compare commands: whole runs in randomised blocks, with the kernel's accounting and a verdict."""
    from fairtrial.cli import compare as command

    wishes = command.wishes(
        commands,
        names=name or (),
        shell=shell,
        prepare=prepare,
        setup=setup,
        warm_ups=warm_up,
        exit_codes=tuple(exit_code or (0,)),
        timeout=timeout,
        metric=metric,
        unit=unit,
        better=better,
        margin=margin,
        confidence=confidence,
        seed=seed,
        stopping={"blocks": blocks},
    )
    results = command.Results(save=save, export=export or [], fail_if=fail_if or [], output=output, runs=runs)
    command.compare(wishes, results)


@app.command()
def schema() -> None:
    """Print the JSON Schema of study files, for editors."""
    from fairtrial.cli import schema as command

    command.schema()


@studies_app.callback(invoke_without_command=True)
def _studies(context: typer.Context) -> None:
    """Ready studies, and the published data they re-run."""
    if context.invoked_subcommand is None:
        from fairtrial.cli import studies as command

        command.listing()


@studies_app.command("published")
def _published(name: Annotated[str, typer.Argument(help="A published study.", show_default=False)]) -> None:
    """Print every table of a publication from its raw data, and where it disagrees with them."""
    from fairtrial.cli import studies as command

    command.published(name)
