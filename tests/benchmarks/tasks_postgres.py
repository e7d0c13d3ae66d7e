"""Eight everyday tasks on a shop's PostgreSQL with known answers: calls and bytes, beside `@bytebase/dbhub` of npm.

    python tests/benchmarks/tasks_postgres.py [--show]

Each task begins anew, by an agent who knows PostgreSQL and of a server nothing but `tools/list`. The calls are written
down here, looks at the schema among them, so a run measures the servers and not a model. DBHub takes part twice: with
the tool it has for looking at a schema, and with the shortest SQL that does the same. Bytes are those of arguments and
of the texts of answers. An answer that lacks what is known, or a change that stays, ends the run with an error.
"""

import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

sys.path[:0] = [str(Path(__file__).parents[1])]

from driver import LEGACY, MODERN, Server  # noqa: E402

from e2e import npm  # noqa: E402
from postgres.serving import make  # noqa: E402

SHOP = """
CREATE TABLE customers (id integer PRIMARY KEY, name text NOT NULL, country char(2) NOT NULL, joined date NOT NULL);
CREATE TABLE addresses (id integer PRIMARY KEY, customer_id integer NOT NULL REFERENCES customers, city text NOT NULL);
CREATE TABLE products (id integer PRIMARY KEY, title text NOT NULL, price numeric(8, 2) NOT NULL);
CREATE TABLE orders (id integer PRIMARY KEY, customer_id integer NOT NULL REFERENCES customers, status text NOT NULL,
    ordered date NOT NULL, region text NOT NULL);
CREATE TABLE order_lines (order_id integer NOT NULL REFERENCES orders, product_id integer NOT NULL REFERENCES products,
    quantity integer NOT NULL, PRIMARY KEY (order_id, product_id));
CREATE TABLE reviews (id integer PRIMARY KEY, author_id integer NOT NULL REFERENCES customers,
    product_id integer NOT NULL REFERENCES products, stars integer NOT NULL);
CREATE TABLE visits (id bigint PRIMARY KEY, customer_id integer, page text NOT NULL, visited timestamp NOT NULL);
INSERT INTO customers SELECT n, 'Customer ' || n, 'DE', date '2025-09-01' + n FROM generate_series(1, 200) n;
INSERT INTO addresses SELECT n, n, 'City ' || n % 40 FROM generate_series(1, 200) n;
INSERT INTO products SELECT n, 'Product ' || n, 5 + n * 7 % 90 + 0.95 FROM generate_series(1, 60) n;
INSERT INTO orders SELECT n, n * (n + 3) % 199 + 1, ('{open,paid,shipped,shipped,returned}'::text[])[n % 5 + 1],
    date '2026-01-01' + n * 17 % 180, ('{north,south}'::text[])[n % 2 + 1] FROM generate_series(1, 3000) n;
UPDATE orders SET status = 'shiped' WHERE id = 2718;
INSERT INTO order_lines SELECT id, id * 7 % 60 + 1, id % 3 + 1 FROM orders WHERE id NOT IN (99, 1234, 2500);
INSERT INTO reviews SELECT n, n % 200 + 1, n % 60 + 1, n % 5 + 1 FROM generate_series(1, 500) n;
INSERT INTO visits SELECT n, n % 200 + 1, '/products/' || n % 60, timestamp '2026-01-01' + n * interval '2 minutes'
    FROM generate_series(1, 60000) n;
ALTER TABLE orders ENABLE ROW LEVEL SECURITY;
GRANT UPDATE ON orders TO reader;
CREATE POLICY seen ON orders FOR SELECT TO reader USING (region = 'south');
CREATE POLICY changed ON orders FOR UPDATE TO reader USING (region = 'south' AND status = 'open');
"""
COLUMNS = "FROM information_schema.columns WHERE table_schema = 'public'"
STATE = f"SELECT count(*), (SELECT status FROM orders WHERE id = 7), to_regclass('visits_page_visited_idx') {COLUMNS}"
Call = tuple[str, dict[str, object]]


