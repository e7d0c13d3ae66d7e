"""Tries indexes without hypopg: on temporary tables with a sample of the rows, rolled back with the call.

A temporary table hides the one of the same name from a statement, so that the planner is asked about the copy. The
sample is as PostgreSQL stores it, page by page, with the indexes there are. Every candidate is made, of PostgreSQL's
own functions only; those that are not to be there are dropped in a savepoint, in which plans are made READ ONLY.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import psycopg

from mcp_batteries.errors import Refused
from mcp_batteries.sql.identifiers import identifier
from mcp_postgres.engine.admission.statements import judge
from mcp_postgres.engine.advisor.candidates import Index
from mcp_postgres.engine.advisor.plan import unjudged
from mcp_postgres.engine.audit.visible_schema import LISTED
from mcp_postgres.engine.connection.pool import Session
from mcp_postgres.engine.connection.session import own_names, their_names
from mcp_postgres.input_values import as_array
from mcp_postgres.policy import ReadStatement, part_of

__all__ = ["Asked", "Sample", "Table", "tables_of"]

Node = dict[str, Any]

_PAGES = 600
_BYTES = 16_000_000
_MOST_PARTS = 64
_MOST_ROWS = 200_000
_CHANGED, _CHANGED_PART = 50, 0.2
"""Rows, and their part of a table, whose change makes its statistics old; autovacuum's are 50 and 0.1."""
_TABLES = f"""
WITH found AS (SELECT DISTINCT coalesce(pg_partition_root(c.oid), c.oid) AS oid
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    JOIN unnest($1::text[], $2::text[]) AS w (s, t) ON (w.s, w.t) = (n.nspname, c.relname)
    WHERE c.relkind IN ('r', 'm', 'p') AND n.nspname !~ '^pg_')
SELECT coalesce(json_agg(json_build_object('schema', n.nspname, 'name', c.relname,
    'spelled', format('%I.%I', n.nspname, c.relname), 'shown', c.oid::regclass::text, 'oid', c.oid::text,
    'secured', row_security_active(c.oid),
    'parts', (SELECT json_agg(json_build_object('schema', pn.nspname, 'name', p.relname,
            'spelled', format('%I.%I', pn.nspname, p.relname), 'parent', pp.relname, 'key', pg_get_partkeydef(p.oid),
            'bound', pg_get_expr(p.relpartbound, p.oid), 'leaf', p.relkind IN ('r', 'm'), 'rows', p.reltuples,
            'counted', p.relpages, 'changed', pg_stat_get_mod_since_analyze(p.oid), 'known', EXISTS (SELECT 1 FROM
            pg_stats k WHERE (k.schemaname, k.tablename) = (pn.nspname, p.relname)),
            'pages', pg_relation_size(p.oid) / current_setting('block_size')::int, 'bytes', pg_table_size(p.oid),
            'visible', p.relallvisible > p.relpages / 2) ORDER BY x.level, p.relname)
        FROM (SELECT c.oid AS relid, NULL::oid AS parentrelid, 0 AS level WHERE c.relkind <> 'p'
            UNION ALL SELECT relid, parentrelid, level FROM pg_partition_tree(c.oid) WHERE c.relkind = 'p') x
        JOIN pg_class p ON p.oid = x.relid JOIN pg_namespace pn ON pn.oid = p.relnamespace
        LEFT JOIN pg_class pp ON pp.oid = x.parentrelid),
    'columns', (SELECT json_agg(json_build_object('name', quote_ident(a.attname),
            'other', a.atttypid::regtype::text ~ '^(character|bpchar|citext)',
            'read', has_column_privilege(c.oid, a.attnum, 'SELECT'),
            'indexed', EXISTS (SELECT 1 FROM pg_index i WHERE i.indrelid = c.oid
                AND (a.attnum = ANY (i.indkey) OR i.indexprs IS NOT NULL OR i.indpred IS NOT NULL)),
            'strange', t.oid >= 16384 AND t.typtype <> 'e' AND e.typtype IS DISTINCT FROM 'e' AND NOT EXISTS (SELECT 1
                FROM pg_depend d WHERE d.classid = 'pg_type'::regclass AND d.objid = t.oid AND d.deptype = 'e'))
            ORDER BY a.attnum)
        FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
        LEFT JOIN pg_type e ON e.oid = t.typelem AND t.typcategory = 'A'
        WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped))), '[]')::text
FROM found f JOIN pg_class c ON c.oid = f.oid JOIN pg_namespace n ON n.oid = c.relnamespace WHERE {LISTED}
"""
_VIEWS = """
WITH RECURSIVE above (oid, level) AS (SELECT unnest($1::oid[]), 0 UNION SELECT r.ev_class, a.level + 1 FROM above a
    JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.refclassid = 'pg_class'::regclass
    JOIN pg_rewrite r ON r.oid = d.objid AND r.ev_type = '1' AND r.ev_class <> a.oid
    WHERE d.refobjid = a.oid AND a.level < 20)
SELECT coalesce(json_agg(json_build_array(n.nspname, c.relname, pg_get_viewdef(c.oid)) ORDER BY x.level), '[]')::text
FROM (SELECT oid, max(level) AS level FROM above WHERE level > 0 GROUP BY oid) x JOIN pg_class c ON c.oid = x.oid
JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind = 'v'
"""
_NOT_NAMES = r"""(?P<skip>'(?:[^']|'')*'|--[^\n]*|/\*.*?\*/|\$(?P<tag>\w*)\$.*?\$(?P=tag)\$)"""


