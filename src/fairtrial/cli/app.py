"""The commands by name. Importing this must stay cheap: `fairtrial --help` waits for it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fairtrial.cli import governors, guarding, options

app = typer.Typer(
    name="fairtrial",
    help="Controlled performance experiments, with verdicts a sceptic can re-run.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
studies_app = typer.Typer(help="List the ready studies and the publications that they re-run.", rich_markup_mode=None)
app.add_typer(studies_app, name="studies")
servers_app = typer.Typer(help="List the servers that a study can name by version.", rich_markup_mode=None)
app.add_typer(servers_app, name="servers")
app.add_typer(governors.app, name="govern")


@app.callback(invoke_without_command=True)
def _version(
    context: typer.Context,
    *,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
    ssh_config: options.SshConfigurations = None,
) -> None:
    if version:
        from fairtrial import __version__

        typer.echo(f"fairtrial {__version__}")
        raise typer.Exit
    if ssh_config:
        from fairtrial.places import ssh

        for each in ssh_config:
            ssh.allow_configuration(each)
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command()
def run(
    study: options.StudyFile,
    size: options.Size = None,
    overrides: options.Overrides = None,
    output: options.Output = Path("runs"),
    *,
    resume: options.Resume = False,
    aa: options.AgainstItself = False,
    plain: options.Plain = False,
    page: options.WithPage = False,
    places: options.HostsFile = None,
    cluster: options.ClusterAddress = None,
    insecure_farm: options.WithoutToken = False,
    base: options.BaseCheckout = "",
    head: options.HeadCheckout = "",
    build: options.BuildCommand = "",
) -> None:
    """Run a study and report its verdicts. A study is a program: read a stranger's by `plan --effects` first."""
    from fairtrial.cli.running import run as command
    from fairtrial.cli.running.farming import Farm
    from fairtrial.compare.checkouts import named

    command.run(
        study,
        size=size,
        overrides=overrides or [],
        output=output,
        resume=resume,
        against_itself=aa,
        drawn=not plain,
        page=page,
        farm=Farm(places=places, cluster=cluster, insecure=insecure_farm),
        checkouts=named(base, head, build=build),
    )


@app.command()
def demo(
    size: options.Size = None,
    overrides: options.Overrides = None,
    output: options.Output = Path("runs"),
    *,
    plain: options.Plain = False,
) -> None:
    """Run the demonstration study. Compares two journal modes of SQLite under TPC-C; needs no server and no root."""
    from fairtrial.cli.running import run as command
    from fairtrial.studies.ready import bundled

    (study,) = [file for file in bundled() if file.stem == "sqlite-wal"]
    command.run(study, size=size, overrides=overrides or [], output=output, resume=False, drawn=not plain)


@app.command()
def plan(
    study: options.StudyFile,
    size: options.Size = None,
    overrides: options.Overrides = None,
    *,
    aa: options.AgainstItself = False,
    places: options.PlannedHosts = None,
    hosts: options.HostCount = None,
    effects: options.OnlyEffects = False,
) -> None:
    """Show what a study would run. Prints every trial, what differs between the arms, and the expected duration."""
    if effects:
        from fairtrial.cli.running import effects as listing

        beside = {"--aa": aa, "--places": places is not None, "--hosts": hosts is not None}
        named = [option for option, given in beside.items() if given]
        listing.show(study, size=size, overrides=overrides or [], beside=named)
        return
    from fairtrial.cli.running import plan as command

    command.plan(study, size=size, overrides=overrides or [], against_itself=aa, places=places, hosts=hosts)


@app.command()
def power(
    study: options.StudyFile,
    size: options.Size = None,
    overrides: options.Overrides = None,
    *,
    pilot: options.PilotRun = None,
    effect: options.Effect = None,
) -> None:
    """Estimate how many blocks a study needs. Prints the smallest effects that it can detect, and how long it takes."""
    if pilot is not None:
        guarding.begin()
    from fairtrial.cli.running import power as command

    command.power(study, size=size, overrides=overrides or [], pilot=pilot, effect=effect)


@app.command()
def bisect(
    study: options.StudyFile,
    over: options.Over = "",
    from_: options.FromLevel = "",
    to: options.ToLevel = "",
    commits: options.Commits = "",
    build: options.BuildCommand = "",
    repository: options.Repository = None,
    at: options.AtLevels = None,
    blocks: options.SearchBlocks = None,
    size: options.Size = None,
    overrides: options.Overrides = None,
    output: options.Output = Path("runs"),
    *,
    resume: options.ResumeBisection = False,
    dry_run: options.DryRun = False,
) -> None:
    """Find which change of an ordered history moved a metric. Confirms it in a paired study of its own."""
    from fairtrial.bisect.versions import Request
    from fairtrial.cli.running import bisect as command

    request = Request(
        study=study,
        over=over,
        first=from_,
        last=to,
        commits=commits,
        build=build,
        repository=repository,
        at=at or [],
        size=size,
        overrides=overrides or [],
        blocks=blocks,
    )
    command.bisect(request, output=output, resume=resume, dry_run=dry_run)


