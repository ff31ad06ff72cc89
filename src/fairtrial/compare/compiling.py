"""Commands and options → a study, as the text of a study file. Pure."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from ruamel.yaml import YAML

from fairtrial.errors import InputError, Problem
from fairtrial.record.events import KEPT_VARIABLE
from fairtrial.study.catalogue import TRIAL_COLUMNS, Better

STUDY: Final = "compare"
ARM: Final = "command"
ELAPSED: Final = "elapsed_s"
ACCOUNTING: Final = (
    "user_s",
    "system_s",
    "max_resident_bytes",
    "minor_faults",
    "major_faults",
    "voluntary_switches",
    "involuntary_switches",
)
LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"  # more commands than these need names
ONLY_SHELLS_KNOW: Final = {"|", "||", "&", "&&", ";", ">", ">>", "<", "<<", "2>&1"}
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,79}")
_LINE_WIDTH: Final = 4096  # commands are never folded


@dataclass(frozen=True)
class CompareOptions:
    """What is compared, and how.

    Attributes:
        commands: command lines; the first is the baseline.
        names: of the commands, one each; empty: letters.
        shell: whether `sh -c` runs them.
        directory: where they run.
        directories: where each of them runs; empty: all of them in `directory`.
        metric: where in the output a number stands that is judged instead of wall time: a regular expression with one
            group, or a path into JSON.
        stopping: `trials` of the study, beyond seed, margin and confidence.
    """

    commands: tuple[str, ...]
    names: tuple[str, ...] = ()
    shell: bool = False
    directory: str = "/"
    directories: tuple[str, ...] = ()
    prepare: str | None = None
    setup: str | None = None
    warm_ups: int = 1
    exit_codes: tuple[int, ...] = (0,)
    timeout_s: float = 3600.0
    metric: str | None = None
    unit: str = ""
    better: Better | None = None
    margin: str = "2%"
    confidence: str = "95%"
    seed: int = 1
    stopping: Mapping[str, object] = field(default_factory=dict)

    @property
    def labels(self) -> tuple[str, ...]:
        """A name per command."""
        return self.names or tuple(LETTERS[: len(self.commands)])

    @property
    def by_label(self) -> dict[str, str]:
        """Commands by their names."""
        return dict(zip(self.labels, self.commands, strict=True))

    def directory_of(self, label: str) -> str:
        """Where a command runs."""
        return dict(zip(self.labels, self.directories, strict=True))[label] if self.directories else self.directory

    def run(self, command: str) -> str:
        """A command line as a study says it: without a shell, or with one by name."""
        return shlex.join(["sh", "-c", command]) if self.shell else command


def check(options: CompareOptions) -> None:
    """Raises what is wrong with the commands before anything is started.

    Raises:
        InputError: with every mistake.
    """
    count = len(options.commands)
    problems = []
    if count < 2:  # noqa: PLR2004 - a comparison takes two
        problems.append(Problem(f"expected at least two commands, found {count}", "compare"))
    if options.names and len(options.names) != count:
        problems.append(Problem(f"expected {count} names, one per command, found {len(options.names)}", "--name"))
    elif not options.names and count > len(LETTERS):
        message = f"expected at most {len(LETTERS)} commands without names, found {count}"
        problems.append(Problem(message, "compare", suggestion="give --name"))
    problems += [
        Problem(f"`{name}` is not a valid name: expected letters, digits, dots, dashes, underscores", "--name")
        for name in options.names
        if not _NAME.fullmatch(name)
    ]
    if len(set(options.labels)) != len(options.labels):
        problems.append(Problem("two commands have the same name", "--name"))
    named = [("compare", command) for command in options.commands]
    named += [(option, text) for option, text in (("--prepare", options.prepare), ("--setup", options.setup)) if text]
    problems += [problem for option, text in named for problem in _line(option, text, shell=options.shell)]
    if problems:
        raise InputError(problems, hint="see `fairtrial compare --help`")


def _line(option: str, text: str, *, shell: bool) -> list[Problem]:
    """What is wrong with one command line; a redirection that no shell sees would become an argument."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        return [Problem(f"`{text}` is not a command line: {error}", option)]
    if not words:
        return [Problem("the command line is empty", option)]
    foreign = [] if shell else [word for word in words if word in ONLY_SHELLS_KNOW and word in _as_typed(text)]
    if foreign:
        message = f"`{text}`: `{foreign[0]}` needs a shell, and none is started"
        return [Problem(message, option, suggestion="did you mean --shell?")]
    return []


