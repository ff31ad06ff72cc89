"""Outputs of benchmark tools: one file per format, tables last, as what no tool has written.

Owns what a trial is in each, how its arms are named and what it loses. It must not know what is asked of them.
"""

from collections.abc import Mapping
from typing import Final

from fairtrial.imports import tables
from fairtrial.imports.outputs import (
    criterion,
    fio,
    go_benchmarks,
    google_benchmark,
    hammerdb,
    hyperfine,
    jmh,
    k6,
    pgbench,
    phoronix,
    pytest_benchmark,
    redis_benchmark,
    sysbench,
    wrk,
)
from fairtrial.imports.reader import Reader

# In the order in which they are asked whether a file is theirs.
READERS: Final[Mapping[str, Reader]] = {
    module.READER.name: module.READER
    for module in (
        fio,
        hyperfine,
        google_benchmark,
        pytest_benchmark,
        jmh,
        criterion,
        k6,
        phoronix,
        sysbench,
        wrk,
        redis_benchmark,
        pgbench,
        hammerdb,
        go_benchmarks,
        tables,
    )
}
