"""Advice on tables whose statistics are missing, old or wrong: does a query lose the index that helps it?

`python -m postgres.lying_statistics [FIRST_SEED] [WORLDS] [QUERIES]`, in `tests/`. A world is a table that came to
its rows and its statistics in one of the ways of `STATES`. What `explain_query` proposes for a query is made and
measured in blocks, after `ANALYZE` where the answer asks for it, and so are the indexes that are known to be best.
Prints each query that is lost: an index takes it down to a fifth of its blocks, and the advice doesn't come near; and
each that the advice makes slower.
"""

import random
import re
import sys
from collections import Counter
from dataclasses import dataclass
from typing import Any

import anyio
import psycopg

from postgres.advice_cases import proposed
from postgres.serving import inside, make, text_of

SCHEMA = """
CREATE TABLE t (id integer, a integer, b integer, c text, d integer, e text, f integer, g boolean, at timestamp,
    pad text);
CREATE TABLE s (k integer, name text);
"""
# b follows from a; c has one common value; d has twenty rows each; f and g are rare.
FILL = """
INSERT INTO t SELECT i, i::bigint * 7919 % {values}, i::bigint * 7919 % {values} % 50,
    CASE WHEN i % 100 < 96 THEN 'common' ELSE 'r' || i % 700 END, i / 20, 'e' || i, CASE WHEN i % 200 = 0 THEN i END,
    i % 300 = 0, timestamp '2024-01-01' + i * interval '1 minute', repeat('x', {pad})
FROM generate_series({first}, {last}) i
"""
SMALL = "INSERT INTO s SELECT i, 'n' || i FROM generate_series(1, 200) i"
EQUAL = """
INSERT INTO t SELECT 1, 1, 1, 'common', 1, 'e1', NULL, false, timestamp '2024-01-01', repeat('x', {pad})
FROM generate_series(1, 2 * {rows})
"""
UNIQUE = """
INSERT INTO t SELECT i, i, i, 'r' || i, i, 'e' || i, i, true, timestamp '2024-01-01' + i * interval '1 minute',
    repeat('x', {pad})
FROM generate_series(1, {rows}) i
"""
GONE = "DELETE FROM t WHERE pad <> ''"
COLUMNS = ("a", "b", "c", "d", "e", "f", "g", "at")
STATES = {
    "fresh": [FILL, SMALL, "ANALYZE"],
    "never analysed": [FILL, SMALL],
    "vacuumed, never analysed": [FILL, SMALL, "VACUUM"],
    "analysed when empty": ["ANALYZE", FILL, SMALL],
    "analysed with few rows": [FILL.replace("{last}", "{first} + 40"), SMALL, "ANALYZE", FILL],
    "analysed when all were equal": [EQUAL, SMALL, "ANALYZE", GONE, "VACUUM", FILL],
    "analysed when all differed": [UNIQUE, SMALL, "ANALYZE", GONE, "VACUUM", FILL],
    "most rows deleted since": [FILL, EQUAL, SMALL, "ANALYZE", "DELETE FROM t WHERE id = 1"],
    "most rows deleted, vacuumed": [EQUAL, FILL, SMALL, "ANALYZE", "DELETE FROM t WHERE id = 1", "VACUUM"],
    "n_distinct by hand": [
        *(f"ALTER TABLE t ALTER {name} SET (n_distinct = 2)" for name in COLUMNS), FILL, SMALL, "ANALYZE"
    ],
    "no statistics target": [
        *(f"ALTER TABLE t ALTER {name} SET STATISTICS 0" for name in COLUMNS), FILL, SMALL, "ANALYZE"
    ],
    "a target of one": [
        *(f"ALTER TABLE t ALTER {name} SET STATISTICS 1" for name in COLUMNS), FILL, SMALL, "ANALYZE"
    ],
}  # fmt: skip
# A query, the indexes that are best for it.
QUERIES = {
    "SELECT * FROM t WHERE a = {a}": ["t (a)"],
    "SELECT * FROM t WHERE b = {b}": ["t (b)"],
    "SELECT * FROM t WHERE c = 'r{c}'": ["t (c)"],
    "SELECT count(*) FROM t WHERE c = 'common' AND d = {d}": ["t (d)", "t (c, d)"],
    "SELECT * FROM t WHERE d BETWEEN {d} AND {d} + 3": ["t (d)"],
    "SELECT * FROM t WHERE e = 'e{i}'": ["t (e)"],
    "SELECT * FROM t WHERE f IS NOT NULL": ["t (f)", "t (f) WHERE f IS NOT NULL"],
    "SELECT * FROM t WHERE g": ["t (g)", "t (id) WHERE g"],
    "SELECT * FROM t WHERE a = {a} AND b = {a} % 50": ["t (a)", "t (a, b)"],
    "SELECT * FROM t WHERE a % 50 = {b} AND b = ({b} + 1) % 50": ["t (b, (a % 50))", "t (b)"],
    "SELECT * FROM t WHERE b = {b} AND g AND c = 'r{c}'": ["t (b, g, c)", "t (c)", "t (g)"],
    "SELECT * FROM t WHERE b = 7 AND g": ["t (b, g)", "t (g)", "t (b) WHERE g"],
    "SELECT * FROM t WHERE c = 'r{c}' AND at > timestamp '2024-01-05'": ["t (c)", "t (c, at)"],
    "SELECT * FROM t WHERE at > timestamp '2024-01-01' + ({rows} - 50) * interval '1 minute'": ["t (at)"],
    "SELECT * FROM t ORDER BY at DESC LIMIT 5": ["t (at)"],
    "SELECT * FROM t WHERE c = 'r{c}' ORDER BY at LIMIT 5": ["t (c, at)"],
    "SELECT * FROM t WHERE b = {b} ORDER BY at DESC LIMIT 5": ["t (b, at)"],
    "SELECT count(*) FROM t WHERE a IN ({a}, {a} + 1, {a} + 2)": ["t (a)"],
    "SELECT t.e FROM s JOIN t ON t.a = s.k WHERE s.name = 'n7'": ["t (a)"],
    "SELECT t.e FROM s JOIN t ON t.d = s.k": ["t (d)"],
    "SELECT t.e FROM s JOIN t ON t.d = s.k WHERE s.k < 20": ["t (d)"],
    "SELECT y.e FROM t x JOIN t y ON y.d = x.a WHERE x.e = 'e{i}'": ["t (e)", "t (d)"],
    "SELECT max(at) FROM t": ["t (at)"],
    "SELECT s.name FROM s WHERE NOT EXISTS (SELECT FROM t WHERE t.d = s.k)": ["t (d)"],
    "SELECT s.name, (SELECT max(at) FROM t WHERE t.a = s.k) FROM s WHERE s.k < 30": ["t (a, at)", "t (a)"],
    "SELECT b, count(*) FROM t WHERE d > {d} GROUP BY b": [],
    "SELECT * FROM t WHERE c = 'common'": [],
    "DELETE FROM t WHERE d = {d}": ["t (d)"],
}


