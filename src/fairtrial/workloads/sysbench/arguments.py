"""sysbench's command line, and the file that says where the server is: passwords stay out of lists of processes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Final

from fairtrial.workloads import program

SEEDS: Final = 2**31 - 1  # sysbench reads an `int`, and takes 0 for the time of day
BULK_INSERT: Final = "bulk_insert"
DRIVERS: Final = {"mysql": "mysql", "postgres": "pgsql"}
_KEYS: Final = {
    "mysql": {"socket": "socket", "host": "host", "port": "port", "user": "user", "password": "password"},
    "postgres": {"socket_directory": "host", "host": "host", "port": "port", "user": "user", "password": "password"},
}


@dataclass(frozen=True)
class Life:
    """One run of sysbench: how long, and with which seed.

    Attributes:
        duration_s, events: one of them is None.
    """

    duration_s: float | None
    events: int | None
    seed: int


def seed_of(trial_seed: int, part: str) -> int:
    """A seed for a part of a trial: `window`, `warm-up`."""
    return program.seed_of(trial_seed, part, bits=64) % SEEDS + 1


def connection(endpoint: Mapping[str, Any]) -> str:
    """A configuration file for sysbench."""
    prefix = DRIVERS[endpoint["kind"]]
    given = {
        f"{prefix}-{key}": endpoint[name]
        for name, key in _KEYS[endpoint["kind"]].items()
        if endpoint.get(name) not in (None, "")
    }
    options = {"db-driver": prefix, **given, f"{prefix}-db": endpoint["database"]}
    return "".join(f"{key}={value}\n" for key, value in options.items())


def prepare(parameters: Mapping[str, Any], *, script: str, configuration: PurePosixPath) -> list[str]:
    """The command line that fills a database."""
    own = {"threads": preparing_threads(parameters)}  # `prepare` of sysbench 1.0 takes no seed
    return [f"--config-file={configuration}", script, *_options({**parameters["data"], **own}), "prepare"]


def preparing_threads(parameters: Mapping[str, Any]) -> int:
    """`bulk_insert` has a table for each thread of the run, and `prepare` makes one for each of its own."""
    threads: int = parameters["threads" if parameters["script"] == BULK_INSERT else "load_threads"]
    return threads


def run(parameters: Mapping[str, Any], life: Life, *, script: str, configuration: PurePosixPath) -> list[str]:
    """The command line that drives."""
    own = {
        "threads": parameters["threads"],
        "time": int(life.duration_s or 0),
        "events": life.events or 0,
        "rand-seed": life.seed,
        "report-interval": int(parameters["interval"]),
        "histogram": "on",
    }
    asked = {**parameters["data"], **parameters["options"], **own}
    return [f"--config-file={configuration}", script, *_options(asked), "run"]


def _options(given: Mapping[str, Any]) -> list[str]:
    return [f"--{name}={value}" for name, value in given.items()]
