"""What a model cannot see of a fio job: options that the run sets itself, and options that fio does not know.

fio is asked itself (`--parse-only`) where it is installed beside the control plane; its place asks again.
"""

from __future__ import annotations

import functools
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from typing import Final

from fairtrial.study.tree.nodes import Branch
from fairtrial.study.tree.problems import Problems
from fairtrial.workloads.fio import job_file
from fairtrial.workloads.fio.parameters import FioParameters, reserved, verifies
from fairtrial.workloads.prepared_files import SHAPES, skewed
from fairtrial.workloads.text_files import refuse_kept
from fairtrial.workloads.tool import Life

PARSE_S: Final = 10.0
SAID: Final = 300  # characters of fio's words in a message
NOISE: Final = re.compile(
    r"fio: (failed parsing \S+|job \S+ dropped)\s*|^\s*(?:Bad option|bad option)\s*", re.MULTILINE
)
READS: Final = ("read", "randread")
FIELDS: Final = {"ioengine": "engine", "random_distribution": "distribution", "bs": "block_size", "rw": "rw"}


def check(parameters: FioParameters, branch: Branch, problems: Problems) -> None:
    """Notes every option that cannot be."""
    refuse_kept(parameters.options, branch.below("options"), problems, program="fio", kept=reserved)
    if parameters.rw in READS and "verify" in parameters.options and verifies(parameters.options["verify"]):
        options = branch.below("options")
        problems.add(
            "fio's `verify` finds none of its headers in prepared files, so reads cannot succeed",
            options.node.where("verify"),
            field=options.field("verify"),
            suggestion="leave it out, or set `rw` to one that writes: fio verifies what it has written",
        )
    if not parameters.is_random and parameters.distribution != "random":
        problems.add(
            f"fio draws no block with `rw: {parameters.rw}`, so `distribution` has no effect",
            branch.node.where("distribution"),
            field=branch.field("distribution"),
            suggestion="leave it out, or set `rw` to one that begins with `rand`",
        )
    elif skewed(parameters.distribution) is None and parameters.distribution.split(":")[0] in SHAPES:
        problems.add(
            f"fio's distribution `{parameters.distribution}` does not have a valid parameter",
            branch.node.where("distribution"),
            field=branch.field("distribution"),
            suggestion="write `zipf:0.8`, `pareto:0.2` or `normal:40`, with a centre from 0 to 1 after another colon",
        )
    elif not any(reserved(option) is not None for option in parameters.options):
        _ask_fio(parameters, branch, problems)


def _ask_fio(parameters: FioParameters, branch: Branch, problems: Problems) -> None:
    """Asks of each option alone which of them fio refuses, once it has refused the whole."""
    refused = _said_against(_text(parameters, parameters.options))
    if refused is None:
        return
    alone = _said_against(_text(parameters, {}))
    if alone is not None:
        key = next((key for option, key in FIELDS.items() if f"parsing {option}=" in alone), "")
        at, field = (branch.node.where(key), branch.field(key)) if key else (branch.node.at, branch.path)
        problems.add(f"fio rejects the job: {words(alone.splitlines())}", at, field=field)
        return
    options = branch.below("options")
    each = {name: _said_against(_text(parameters, {name: value})) for name, value in parameters.options.items()}
    for name, said in each.items():
        if said is not None:
            message = f"fio rejects `{name}`: {words(said.splitlines())}"
            problems.add(message, options.node.where(name), field=options.field(name))
    if not any(each.values()):  # each is fine, and together they are not
        problems.add(f"fio rejects these options: {words(refused.splitlines())}", options.node.at, field=options.path)


def _text(parameters: FioParameters, options: Mapping[str, str]) -> str:
    changed = parameters.model_copy(update={"options": options})
    life = Life(parameters.duration, parameters.accesses, seed=1)
    return job_file.text(changed, life, directory="/", chosen=parameters.distribution)


@functools.cache
def _said_against(text: str) -> str | None:
    """What fio says against a job; None if nothing, or if there is no fio here to ask."""
    fio = shutil.which("fio")
    if fio is None:
        return None
    try:
        done = subprocess.run(
            [fio, "--parse-only", "-"], input=text, capture_output=True, text=True, timeout=PARSE_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return None if done.returncode == 0 else f"{done.stdout}\n{done.stderr}"


def words(lines: Iterable[str]) -> str:
    """What fio said, on one line, without those that only say that a job is dropped."""
    kept = [NOISE.sub("", line).strip() for line in lines]
    said = "; ".join(dict.fromkeys(line for line in kept if line))
    return said[:SAID] or "it exited with an error and printed nothing"