def _as_typed(text: str) -> list[str]:
    """Words of a command line with their quotes: in quotes, a bar is an argument like any other."""
    with contextlib.suppress(ValueError):  # backslashes before quotes, which this mode of shlex does not read
        return shlex.split(text, posix=False)
    return shlex.split(text)


def study_text(options: CompareOptions, *, runs: int) -> str:
    """The study file.

    Args:
        options: checked.
        runs: of each command in each trial.
    """
    metric = metrics(options)
    workload = {
        "directory": options.directory,
        "timeout": f"{options.timeout_s:g}s",
        "exit_codes": list(options.exit_codes),
        "warm_ups": options.warm_ups,
        "runs": runs,
        **({"prepare": options.run(options.prepare)} if options.prepare else {}),
        **({"metrics": metric} if metric else {}),
    }
    arms = {
        label: {
            "workload": {
                "command": {
                    "run": options.run(command),
                    "label": label,
                    **({"directory": options.directory_of(label)} if options.directories else {}),
                }
            }
        }
        for label, command in options.by_label.items()
    }
    secondary = [*([ELAPSED] if metric else []), *ACCOUNTING]
    study = {
        "study": STUDY,
        "question": "Which is faster: "
        + ", ".join(f"{label} `{each}`" for label, each in options.by_label.items())
        + "?",
        "workload": {"command": workload},
        "factors": {ARM: arms},
        "arm": ARM,
        "trials": {
            "seed": options.seed,
            "margin": options.margin,
            "confidence": options.confidence,
            **options.stopping,
        },
        "metrics": {"primary": list(metric) or [ELAPSED], "secondary": secondary},
    }
    return _comment(options) + _yaml(study)


def saved(text: str, *, variables: str) -> str:
    """The study file with what to run it with: its commands have had variables that `fairtrial run` keeps from them.

    Args:
        text: of `study_text`.
        variables: `FAIRTRIAL_ENVIRONMENT`.
    """
    return f"# Measured with {KEPT_VARIABLE}={shlex.quote(variables)}: set it for `fairtrial run`, too.\n{text}"


def judged(options: CompareOptions) -> str:
    """The primary metric's name."""
    return next(iter(metrics(options)), ELAPSED)


def metrics(options: CompareOptions) -> dict[str, dict[str, str]]:
    """The one metric from the output, by a name made from where it stands."""
    if options.metric is None:
        return {}
    by_group = "(" in options.metric
    words = re.findall(r"[A-Za-z]\w*", re.sub(r"\\.|\(.*?\)", " ", options.metric) if by_group else options.metric)
    name = re.sub(r"\W+", "_", "_".join(words), flags=re.ASCII).lower().strip("_") or "metric"
    name = f"metric_{name}" if name in (*TRIAL_COLUMNS, ARM, ELAPSED, *ACCOUNTING) else name
    source = {"regex": options.metric} if by_group else {"json_path": options.metric}
    label = " ".join(words) or "metric"
    return {name: {**source, "unit": options.unit, "better": options.better or "lower", "label": label}}


def _comment(options: CompareOptions) -> str:
    """What a study has no word for: it is done once, by hand, before the study runs."""
    if not options.setup:
        return ""
    lines = "\n".join(f"#   {line}" for line in options.run(options.setup).splitlines())
    return f"# Run once before this study:\n{lines}\n"


def _yaml(study: Mapping[str, object]) -> str:
    yaml = YAML()
    yaml.width = _LINE_WIDTH
    yaml.default_flow_style = False
    stream = io.StringIO()
    yaml.dump(study, stream)
    return stream.getvalue()
