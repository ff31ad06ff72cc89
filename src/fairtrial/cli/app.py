"""The commands by name. Importing this must stay cheap: `fairtrial --help` waits for it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fairtrial.cli import governors

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
servers_app = typer.Typer(help="Servers that a study can name by version.", rich_markup_mode=None)
app.add_typer(servers_app, name="servers")
app.add_typer(governors.app, name="govern")

StudyFile = Annotated[Path, typer.Argument(metavar="STUDY", help="A study file (YAML).", show_default=False)]
RunDirectory = Annotated[Path, typer.Argument(metavar="RUN", help="The directory of a run.", show_default=False)]
Size = Annotated[str | None, typer.Option("--size", metavar="NAME", help="One of the study's sizes.")]
Overrides = Annotated[
    list[str] | None, typer.Option("--set", metavar="PATH=VALUE", help="Replaces one value of the study.")
]
AgainstItself = Annotated[
    bool, typer.Option("--aa", help="The study's baseline against itself: how noisy is this place?")
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
    aa: AgainstItself = False,
    plain: Annotated[
        bool, typer.Option("--plain", help="Report without page and figures, seconds sooner; `report` draws them.")
    ] = False,
) -> None:
    """Run a study and report its verdicts."""
    from fairtrial.cli.running import run as command

    command.run(
        study,
        size=size,
        overrides=overrides or [],
        output=output,
        resume=resume,
        against_itself=aa,
        drawn=not plain,
    )


@app.command()
def plan(study: StudyFile, size: Size = None, overrides: Overrides = None, *, aa: AgainstItself = False) -> None:
    """Show every trial that would run, what differs between the arms, and how long it takes. Runs nothing."""
    from fairtrial.cli.running import plan as command

    command.plan(study, size=size, overrides=overrides or [], against_itself=aa)


@app.command()
def power(
    study: StudyFile,
    size: Size = None,
    overrides: Overrides = None,
    *,
    pilot: Annotated[
        Path | None, typer.Option("--from", metavar="RUN", help="A run to learn the spread from; else the place's A/A.")
    ] = None,
    effect: Annotated[
        str | None, typer.Option("--effect", metavar="SHARE", help="An effect to find, such as 3%.")
    ] = None,
) -> None:
    """Say how many blocks a study needs, how small an effect it can find, and how long that takes."""
    from fairtrial.cli.running import power as command

    command.power(study, size=size, overrides=overrides or [], pilot=pilot, effect=effect)


@app.command()
def report(
    directory: RunDirectory,
    arm: Annotated[str | None, typer.Option("--arm", help="Compare this factor's levels instead.")] = None,
) -> None:
    """Analyse a run again and write its report."""
    from fairtrial.cli.reading import report as command

    command.report(directory, arm=arm)


@app.command()
def verify(directory: RunDirectory) -> None:
    """Check a record's hashes and recompute every reported number from its raw files."""
    from fairtrial.cli.reading import verify as command

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
    cluster: Annotated[
        str | None,
        typer.Option("--cluster", metavar="COLUMN", help="Runs: rows of one, in an arm and cell, become one trial."),
    ] = None,
    time: Annotated[
        str | None, typer.Option("--time", metavar="COLUMN", help="Order of time; without it, the order of rows.")
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(
            "--baseline", metavar="LEVEL", help="Level compared with; else the first row's, unless arms take turns."
        ),
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
    from fairtrial.cli.reading import analyse as command

    asked = command.Options(
        values=value or [],
        arm=arm,
        by=by or [],
        block=block,
        cluster=cluster,
        time=time,
        baseline=baseline,
        better=better or [],
        margin=margin,
        confidence=confidence,
    )
    command.analyse(data, asked, names=names, as_json=json)


Judged = Annotated[
    str | None,
    typer.Option(
        "--metric", metavar="WHERE", help="Judge a number of the output: an expression with one group, or a JSON path."
    ),
]
MostBlocks = Annotated[
    int, typer.Option("--blocks", min=2, help="Largest number of blocks: each holds every command once.")
]
Stop = Annotated[
    str,
    typer.Option("--stop", metavar="RULE", help="When to stop: sequential (once decided), fixed, anytime, precision."),
]
MinBlocks = Annotated[
    int | None, typer.Option("--min-blocks", min=3, help="Blocks before the first look; by default 4 or so.")
]
Precision = Annotated[
    str | None, typer.Option("--precision", metavar="SHARE", help="Of --stop precision: reach of the interval.")
]


@app.command()
def compare(
    commands: Annotated[
        list[str],
        typer.Argument(
            metavar="COMMAND...", help="Two commands or more, quoted; the first is the baseline.", show_default=False
        ),
    ],
    name: Annotated[list[str] | None, typer.Option("--name", help="Of a command, once for each, in order.")] = None,
    blocks: MostBlocks = 20,
    stop: Stop = "sequential",
    min_blocks: MinBlocks = None,
    precision: Precision = None,
    warm_up: Annotated[int, typer.Option("--warm-up", min=0, help="Runs before the measured one, in each trial.")] = 1,
    runs: Annotated[
        int | None, typer.Option("--runs", min=1, help="Measured runs in each trial; by default a tenth of a second's.")
    ] = None,
    prepare: Annotated[str | None, typer.Option("--prepare", metavar="COMMAND", help="Run before every run.")] = None,
    setup: Annotated[str | None, typer.Option("--setup", metavar="COMMAND", help="Run once, before all.")] = None,
    metric: Judged = None,
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
        stopping=command.stopping(stop, blocks=blocks, min_blocks=min_blocks, precision=precision),
    )
    results = command.Results(save=save, export=export or [], fail_if=fail_if or [], output=output, runs=runs)
    command.compare(wishes, results)


@app.command()
def doctor(
    place: Annotated[
        str,
        typer.Argument(
            metavar="PLACE",
            help="`local`, `ssh://user@host`, a mapping as a study has it, or a study file: then all its places.",
        ),
    ] = "local",
    *,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say whether a place is fit to measure on, which studies could run there, and what would mend the rest."""
    from fairtrial.cli import doctor as command

    command.doctor(place, as_json=json)


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


@studies_app.command("beside")
def _beside(directory: RunDirectory) -> None:
    """Print a run in the tables of the publication that its study re-runs, and where both agree."""
    from fairtrial.cli.reading import beside as command

    command.beside(directory)


ServerKind = Annotated[str, typer.Argument(metavar="SYSTEM", help="mariadb, mysql or postgres.", show_default=False)]
ServerVersion = Annotated[str, typer.Argument(metavar="VERSION", help="As the list has it.", show_default=False)]


@servers_app.callback(invoke_without_command=True)
def _servers(context: typer.Context) -> None:
    """Servers that a study can name by version."""
    if context.invoked_subcommand is None:
        from fairtrial.cli import servers as command

        command.listing()


@servers_app.command("fetch")
def _fetch(system: ServerKind, version: ServerVersion) -> None:
    """Download and unpack a server; a run does so by itself."""
    from fairtrial.cli import servers as command

    command.fetch(system, version)


@servers_app.command("check")
def _check(
    system: ServerKind,
    version: Annotated[
        str | None, typer.Argument(metavar="[VERSION]", help="As the list has it; else the one on PATH.")
    ] = None,
) -> None:
    """Start a server once, privately, on this machine, and print what it is."""
    from fairtrial.cli import servers as command

    command.check(system, version)


HistoryPaths = Annotated[
    list[Path], typer.Argument(metavar="RUNS", help="Runs, directories of runs, CSV files.", show_default=False)
]
Metrics = Annotated[
    list[str] | None, typer.Option("--metric", metavar="NAME", help="Only this metric; else those with a role.")
]
By = Annotated[str, typer.Option("--by", metavar="NAMES", help="What tells series apart: cell, arm, factors.")]
Acknowledged = Annotated[
    Path | None,
    typer.Option("--acknowledged", metavar="FILE", help="Known changes; else acknowledged.yaml beside the runs."),
]
Alpha = Annotated[
    str, typer.Option("--alpha", metavar="SHARE", help="Chance that a series without a change shows one.")
]
AlarmAlpha = Annotated[
    str, typer.Option("--alarm-alpha", metavar="SHARE", help="Chance of any false alarm on newest runs.")
]
Margin = Annotated[
    str | None, typer.Option("--margin", metavar="SHARE", help="Change that matters; else the study's margin.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command()
def history(
    paths: HistoryPaths,
    metrics: Metrics = None,
    by: By = "cell,arm",
    acknowledged: Acknowledged = None,
    alpha: Alpha = "5%",
    alarm_alpha: AlarmAlpha = "1%",
    margin: Margin = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Show series over many runs: where their level changed, and whether the newest run stands out."""
    from fairtrial.cli.reading import history as command

    levels = command.levels(alpha=alpha, alarm_alpha=alarm_alpha, margin=margin)
    command.history(paths, metrics=metrics or [], by=by, acknowledged=acknowledged, levels=levels, as_json=as_json)


@app.command()
def gate(
    paths: HistoryPaths,
    baseline: Annotated[
        Path | None, typer.Option("--baseline", metavar="RUN", help="Compare with this run instead of the history.")
    ] = None,
    metrics: Metrics = None,
    by: By = "cell,arm",
    acknowledged: Acknowledged = None,
    alpha: Alpha = "5%",
    alarm_alpha: AlarmAlpha = "1%",
    margin: Margin = None,
    junit: Annotated[Path | None, typer.Option("--junit", metavar="FILE", help="Write JUnit XML.")] = None,
    markdown: Annotated[Path | None, typer.Option("--markdown", metavar="FILE", help="Write Markdown.")] = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Fail if the newest run is worse than its history or than a baseline run."""
    from fairtrial.cli.reading import gate as command
    from fairtrial.cli.reading.history import levels

    command.gate(
        paths,
        baseline=baseline,
        metrics=metrics or [],
        by=by,
        acknowledged=acknowledged,
        levels=levels(alpha=alpha, alarm_alpha=alarm_alpha, margin=margin),
        outputs=command.Outputs(junit=junit, markdown=markdown, as_json=as_json),
    )


@app.command()
def audit(
    claims: Annotated[Path, typer.Argument(metavar="CLAIMS", help="Published claims (YAML).", show_default=False)],
    data: Annotated[
        Path | None, typer.Option("--data", metavar="CSV", help="Raw values, one row per trial; else the file's own.")
    ] = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Recompute every published claim from the raw data: confirmed, contradicted, not decided or not checkable."""
    from fairtrial.cli.reading import audit as command

    command.audit(claims, data=data, as_json=as_json)
