"""TPC-C's peers for `tpcc.py` and `tpcc_fidelity.py`: how each loads and drives, and what it says it has done.

Each is run as its own documentation says, from a path that the user gives. Peers that speak TCP only get a port on the
loopback interface; the others use the socket.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Protocol
from xml.sax.saxutils import escape

from load import COUNTS_AGREE, timed
from peer_site import PASSWORD, USER, Site, counters
from private_mariadb import sql
from ratios import Run, of_benchbase, of_go_tpc, of_hammerdb, of_sysbench

STANDARD = ("warehouse", "district", "customer", "history", "orders", "order_line", "stock", "item", "new_order")
MIX = {"NewOrder": 45, "Payment": 43, "OrderStatus": 4, "Delivery": 4, "StockLevel": 4}
MINUTE_S = 60.0


class Peer(Protocol):
    """Processor seconds are user + system of the whole client process, its start included, as everyone's.

    `tables`: what the standard's tables are called, where otherwise. `tcp`: it knows no sockets.
    """

    name: ClassVar[str]
    database: ClassVar[str]
    procedures: ClassVar[bool] = False
    tcp: ClassVar[bool] = False
    tables: ClassVar[Mapping[str, str]] = {}

    def load(self, site: Site, users: int) -> float:
        """Fills a new database; gives its processor seconds."""

    def drive(self, site: Site, users: int) -> Run:
        """Gives what the peer itself says it has done, rolled back new orders included."""


@dataclass(frozen=True)
class SysbenchTpcc(Peer):
    """Percona-Lab/sysbench-tpcc, by the path of a checkout."""

    path: Path
    name: ClassVar[str] = "sysbench-tpcc"
    database: ClassVar[str] = "peer_sysbench"
    tables: ClassVar[Mapping[str, str]] = {name: f"{name}1" for name in STANDARD} | {"new_order": "new_orders1"}

    def load(self, site: Site, users: int) -> float:
        sql(site.socket, f"CREATE DATABASE {self.database}")
        return timed(self._command(site, users, "prepare"), directory=self.path)[1]

    def drive(self, site: Site, users: int) -> Run:
        said, cpu_s = timed(self._command(site, users, f"--time={site.seconds:.0f}", "run"), directory=self.path)
        return of_sysbench(said, cpu_s, unit="transactions")

    def _command(self, site: Site, users: int, *rest: str) -> list[str]:
        scale = ["--tables=1", f"--scale={site.warehouses}", "--db-driver=mysql", f"--threads={users}"]
        server = [f"--mysql-socket={site.socket}", f"--mysql-user={USER}", f"--mysql-password={PASSWORD}"]
        return ["sysbench", "tpcc.lua", *server, f"--mysql-db={self.database}", *scale, *rest]


@dataclass(frozen=True)
class GoTpc(Peer):
    """pingcap/go-tpc, by the path of its program; TCP only."""

    path: Path
    name: ClassVar[str] = "go-tpc"
    database: ClassVar[str] = "peer_go_tpc"
    tcp: ClassVar[bool] = True

    def load(self, site: Site, users: int) -> float:
        sql(site.socket, f"CREATE DATABASE {self.database}")
        return timed([*self._command(site, users, "prepare"), "--no-check"])[1]

    def drive(self, site: Site, users: int) -> Run:
        said, cpu_s = timed([*self._command(site, users, "run"), "--time", f"{site.seconds:.0f}s"])
        return of_go_tpc(said, cpu_s)

    def _command(self, site: Site, users: int, what: str) -> list[str]:
        server = ["--host", "127.0.0.1", "--port", str(site.port), "--user", USER, "--password", PASSWORD]
        scale = ["--db", self.database, "--warehouses", str(site.warehouses), "--threads", str(users)]
        return [str(self.path), "tpcc", what, *server, *scale]


@dataclass(frozen=True)
class BenchBase(Peer):
    """cmu-db/benchbase, by the path of `benchbase.jar` of its mysql profile; TCP only."""

    path: Path
    name: ClassVar[str] = "BenchBase"
    database: ClassVar[str] = "peer_benchbase"
    tcp: ClassVar[bool] = True
    tables: ClassVar[Mapping[str, str]] = {"orders": "oorder"}

    def load(self, site: Site, users: int) -> float:
        sql(site.socket, f"CREATE DATABASE {self.database}")
        return self._run(site, users, "--create=true", "--load=true", "--execute=false")[1]

    def drive(self, site: Site, users: int) -> Run:
        return of_benchbase(*self._run(site, users, "--create=false", "--load=false", "--execute=true"))

    def _run(self, site: Site, users: int, *phases: str) -> tuple[str, float]:
        asked = site.directory / "benchbase.xml"
        asked.write_text(self._configuration(site, users))
        results = ["-d", str(site.directory / "benchbase")]
        return timed(
            ["java", "-jar", str(self.path), "-b", "tpcc", "-c", str(asked), *results, *phases],
            directory=self.path.parent,
        )

    def _configuration(self, site: Site, users: int) -> str:
        """Its sample's, but for the isolation: the server's default, as every other client has."""
        url = f"jdbc:mysql://127.0.0.1:{site.port}/{self.database}?rewriteBatchedStatements=true&sslMode=DISABLED"
        values = {
            "type": "MYSQL",
            "driver": "com.mysql.cj.jdbc.Driver",
            "url": f"{url}&allowPublicKeyRetrieval=true",
            "username": USER,
            "password": PASSWORD,
            "isolation": "TRANSACTION_REPEATABLE_READ",
            "batchsize": 128,
            "scalefactor": site.warehouses,
            "terminals": users,
        }
        weights = ",".join(map(str, MIX.values()))
        work = f"<time>{site.seconds:.0f}</time><rate>unlimited</rate><weights>{weights}</weights>"
        types = "".join(f"<transactiontype><name>{name}</name></transactiontype>" for name in MIX)
        settings = "".join(f"<{key}>{escape(str(value))}</{key}>" for key, value in values.items())
        works = f"<works><work>{work}</work></works><transactiontypes>{types}</transactiontypes>"
        return f"<parameters>{settings}{works}</parameters>"


@dataclass(frozen=True)
class HammerDb(Peer):
    """HammerDB, by the path of its directory; stored procedures.

    Its kind `mysql`: Debian packages that client library for Tcl and not the one of its kind `maria`.
    """

    path: Path
    name: ClassVar[str] = "HammerDB"
    database: ClassVar[str] = "peer_hammerdb"
    procedures: ClassVar[bool] = True

    def load(self, site: Site, users: int) -> float:
        return self._run(
            site, [f"count_ware {site.warehouses}", f"num_vu {min(users, site.warehouses)}"], ["buildschema"]
        )[1]

    def drive(self, site: Site, users: int) -> Run:
        """Takes whole minutes, at least one."""
        minutes = max(1, round(site.seconds / MINUTE_S))
        settings = ["driver timed", "rampup 0", f"duration {minutes}", "allwarehouse true"]
        before = counters(site.socket)
        said, cpu_s = self._run(site, settings, ["loadscript", f"vuset vu {users}", "vucreate", "vurun", "vudestroy"])
        run = of_hammerdb(said, cpu_s, minutes=minutes)
        # Its users notice the end late, up to 1,024 transactions each, so its own count falls short of its work.
        served = sum(counters(site.socket).values()) - sum(before.values())
        return Run(units=served, wall_s=run.wall_s * served / run.units, cpu_s=cpu_s)

    def _run(self, site: Site, settings: Sequence[str], commands: Sequence[str]) -> tuple[str, float]:
        everyone = [f"user {USER}", f"pass {PASSWORD}", f"dbase {self.database}", *settings]
        script = site.directory / "hammerdb.tcl"
        lines = ["dbset db mysql", "dbset bm TPC-C", f"diset connection mysql_socket {site.socket}"]
        script.write_text("\n".join([*lines, *(f"diset tpcc mysql_{each}" for each in everyone), *commands, ""]))
        own = f"TMP={site.directory}"
        return timed(["env", own, "./hammerdbcli", "tcl", "auto", str(script)], directory=self.path)


KINDS: dict[str, type[SysbenchTpcc | GoTpc | BenchBase | HammerDb]] = {
    "sysbench_tpcc": SysbenchTpcc,
    "go_tpc": GoTpc,
    "benchbase": BenchBase,
    "hammerdb": HammerDb,
}


def add_options(parser: argparse.ArgumentParser) -> None:
    for option, kind in KINDS.items():
        parser.add_argument(f"--{option.replace('_', '-')}", type=Path, metavar="PATH", help=f"of {kind.name}")


def given(options: argparse.Namespace) -> list[Peer]:
    """The peers whose paths are given; says which are skipped."""
    peers: list[Peer] = []
    for option, kind in KINDS.items():
        path: Path | None = getattr(options, option)
        if path:
            peers.append(kind(path.resolve()))
        else:
            print(f"{kind.name} skipped: --{option.replace('_', '-')} names no path")
    return peers


def driven(peer: Peer, site: Site, users: int) -> Run:
    """Drives a peer whose transactions the server counts too."""
    before = counters(site.socket)
    run = peer.drive(site, users)
    served = sum(counters(site.socket).values()) - sum(before.values())
    if abs(served / run.units - 1) > COUNTS_AGREE:
        print(f"  WARNING: {peer.name} says {run.units} transactions, the server {served} commits and rollbacks")
    return run
