"""Manual pages and shell completions, from the command line itself.

`python -m reference.manual DIRECTORY` writes them below it as an installation has them below its prefix.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from typer._completion_shared import get_completion_script

from fairtrial import __version__
from fairtrial.cli import command
from reference.commands import NOTES, placeholder, walk

SHELLS: Mapping[str, str] = {
    "bash": "share/bash-completion/completions/fairtrial",
    "zsh": "share/zsh/site-functions/_fairtrial",
    "fish": "share/fish/vendor_completions.d/fairtrial.fish",
}
# zsh runs the file as the function itself when the first word is completed.
AUTOLOADED = '\nif [[ $zsh_eval_context[-1] == loadautofunc ]]; then\n  _fairtrial_completion "$@"\nfi'
EXIT_STATUS = re.compile(r"^\| (\d+) \| (.*) \|$", re.MULTILINE)  # a row of the reference page


def write(directory: Path) -> None:
    """Writes every page and every shell's completion."""
    files = {f"share/man/man1/{name}.1": page for name, page in pages()}
    for shell, path in SHELLS.items():
        script = get_completion_script(prog_name="fairtrial", complete_var="_FAIRTRIAL_COMPLETE", shell=shell)
        files[path] = script + (AUTOLOADED if shell == "zsh" else "") + "\n"
    for path, text in files.items():
        (directory / path).parent.mkdir(parents=True, exist_ok=True)
        (directory / path).write_text(text, encoding="utf-8")


def pages() -> Iterator[tuple[str, str]]:
    """Name and source of every page: one for each command, and one for the program."""
    commands = dict(walk(command()))
    for path, each in commands.items():
        yield "-".join(("fairtrial", *path)), "\n".join(_page(path, each, commands)) + "\n"


def _page(path: tuple[str, ...], command: Any, commands: Mapping[tuple[str, ...], Any]) -> Iterator[str]:
    name = "-".join(("fairtrial", *path))
    yield f'.TH {_text(name.upper())} 1 "" "fairtrial {__version__}" "fairtrial manual"'
    summary, _, rest = command.help.partition(". ")
    yield from (".SH NAME", rf"{_text(name)} \- {_text(summary.rstrip('.'))}")
    yield from (".SH SYNOPSIS", *_synopsis(path, command))
    notes = [text for text in (rest, NOTES.get(path[-1], "") if path else "") if text]
    if notes:
        yield ".SH DESCRIPTION"
        yield "\n.PP\n".join(_text(_plain(text)) for text in notes)
    yield from _parameters(command.params)
    below = [each for each in commands if each[:-1] == path and each]
    if below:
        yield ".SH COMMANDS"
        for each in below:
            yield from (".TP", rf".BR {_text('-'.join(('fairtrial', *each)))} (1)", _text(_plain(commands[each].help)))
    yield ".SH EXIT STATUS"
    for code, meaning in EXIT_STATUS.findall(
        (Path(__file__).parent / "pages" / "commands.md.jinja").read_text(encoding="utf-8")
    ):
        yield from (".TP", f".B {code}", _text(_plain(meaning)))
    if path:
        yield from (".SH SEE ALSO", rf".BR {_text('-'.join(('fairtrial', *path[:-1])))} (1)")


def _synopsis(path: tuple[str, ...], command: Any) -> Iterator[str]:
    yield f".B {_text(' '.join(('fairtrial', *path)))}"
    for each in command.params:
        if each.param_type_name == "argument":
            name = rf"\fI{_text(placeholder(each))}\fR"
            yield name if each.required else f"[{name}]"
    yield r"[\fIOPTIONS\fR]"
    if hasattr(command, "commands"):
        yield r"[\fICOMMAND\fR]"


def _parameters(parameters: list[Any]) -> Iterator[str]:
    if parameters:
        yield ".SH OPTIONS"
    for each in parameters:
        yield ".TP"
        if each.param_type_name == "argument":
            yield rf"\fI{_text(placeholder(each))}\fR"
        else:
            value = "" if each.is_flag else rf" \fI{_text(placeholder(each))}\fR"
            yield ", ".join(rf"\fB{_text(spelling)}\fR{value}" for spelling in each.opts)
        shown = "" if each.default in (None, False, [], ()) or getattr(each, "is_flag", False) else each.default
        yield _text(_plain(each.help)) + (f" Default: {_text(str(shown))}." if shown else "")


def _plain(markdown: str) -> str:
    """Without links to pages of the site, and without marks."""
    return re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", markdown).replace("`", "").replace(" More.", "")


def _text(words: str) -> str:
    """As roff takes it literally."""
    escaped = words.replace("\\", r"\e").replace("-", r"\-")
    return re.sub(r"^([.'])", r"\\&\1", escaped, flags=re.MULTILINE)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