@dataclass(frozen=True)
class Table:
    """A table, or a partitioned one with its parts, that indexes might be made on."""

    schema: str
    name: str
    spelled: str
    shown: str
    oid: str
    secured: bool
    parts: Sequence[Mapping[str, Any]]
    columns: Sequence[Mapping[str, Any]]

    @property
    def pages(self) -> int:
        return sum(part["pages"] for part in self.parts)

    @property
    def unknown(self) -> str:
        """Why PostgreSQL's statistics do not tell what is in it; empty where they may."""
        parts = [part for part in self.parts if part["leaf"] and part["pages"] and not self.secured]
        if any(not part["known"] for part in parts):
            return "there are no statistics of its columns"
        changed = sum(part["changed"] for part in parts)
        if changed > _CHANGED + _CHANGED_PART * sum(max(part["rows"], 0) for part in parts):
            return f"{changed:,} of its rows changed since the last ANALYZE"
        # What is not counted, as after a crash and on a standby, shows by the size.
        counted = sum(part["counted"] for part in parts)
        return "it grew much since the last ANALYZE" if self.pages > 2 * counted + _CHANGED else ""

    def names(self) -> set[tuple[str, str]]:
        """Schema and name of the table, and of its parts."""
        return {(self.schema, self.name), *((part["schema"], part["name"]) for part in self.parts)}


@dataclass(frozen=True)
class Asked:
    """A statement, and how much its cost counts."""

    statement: ReadStatement
    generic: bool
    weight: float = 1.0


async def tables_of(session: Session, names: Collection[tuple[str, str]]) -> list[Table]:
    """The tables of these schemas and names; of what is a part of a table the whole."""
    schemas, tables = ([name[place] for name in names] for place in (0, 1))
    text = await session.value(_TABLES, as_array(schemas, "schemas"), as_array(tables, "tables"))
    return [Table(**item) for item in cast("list[dict[str, Any]]", json.loads(text or "[]"))]


