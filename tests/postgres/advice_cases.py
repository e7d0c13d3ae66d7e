"""Queries with the index that is known to be best for each, over tables of a shop; for the test, and for a table.

`python -m postgres.advice_cases [ROWS]`, in `tests/`: what is proposed without hypopg, and how long a query takes
without and with it. `MCP_TEST_PROGRAMS` names another PostgreSQL's programs.
"""

import re
import sys
import time
from collections.abc import Sequence
from functools import cache
from typing import Any

import anyio
import psycopg

from postgres.serving import Base, inside, make, text_of

__all__ = ["CASES", "is_best", "proposed", "seconds", "shop"]

_SHOP = """
CREATE TABLE customers (id integer PRIMARY KEY, email varchar(80), name text{collate}, country text,
    status text, born date, phone text);
CREATE TABLE orders (id integer PRIMARY KEY, customer_id integer, status text, total numeric, placed timestamp,
    shipped date, note text, channel text, urgent boolean);
CREATE TABLE items (order_id integer, product_id integer, n integer, price numeric);
CREATE TABLE products (id integer PRIMARY KEY, sku text, name text, category integer, price numeric, data jsonb,
    tags text[], during int4range);
CREATE TABLE events (id integer, user_id integer, kind text, at timestamp, payload jsonb) PARTITION BY RANGE (at);
CREATE TABLE events_1 PARTITION OF events FOR VALUES FROM ('2024-01-01') TO ('2024-07-01');
CREATE TABLE events_2 PARTITION OF events FOR VALUES FROM ('2024-07-01') TO ('2025-01-01');
CREATE TABLE events_3 PARTITION OF events DEFAULT;
CREATE TABLE sizes (code text, label text);
INSERT INTO sizes VALUES ('s', 'small'), ('m', 'middle'), ('l', 'large');
INSERT INTO customers SELECT i, 'user' || i || '@example.org', 'Name ' || (i * 7919 % 5000), 'C' || (i * 31 % 40),
    CASE WHEN i % 2 = 1 THEN 'active' ELSE 'gone' END, date '1950-01-01' + i * 37 % 20000, '+' || (i * 7919)
    FROM generate_series(1, {rows} / 4) i;
INSERT INTO orders SELECT i, i::bigint * 7919 % ({rows} / 10) + 1, CASE i % 4 WHEN 0 THEN 'new' WHEN 1 THEN 'paid' ELSE
    'done' END, i::bigint * 13 % 10007 / 10.0, timestamp '2020-01-01' + (i::bigint * 7919 % 3000000) *
    interval '1 minute', CASE WHEN i % 100 <> 0 THEN date '2024-01-01' END, 'n' || i, 'c' || (i % 3), i % 200 = 0
    FROM generate_series(1, {rows}) i;
INSERT INTO items SELECT i / 3 + 1, i * 31 % 2000 + 1, i % 5, i % 97 FROM generate_series(1, {rows}) i;
INSERT INTO products SELECT i, 'SKU-' || lpad(i::text, 6, '0'), 'Product ' || i, i % 100, i * 7 % 1000,
    jsonb_build_object('brand', 'b' || (i % 300), 'weight', i % 50), ARRAY['t' || i % 400, 'u' || i % 7],
    int4range(i * 10, i * 10 + 15) FROM generate_series(1, {rows} / 4) i;
INSERT INTO events SELECT i, i::bigint * 7 % 3000, 'k' || (i % 8), timestamp '2024-01-01' + (i::bigint * 7919 % 500000)
    * interval '1 minute', jsonb_build_object('ip', '10.0.' || (i % 250) || '.' || (i % 200), 'n', i)
    FROM generate_series(1, {rows}) i;
CREATE INDEX items_order ON items (order_id);
CREATE VIEW open_orders AS SELECT id, customer_id, placed FROM orders WHERE status <> 'done';
ANALYZE
"""

