"""docs/reference/commands.md: every command and option from the command line itself; exit codes and variables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

import typer.main

from fairtrial.cli.app import app
from fairtrial.wire import Limits
from reference.markdown import render, table

_NOTES = {
    "run": "Prints where the record is, progress, and at the end the verdicts, the doubts and the report's path. "
    "Ctrl-C and SIGTERM end it in order: settings are undone, finished trials stay. After any end, SIGKILL included, "
    "`--resume` goes on with the next trial of the plan that the run began with. It takes the newest unfinished run of "
    "the study in `--output`, of the size and values given if any are; STUDY may also be that run's directory. "
    "`--aa` runs the study's baseline against itself, every block: the report gives the place's noise, which is kept "
    "there for later reports.",
    "plan": "The expected duration is estimated before any measurement. All mistakes in the study are reported at "
    "once, each with file, line and column. Where this machine keeps an A/A run of the study, the plan states the "
    "smallest effect that the planned blocks can detect.",
    "power": "Needs a pilot of at least three whole blocks: the A/A of the study that its place keeps, or `--from` a "
    "run of it. Plans with the upper bound of the pilot's deviation, for power 0.8, at the level that the family "
    "leaves.",
    "report": "Reads the record alone, never the study file, and writes the record's `report/` anew; with `--arm`, "
    "`report/by-ARM/` below it.",
    "verify": "Hashes first; if they agree, every trial's metrics and the report's numbers are computed again.",
    "analyse": "A table has a header and a row per trial; the separator is a comma, semicolon, tab or bar. Without "
    "`--block` trials are taken as independent. With `--cluster`, rows that are samples of one run, such as seconds, "
    "become one trial. An empty cell or `NA` is a missing value and is counted. Outputs of "
    "fio and sysbench are a row per file, or per file and job of fio's; they have columns `label`, `number` (of the "
    "file among those of its label), `file` and `job`, and need no `--value` and, with labels, no `--arm`. "
    "[More](../guides/comparing.md#imported-data).",
    "compare": "Every command is tried out once before anything is measured. Progress goes to standard error, results "
    "to standard output. Without `--output` nothing stays behind but what `--save` and `--export` write. "
    "[More](../guides/comparing.md#two-commands).",
    "history": "Points come from finished runs. [More](../guides/auditing.md#histories).",
    "gate": "Exits with 1 if a check fails or none can be made. With `--baseline`, RUNS is a run, or a directory for "
    "its newest run; `--by`, `--acknowledged` and `--alarm-alpha` are for histories.",
    "beside": "Each field gets one word: `agree`, `disagree`, a difference `only published` or `only re-run`, or "
    "`neither`. A field that was not tested gets none of these, but `not run`; `no verdict`, where the run is "
    "unfinished, a condition was missed or blocks are too few for any claim; or `no evidence`, where a clock's metric "
    "was measured under emulation.",
    "doctor": "Exits with 1 if something is unfit. Looks for a second and leaves nothing behind; a place that boots is "
    "booted once. [More](../guides/places.md#doctor).",
    "audit": "Exits with 1 if a claim is contradicted. [More](../guides/auditing.md#audits).",
    "purge": "Ends at Ctrl-C (exit code 130), SIGTERM or after `--seconds` (0), and restores both variables first. The "
    "user needs PROCESS to look and SUPER to set, on MySQL 8 SYSTEM_VARIABLES_ADMIN. "
    "[More](../guides/settings.md#purge-governor).",
    "servers": "Without a subcommand, lists the builds that `version` under `system` finds. "
    "[More](../guides/servers.md).",
    "studies": "Without a subcommand, lists the ready studies and the publications whose data are included.",
}


def page() -> str:
    """The page as Markdown."""
    root = typer.main.get_command(app)
    commands = [_shown(path, command) for path, command in walk(root) if path]
    return render("commands.md", commands=commands, limits=asdict(Limits()))


def walk(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command with the words that call it, the program itself first with none."""
    yield path, command
    for name, below in getattr(command, "commands", {}).items():
        yield from walk(below, (*path, name))


def _shown(path: tuple[str, ...], command: Any) -> Mapping[str, str]:
    arguments = [parameter for parameter in command.params if parameter.param_type_name == "argument"]
    options = [parameter for parameter in command.params if parameter.param_type_name == "option"]
    rows = [
        (f"`{_placeholder(each)}`", each.help, "required" if each.required else f"`{each.default}`")
        for each in arguments
    ]
    rows += [(_spelled(option), option.help, _default(option)) for option in options]
    words = [
        "fairtrial",
        *path,
        *(_placeholder(argument) if argument.required else f"[{_placeholder(argument)}]" for argument in arguments),
        *(["[OPTIONS]"] if options else []),
    ]
    return {
        "usage": " ".join(words),
        "help": command.help,
        "note": _NOTES.get(path[-1], ""),
        "table": table(("argument", "meaning", "default"), rows) if rows else "",
    }


def _placeholder(parameter: Any) -> str:
    """What stands for a value: `STUDY`."""
    return str(parameter.metavar or parameter.name).upper()


def _spelled(option: Any) -> str:
    metavar = "" if option.is_flag else f" {_placeholder(option)}"
    return f"`{'`, `'.join(option.opts)}{metavar}`" + (", may be repeated" if option.multiple else "")


def _default(option: Any) -> str:
    return "" if option.is_flag or option.default in (None, [], ()) else f"`{option.default}`"