@app.command()
def tune(
    study: options.StudyFile,
    size: options.Size = None,
    overrides: options.Overrides = None,
    budget: options.Budget = None,
    seed: options.SearchSeed = None,
    output: options.Output = Path("runs"),
    *,
    resume: options.ResumeTuning = False,
    dry_run: options.DryRun = False,
    plain: options.Plain = False,
    json: options.AsJson = False,
) -> None:
    """Search better values of options, and confirm the best against the default. Only the confirmation is a claim."""
    from fairtrial.cli.running import tune as command

    command.tune(
        study,
        command.TuneOptions(
            size=size,
            overrides=overrides or [],
            budget=budget,
            seed=seed,
            output=output,
            resume=resume,
            dry_run=dry_run,
            as_json=json,
            drawn=not plain,
        ),
    )


@app.command()
def screen(
    directory: options.RunDirectory,
    confirm: options.Confirmed = 3,
    blocks: options.ConfirmingBlocks = 20,
    save: options.ConfirmingStudy = None,
    output: options.Output = Path("runs"),
    *,
    plain: options.Plain = False,
) -> None:
    """Compare the strongest options of a screening in pairs. Writes the study, runs it and reports its verdicts."""
    from fairtrial.cli.running import screen as command

    command.screen(directory, confirm=confirm, blocks=blocks, save=save, output=output, drawn=not plain)


@app.command()
def report(directory: options.RunDirectory, arm: options.Factor = None) -> None:
    """Analyse a run again and rewrite its report."""
    guarding.begin()
    from fairtrial.cli.reading import report as command

    command.report(directory, arm=arm)


@app.command()
def serve(
    runs: options.Runs = Path("runs"),
    port: options.Port = 0,
    host_names: options.HostNames = None,
    *,
    no_browser: options.NoBrowser = False,
    control: options.MayControl = False,
    studies: options.StudiesFolder = None,
) -> None:
    """Show runs in a browser, live while they go on. Listens on loopback until it is interrupted."""
    guarding.begin()
    from fairtrial.cli.running import serve as command

    permissions = command.Permissions(control=control, studies=studies)
    command.serve(runs, port=port, names=host_names or [], browser=not no_browser, permissions=permissions)


@app.command()
def watch(directory: options.RunDirectory) -> None:
    """Show a run in the terminal while it goes on. Ends with the exit code of the run."""
    guarding.begin()
    from fairtrial.cli.running import watch as command

    command.watch(directory)


@app.command()
def verify(directory: options.RunDirectory) -> None:
    """Check a record's hashes and recompute every reported number. Reads the record's raw files."""
    guarding.begin()
    from fairtrial.cli.reading import verify as command

    command.verify(directory)


@app.command()
def analyse(
    data: options.Data,
    value: options.ValueColumns = None,
    arm: options.ArmColumn = None,
    by: options.ConditionColumns = None,
    block: options.BlockColumn = None,
    cluster: options.ClusterColumn = None,
    curve: options.CurveColumn = None,
    time: options.TimeColumn = None,
    baseline: options.BaselineLevel = None,
    better: options.Directions = None,
    margin: options.Margin = "2%",
    confidence: options.Confidence = "95%",
    names: options.NamePattern = None,
    format_: options.Format = "",
    decimal: options.Decimal = ".",
    thousands: options.Thousands = "",
    *,
    json: options.WholeAnalysis = False,
) -> None:
    """Analyse data that another tool measured. Prints comparisons, verdicts and doubts as in a report."""
    from fairtrial.cli.reading import analyse as command

    request = command.AnalyseOptions(
        values=value or [],
        arm=arm,
        by=by or [],
        block=block,
        cluster=cluster,
        curve=curve,
        time=time,
        baseline=baseline,
        better=better or [],
        margin=margin,
        confidence=confidence,
        decimal=decimal,
        thousands=thousands,
    )
    command.analyse(data, request, names=names, format_name=format_, as_json=json)