CASES: dict[str, tuple[str, ...]] = {
    # Each with the indexes that are as good, `&` between those that are needed together; "" is none.
    "SELECT * FROM customers WHERE email = 'user77@example.org'": ("customers(email)",),
    "SELECT * FROM orders WHERE customer_id = 77": ("orders(customer_id)",),
    "SELECT * FROM public.orders o WHERE o.customer_id = $1": ("orders(customer_id)",),
    "SELECT count(*) FROM orders WHERE customer_id IN (1, 2, 3)": ("orders(customer_id)",),
    "SELECT * FROM orders WHERE note = 'n5' AND status = 'new'": ("orders(note)",),
    "SELECT * FROM orders WHERE status = 'new' AND customer_id = 8": ("orders(customer_id)",
        "orders(customer_id,status)", "orders(status,customer_id)"),
    "SELECT * FROM customers WHERE lower(email) = 'user9@example.org'": ("customers(lower(email::text))",),
    "SELECT c.name FROM customers c WHERE lower(c.phone) = lower('+71271')": ("customers(lower(phone))",),
    "SELECT * FROM customers WHERE name LIKE 'Name 499%'": ("customers(name text_pattern_ops)", "customers(name)"),
    "SELECT * FROM orders WHERE note LIKE 'n4711%'": ("orders(note text_pattern_ops)", "orders(note)"),
    "SELECT * FROM products WHERE data ->> 'brand' = 'b7'": ("products(data ->> 'brand'::text)",),
    "SELECT * FROM products WHERE data @> '{\"brand\": \"b7\"}'": ("products gin(data)",
        "products gin(data jsonb_path_ops)"),
    "SELECT * FROM products WHERE tags @> ARRAY['t7']": ("products gin(tags)",),
    "SELECT * FROM products WHERE tags && ARRAY['t7', 't9']": ("products gin(tags)",),
    "SELECT * FROM products WHERE during @> 777": ("products gist(during)",),
    "SELECT * FROM orders WHERE placed::date = '2021-02-03'": ("orders(placed::date)",),
    "SELECT * FROM orders WHERE date_trunc('hour', placed) = '2021-02-03 04:00'": (
        "orders(date_trunc('hour'::text, placed))",),
    "SELECT * FROM orders WHERE total * 10 = 130": ("orders(total * '10'::numeric)",),
    "SELECT * FROM customers WHERE country || phone = 'C1+1'": ("customers(country || phone)",),
    "SELECT * FROM orders ORDER BY placed DESC LIMIT 10": ("orders(placed)", "orders(placed DESC)"),
    "SELECT * FROM orders WHERE customer_id = 5 ORDER BY placed DESC LIMIT 3": ("orders(customer_id)",
        "orders(customer_id,placed)", "orders(customer_id,placed DESC)"),
    "SELECT * FROM orders WHERE status = 'new' ORDER BY placed LIMIT 5": ("orders(status,placed)", "orders(placed)"),
    "SELECT * FROM orders ORDER BY status, total DESC LIMIT 5": ("orders(status,total DESC)", "orders(status)"),
    "SELECT * FROM events WHERE user_id = 7 AND at > '2024-02-01'": ("events(user_id)", "events(user_id,at)"),
    "SELECT * FROM events WHERE at BETWEEN '2024-02-01' AND '2024-02-01 03:00'": ("events(at)",),
    "SELECT * FROM events_1 WHERE kind = 'k3' ORDER BY at LIMIT 3": ("events(kind,at)", "events(at)"),
    "SELECT max(total) FROM orders": ("orders(total)",),
    "SELECT DISTINCT ON (customer_id) * FROM orders WHERE customer_id BETWEEN 5 AND 9 ORDER BY customer_id, placed": (
        "orders(customer_id)", "orders(customer_id,placed)"),
    "SELECT o.* FROM customers c JOIN orders o ON o.customer_id = c.id WHERE c.email = 'user5@example.org'": (
        "customers(email)&orders(customer_id)",),
    "SELECT p.name, sum(i.n) FROM products p JOIN items i ON i.product_id = p.id WHERE p.sku = 'SKU-000007' "
    "GROUP BY 1": ("products(sku)&items(product_id)", "products(sku)&items(product_id) include (n)"),
    "SELECT * FROM customers c WHERE c.id = 7 AND NOT EXISTS (SELECT FROM orders o WHERE o.customer_id = c.id)": (
        "orders(customer_id)",),
    "SELECT * FROM orders WHERE shipped IS NULL AND customer_id = 99": ("orders(customer_id)",
        "orders(customer_id,shipped)", "orders(shipped,customer_id)", "orders(customer_id) where shipped IS NULL"),
    "SELECT * FROM orders WHERE shipped IS NULL ORDER BY placed LIMIT 20": ("orders(shipped,placed)", "orders(shipped)",
        "orders(placed) where shipped IS NULL"),
    "SELECT * FROM orders WHERE urgent ORDER BY total": ("orders(urgent)", "orders(id) where urgent",
        "orders(total) where urgent", "orders(urgent,total)"),
    "SELECT * FROM open_orders WHERE customer_id = 7": ("orders(customer_id)",),
    "UPDATE orders SET status = 'done' WHERE note = 'n7'": ("orders(note)",),
    "DELETE FROM orders WHERE placed < '2020-01-01 10:00'": ("orders(placed)",),
    "WITH late AS (SELECT * FROM orders WHERE placed > '2025-09-14') SELECT count(*) FROM late": ("orders(placed)",),
    "SELECT * FROM orders WHERE customer_id = 3 OR note = 'n3'": ("orders(customer_id)&orders(note)",),
    "SELECT id FROM orders WHERE (customer_id, status) = (7, 'paid')": ("orders(customer_id)",
        "orders(customer_id,status)", "orders(status,customer_id)"),
    "SELECT c.country, count(*) FROM customers c WHERE c.country = 'C3' AND c.born > '2003-01-01' GROUP BY 1": (
        "customers(country,born)",),
    "SELECT customer_id, total FROM orders WHERE customer_id BETWEEN 10 AND 200": (
        "orders(customer_id) include (total)", "orders(customer_id)"),
    # None: half of the rows, a table of three rows, what is there already, what no index can do.
    "SELECT * FROM customers WHERE status = 'active'": ("",),
    "SELECT sum(total) FROM orders WHERE status = 'done'": ("", "orders(status) include (total)"),
    "SELECT * FROM sizes WHERE code = 'm'": ("",),
    "SELECT * FROM items WHERE order_id = 5": ("",),
    "SELECT * FROM orders WHERE note LIKE '%7'": ("",),
    "SELECT * FROM orders": ("",),
    "SELECT * FROM customers WHERE id = 7": ("",),
    "SELECT * FROM orders WHERE md5(random()::text) = note": ("",),
}  # fmt: skip