@dataclass(frozen=True)
class Task:
    """A question, and the calls that answer it.

    Attributes:
        ours: the calls of mcp-postgres.
        hub: the statements of DBHub, a call each, after its look at the schema.
        known: patterns that the answers must hold, all of them, in either form.
        look: the tables DBHub looks at first, as a LIKE pattern; None where an expert needs no look.
    """

    question: str
    ours: list[Call]
    hub: list[str]
    known: list[str]
    look: str | None = "%"


def both(question: str, sql: str, *known: str) -> Task:
    """One that is a look and the same query on either side."""
    return Task(question, [("list_objects", {}), ("query_rows", {"sql": sql})], [sql], list(known))


INDEX = "CREATE INDEX ON visits (page, visited)"
SLOW = "SELECT count(*) FROM visits WHERE page = '/products/7' AND visited >= '2026-03-01'"
VIP = (
    "ALTER TABLE customers ADD COLUMN vip boolean NOT NULL DEFAULT false; UPDATE customers SET vip = true WHERE id IN"
    " (SELECT customer_id FROM orders WHERE status = 'shipped' GROUP BY customer_id HAVING count(*) >= 13)"
)
LOCKS = "SELECT relation::regclass, mode FROM pg_locks WHERE pid = pg_backend_pid() AND mode LIKE 'AccessEx%'"
SEVEN = "SELECT * FROM orders WHERE id = 7; UPDATE orders SET status = 'paid' WHERE id = 7"
SOLD = "JOIN order_lines l ON l.order_id = o.id JOIN products p ON p.id = l.product_id WHERE"
TASKS = [
    both("the three customers with the most revenue in March, without returned orders",
         "SELECT c.name, sum(l.quantity * p.price) AS revenue FROM orders o JOIN customers c ON c.id = o.customer_id"
         f" {SOLD} o.status <> 'returned' AND o.ordered >= '2026-03-01' AND o.ordered < '2026-04-01' GROUP BY c.id"
         " ORDER BY revenue DESC LIMIT 3",
         r"Customer 41\W.*\b846.25\b.*Customer 70\W.*\b702.40\b.*Customer 72\W.*\b700.35\b"),
    both("orders without lines",
         "SELECT id FROM orders o WHERE NOT EXISTS (SELECT FROM order_lines WHERE order_id = o.id)",
         r"\b99\b", r"\b1234\b", r"\b2500\b"),
    both("which order has a mistyped status", "SELECT status, count(*), min(id) FROM orders GROUP BY 1 ORDER BY 2",
         r"\bshiped\b.{1,60}\b2718\b"),
    Task("which tables refer to customers",
         [("list_objects", {})],
         ["SELECT conrelid::regclass, pg_get_constraintdef(oid) FROM pg_constraint"
          " WHERE confrelid = 'customers'::regclass AND contype = 'f'"],
         [rf"\b{table}\b.{{1,90}}\b{column}_id\W.{{1,16}}customers"
          for table, column in (("addresses", "customer"), ("orders", "customer"), ("reviews", "author"))],
         look=None),
    Task("why a query is slow, and which index helps, tried",
         [("explain_query", {"sql": SLOW, "analyze": True})],
         [f"EXPLAIN ANALYZE {SLOW}", f"BEGIN; {INDEX}; EXPLAIN ANALYZE {SLOW}; ROLLBACK"],
         ["Seq Scan on visits", r"Index Scan (on|using) visits.{1,2}page"],
         look=None),
    Task("a column with its backfill, rehearsed: how many rows, which lock",
         [("list_objects", {}), ("edit_schema", {"sql": VIP, "dry_run": True})],
         [f"BEGIN; {VIP}; {LOCKS}; ROLLBACK"],
         [r'UPDATE: 6 rows|"count": 6\b', "customers.*AccessExclusiveLock"]),
    Task("does the role reader see order 7, could it change it: tried as that role",
         [("get_table", {"table": "orders"}), ("write_rows", {"sql": SEVEN, "as_role": "reader"})],
         [f"BEGIN; SET LOCAL ROLE reader; {SEVEN}; ROLLBACK"],
         ["shipped.*south", r'UPDATE: 0 rows|UPDATE orders[^}]*"count": 0'],
         look="orders"),
    both("three numbers for a report: orders of June, their revenue, customers since March",
         "SELECT count(*) AS orders FROM orders WHERE ordered >= '2026-06-01' AND ordered < '2026-07-01';"
         f" SELECT sum(l.quantity * p.price) AS revenue FROM orders o {SOLD} o.ordered >= '2026-06-01'"
         " AND o.ordered < '2026-07-01'; SELECT count(*) AS joined FROM customers WHERE joined >= '2026-03-01'",
         r"orders\W+483\b", r"revenue\W+45092.85\b", r"joined\W+20\b"),
]  # fmt: skip


