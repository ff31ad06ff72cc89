"""docs/reference/commands.md: every command and option from the command line itself; exit codes and variables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from fairtrial.cli import command
from fairtrial.wire import Limits
from reference.markdown import render, table

NOTES = {
    "run": "Prints the record's path, progress, and at the end the verdicts, the doubts and the report's path. "
    "On Ctrl-C and SIGTERM it undoes settings and keeps finished trials. After any end, SIGKILL included, `--resume` "
    "continues with the next trial of the plan that the run began with. It takes the newest unfinished run of the "
    "study in `--output`, with the given size and values if any; STUDY may also be that run's directory. `--aa` runs "
    "the study's baseline against itself in every block. The report then gives the place's noise, and the place keeps "
    "it for later reports. The page of `--page` is a process of its own, on the processors that trials leave free if "
    "they leave any. It goes on after the run, however that ends, until nobody has looked for 10 minutes. The record "
    "states its processor time.",
    "plan": "Estimates the duration before any measurement. Reports all mistakes in the study and its sizes at "
    "once, each with file, line and column. If this machine keeps an A/A run of the study, the plan states the "
    "smallest effect that the planned blocks can detect. With `--effects` it lists instead what a run does: every "
    "command line with its user and place, every setting with its undo, files, addresses, downloads with their "
    "checksums, the machine's page cache, and what a boot leaves on a host. It starts nothing for that, not even a "
    "program that prints its version, and reaches no host.",
    "power": "Needs a pilot of at least three whole blocks: the study's A/A run that its place keeps, or a run named "
    "by `--from`. No place keeps that of a duet, and a guest or a container is not booted to ask for it: name the run. "
    "Plans for power 0.8 with the upper bound of the pilot's deviation, at the level that the family leaves, and of "
    "that what `stop` leaves to the last look. Too few blocks to claim anything have no figure. With `stop: precision` "
    "the power is that of a cell that runs all blocks; one that stops before has less.",
    "report": "Reads only the record, never the study file, and writes the record's `report/` again; with `--arm`, "
    "`report/by-ARM/` below it.",
    "serve": "Prints an address with a token, which lets a browser in. With `--control`, the page has buttons "
    "that pause, resume, stop and extend a run between its trials; the journal keeps every act, refused ones with the "
    "reason. Only a run with `stop: anytime` is extended. `--studies` lets the page start the `*.yaml` files right in "
    "that folder, each after showing its plan; no other command can be started.",
    "watch": "Shows the state of the page: on a terminal as a picture with the ends of the running trial's logs, "
    "elsewhere as a line for each event and doubt. Changes nothing. Exits with 0 after a finished run (whether its "
    "report could be written is not visible), with the code of the journal's last entry after an interrupted run, and "
    "with 3 if the run's process ended without an entry, as a killed one does. A run that is resumed within 3 seconds "
    "is watched further. Ctrl-C ends the watching only, with 130.",
    "verify": "Compares the hashes of all files first, and each trial's validity with the journal's. If they agree, it "
    "asks whether a finished run has run all its trials and taken every look, and computes every trial's metrics and "
    "the report's numbers again.",
    "analyse": "A table has a header and a row per trial; the separator is a comma, semicolon, tab or bar. Without "
    "`--block`, trials count as independent. With `--cluster`, rows that are samples of one run, such as seconds, "
    "become one trial. An empty cell or `NA` is a missing value and is counted. Outputs of tools are told by "
    "their content, or named with `--format`; [a table](../guides/comparing.md#outputs-of-tools) says what a trial is "
    "in each. They have columns `label`, `number` (of the file among those of its label) and `file`, and need neither "
    "`--value`, nor `--arm` if they have labels. [More](../guides/comparing.md#imported-data).",
    "compare": "Runs every command once before it measures anything. Progress goes to standard error, results to "
    "standard output. Without `--output`, only the files of `--save` and `--export` remain. "
    "[More](../guides/comparing.md#two-commands).",
    "history": "Points come from finished runs. [More](../guides/auditing.md#histories).",
    "gate": "Exits with 1 if a check fails or no check is possible, and with 5 if none fails and one is undecided. "
    "With `--baseline` and `--arms`, RUNS is a run, or a directory for its newest run; `--by`, `--acknowledged` and "
    "`--alarm-alpha` are for histories, and `--alpha` and `--margin` are not for `--arms`, which takes the verdicts of "
    "the run's report. [More](../guides/continuous-integration.md).",
    "beside": "Each field gets one word: `agree`, `disagree`, a difference `only published` or `only re-run`, or "
    "`neither`. A field without a test gets another word: `not run`; `no verdict` if the run is unfinished, a "
    "condition was missed or there are too few blocks for any claim; `no evidence` if a clock's metric was measured "
    "under emulation.",
    "doctor": "First restores what a killed run has left changed, then checks for one second. Exits with 1 if "
    "something is unfit or could not be restored, and with 3 if a place cannot be opened. A place that boots is booted "
    "once. [More](../guides/places.md#doctor).",
    "audit": "Exits with 1 if a claim is contradicted. [More](../guides/auditing.md#audits).",
    "purge": "Ends at Ctrl-C (exit code 130), SIGTERM or after `--seconds` (0), and restores both variables first. The "
    "user needs PROCESS to poll, and SUPER (on MySQL 8 SYSTEM_VARIABLES_ADMIN) to set. "
    "[More](../guides/settings.md#purge-governor).",
    "servers": "Without a subcommand, lists the builds that `version` under `system` finds. "
    "[More](../guides/settings.md#server-versions).",
    "studies": "Without a subcommand, lists the ready studies and the publications whose data are included.",
}


def page() -> str:
    """The page as Markdown."""
    root = command()
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
        (f"`{placeholder(each)}`", each.help, "required" if each.required else f"`{each.default}`")
        for each in arguments
    ]
    rows += [(_spelled(option), option.help, _default(option)) for option in options]
    words = [
        "fairtrial",
        *path,
        *(placeholder(argument) if argument.required else f"[{placeholder(argument)}]" for argument in arguments),
        *(["[OPTIONS]"] if options else []),
    ]
    return {
        "usage": " ".join(words),
        "help": command.help,
        "note": NOTES.get(path[-1], ""),
        "table": table(("argument", "meaning", "default"), rows) if rows else "",
    }


def placeholder(parameter: Any) -> str:
    """What stands for a value: `STUDY`."""
    return str(parameter.metavar or parameter.name).upper()


def _spelled(option: Any) -> str:
    metavar = "" if option.is_flag else f" {placeholder(option)}"
    return f"`{'`, `'.join(option.opts)}{metavar}`" + (", may be repeated" if option.multiple else "")


def _default(option: Any) -> str:
    return "" if option.is_flag or option.default in (None, [], ()) else f"`{option.default}`"
