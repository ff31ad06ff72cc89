"""sysbench's command line, and the file that says where the server is: passwords stay out of lists of processes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any, Final

from fairtrial.protocol.endpoints import Server
from fairtrial.workloads import tool
from fairtrial.workloads.sysbench.parameters import SysbenchParameters
from fairtrial.workloads.tool import Life

SEEDS: Final = 2**31 - 1  # sysbench reads an `int`, and takes 0 for the time of day
BULK_INSERT: Final = "bulk_insert"
DRIVERS: Final = {"mysql": "mysql", "postgres": "pgsql"}
_KEYS: Final = {
    "socket": "socket",
    "socket_directory": "host",
    **{name: name for name in ("host", "port", "user", "password")},
}


def seed_of(trial_seed: int, part: str) -> int:
    """A seed for a part of a trial, as sysbench takes it: from 1."""
    return tool.seed_of(trial_seed, part, bits=64) % SEEDS + 1


def connection(endpoint: Server) -> str:
    """A configuration file for sysbench."""
    prefix = DRIVERS[endpoint.kind]
    known = endpoint.model_dump(exclude_none=True)
    reached = {key: known[name] for name, key in _KEYS.items() if known.get(name)}
    options = {"db-driver": prefix, **{f"{prefix}-{key}": value for key, value in reached.items()}}
    return "".join(f"{key}={value}\n" for key, value in {**options, f"{prefix}-db": endpoint.database}.items())


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