def hub_calls(task: Task, by_sql: bool) -> list[Call]:
    """What DBHub is asked: a look where the task needs one, then the statements."""
    calls: list[Call] = [("execute_sql", {"sql": statement}) for statement in task.hub]
    if task.look and by_sql:
        listed = f"string_agg(column_name || ' ' || data_type, ', ') {COLUMNS} AND table_name LIKE '{task.look}'"
        calls.insert(0, ("execute_sql", {"sql": f"SELECT table_name, {listed} GROUP BY 1"}))
    elif task.look:
        calls.insert(0, ("search_objects", {"object_type": "table", "detail_level": "full", "pattern": task.look}))
    return calls


def size(value: object) -> int:
    """Bytes as they stand in a model's context."""
    return len((value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))).encode())


def measured(server: Server, calls: list[Call], task: Task, show: bool) -> int:
    """Bytes of the arguments and answers.

    Raises:
        SystemExit: the answers lack something that is known; Failed, of `driver`, where a call failed.
    """
    spent, said = 0, ""
    for tool, arguments in calls:
        result, _ = server.ask("tools/call", {"name": tool, "arguments": arguments})
        answer = "".join(item["text"] for item in result["content"])
        spent, said = spent + size(arguments) + size(answer), f"{said}{answer}\n"
        if show:
            click.echo(f"> {tool} {json.dumps(arguments)}\n{answer}\n")
    if missing := [known for known in task.known if not re.search(known, said, re.DOTALL)]:
        raise SystemExit(f"{task.question}: {missing} not in the answers:\n{said}")
    return spent


@click.command(help=__doc__)
@click.option("--show", is_flag=True, help="Each call with its answer, too.")
def main(show: bool) -> None:
    base = make(SHOP)
    base.run("GRANT reader TO owner")
    name, dsn = "@bytebase/dbhub", base.url("owner", more="?sslmode=disable")
    hub = [npm.NODE, npm.program(npm.installed(f"{name}@1.4.0"), name), "--transport", "stdio", "--dsn", dsn]
    ours = [sys.executable, "-m", "mcp_postgres", "--write", "--ddl", base.url("owner")]
    sides = {
        "mcp-postgres": (ours, MODERN, [task.ours for task in TASKS]),
        "DBHub": (hub, LEGACY, [hub_calls(task, False) for task in TASKS]),
        "DBHub, schema by SQL": (hub, LEGACY, [hub_calls(task, True) for task in TASKS]),
    }
    rows = [[task.question] for task in TASKS] + [["all"], ["tools/list, bytes"]]
    table, before = Table("calls, bytes", *sides), base.rows(STATE)
    for side, (command, revision, asked) in sides.items():
        with Server(command, revision=revision, seconds=60) as server:
            server.open()
            spent = [measured(server, calls, task, show) for task, calls in zip(TASKS, asked, strict=True)]
            rows[-1].append(f"{size(server.ask('tools/list')[0]['tools']):,}")
        if base.rows(STATE) != before:
            raise SystemExit(f"{side}: something has stayed changed")
        counts = [len(calls) for calls in asked]
        for row, count, used in zip(rows, [*counts, sum(counts)], [*spent, sum(spent)], strict=False):
            row.append(f"{count}, {used:,}")
    for row in rows:
        table.add_row(*row)
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
