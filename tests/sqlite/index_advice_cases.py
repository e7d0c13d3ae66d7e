"""Queries with the index that is known to be best for each, over tables of a shop; for the test, and for a table.

`python -m sqlite.index_advice_cases [ROWS]`, in `tests/`: what is proposed, and how long a
query takes without and with it.
"""

import re
import sqlite3
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio

from sqlite.serving import served, text_of

__all__ = ["CASES", "fill", "is_best", "proposed", "steps"]

SCHEMA = """
CREATE TABLE customers (id INTEGER PRIMARY KEY, email TEXT, name TEXT, country TEXT, status TEXT, born TEXT,
    phone TEXT);
CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER, status TEXT, total REAL, placed TEXT, shipped TEXT,
    note TEXT, channel TEXT);
CREATE TABLE items (order_id INTEGER, product_id INTEGER, n INTEGER, price REAL);
CREATE TABLE products (id INTEGER PRIMARY KEY, sku TEXT, name TEXT, category INTEGER, price REAL, data TEXT);
CREATE TABLE events (id INTEGER PRIMARY KEY, user_id INTEGER, kind TEXT, at INTEGER, payload TEXT);
CREATE TABLE sizes (code TEXT, label TEXT);
CREATE INDEX items_order ON items (order_id);
CREATE VIEW open_orders AS SELECT id, customer_id, placed FROM orders WHERE status <> 'done';
INSERT INTO sizes VALUES ('s', 'small'), ('m', 'middle'), ('l', 'large');
"""
_NUMBERS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT {})"
_FILL = """
INSERT INTO customers {tenth} SELECT i, 'user' || i || '@example.org', 'Name ' || (i * 7919 % 5000),
    'C' || (i * 31 % 40), CASE WHEN i % 2 THEN 'active' ELSE 'gone' END, date('1950-01-01', '+' || (i * 37 % 20000) ||
    ' days'), '+' || (i * 7919) FROM n;
INSERT INTO orders {all} SELECT i, i * 7919 % {tenths} + 1, CASE i % 4 WHEN 0 THEN 'new' WHEN 1 THEN 'paid' ELSE 'done'
    END, i * 13 % 10007 / 10.0, datetime('2020-01-01', '+' || (i * 17 % 3000000) || ' minutes'),
    CASE WHEN i % 100 THEN '2024-01-01' END, 'n' || i, 'c' || (i % 3) FROM n;
INSERT INTO items {all} SELECT i / 3 + 1, i * 31 % 2000 + 1, i % 5, i % 97 FROM n;
INSERT INTO products {few} SELECT i, 'SKU-' || printf('%06d', i), 'Product ' || i, i % 100, i * 7 % 1000,
    json_object('brand', 'b' || (i % 300), 'weight', i % 50) FROM n;
INSERT INTO events {all} SELECT i, i * 7 % 3000, 'k' || (i % 8), 1600000000 + i * 60, json_object('ip', '10.0.' ||
    (i % 250) || '.' || (i % 200), 'n', i) FROM n;
"""

