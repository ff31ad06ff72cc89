"""pgbench's command lines, and how it finds the server: a password is in a file, in no list of processes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any, Final

from fairtrial.protocol.endpoints import Server
from fairtrial.workloads.command.runs import libpq
from fairtrial.workloads.pgbench.parameters import PgbenchParameters, limit_text
from fairtrial.workloads.tool import Life

# Whatever the agent's own environment says of another server goes before what we say (libpq-envars).
WITHOUT: Final = ("PGSERVICE", "PGSERVICEFILE", "PGHOSTADDR", "PGPASSWORD", "PGBENCH_RANDOM_SEED")
NO_PROGRESS_S: Final = 1_000_000  # told an interval, pgbench measures the latencies that it reports; none is reached


def clean(argv: list[str]) -> list[str]:
    """A command line without what the agent's environment says of other servers."""
    return ["env", *(part for name in WITHOUT for part in ("-u", name)), *argv]


def environment(endpoint: Server, *, passwords: PurePosixPath) -> dict[str, str]:
    """Where the server is, as libpq reads it; messages in the language that is read here."""
    variables = libpq(endpoint)
    variables.pop("PGPASSWORD", None)
    return {**variables, "PGPASSFILE": str(passwords), "LC_ALL": "C"}


def password_file(endpoint: Server) -> str:
    """Libpq's password file, for whatever it connects to; empty without a password."""
    escaped = endpoint.password.replace("\\", "\\\\").replace(":", "\\:")
    return f"*:*:*:*:{escaped}\n" if escaped else ""


def initialize(parameters: PgbenchParameters) -> list[str]:
    """Options that make pgbench's own tables; the client generates them, the faster way (docs/guides/workloads.md)."""
    return ["--initialize", "--quiet", f"--scale={parameters.tables_scale}", *_options(parameters.data)]


def make(parameters: PgbenchParameters, *, file: PurePosixPath) -> list[str]:
    """Psql's options for SQL that makes data: the first error ends it."""
    scale = [] if parameters.tables_scale is None else [f"--set=scale={parameters.tables_scale}"]
    return ["--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", *scale, f"--file={file.name}"]


def run(parameters: PgbenchParameters, life: Life) -> list[str]:
    """The options that drive; files of scripts lie where pgbench works. A life's count is each client's."""
    length = f"--time={int(life.duration_s)}" if life.duration_s else f"--transactions={life.count}"
    own: dict[str, Any] = {
        "client": parameters.clients,
        "jobs": parameters.jobs,
        "protocol": parameters.protocol,
        "max-tries": parameters.max_tries,
        "random-seed": life.seed,
        "progress": NO_PROGRESS_S,
    }
    if parameters.rate is not None:
        own["rate"] = f"{parameters.rate:.12g}"
    if parameters.latency_limit is not None:
        own["latency-limit"] = limit_text(parameters.latency_limit)
    if parameters.tables_scale is not None and not parameters.uses_builtins:  # else pgbench counts its branches
        own["scale"] = parameters.tables_scale
    scripts = [
        f"--file={file.name}@{weight}" if file else f"--builtin={name}@{weight}"
        for name, weight, file in parameters.scripts
    ]
    logged = [] if life.log is None else ["--log", f"--log-prefix={life.log}"]
    defined = [f"--define={name}={value}" for name, value in parameters.define.items()]
    ours = ["--no-vacuum", "--failures-detailed", length, *_options(own)]
    return [*scripts, *defined, *_options(parameters.options), *ours, *logged]


def _options(options: Mapping[Any, Any]) -> list[str]:
    """`true` is an option without a value, `false` is none."""
    named = ((name, value) for name, value in options.items() if value is not False)
    return [f"--{name}" if value is True else f"--{name}={value}" for name, value in named]