@app.command()
def compare(
    commands: options.Commands,
    name: options.Names = None,
    blocks: options.MostBlocks = 20,
    stop: options.Stop = "sequential",
    min_blocks: options.MinBlocks = None,
    precision: options.Precision = None,
    warm_up: options.WarmUps = 1,
    runs: options.RunsPerTrial = None,
    prepare: options.Prepare = None,
    setup: options.Setup = None,
    metric: options.Judged = None,
    unit: options.Unit = "",
    better: options.Direction = None,
    exit_code: options.ExitCodes = None,
    timeout: options.Timeout = "1h",
    margin: options.Margin = "2%",
    confidence: options.Confidence = "95%",
    seed: options.Seed = 1,
    save: options.Save = None,
    export: options.Export = None,
    fail_if: options.FailIf = None,
    output: options.KeptRecord = None,
    base: options.BaseCheckout = "",
    head: options.HeadCheckout = "",
    build: options.BuildCommand = "",
    *,
    shell: options.Shell = False,
) -> None:
    """Compare commands by whole runs in randomised blocks. Prints a verdict and the kernel's accounting."""
    from fairtrial.cli import compare as command
    from fairtrial.compare.checkouts import named

    checkouts = named(base, head, build=build)
    request = command.compare_options(
        commands,
        checkouts=checkouts,
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
    results = command.CompareOutputs(save=save, export=export or [], fail_if=fail_if or [], output=output, runs=runs)
    command.compare(request, results, checkouts)


@app.command()
def doctor(place: options.Place = "local", *, json: options.AsJson = False) -> None:
    """Check whether a place is fit to measure on. Prints which studies can run there, and how to fix the rest."""
    from fairtrial.cli import doctor as command

    command.doctor(place, as_json=json)


@app.command()
def schema() -> None:
    """Print the JSON Schema of study files, for editors."""
    from fairtrial.cli import schema as command

    command.schema()


@studies_app.callback(invoke_without_command=True)
def _studies(context: typer.Context) -> None:
    """List the ready studies and the publications that they re-run."""
    if context.invoked_subcommand is None:
        from fairtrial.cli import studies as command

        command.listing()


@studies_app.command("published")
def _published(name: options.Publication) -> None:
    """Recompute the tables of a publication from its raw data. Prints where the two disagree."""
    from fairtrial.cli import studies as command

    command.published(name)


@studies_app.command("beside")
def _beside(directory: options.RunDirectory) -> None:
    """Show a re-run in the tables of its publication. Prints where the two agree."""
    guarding.begin()
    from fairtrial.cli.reading import beside as command

    command.beside(directory)


@servers_app.callback(invoke_without_command=True)
def _servers(context: typer.Context) -> None:
    """List the servers that a study can name by version."""
    if context.invoked_subcommand is None:
        from fairtrial.cli import servers as command

        command.listing()


@servers_app.command("fetch")
def _fetch(system: options.ServerKind, version: options.ServerVersion) -> None:
    """Download and unpack a server. A run does so by itself if it needs to."""
    from fairtrial.cli import servers as command

    command.fetch(system, version)


@servers_app.command("check")
def _check(system: options.ServerKind, version: options.OptionalVersion = None) -> None:
    """Start a server once, privately, on this machine. Prints its version and hash."""
    from fairtrial.cli import servers as command

    command.check(system, version)


@app.command()
def history(
    paths: options.HistoryPaths,
    metrics: options.Metrics = None,
    by: options.By = "cell,arm",
    acknowledged: options.Acknowledged = None,
    alpha: options.Alpha = "5%",
    alarm_alpha: options.AlarmAlpha = "1%",
    margin: options.LargestChange = None,
    *,
    as_json: options.AsJson = False,
) -> None:
    """Show metrics over many runs. Prints where their level changed, and whether the newest run stands out."""
    from fairtrial.cli.reading import history as command

    levels = command.levels(alpha=alpha, alarm_alpha=alarm_alpha, margin=margin)
    command.history(paths, metrics=metrics or [], by=by, acknowledged=acknowledged, levels=levels, as_json=as_json)


@app.command()
def gate(
    paths: options.HistoryPaths,
    baseline: options.BaselineRun = None,
    metrics: options.Metrics = None,
    by: options.By = "cell,arm",
    acknowledged: options.Acknowledged = None,
    alpha: options.Alpha = "5%",
    alarm_alpha: options.AlarmAlpha = "1%",
    margin: options.LargestChange = None,
    junit: options.JunitFile = None,
    markdown: options.MarkdownFile = None,
    accepted: options.AcceptedFile = None,
    *,
    arms: options.WithinRun = False,
    as_json: options.AsJson = False,
) -> None:
    """Fail if the newest run is worse than its history, a baseline run or its own baseline arm."""
    guarding.begin()
    from fairtrial.cli.reading import gate as command
    from fairtrial.cli.reading.history import levels

    command.gate(
        paths,
        baseline=baseline,
        arms=arms,
        accepted=accepted,
        metrics=metrics or [],
        by=by,
        acknowledged=acknowledged,
        levels=levels(alpha=alpha, alarm_alpha=alarm_alpha, margin=margin),
        outputs=command.Outputs(junit=junit, markdown=markdown, as_json=as_json),
    )


@app.command()
def audit(claims: options.ClaimsFile, data: options.DataFile = None, *, as_json: options.AsJson = False) -> None:
    """Check published claims against raw data. Each is confirmed, contradicted, not decided or not checkable."""
    from fairtrial.cli.reading import audit as command

    command.audit(claims, data=data, as_json=as_json)