CASES: dict[str, tuple[str, ...]] = {
    # Each with the lists of columns that are as good, for every table that needs one; "" is none.
    "SELECT * FROM customers WHERE email = 'user77@example.org'": ("customers(email)",),
    "SELECT * FROM orders WHERE customer_id = 77": ("orders(customer_id)",),
    "SELECT * FROM orders o WHERE o.customer_id = ?": ("orders(customer_id)",),
    "SELECT count(*) FROM orders WHERE customer_id IN (1, 2, 3)": ("orders(customer_id)",),
    "SELECT * FROM orders WHERE note = 'n5' AND status = 'new'": ("orders(note)", "orders(note,status)"),
    "SELECT * FROM orders WHERE status = 'new' AND customer_id = 8": (
        "orders(customer_id)", "orders(customer_id,status)", "orders(status,customer_id)"),
    "SELECT * FROM customers WHERE lower(email) = 'user9@example.org'": ("customers(lower(email))",),
    "SELECT c.name FROM customers c WHERE lower(c.email) = lower('User9@Example.org')": ("customers(lower(email))",),
    "SELECT * FROM customers WHERE email = 'USER9@example.org' COLLATE NOCASE": ("customers(email COLLATE NOCASE)",),
    "SELECT * FROM customers WHERE email LIKE 'user99%'": ("customers(email COLLATE NOCASE)",),
    "SELECT * FROM customers WHERE email GLOB 'user99*'": ("customers(email)",),
    "SELECT * FROM products WHERE json_extract(data, '$.brand') = 'b7'": ("products(json_extract(data, '$.brand'))",),
    "SELECT * FROM products WHERE data ->> '$.brand' = 'b7'": ("products(data ->> '$.brand')",),
    "SELECT * FROM events WHERE json_extract(payload, '$.ip') = '10.0.7.7'": (
        "events(json_extract(payload, '$.ip'))",),
    "SELECT * FROM orders WHERE date(placed) = '2021-02-03'": ("orders(date(placed))",),
    "SELECT * FROM orders WHERE substr(placed, 1, 10) = '2021-02-03'": ("orders(substr(placed, 1, 10))",),
    "SELECT * FROM orders WHERE total * 10 = 130": ("orders(total * 10)",),
    "SELECT * FROM customers WHERE name || phone = 'Name 1+1'": ("customers(name || phone)",),
    "SELECT * FROM orders ORDER BY placed DESC LIMIT 10": ("orders(placed)", "orders(placed DESC)"),
    "SELECT * FROM orders WHERE customer_id = 5 ORDER BY placed DESC LIMIT 3": ("orders(customer_id,placed)",
        "orders(customer_id,placed DESC)"),
    "SELECT * FROM orders WHERE customer_id = 5 ORDER BY status, total DESC": ("orders(customer_id,status,total DESC)",
        "orders(customer_id)"),
    "SELECT * FROM events ORDER BY kind, at DESC LIMIT 5": ("events(kind,at DESC)",),
    "SELECT * FROM events WHERE user_id = 7 AND at > 1600050000": ("events(user_id,at)",),
    "SELECT * FROM events WHERE at BETWEEN 1600050000 AND 1600051000": ("events(at)",),
    "SELECT * FROM events WHERE user_id = 7 AND kind = 'k3' AND at > 1600050000": ("events(user_id,kind,at)",
        "events(kind,user_id,at)", "events(user_id,at)"),
    "SELECT kind, count(*) FROM events GROUP BY kind": ("events(kind)",),
    "SELECT user_id, max(at) FROM events GROUP BY user_id": ("events(user_id,at)",),
    "SELECT DISTINCT country FROM customers": ("customers(country)",),
    "SELECT max(total) FROM orders": ("orders(total)",),
    "SELECT o.* FROM customers c JOIN orders o ON o.customer_id = c.id WHERE c.email = 'user5@example.org'": (
        "customers(email)&orders(customer_id)",),
    "SELECT p.name, sum(i.n) FROM products p JOIN items i ON i.product_id = p.id WHERE p.sku = 'SKU-000007' "
    "GROUP BY 1": (
        "products(sku)&items(product_id)", "products(sku)&items(product_id,n)"),
    "SELECT * FROM customers c WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.customer_id = c.id)": (
        "orders(customer_id)",),
    "SELECT * FROM orders WHERE shipped IS NULL AND customer_id = 99": ("orders(customer_id)",
        "orders(customer_id,shipped)", "orders(shipped,customer_id)"),
    "SELECT * FROM open_orders WHERE customer_id = 7": ("orders(customer_id)",),
    "UPDATE orders SET status = 'done' WHERE note = 'n7'": ("orders(note)",),
    "DELETE FROM events WHERE at < 1600000600": ("events(at)",),
    "WITH late AS (SELECT * FROM orders WHERE placed > '2025-09-01') SELECT count(*) FROM late": ("orders(placed)",),
    "SELECT * FROM orders WHERE customer_id = 3 OR note = 'n3'": ("orders(customer_id)&orders(note)",),
    "SELECT id FROM events WHERE (user_id, kind) = (7, 'k1')": ("events(user_id,kind)", "events(user_id)",
        "events(kind,user_id)"),
    "SELECT c.country, count(*) FROM customers c WHERE c.country = 'C3' AND c.born > '2003-01-01' GROUP BY 1": (
        "customers(country,born)",),
    # None: half of the rows, a table of three rows, what is there already, what no index can do.
    "SELECT c.name, count(*) FROM customers c JOIN orders o ON o.customer_id = c.id"
    " WHERE o.status = 'new' AND o.placed >= '2025-09-01' GROUP BY c.id": (
        "orders(placed)", "orders(status,placed)", "orders(status,placed,customer_id)"),
    "SELECT * FROM customers WHERE status = 'active'": ("",),
    "SELECT sum(total) FROM orders WHERE status = 'done'": ("", "orders(status,total)"),
    "SELECT * FROM sizes WHERE code = 'm'": ("",),
    "SELECT * FROM items WHERE order_id = 5": ("",),
    "SELECT * FROM orders WHERE note LIKE '%7'": ("",),
    "SELECT * FROM orders": ("",),
    "SELECT * FROM customers WHERE id = 7": ("",),
}  # fmt: skip


