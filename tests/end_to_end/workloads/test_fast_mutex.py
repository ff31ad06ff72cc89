"""MySQL 5.5.34 as it was shipped: its own fast mutex is found, replaced, and the server works under load."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.lock_programs import preloading

from fairtrial.errors import FairtrialError
from fairtrial.locks import announcement_in, counted
from fairtrial.servers import install, known
from fairtrial.servers.installing import cache_directory

pytestmark = [pytest.mark.servers, pytest.mark.timeout(600)]

VERSION = "5.5.34"
START_S = 300.0
THREADS = 8


@pytest.fixture(scope="module")
def base() -> Path:
    """The unpacked server; skipped, and said so, where it is out of reach."""
    if shutil.which("sysbench") is None:
        pytest.skip("no sysbench: install it")
    build = known("mysql", VERSION)
    assert build is not None
    try:
        return install(build.source, ("mysqld",), cache=cache_directory()).base_directory
    except FairtrialError as error:
        if "cannot download" not in str(error):
            raise
        pytest.skip(f"MySQL {VERSION} cannot be had: {error}")


@pytest.fixture(scope="module")
def prepared(base: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = tmp_path_factory.mktemp("mysql")
    scripts = [base / "share" / f"mysql_system_tables{part}.sql" for part in ("", "_data")]
    text = ["CREATE DATABASE mysql;", "USE mysql;", *(each.read_text() for each in scripts), "CREATE DATABASE sbtest;"]
    argv = [*server(base, data), "--bootstrap", "--max-allowed-packet=16M"]
    subprocess.run(argv, input="\n".join(text) + "\n", text=True, check=True, capture_output=True)
    return data


def server(base: Path, data: Path) -> list[str | Path]:
    return [base / "bin" / "mysqld", "--no-defaults", "--user=root", f"--datadir={data}", f"--basedir={base}"]


@contextmanager
def started(base: Path, data: Path, **variables: str) -> Iterator[subprocess.Popen[bytes]]:
    socket, log = data / "own.sock", data / "server.log"
    argv = [*server(base, data), f"--socket={socket}", "--skip-networking", f"--pid-file={data}/own.pid"]
    with log.open("wb") as said:
        process = subprocess.Popen(argv, env=preloading(**variables), stdout=said, stderr=said)
    try:
        until = time.monotonic() + START_S
        while "ready for connections" not in log.read_text():  # the socket's file is there before it listens
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < until, log.read_text()
            time.sleep(0.1)
        yield process
    finally:
        process.terminate()
        assert process.wait(START_S) == 0, log.read_text()


def sysbench(data: Path, *words: str) -> str:
    options = ["--db-driver=mysql", f"--mysql-socket={data}/own.sock", "--mysql-user=root", "--db-ps-mode=disable"]
    argv = ["sysbench", "oltp_point_select", *options, "--table-size=1000", *words]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("variant", ["as-shipped", "published", "off", "local", "constant"])
def test_the_server_works_with_every_variant(base: Path, prepared: Path, tmp_path: Path, *, variant: str) -> None:
    variables = {"FAIRTRIAL_LOCK_FASTMUTEX": variant, "FAIRTRIAL_LOCK_COUNT": str(tmp_path / "counts")}
    with started(base, prepared, **variables) as process:
        found = announcement_in(Path(f"/proc/{process.pid}/maps").read_text())
        assert found is not None
        assert (found.fastmutex, found.refused, found.count) == (variant, None, True)
        sysbench(prepared, "prepare")
        assert "ignored errors:                      0" in sysbench(
            prepared, "--events=5000", "--time=0", f"--threads={THREADS}", "run"
        )
        sysbench(prepared, "cleanup")
    counts = counted(tmp_path / f"counts.{process.pid}")
    assert counts.sites[0].object == str(base / "bin" / "mysqld")
    # As shipped, all of the server's own calls come from inside one function: two call sites, a try and a lock.
    sites = sum(1 for site in counts.sites if site.counters["acquisitions"] > 0)
    assert sites > 50 or variant == "as-shipped"
    spun = sum(site.counters["spins"] for site in counts.sites)
    assert spun == 0 or variant not in ("as-shipped", "off")
