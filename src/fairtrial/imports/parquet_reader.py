"""Reads the Parquet file on standard input, whatever becomes of it: a program of its own, as a file can end its reader.

Says on standard output what is wrong; nothing if the file can be read. Knows nothing of this package, as that
takes time.
"""

import io
import os
import resource
import sys

import polars as pl


def main(most_values: int) -> None:
    """Reads as `metrics.parquet` does, in no more memory than the machine has."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    content = io.BytesIO(sys.stdin.buffer.read())
    try:
        most = most_values // max(1, len(pl.read_parquet_schema(content)))
        pl.read_parquet(content, glob=False, n_rows=most + 1)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, MemoryError) as error:
        sys.stdout.write(str(error))


if __name__ == "__main__":
    main(int(sys.argv[1]))