@dataclass(frozen=True)
class Cost:
    blocks: int
    milliseconds: float


def cost(connection: psycopg.Connection[Any], sql: str) -> Cost:
    """The fastest of three runs, all rolled back."""
    runs: list[Cost] = []
    for _ in range(3):
        with connection.transaction(force_rollback=True):
            row = connection.execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {sql}".encode()).fetchone()
            assert row is not None
            plan = row[0][0]["Plan"]
            blocks = plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]
            runs.append(Cost(blocks, row[0][0]["Execution Time"]))
    return min(runs, key=lambda run: run.milliseconds)


def cost_with(connection: psycopg.Connection[Any], sql: str, statements: list[str]) -> Cost:
    with connection.transaction(force_rollback=True):
        for statement in statements:
            connection.execute(statement.encode())
        return cost(connection, sql)


async def world(seed: int, state: str, count: int) -> Counter[str]:
    """Asks `count` queries and prints what is lost or slower."""
    drawn = random.Random(seed)
    rows, values = drawn.choice([15_000, 30_000, 60_000, 150_000]), drawn.choice([300, 3_000])
    words = {"rows": rows, "values": values, "pad": drawn.choice([10, 60, 200]), "first": 100, "last": 99 + rows}
    base = make(SCHEMA)
    for step in STATES[state]:
        base.run(step.format(**words), "postgres" if step == "VACUUM" else "owner")
    i = drawn.randrange(200, rows)
    a, rare = i * 7919 % values, [number for number in range(700) if number % 100 >= 96]
    given = {"a": a, "b": a % 50, "c": drawn.choice(rare), "d": i // 20, "i": i, "rows": rows}
    asked = {query.format(**given): best for query, best in drawn.sample(list(QUERIES.items()), count)}
    async with inside("--timeout", 60, f"app={base.url('owner')}") as wire:
        said = {sql: text_of(await wire.call("explain_query", sql=sql)) for sql in asked}
    found: Counter[str] = Counter(asked=count)
    with base.connect() as connection:
        # Before anything is analysed: what the caller has today.
        today = {sql: cost(connection, sql) for sql in asked}
        for sql, indexes in asked.items():
            advice = [*re.findall(r"^CREATE STATISTICS .*;$", said[sql], re.MULTILINE), *proposed(said[sql])]
            if "ANALYZE" in said[sql]:
                advice.append("ANALYZE")
            ours = cost_with(connection, sql, advice) if advice else today[sql]
            plain = cost_with(connection, sql, ["ANALYZE"])
            best = cost_with(connection, sql, [*(f"CREATE INDEX ON {index}" for index in indexes), "ANALYZE"])
            without = min(plain.blocks, today[sql].blocks)
            helps = without >= 5 * best.blocks and without - best.blocks >= 100
            lost = helps and ours.blocks > max(3 * best.blocks + 20, today[sql].blocks / 5)
            slower = ours.milliseconds > 1.3 * today[sql].milliseconds + 1
            found.update(helps=helps, lost=lost, slower=slower)
            for what in ("lost",) * lost + ("slower",) * slower:
                print(
                    f"{what}: seed {seed}, {state}: {sql}\n  {advice}\n  today {today[sql]}, ours {ours}, best {best}"
                )
    return found


async def main(first: int = 1, worlds: int = 12, count: int = 6) -> None:
    total: Counter[str] = Counter()
    for seed in range(first, first + worlds):
        total += await world(seed, list(STATES)[seed % len(STATES)], count)
    figures = (f"{total[what]} {words}" for what, words in [("asked", "asked"), ("helps", "where an index helps")])
    print(f"{', '.join(figures)}, {total['lost']} lost, {total['slower']} slower, in {worlds} worlds")


if __name__ == "__main__":
    anyio.run(main, *map(int, sys.argv[1:4]))
