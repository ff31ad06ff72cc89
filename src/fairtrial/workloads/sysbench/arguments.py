"""sysbench's command line, and the file that says where the server is: passwords stay out of lists of processes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any, Final

from fairtrial.errors import PlaceError
from fairtrial.protocol.endpoints import Server
from fairtrial.workloads import tool
from fairtrial.workloads.sysbench.parameters import SysbenchParameters
from fairtrial.workloads.tool import Life

SEEDS: Final = 2**31 - 1  # sysbench reads an `int`, and takes 0 for the time of day
BULK_INSERT: Final = "bulk_insert"
DRIVERS: Final = {"mysql": "mysql", "postgres": "pgsql"}
PLAIN: Final = re.compile(r"[^\s\"'#][^\s]*")  # what sysbench reads from a file as it stands there
HINT: Final = "use one without line breaks, and with one kind of quotes at most"
_KEYS: Final = {
    "socket": "socket",
    "socket_directory": "host",
    **{name: name for name in ("host", "port", "user", "password")},
}


def seed_of(trial_seed: int, part: str) -> int:
    """A seed for a part of a trial, as sysbench takes it: from 1."""
    return tool.seed_of(trial_seed, part, bits=64) % SEEDS + 1


def connection(endpoint: Server) -> str:
    """A configuration file for sysbench.

    Raises:
        PlaceError: a value that no such file can hold.
    """
    prefix = DRIVERS[endpoint.kind]
    known = endpoint.model_dump(exclude_none=True)
    reached = {key: known[name] for name, key in _KEYS.items() if known.get(name)}
    options = {"db-driver": prefix, **{f"{prefix}-{key}": value for key, value in reached.items()}}
    whole = {**options, f"{prefix}-db": endpoint.database}
    return "".join(f"{key}={_quoted(key, str(value))}\n" for key, value in whole.items())


def _quoted(key: str, value: str) -> str:
    """A value that sysbench would cut at a blank, or take quotes from, in quotes that it does not have itself."""
    if PLAIN.fullmatch(value):
        return value
    quote = next((each for each in "\"'" if each not in value), None)
    if quote is None or "\n" in value:
        shown = "this password" if key.endswith("password") else f"`{value}`"
        raise PlaceError(f"sysbench does not accept {shown} as `{key}`", hint=HINT)
    return f"{quote}{value}{quote}"


def prepare(parameters: SysbenchParameters, *, script: str, configuration: PurePosixPath) -> list[str]:
    """The command line that fills a database."""
    # `bulk_insert` has a table for each thread of the run, and `prepare` makes one for each of its own.
    threads = parameters.threads if parameters.script == BULK_INSERT else parameters.load_threads  # it takes no seed
    options = _options({**parameters.data, "threads": threads})
    return [f"--config-file={configuration}", script, *options, "prepare"]


def run(parameters: SysbenchParameters, life: Life, *, script: str, configuration: PurePosixPath) -> list[str]:
    """The command line that drives."""
    own = {
        "threads": parameters.threads,
        "time": int(life.duration_s or 0),
        "events": life.count or 0,
        "rand-seed": life.seed,
        "report-interval": int(parameters.interval),
        "histogram": "on",
    }
    options = {**parameters.data, **parameters.options, **own}
    return [f"--config-file={configuration}", script, *_options(options), "run"]


def _options(options: Mapping[str, Any]) -> list[str]:
    return [f"--{name}={value}" for name, value in options.items()]
