"""How faithful TPC-C's peers are, read from the tables and the statements that they leave behind.

    .venv/bin/python benches/tpcc_fidelity.py [--warehouses 10] [--seconds 60] [--users 4] [--go-tpc PATH] …

Each peer fills a database of a private MariaDB and drives it once; then SQL and the server's general log say what it
did. The twelve consistency conditions are the engine's own check, on views that bear the standard's names. A record of
our own drives has these figures in its fidelity report. What leaves no trace (a terminal's home) is not looked at.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import peer_site
import tpcc_peers
from load import timed
from nurand import effective, effective_nurand
from peer_site import Site
from private_mariadb import free_port, private_mariadb, sql
from tpcc_peers import Peer

# Clauses 2.4.2, 2.5.2 and 2.7.4: what the three writing transactions change in rows that are there.
UPDATED = {
    "warehouse": ["w_ytd"],
    "district": ["d_ytd", "d_next_o_id"],
    "customer": ["c_balance", "c_ytd_payment", "c_payment_cnt", "c_delivery_cnt", "c_data"],
    "stock": ["s_quantity", "s_ytd", "s_order_cnt", "s_remote_cnt"],
    "orders": ["o_carrier_id"],
    "order_line": ["ol_delivery_d"],
}
NAMES = "BAR|OUGHT|ABLE|PRI|PRES|ESE|ANTI|CALLY|ATION|EING"
LAST_NAME = re.compile(rf"['\"]((?:{NAMES}){{3}})['\"]")


@dataclass(frozen=True)
class Examined:
    """A peer's tables under the standard's names, in a schema of views."""

    socket: Path
    peer: Peer

    @property
    def views(self) -> str:
        return f"{self.peer.database}_views"

    def create(self) -> None:
        names = {name: self.peer.tables.get(name, name) for name in tpcc_peers.STANDARD}
        database = self.peer.database
        made = [f"CREATE VIEW {self.views}.{name} AS SELECT * FROM {database}.{its}" for name, its in names.items()]
        sql(self.socket, f"CREATE DATABASE {self.views}; {'; '.join(made)}")
        # What there was before the drive, by which its own rows are known.
        self.rows("CREATE TABLE began AS SELECT d_w_id w, d_id d, d_next_o_id o, NOW() t FROM district")
        self.rows("CREATE TABLE queued AS SELECT no_w_id w, no_d_id d, no_o_id o FROM new_order")

    def rows(self, statement: str) -> list[list[str]]:
        said = sql(self.socket, f"USE {self.views}; {statement}")
        return [line.split("\t") for line in said.splitlines()[1:]]

    def number(self, statement: str) -> float:
        ((value,),) = self.rows(statement)
        return 0.0 if value == "NULL" else float(value)

    def checksums(self) -> dict[str, str]:
        """One for all values of each column in rows that were there before the drive."""
        there = {"orders": "WHERE o_id <= 3000", "order_line": "WHERE ol_o_id <= 3000"}
        found: dict[str, str] = {}
        for table, columns in UPDATED.items():
            sums = ", ".join(f"SUM(CRC32(COALESCE({column}, '')))" for column in columns)
            (values,) = self.rows(f"SELECT {sums} FROM {table} {there.get(table, '')}")
            found |= dict(zip(columns, values, strict=True))
        return found

    def orders(self) -> Iterator[str]:
        mine = "orders JOIN began ON o_w_id = w AND o_d_id = d AND o_id >= o"
        lines = "order_line JOIN began ON ol_w_id = w AND ol_d_id = d AND ol_o_id >= o"
        count, total = self.number(f"SELECT COUNT(*) FROM {mine}"), self.number(f"SELECT COUNT(*) FROM {lines}")
        yield f"new orders: {count:.0f}, their lines: {total:.0f}"
        remote = self.number(f"SELECT COUNT(*) FROM {lines} WHERE ol_supply_w_id <> ol_w_id")
        yield f"remote order lines: {remote:.0f} = {100 * remote / total:.3f} % (1 %)"
        wrong = self.number(
            f"SELECT COUNT(*) FROM {mine} WHERE (o_all_local = 1) = EXISTS (SELECT 1 FROM order_line WHERE ol_w_id = w"
            " AND ol_d_id = d AND ol_o_id = o_id AND ol_supply_w_id <> w)"
        )
        yield f"o_all_local wrong: {wrong:.0f} orders"
        counts = self.rows(f"SELECT o_ol_cnt, COUNT(*) FROM {mine} GROUP BY 1 ORDER BY 1")
        mean = sum(int(lines) * int(of) for lines, of in counts) / count
        yield f"lines per order: mean {mean:.3f} (10), from {counts[0][0]} to {counts[-1][0]} (5 to 15)"
        quantity = self.rows(f"SELECT MIN(ol_quantity), AVG(ol_quantity), MAX(ol_quantity) FROM {lines}")[0]
        yield f"quantity: {', '.join(quantity)} (1, 5.5, 10)"
        items = [int(row[0]) for row in self.rows(f"SELECT COUNT(*) FROM {lines} GROUP BY ol_i_id")]
        yield f"items: {effective(items):.0f} equally likely ones would meet as often ({asked(8191, 1, 100_000)})"
        customers = [int(row[0]) for row in self.rows(f"SELECT COUNT(*) FROM {mine} GROUP BY o_c_id")]
        yield f"customers of new orders: {effective(customers):.0f} ({asked(1023, 1, 3000)})"

    def payments(self) -> Iterator[str]:
        mine = "history WHERE h_date >= (SELECT MIN(t) FROM began)"
        count = self.number(f"SELECT COUNT(*) FROM {mine}")
        remote = self.number(f"SELECT COUNT(*) FROM {mine} AND h_c_w_id <> h_w_id")
        yield f"payments: {count:.0f}, remote {remote:.0f} = {100 * remote / count:.2f} % (15 %)"
        amounts = self.rows(f"SELECT MIN(h_amount), AVG(h_amount), MAX(h_amount) FROM {mine}")[0]
        whole = self.number(f"SELECT COUNT(*) FROM {mine} AND h_amount = FLOOR(h_amount)")
        yield f"amounts: {', '.join(amounts)} (1.00, 2500.5, 5000.00), {100 * whole / count:.1f} % whole (1 %)"

    def deliveries(self) -> Iterator[str]:
        """An order is delivered when it has left the queue."""
        queue = (
            "(SELECT * FROM queued UNION"
            " SELECT o_w_id, o_d_id, o_id FROM orders JOIN began ON o_w_id = w AND o_d_id = d AND o_id >= o)"
        )
        left = f"{queue} q LEFT JOIN new_order ON no_w_id = w AND no_d_id = d AND no_o_id = o"
        by = self.rows(f"SELECT w, d, SUM(no_o_id IS NULL) FROM {left} GROUP BY 1, 2")
        total = sum(int(row[2]) for row in by)
        spread = Counter[str]()
        for warehouse in {row[0] for row in by}:
            counts = [int(row[2]) for row in by if row[0] == warehouse]
            spread[f"{max(counts) - min(counts)}"] += 1
        yield f"orders delivered: {total} in {sum(int(row[2]) > 0 for row in by)} of {len(by)} districts"
        yield f"most less fewest delivered in a warehouse's ten districts: {dict(spread)} (0)"
        passed = self.number(
            f"SELECT COUNT(*) FROM (SELECT w, d, MAX(IF(no_o_id IS NULL, o, 0)) last, MIN(no_o_id) next FROM {left}"
            " GROUP BY 1, 2) x WHERE next < last"
        )
        yield f"districts where a younger order was delivered before an older one: {passed:.0f} (0)"
        bare = self.number(
            "SELECT COUNT(*) FROM orders LEFT JOIN new_order ON no_w_id = o_w_id AND no_d_id = o_d_id"
            " AND no_o_id = o_id WHERE (no_o_id IS NULL) = (o_carrier_id IS NULL)"
        )
        yield f"orders with a carrier in the queue, or without one out of it: {bare:.0f} (0)"


def asked(bits: int, low: int, high: int) -> str:
    return f"NURand {effective_nurand(bits, low, high):.0f}, uniform {high - low + 1}"


def conditions(agent: Path, examined: Examined, warehouses: int) -> str:
    server = {"kind": "mysql", "socket": str(examined.socket), "user": "root", "database": examined.views}
    said, _ = timed([str(agent), "tpcc-check"], given=json.dumps({"endpoint": server, "warehouses": warehouses}))
    broken = [each for each in json.loads(said.splitlines()[-1])["conditions"] if each["violations"]]
    return ", ".join(f"{each['clause']} ({each['violations']})" for each in broken) or "all twelve hold"


def statements(log: Path) -> Counter[str]:
    """Shapes of statements as often as they were sent: literals as `?`, lists as `…`, names of customers as `NAME`."""
    shapes: Counter[str] = Counter()
    for entry in re.split(r"\n(?=\d{6} |\t\t)", log.read_text(errors="replace")):
        found = re.match(r"[^\t]*\t+\s*\d+ (Query|Execute)\t(.*)", entry, re.DOTALL)
        if found:
            named = LAST_NAME.sub("NAME", found[2])
            shape = re.sub(r"'[^']*'|\b-?\d+(?:\.\d+)?\b", "?", " ".join(named.split()))
            shapes[re.sub(r"\(?\?(?:, ?\(?\?\)?)+\)?", "…", shape)[:150]] += 1
    return shapes


def examine(peer: Peer, site: Site, *, users: int, agent: Path) -> None:
    examined = Examined(site.socket, peer)
    examined.create()
    print(f"  conditions as loaded: {conditions(agent, examined, site.warehouses)}", flush=True)
    before, log = examined.checksums(), site.directory / f"{peer.name}.log"
    sql(site.socket, f"SET GLOBAL general_log_file = '{log}'; SET GLOBAL general_log = ON")
    counted = peer_site.counters(site.socket)
    run = peer.drive(site, users)
    ended = {name: value - counted[name] for name, value in peer_site.counters(site.socket).items()}
    sql(site.socket, "SET GLOBAL general_log = OFF")
    print(f"  transactions: {run.units} in {run.wall_s:.1f} s, {run.cpu_per_unit_us:.0f} us each; the server: {ended}")
    for line in (*examined.orders(), *examined.payments(), *examined.deliveries()):
        print(f"  {line}")
    after = examined.checksums()
    print(f"  columns left alone: {', '.join(name for name in before if before[name] == after[name]) or 'none'}")
    print(f"  conditions after the drive: {conditions(agent, examined, site.warehouses)}")
    names = Counter(LAST_NAME.findall(log.read_text(errors="replace")))
    print(f"  last names: {sum(names.values())}, {effective(list(names.values())):.0f} ({asked(255, 0, 999)})")
    for shape, count in statements(log).most_common(45):
        print(f"    {count:8d} {shape}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--warehouses", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--users", type=int, default=4)
    parser.add_argument("--agent", type=Path, default=Path(sys.executable).parent / "fairtrial-agent")
    tpcc_peers.add_options(parser)
    options = parser.parse_args()
    peers, port = tpcc_peers.given(options), free_port()
    with private_mariadb(port) as socket, TemporaryDirectory(prefix="bench-") as name:
        peer_site.admit(socket)
        site = Site(socket, port, Path(name), options.warehouses, options.seconds)
        for peer in peers:
            print(f"{peer.name}, {site.warehouses} warehouses, {options.users} users, {site.seconds} s", flush=True)
            peer.load(site, 2)
            examine(peer, site, users=options.users, agent=options.agent)


if __name__ == "__main__":
    main()