@dataclass
class Sample:
    """Copies of tables in this session, in a transaction that is rolled back."""

    session: Session
    tables: Sequence[Table]
    rows: int = 0
    _asked: list[Asked] = field(default_factory=list[Asked])
    _real: list[Asked] = field(default_factory=list[Asked])
    _names: dict[Index, str] = field(default_factory=dict[Index, str])
    _whose: dict[str, Index] = field(default_factory=dict[str, Index])

    @property
    def how(self) -> str:
        return f"tried on a sample of {self.rows:,} rows"

    async def open(self, asked: Sequence[Asked], needed: Mapping[str, Collection[str]]) -> None:
        """Make the copies.

        Args:
            needed: by the table's number, columns that statements name.

        Raises:
            Refused: a table can't be copied.
            psycopg.Error: PostgreSQL does not let the role make them.
        """
        self._real = list(asked)
        for table in self.tables:
            if table.secured:
                raise Refused(f"`{table.shown}` shows the role some of its rows only.")
            if self.session.world.closed and any(column["strange"] for column in table.columns):
                raise Refused(f"`{table.shown}` has columns of a type that another role made.")
            if len(table.parts) > _MOST_PARTS:
                raise Refused(f"`{table.shown}` has {len(table.parts)} parts.")
        # What is copied runs too: types, and the expressions of the indexes there are.
        for item in asked:
            await judge(self.session, item.statement, planned=True)
        await own_names(self.session)
        views = await self._views(asked)
        for table in self.tables:
            await self._copy(table, needed.get(table.oid, ()))
        hidden = {name for table in self.tables for name in table.names()} | {(view[0], view[1]) for view in views}
        await their_names(self.session)
        for _, name, definition in views:
            await self._run(f"CREATE TEMP VIEW {identifier(name)} AS {_without_schemas(definition, hidden)}")
        await own_names(self.session)
        self._asked = [
            Asked(
                part_of(item.statement, _without_schemas(item.statement.sql, hidden)),
                item.generic,
                item.weight,
            )
            for item in asked
        ]

    async def offer(self, candidates: Sequence[Index]) -> list[Index]:
        """Make candidates; those of which PostgreSQL says that they can be."""
        tables = {table.shown: table for table in self.tables}
        await self._path("pg_catalog, pg_temp")
        for number, index in enumerate(candidates):
            table, name = tables[index.table], f"mcp_try_{number}"
            if self.session.role.judged and any("." in re.sub(r"'[^']*'|\d\.\d", "", key) for key in index.keys):
                continue  # not PostgreSQL's own
            try:
                await self._run("SAVEPOINT mcp_try")
                await self._run(f"CREATE INDEX {name} ON {index.on('pg_temp.' + identifier(table.name))}")
            except psycopg.Error as error:
                if error.sqlstate == "57014":
                    raise
                await self._run("ROLLBACK TO SAVEPOINT mcp_try")
                continue
            await self._run("RELEASE SAVEPOINT mcp_try")
            self._names[index], self._whose[name] = name, index
            if len(table.parts) > 1:
                below = f"SELECT relid::regclass::text FROM pg_partition_tree('pg_temp.{name}')"
                for each in await self.session.column(below):
                    self._whose[each.rpartition(".")[2].strip('"')] = index
        for table in self.tables:
            await self._run(f"ANALYZE pg_temp.{identifier(table.name)}")
        await self._path(self.session.role.path)
        await own_names(self.session)
        return list(self._names)

    async def plans(self, chosen: Collection[Index]) -> list[Node]:
        """The statements' plans where only these candidates are there; `{}` of one that has none."""
        await self._run("SAVEPOINT mcp_plans")
        gone = [f"pg_temp.{name}" for index, name in self._names.items() if index not in chosen]
        if gone:
            await self._run(f"DROP INDEX {', '.join(gone)}")
        await self._run("SET LOCAL transaction_read_only = on")
        found: list[Node] = []
        for real, asked in zip(self._real, self._asked, strict=True):
            await self._run("SAVEPOINT mcp_plan")
            try:
                # Its names mean what they mean without the copies.
                await judge(self.session, real.statement, planned=True, path=f"{self.session.role.path}, pg_temp")
                await their_names(self.session)
                found.append((await unjudged(self.session, asked.statement, generic=asked.generic))["Plan"])
            except (psycopg.Error, Refused):
                await self._run("ROLLBACK TO SAVEPOINT mcp_plan; DEALLOCATE ALL")
                found.append({})
            await own_names(self.session)
        await self._run("ROLLBACK TO SAVEPOINT mcp_plans")
        return found

    def named(self, name: str) -> Index | None:
        """The candidate that a plan calls so."""
        return self._whose.get(name)

    async def size(self, index: Index) -> int:
        """About how many bytes one would have over the whole table."""
        table = next(table for table in self.tables if table.shown == index.table)
        name = f"pg_temp.{self._names[index]}"
        found = await self.session.value(
            f"SELECT coalesce((SELECT sum(pg_relation_size(relid)) FROM pg_partition_tree('{name}')),"
            f" pg_relation_size('{name}'))::bigint::text"
        )
        return int(int(found or 0) / min(1.0, _PAGES / max(table.pages, 1)))

    async def _copy(self, table: Table, needed: Collection[str]) -> None:
        size = sum(part["bytes"] for part in table.parts)
        share = min(1.0, _PAGES / max(table.pages, 1))
        # What lies beside the table is large: only what is asked for is copied.
        toasted = size > 1.5 * table.pages * 8192 + 1_000_000
        taken = [
            column["name"] for column in table.columns
            if column["read"] and (not toasted or column["indexed"] or column["name"] in needed)
        ]  # fmt: skip
        for part in table.parts:
            key = f" PARTITION BY {part['key']}" if part["key"] else ""
            if part["parent"] is None:
                how = f"(LIKE {part['spelled']} INCLUDING INDEXES INCLUDING STATISTICS)"
            else:
                how = f"PARTITION OF pg_temp.{identifier(part['parent'])} {part['bound']}"
            await self._run(f"CREATE TEMP TABLE {identifier(part['name'])} {how}{key}")
            if part["parent"] is None and (rest := [c["name"] for c in table.columns if c["name"] not in taken]):
                free = ", ".join(f"ALTER {name} DROP NOT NULL" for name in rest)
                await self._run(f"ALTER TABLE pg_temp.{identifier(part['name'])} {free}")
        # The rows that were counted lay in the pages that were counted: there may be others by now.
        known = [part for part in table.parts if part["rows"] > 0 and part["counted"]]
        rows = sum(part["rows"] for part in known) / max(sum(part["counted"] for part in known), 1) * table.pages
        most = int(min(_MOST_ROWS, _BYTES * rows / size if rows else 20_000)) + 1 if toasted else _MOST_ROWS
        for part in table.parts:
            if part["leaf"] and part["pages"]:
                await self._fill(part, taken, share, most)

    async def _fill(self, part: Mapping[str, Any], columns: Sequence[str], share: float, most: int) -> None:
        listed = ", ".join(columns)
        sampled = f" TABLESAMPLE SYSTEM ({100 * share:.4f}) REPEATABLE (0)" if share < 1 else ""
        out = f"COPY (SELECT {listed} FROM ONLY {part['spelled']}{sampled} LIMIT {most}) TO STDOUT"
        taken: list[Any] = []
        async with self.session.cursor().copy(out.encode()) as source:
            taken += [bytes(chunk) async for chunk in source]
        # Frozen, so that an index alone may answer where that is so in the table itself.
        options = " (FREEZE)" if part["visible"] else ""
        into = f"COPY pg_temp.{identifier(part['name'])} ({listed}) FROM STDIN{options}"
        async with self.session.cursor().copy(into.encode()) as target:
            for chunk in taken:
                await target.write(chunk)
        self.rows += len(taken)

    async def _views(self, asked: Sequence[Asked]) -> list[tuple[str, str, str]]:
        """The views on these tables that statements name, those first that others are made of."""
        text = await self.session.value(_VIEWS, "{" + ",".join(table.oid for table in self.tables) + "}")
        found = [(str(a), str(b), str(c)) for a, b, c in cast("list[list[Any]]", json.loads(text or "[]"))]
        texts = [item.statement.sql.casefold() for item in asked]
        named: list[tuple[str, str, str]] = []
        for view in reversed(found):
            if any(view[1].casefold() in each for each in texts):
                named.append(view)
                texts.append(view[2].casefold())
        return [(schema, name, definition.rstrip(" ;")) for schema, name, definition in reversed(named)]

    async def _path(self, path: str) -> None:
        await self.session.value("SELECT pg_catalog.set_config('search_path', $1, true)", path)

    async def _run(self, sql: str) -> None:
        await self.session.simple(sql)


def _without_schemas(sql: str, tables: Collection[tuple[str, str]]) -> str:
    """`sql` with these tables named without their schemas, so that temporary ones of the names are meant."""
    if not tables:
        return sql
    pairs = "|".join(
        rf"{_either(schema)}\s*\.\s*(?={_either(name)}(?![\w$\"]))" for schema, name in sorted(tables, reverse=True)
    )
    return re.sub(
        rf"{_NOT_NAMES}|(?<![\w$.\"])(?:{pairs})",
        lambda match: match["skip"] or "",
        sql,
        flags=re.DOTALL,
    )


def _either(name: str) -> str:
    exact = re.escape(identifier(name))
    return rf"(?:{exact}|(?i:{re.escape(name)}))" if name == name.lower() else exact