def fill(path: Path, rows: int) -> None:
    """Make the shop, with `rows` orders."""
    words = {"tenth": _NUMBERS.format(rows // 10), "all": _NUMBERS.format(rows), "few": _NUMBERS.format(rows // 10)}
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(SCHEMA + _FILL.format(**words, tenths=rows // 10))


def proposed(said: str) -> list[str]:
    """The statements that an answer of `explain_query` proposes."""
    return re.findall(r'^CREATE INDEX ".*;$', said, re.MULTILINE)


def short(statement: str) -> str:
    """A proposed statement as `CASES` have it."""
    match = re.fullmatch(r'CREATE INDEX "[^"]+" ON "(\w+)" \((.*)\);', statement)
    assert match is not None, statement
    return f"{match[1]}({match[2].replace(chr(34), '').replace(', ', ',') if '(' not in match[2] else match[2]})"


def is_best(best: Sequence[str], found: Sequence[str]) -> bool:
    """Whether what was found is one of those that are as good."""
    names = {short(item) for item in found}
    return any(names == set(filter(None, item.split("&"))) for item in best)


def steps(connection: sqlite3.Connection, sql: str) -> tuple[int, float]:
    """Steps of SQLite's machine, in hundreds, and seconds."""
    count = 0

    def step() -> int:
        nonlocal count
        count += 1
        return 0

    values: list[Any] = [7] if "?" in sql else []
    connection.execute("BEGIN")
    try:
        connection.set_progress_handler(step, 100)
        connection.execute(sql, values).fetchall()
        connection.set_progress_handler(None, 0)
        begun = time.perf_counter()
        connection.execute(sql, values).fetchall()
        return count, time.perf_counter() - begun
    finally:
        connection.execute("ROLLBACK")


async def _main(rows: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "shop.db"
        fill(path, rows)
        right = 0
        async with served(path, "--timeout", 60) as wire:
            for sql, best in CASES.items():
                given = {"parameters": [7]} if "?" in sql else {}
                found = proposed(text_of(await wire.call("explain_query", sql=sql, **given)))
                with closing(sqlite3.connect(path, isolation_level=None)) as connection:
                    before, slow = steps(connection, sql)
                    connection.execute("BEGIN")
                    for statement in found:
                        connection.execute(statement)
                    connection.execute("COMMIT")
                    after, fast = steps(connection, sql)
                    for statement in found:
                        connection.execute(f"DROP INDEX {statement.split()[2]}")
                is_right = is_best(best, found)
                right += is_right
                mark = "" if is_right else f" instead of {' or '.join(best)}"
                if found and fast > 1.05 * slow:
                    mark += " SLOWER"
                print(
                    f"{1000 * slow:9.2f} {1000 * fast:9.2f} ms {before:7} {after:7} {sql[:70]:70} "
                    f"{' & '.join(map(short, found)) or '-'}{mark}"
                )
        print(f"{right} of {len(CASES)}")


if __name__ == "__main__":
    anyio.run(_main, int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
