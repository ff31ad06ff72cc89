"""Which program a command line runs: what is hashed of it, so that no run goes on with another build of it."""

from __future__ import annotations

import re
import shlex
from typing import Final

from fairtrial.wire.open_place import OpenPlace
from fairtrial.workloads.command.parameters import CommandParameters
from fairtrial.workloads.workload import Drive

OPTION: Final = "program_sha256"
# Of these the first word that is a file is the program, too; of others only words that name executable files, as data
# that a program is given may change with every run.
INTERPRETERS: Final = "awk|[bd]?ash|java|ksh|lua|node|perl|php|python|Rscript|ruby|sh|tclsh|zsh"
INTERPRETER: Final = re.compile(rf"(.*/)?({INTERPRETERS})[\d.]*")
# Prints a line for each, with its hash.
LOOK: Final = """\
cd -- "$1" && first=$2 script=$3 && shift 3 || exit 0
for word in "$(command -v -- "$first")" "$@"; do
    if [ ! -f "$word" ]; then continue; fi
    if [ ! -x "$word" ] && [ -z "$script" ]; then continue; fi
    if [ ! -x "$word" ]; then script=; fi
    sha256sum <"$word"
done
"""


def of(place: OpenPlace, parameters: CommandParameters, drive: Drive) -> dict[str, str]:
    """Hashes of the program and of scripts and programs that its command line names, as options of a trial.

    Empty if none is a file there.
    """
    first, *words = shlex.split(parameters.run)
    script = "1" if INTERPRETER.fullmatch(first) else ""
    directory = parameters.directory or str(drive.work_directory)
    found = place.execute(["sh", "-c", LOOK, "sh", directory, first, script, *words], environment=drive.environment)
    hashes = [line.split()[0] for line in found.stdout.splitlines() if line.strip()]
    return {OPTION: " ".join(hashes)} if found.code == 0 and hashes else {}
