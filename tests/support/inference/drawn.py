"""What a faithful TPC-C drive draws, to the last count: expected numbers, not random ones."""

from __future__ import annotations

from fairtrial.metrics.fidelity.tpcc import DISTRICTS, JOINED_ODD, LINES

CONSTANTS = {
    "nurand_c_last_name_load": 10,
    "nurand_c_last_name_run": 90,
    "nurand_c_customer": 259,
    "nurand_c_item": 7911,
}


def faithful(decks: int, *, warehouses: int = 10) -> dict[str, int]:
    """The counts of so many decks of a hundred transactions; C of items and customers is odd, of last names even."""
    orders, payments = 45 * decks, 43 * decks
    each, left = divmod(orders, len(LINES))
    by_lines = {lines: each + (place < left) for place, lines in enumerate(LINES)}
    order_lines = sum(lines * count for lines, count in by_lines.items())
    rolled_back, remote = round(0.01 * orders), warehouses > 1
    by_name, asked_by_name = round(0.6 * payments), round(0.6 * 4 * decks)
    chosen = {
        "items": order_lines - rolled_back,
        "customers": orders + payments - by_name + 4 * decks - asked_by_name,
        "last_names": by_name + asked_by_name,
    }
    return {
        "new_order": orders,
        "payment": payments,
        **dict.fromkeys(("order_status", "delivery", "stock_level"), 4 * decks),
        "order_lines": order_lines,
        "order_lines_remote": round(0.01 * order_lines) * remote,
        "new_order_rollback": rolled_back,
        **{f"new_order_lines_{lines:02}": count for lines, count in by_lines.items()},
        "payment_remote": round(0.15 * payments) * remote,
        "payment_by_last_name": by_name,
        "order_status_by_last_name": asked_by_name,
        "delivered_orders": 4 * decks * DISTRICTS,
        "delivery_skipped_districts": 0,
        **{f"nurand_{name}": count for name, count in chosen.items()},
        **{f"nurand_{name}_odd": round(JOINED_ODD * count) for name, count in chosen.items()},
        **CONSTANTS,
    }