@cache
def shop(rows: int) -> Base:
    """A database with `rows` orders."""
    # Debian's has collations that LIKE can't use, the wheel has none.
    known = Base("postgres").rows("SELECT 1 FROM pg_collation WHERE collname = 'und-x-icu'")
    base = make(_SHOP.replace("{rows}", str(rows)).replace("{collate}", ' COLLATE "und-x-icu"' if known else ""))
    base.run("VACUUM ANALYZE")
    return base


def proposed(said: str) -> list[str]:
    """The statements that an answer of `explain_query` proposes."""
    return re.findall(r"^CREATE INDEX .*;$", said, re.MULTILINE)


def short(statement: str) -> str:
    """A proposed statement as `CASES` have it."""
    match = re.fullmatch(
        r"CREATE INDEX ON (?:public\.)?(\w+) (?:USING (\w+) )?\((.*?)\)(?: INCLUDE (\(.*?\)))?(?: WHERE (.*))?;",
        statement,
    )
    assert match is not None, statement
    keys = match[3]
    while keys.startswith("(") and keys.endswith(")"):
        keys = keys[1:-1]
    keys = keys.replace("(email)::", "email::").replace("(placed)::", "placed::")
    keys = keys if "(" in keys else keys.replace(", ", ",")
    more = f" include {match[4]}" if match[4] else ""
    more += f" where {match[5]}" if match[5] else ""
    return f"{match[1]}{f' {match[2]}' if match[2] else ''}({keys}){more}"


def is_best(best: Sequence[str], found: Sequence[str]) -> bool:
    """Whether what was found is one of those that are as good."""
    names = {short(item) for item in found}
    return any(names == set(filter(None, item.split("&"))) for item in best)


def seconds(connection: psycopg.Connection[Any], sql: str) -> float:
    """How long a statement takes: the best of seven runs, rolled back."""
    taken: list[float] = []
    for _ in range(7):
        with connection.transaction(force_rollback=True):
            begun = time.perf_counter()
            connection.execute(sql.replace("$1", "77").encode())
            taken.append(time.perf_counter() - begun)
    return min(taken)


async def _main(rows: int) -> None:
    base = shop(rows)
    right = slower = 0
    async with inside("--timeout", 60, f"app={base.url('owner')}") as wire:
        with base.connect() as connection:
            for sql, best in CASES.items():
                given = {"parameters": [77]} if "$1" in sql else {}
                begun = time.perf_counter()
                found = proposed(text_of(await wire.call("explain_query", sql=sql, **given)))
                took = time.perf_counter() - begun
                slow = seconds(connection, sql)
                for number, statement in enumerate(found):
                    connection.execute(statement.replace("INDEX ON", f"INDEX tried_{number} ON").encode())
                connection.execute(b"ANALYZE")
                fast = seconds(connection, sql)
                for number in range(len(found)):
                    connection.execute(f"DROP INDEX tried_{number}".encode())
                right += is_best(best, found)
                mark = "" if is_best(best, found) else f" instead of {' or '.join(best)}"
                if found and fast > 1.1 * slow + 0.0002:
                    slower += 1
                    mark += " SLOWER"
                print(
                    f"{1000 * slow:8.2f} {1000 * fast:8.2f} ms, asked {took:.1f} s: {sql[:80]:80} "
                    f"{' & '.join(map(short, found)) or '-'}{mark}",
                    flush=True,
                )
    print(f"{right} of {len(CASES)}, {slower} slower")


if __name__ == "__main__":
    anyio.run(_main, int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
