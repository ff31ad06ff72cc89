"""The options of the commands in `app`, with their help. Importing this must stay cheap, too."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

# Of all commands.

SshConfigurations = Annotated[
    list[Path] | None,
    typer.Option(
        "--ssh-config",
        metavar="FILE",
        exists=True,
        dir_okay=False,
        help="SSH configuration that places of a study may name; it can run commands on this machine. Put it before "
        "the command.",
        show_default=False,
    ),
]

# Of several commands.

StudyFile = Annotated[Path, typer.Argument(metavar="STUDY", help="Study file (YAML).", show_default=False)]
RunDirectory = Annotated[Path, typer.Argument(metavar="RUN", help="Directory of a run.", show_default=False)]
Size = Annotated[
    str | None,
    typer.Option("--size", metavar="NAME", help="One of the study's sizes (default: the study as written)."),
]
Overrides = Annotated[
    list[str] | None, typer.Option("--set", metavar="PATH=VALUE", help="Replace one value of the study.")
]
AgainstItself = Annotated[
    bool,
    typer.Option("--aa", help="Compare the baseline with itself (an A/A run) to measure the place's noise floor."),
]
Margin = Annotated[str, typer.Option("--margin", help="Equivalence margin; a difference within it does not matter.")]
Confidence = Annotated[str, typer.Option("--confidence", help="Confidence level of all intervals.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]

# Of `run`.

Output = Annotated[Path, typer.Option("--output", metavar="DIR", help="Directory in which runs are kept.")]
Resume = Annotated[
    bool,
    typer.Option(
        "--resume", help="Continue the newest unfinished run of the study, or the run whose directory STUDY is."
    ),
]
Plain = Annotated[
    bool,
    typer.Option("--plain", help="Skip the report's page and figures to save seconds; `fairtrial report` adds them."),
]

HostsFile = Annotated[
    Path | None,
    typer.Option("--places", exists=True, dir_okay=False, help="Run blocks on the hosts of this file, side by side."),
]
PlannedHosts = Annotated[
    Path | None,
    typer.Option(
        "--places", exists=True, dir_okay=False, help="Show how long the study takes on the hosts of this file."
    ),
]
HostCount = Annotated[int | None, typer.Option(min=1, help="Show how long the study takes on so many hosts.")]
OnlyEffects = Annotated[
    bool,
    typer.Option(
        "--effects",
        help="List instead what a run does: programs and their users, settings with their undo, files, addresses, "
        "downloads. Runs nothing; STUDY may be a run's directory.",
    ),
]
ClusterAddress = Annotated[
    str | None,
    typer.Option("--farm", metavar="ADDRESS", help="Run blocks on nodes of a Ray cluster, side by side."),
]
WithoutToken = Annotated[bool, typer.Option("--insecure-farm", help="Accept a Ray cluster that asks for no token.")]
WithPage = Annotated[
    bool, typer.Option("--page", help="Show the run in a browser while it goes on; prints the page's address.")
]

# Of `run` and `compare`.

BaseCheckout = Annotated[
    str,
    typer.Option(
        "--base", metavar="CHECKOUT", help="Checkout to compare with: a directory, or a commit of the repository here."
    ),
]
HeadCheckout = Annotated[str, typer.Option("--head", metavar="CHECKOUT", help="Checkout to judge, beside --base.")]
BuildCommand = Annotated[
    str, typer.Option("--build", metavar="COMMAND", help="Shell command that builds a checkout, run in it.")
]

# Of `screen`.

Confirmed = Annotated[int, typer.Option("--confirm", metavar="N", min=1, help="Number of options to compare.")]
ConfirmingBlocks = Annotated[
    int, typer.Option("--blocks", metavar="N", min=1, help="Blocks of the study that compares them.")
]
ConfirmingStudy = Annotated[
    Path | None,
    typer.Option(
        "--save",
        metavar="FILE",
        help="File to write the study to (default: the study's name with `-confirm.yaml`, here).",
        show_default=False,
    ),
]

# Of `serve`.

Runs = Annotated[
    Path, typer.Argument(metavar="RUNS", help="Directory of runs, or of one run (default: runs).", show_default=False)
]
Port = Annotated[
    int, typer.Option("--port", metavar="N", help="Port to listen on (default: a free one).", min=0, max=65535)
]
HostNames = Annotated[
    list[str] | None,
    typer.Option("--host-name", metavar="NAME", help="Further host name that the page answers to; repeatable."),
]
NoBrowser = Annotated[bool, typer.Option("--no-browser", help="Do not open a browser.")]
MayControl = Annotated[
    bool, typer.Option("--control", help="Allow the page to pause, resume, stop and extend runs, and to start studies.")
]
StudiesFolder = Annotated[
    Path | None,
    typer.Option(
        "--studies",
        metavar="DIR",
        help="Folder of studies (*.yaml) that the page may start; needs --control (default: none).",
        show_default=False,
    ),
]

# Of `power`, `report` and `doctor`.

PilotRun = Annotated[
    Path | None,
    typer.Option("--from", metavar="RUN", help="Pilot run to estimate variance from (default: this place's A/A run)."),
]
Effect = Annotated[
    str | None,
    typer.Option(
        "--effect", metavar="SHARE", help="Effect to detect, such as 3%; prints the number of blocks it needs."
    ),
]
Factor = Annotated[
    str | None,
    typer.Option(
        "--arm", help="Factor whose levels are compared (default: the study's `arm`, then each of `also_compare`)."
    ),
]
Place = Annotated[
    str,
    typer.Argument(
        metavar="PLACE",
        help="`local`, `ssh://user@host`, a mapping as in a study, or a study file, to check all its places.",
    ),
]

# Of `tune`.

Budget = Annotated[
    int | None,
    typer.Option("--budget", metavar="N", help="Trials of the search (default: the study's `tune.budget`)."),
]
SearchSeed = Annotated[
    int | None, typer.Option("--seed", min=0, help="Seed of the search (default: the study's `trials.seed`).")
]
ResumeTuning = Annotated[
    bool,
    typer.Option(
        "--resume", help="Continue the newest unfinished tuning of the study, or the one whose directory STUDY is."
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print what would run, and for how long.")]

# Of `bisect`.

Over = Annotated[
    str, typer.Option("--over", metavar="FACTOR", help="Factor to search: one of the study's, or `server`.")
]
FromLevel = Annotated[
    str, typer.Option("--from", metavar="LEVEL", help="Level before the change; every block measures it, too.")
]
ToLevel = Annotated[str, typer.Option("--to", metavar="LEVEL", help="Level behind the change.")]
Commits = Annotated[str, typer.Option("--commits", metavar="GOOD..BAD", help="Commits to search, along first parents.")]
Repository = Annotated[
    Path | None,
    typer.Option("--repository", metavar="DIR", help="Git repository of the commits (default: this directory)."),
]
AtLevels = Annotated[
    list[str] | None,
    typer.Option("--at", metavar="FACTOR=LEVEL", help="Level of another factor (default: its first); repeatable."),
]
SearchBlocks = Annotated[
    int | None,
    typer.Option(
        "--blocks", metavar="N", min=8, help="Largest number of blocks before the confirmation (default: 400)."
    ),
]
ResumeBisection = Annotated[
    bool,
    typer.Option(
        "--resume", help="Continue the newest unfinished bisection of the study, or the one whose directory STUDY is."
    ),
]

# Of `analyse`.

Data = Annotated[
    list[str],
    typer.Argument(
        metavar="DATA...",
        help="CSV or Parquet files, or outputs of benchmark tools: paths, directories or patterns, each optionally as "
        "`LABEL=PATH`; `-` reads standard input.",
        show_default=False,
    ),
]
ValueColumns = Annotated[
    list[str] | None,
    typer.Option("--value", metavar="COLUMN", help="Column of a metric to judge; the first one is primary."),
]
ArmColumn = Annotated[
    str | None,
    typer.Option("--arm", metavar="COLUMN", help="Column whose levels are compared (default: the labels)."),
]
ConditionColumns = Annotated[
    list[str] | None,
    typer.Option("--by", metavar="COLUMN,…", help="Columns of conditions; each combination is judged separately."),
]
BlockColumn = Annotated[
    str | None,
    typer.Option("--block", metavar="COLUMN", help="Column of blocks, to pair trials (default: independent trials)."),
]
ClusterColumn = Annotated[
    str | None,
    typer.Option(
        "--cluster", metavar="COLUMN", help="Column of runs; a run's rows in an arm and cell become one trial."
    ),
]
CurveColumn = Annotated[
    str | None,
    typer.Option(
        "--curve",
        metavar="COLUMN[=MODEL]",
        help="Column of numbers to fit a curve of each arm over, with the model usl, linear or loess (default: usl).",
    ),
]
TimeColumn = Annotated[
    str | None,
    typer.Option("--time", metavar="COLUMN", help="Column that orders trials in time (default: the order of rows)."),
]
BaselineLevel = Annotated[
    str | None,
    typer.Option(
        "--baseline",
        metavar="LEVEL",
        help="Level of the baseline (default: that of the first row; required if arms are interleaved).",
    ),
]
Directions = Annotated[
    list[str] | None,
    typer.Option(
        "--better",
        metavar="[NAME=]higher|lower",
        help="Better direction, of the metric NAME; without a name, give one for all metrics, or one per --value.",
    ),
]
NamePattern = Annotated[
    str | None,
    typer.Option(
        "--names", metavar="PATTERN", help="Pattern of file names; its fields become columns: `{kernel}-{block}.json`."
    ),
]
Format = Annotated[
    str,
    typer.Option(
        "--format",
        metavar="NAME",
        help="Format of the files: `table` or a tool, such as `hyperfine`, `go` or `jmh` (default: told by content).",
        show_default=False,
    ),
]
Decimal = Annotated[
    str, typer.Option("--decimal", metavar="SIGN", help="Decimal separator of numbers in a table: a point or a comma.")
]
Thousands = Annotated[
    str,
    typer.Option(
        "--thousands",
        metavar="SIGN",
        help="Separator of thousands in a table: a comma, point, space or apostrophe (default: none).",
        show_default=False,
    ),
]
WholeAnalysis = Annotated[bool, typer.Option("--json", help="Print the whole analysis as JSON.")]

# Of `compare`.

Commands = Annotated[
    list[str],
    typer.Argument(
        metavar="COMMAND...",
        help="Two or more commands, each quoted; the first is the baseline. With --base and --head, one command.",
        show_default=False,
    ),
]
Names = Annotated[list[str] | None, typer.Option("--name", help="Label of a command; give one per command, in order.")]
MostBlocks = Annotated[
    int, typer.Option("--blocks", min=2, help="Maximum number of blocks; each holds one trial of every command.")
]
Stop = Annotated[
    str,
    typer.Option(
        "--stop",
        metavar="RULE",
        help="Stopping rule: sequential (once decided), fixed (after all blocks), anytime (once decided, by "
        "always-valid intervals) or precision (once the interval is narrow enough).",
    ),
]
MinBlocks = Annotated[
    int | None,
    typer.Option(
        "--min-blocks",
        min=3,
        help="Blocks before the first decision (default: 4 for two commands, 3 for more, 8 with --stop precision).",
    ),
]
Precision = Annotated[
    str | None,
    typer.Option("--precision", metavar="SHARE", help="Half-width of the interval at which --stop precision stops."),
]
WarmUps = Annotated[int, typer.Option("--warm-up", min=0, help="Unmeasured runs at the start of each trial.")]
RunsPerTrial = Annotated[
    int | None,
    typer.Option(
        "--runs",
        min=1,
        help="Measured runs in each trial (default: as many as take 0.1 s, or 1 with --prepare). "
        "With --metric it is always 1.",
    ),
]
Prepare = Annotated[str | None, typer.Option("--prepare", metavar="COMMAND", help="Command to run before each run.")]
Setup = Annotated[
    str | None, typer.Option("--setup", metavar="COMMAND", help="Command to run once, before everything else.")
]
Judged = Annotated[
    str | None,
    typer.Option(
        "--metric",
        metavar="WHERE",
        help="Number in the output to judge: a regular expression with one group, or a JSON path (default: wall time).",
    ),
]
Unit = Annotated[str, typer.Option("--unit", help="Unit of --metric.")]
Direction = Annotated[
    str | None,
    typer.Option("--better", metavar="higher|lower", help="Better direction of --metric (default: lower)."),
]
ExitCodes = Annotated[list[int] | None, typer.Option("--exit-code", help="Exit code that means success (default: 0).")]
Timeout = Annotated[str, typer.Option("--timeout", help="Time limit of a run; exceeding it invalidates the trial.")]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Seed of the random order.")]
Save = Annotated[
    Path | None, typer.Option("--save", metavar="STUDY", help="Write the comparison to a study file, for re-runs.")
]
Export = Annotated[
    list[str] | None, typer.Option("--export", metavar="FILE", help="Write results to a .csv, .json or .md file.")
]
FailIf = Annotated[
    list[str] | None,
    typer.Option("--fail-if", metavar="VERDICT", help="Exit with status 1 if any command gets this verdict."),
]
KeptRecord = Annotated[
    Path | None,
    typer.Option(
        "--output", metavar="DIR", help="Directory in which the record and its report are kept (default: not kept)."
    ),
]
Shell = Annotated[bool, typer.Option("--shell", help="Run the commands with `sh -c`.")]

# Of `studies` and `servers`.

Publication = Annotated[
    str, typer.Argument(help="Name of a publication, as `fairtrial studies` lists it.", show_default=False)
]
ServerKind = Annotated[
    str, typer.Argument(metavar="SYSTEM", help="Kind of server: mariadb, mysql or postgres.", show_default=False)
]
ServerVersion = Annotated[
    str, typer.Argument(metavar="VERSION", help="Version, as `fairtrial servers` lists it.", show_default=False)
]
OptionalVersion = Annotated[
    str | None,
    typer.Argument(metavar="[VERSION]", help="Version, as `fairtrial servers` lists it (default: the server on PATH)."),
]

# Of `history`, `gate` and `audit`.

HistoryPaths = Annotated[
    list[Path], typer.Argument(metavar="RUNS", help="Runs, directories of runs, or CSV files.", show_default=False)
]
Metrics = Annotated[
    list[str] | None, typer.Option("--metric", metavar="NAME", help="Metric to examine (default: all with a role).")
]
By = Annotated[
    str, typer.Option("--by", metavar="NAMES", help="What distinguishes series: cell, arm, names of factors.")
]
Acknowledged = Annotated[
    Path | None,
    typer.Option(
        "--acknowledged", metavar="FILE", help="File of known changes (default: acknowledged.yaml next to the runs)."
    ),
]
Alpha = Annotated[
    str, typer.Option("--alpha", metavar="SHARE", help="Probability that a series without a change shows one.")
]
AlarmAlpha = Annotated[
    str, typer.Option("--alarm-alpha", metavar="SHARE", help="Probability of any false alarm on newest runs.")
]
LargestChange = Annotated[
    str | None,
    typer.Option(
        "--margin", metavar="SHARE", help="Largest change that does not matter (default: the study's margin)."
    ),
]
BaselineRun = Annotated[
    Path | None, typer.Option("--baseline", metavar="RUN", help="Run to compare with (default: the history).")
]
WithinRun = Annotated[
    bool, typer.Option("--arms", help="Compare the arms of the newest run with that run's own baseline arm.")
]
AcceptedFile = Annotated[
    Path | None,
    typer.Option(
        "--accepted",
        metavar="FILE",
        help="Ledger of accepted regressions (default: fairtrial-accepted.yaml here, if there is one).",
    ),
]
JunitFile = Annotated[Path | None, typer.Option("--junit", metavar="FILE", help="Write results as JUnit XML.")]
MarkdownFile = Annotated[Path | None, typer.Option("--markdown", metavar="FILE", help="Write results as Markdown.")]
ClaimsFile = Annotated[
    Path, typer.Argument(metavar="CLAIMS", help="File of published claims (YAML).", show_default=False)
]
DataFile = Annotated[
    Path | None,
    typer.Option("--data", metavar="CSV", help="Raw data, one row per trial (default: the files named in CLAIMS)."),
]
