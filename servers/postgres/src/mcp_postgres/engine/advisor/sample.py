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
from typing import Any, NamedTuple, cast

import psycopg

from mcp_batteries.errors import Refused
from mcp_batteries.sql.language.identifiers import quote_identifier
from mcp_postgres.engine.admission.statements import judge
from mcp_postgres.engine.advisor.candidates import Index
from mcp_postgres.engine.advisor.plan import QUERY_CANCELED, AnalyzedStatement, plan_unjudged
from mcp_postgres.engine.audit.visible_schema import RELATION_LISTED
from mcp_postgres.engine.connection.session import Session, use_catalog_path, use_role_path
from mcp_postgres.input_values import encode_array
from mcp_postgres.policy import inner_statement

__all__ = ["SampledTable", "TableSample", "read_tables"]

Node = dict[str, Any]

_MAX_PAGES = 600
_MAX_BYTES = 16_000_000
_MAX_PARTS = 64
_MAX_ROWS = 200_000
# Rows, and their part of a table, whose change makes its statistics old; autovacuum's are 50 and 0.1.
_MIN_CHANGED_ROWS = 50
_MIN_CHANGED_SHARE = 0.2
_TABLES = f"""
WITH found AS (SELECT DISTINCT coalesce(pg_partition_root(c.oid), c.oid) AS oid
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    JOIN unnest($1::text[], $2::text[]) AS w (s, t) ON (w.s, w.t) = (n.nspname, c.relname)
    WHERE c.relkind IN ('r', 'm', 'p') AND n.nspname !~ '^pg_')
SELECT coalesce(json_agg(json_build_object('schema', n.nspname, 'name', c.relname,
    'sql_name', format('%I.%I', n.nspname, c.relname), 'display_name', c.oid::regclass::text, 'oid', c.oid::text,
    'has_row_security', row_security_active(c.oid),
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
FROM found f JOIN pg_class c ON c.oid = f.oid JOIN pg_namespace n ON n.oid = c.relnamespace WHERE {RELATION_LISTED}
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
# In the key of an index: what has points in it, and is no name with a schema.
_TEXT_OR_DECIMAL = re.compile(r"'[^']*'|\d\.\d")
_SKIPPED_TEXT = r"""(?P<skip>'(?:[^']|'')*'|--[^\n]*|/\*.*?\*/|\$(?P<tag>\w*)\$.*?\$(?P=tag)\$)"""


@dataclass(frozen=True)
class SampledTable:
    """A table, or a partitioned one with its parts, that indexes might be made on."""

    schema: str
    name: str
    sql_name: str
    display_name: str
    oid: str
    has_row_security: bool
    parts: Sequence[Mapping[str, Any]]
    columns: Sequence[Mapping[str, Any]]

    @property
    def pages(self) -> int:
        return sum(part["pages"] for part in self.parts)

    @property
    def explain_missing_statistics(self) -> str:
        """Why PostgreSQL's statistics do not tell what is in it; empty where they may."""
        if self._has_unknown_columns():
            return "there are no statistics of its columns"
        parts = self._analyzed_parts()
        changed = sum(part["changed"] for part in parts)
        if changed > _MIN_CHANGED_ROWS + _MIN_CHANGED_SHARE * sum(max(part["rows"], 0) for part in parts):
            return f"{changed:,} of its rows changed since the last ANALYZE"
        # What is not counted, as after a crash and on a standby, shows by the size.
        counted_pages = sum(part["counted"] for part in parts)
        if self.pages > 2 * counted_pages + _MIN_CHANGED_ROWS:
            return "it grew much since the last ANALYZE"
        return ""

    def _has_unknown_columns(self) -> bool:
        return any(not part["known"] for part in self._analyzed_parts())

    def _analyzed_parts(self) -> list[Mapping[str, Any]]:
        """Return the parts with rows whose statistics the role sees."""
        if self.has_row_security:
            return []
        return [part for part in self.parts if part["leaf"] and part["pages"]]

    def names(self) -> set[tuple[str, str]]:
        """Return schema and name of the table, and of its parts."""
        return {(self.schema, self.name), *((part["schema"], part["name"]) for part in self.parts)}


async def read_tables(session: Session, names: Collection[tuple[str, str]]) -> list[SampledTable]:
    """Return the tables of these schemas and names; of what is a part of a table the whole."""
    schemas = encode_array([schema for schema, _ in names], "schemas")
    tables = encode_array([table for _, table in names], "tables")
    text = await session.fetch_value(_TABLES, schemas, tables)
    return [SampledTable(**item) for item in cast("list[dict[str, Any]]", json.loads(text or "[]"))]


class _View(NamedTuple):
    """A view, and the query that it stands for."""

    schema: str
    name: str
    definition: str


@dataclass
class TableSample:
    """Copies of tables in this session, in a transaction that is rolled back."""

    session: Session
    tables: Sequence[SampledTable]
    row_count: int = 0
    _sampled_statements: list[AnalyzedStatement] = field(default_factory=list[AnalyzedStatement])
    _real_statements: list[AnalyzedStatement] = field(default_factory=list[AnalyzedStatement])
    _names: dict[Index, str] = field(default_factory=dict[Index, str])
    _index_of_name: dict[str, Index] = field(default_factory=dict[str, Index])

    @property
    def method(self) -> str:
        return f"tried on a sample of {self.row_count:,} rows"

    async def copy_tables(
        self, statements: Sequence[AnalyzedStatement], needed_columns: Mapping[str, Collection[str]]
    ) -> None:
        """Make the copies.

        Args:
            needed_columns: by the table's number, columns that statements name.

        Raises:
            Refused: a table can't be copied.
            psycopg.Error: PostgreSQL does not let the role make them.
        """
        self._real_statements = list(statements)
        for table in self.tables:
            self._check_may_copy(table)
        # What is copied runs too: types, and the expressions of the indexes there are.
        for item in statements:
            await judge(self.session, item.statement, only_planned=True)
        await use_catalog_path(self.session)
        views = await self._find_views(statements)
        for table in self.tables:
            await self._copy_table(table, needed_columns.get(table.oid, ()))
        hidden_tables = {(view.schema, view.name) for view in views}
        for table in self.tables:
            hidden_tables |= table.names()
        await use_role_path(self.session)
        for view in views:
            definition = _remove_schemas(view.definition, hidden_tables)
            await self._run(f"CREATE TEMP VIEW {quote_identifier(view.name)} AS {definition}")
        await use_catalog_path(self.session)
        for item in statements:
            sql = _remove_schemas(item.statement.sql, hidden_tables)
            self._sampled_statements.append(item._replace(statement=inner_statement(item.statement, sql)))

    def _check_may_copy(self, table: SampledTable) -> None:
        """Raise `Refused` for a table whose copy would not be like it, or would run code of others."""
        if table.has_row_security:
            raise Refused(f"`{table.display_name}` shows the role some of its rows only.")
        if self.session.audit.closed and any(column["strange"] for column in table.columns):
            raise Refused(f"`{table.display_name}` has columns of a type that another role made.")
        if len(table.parts) > _MAX_PARTS:
            raise Refused(f"`{table.display_name}` has {len(table.parts)} parts.")

    async def create(self, candidates: Sequence[Index]) -> list[Index]:
        """Make candidates; those of which PostgreSQL says that they can be."""
        tables = {table.display_name: table for table in self.tables}
        await self._set_search_path("pg_catalog, pg_temp")
        for number, index in enumerate(candidates):
            if not self._may_create(index):
                continue
            name = f"mcp_try_{number}"
            if await self._try_to_create(index, name, tables[index.table]):
                await self._register(index, name, tables[index.table])
        for table in self.tables:
            await self._run(f"ANALYZE pg_temp.{quote_identifier(table.name)}")
        await self._set_search_path(self.session.role.search_path)
        await use_catalog_path(self.session)
        return list(self._names)

    def _may_create(self, index: Index) -> bool:
        """Return whether an index is made of PostgreSQL's own functions, where no others may run."""
        if not self.session.role.is_judged:
            return True
        return not any("." in _TEXT_OR_DECIMAL.sub("", key) for key in index.keys)

    async def _try_to_create(self, index: Index, name: str, table: SampledTable) -> bool:
        try:
            await self._run("SAVEPOINT mcp_try")
            await self._run(f"CREATE INDEX {name} ON {index.definition('pg_temp.' + quote_identifier(table.name))}")
        except psycopg.Error as error:
            if error.sqlstate == QUERY_CANCELED:
                raise
            await self._run("ROLLBACK TO SAVEPOINT mcp_try")
            return False
        await self._run("RELEASE SAVEPOINT mcp_try")
        return True

    async def _register(self, index: Index, name: str, table: SampledTable) -> None:
        """Know the index by its name, and by those of its parts."""
        self._names[index] = name
        self._index_of_name[name] = index
        if len(table.parts) > 1:
            partition_query = f"SELECT relid::regclass::text FROM pg_partition_tree('pg_temp.{name}')"
            for part in await self.session.fetch_column(partition_query):
                self._index_of_name[part.rpartition(".")[2].strip('"')] = index

    async def plan_with(self, chosen: Collection[Index]) -> list[Node]:
        """Return the statements' plans where only these candidates are there; `{}` of one that has none."""
        await self._run("SAVEPOINT mcp_plans")
        dropped = [f"pg_temp.{name}" for index, name in self._names.items() if index not in chosen]
        if dropped:
            await self._run(f"DROP INDEX {', '.join(dropped)}")
        await self._run("SET LOCAL transaction_read_only = on")
        plans = [
            await self._plan(real, sampled)
            for real, sampled in zip(self._real_statements, self._sampled_statements, strict=True)
        ]
        await self._run("ROLLBACK TO SAVEPOINT mcp_plans")
        return plans

    async def _plan(self, real: AnalyzedStatement, sampled: AnalyzedStatement) -> Node:
        """Return the plan of a statement on the copies; `{}` where it has none."""
        plan: Node = {}
        await self._run("SAVEPOINT mcp_plan")
        try:
            # Its names mean what they mean without the copies.
            search_path = f"{self.session.role.search_path}, pg_temp"
            await judge(self.session, real.statement, only_planned=True, search_path=search_path)
            await use_role_path(self.session)
            plan = (await plan_unjudged(self.session, sampled.statement, generic=sampled.is_generic))["Plan"]
        except (psycopg.Error, Refused):
            await self._run("ROLLBACK TO SAVEPOINT mcp_plan; DEALLOCATE ALL")
        await use_catalog_path(self.session)
        return plan

    def index_of_name(self, name: str) -> Index | None:
        """Return the candidate that a plan calls so."""
        return self._index_of_name.get(name)

    async def estimate_bytes(self, index: Index) -> int:
        """Return about how many bytes one would have over the whole table."""
        table = next(table for table in self.tables if table.display_name == index.table)
        name = f"pg_temp.{self._names[index]}"
        sample_bytes = await self.session.fetch_value(
            f"SELECT coalesce((SELECT sum(pg_relation_size(relid)) FROM pg_partition_tree('{name}')),"
            f" pg_relation_size('{name}'))::bigint::text"
        )
        return int(int(sample_bytes or 0) / min(1.0, _MAX_PAGES / max(table.pages, 1)))

    async def _copy_table(self, table: SampledTable, needed_columns: Collection[str]) -> None:
        bytes_in_table = sum(part["bytes"] for part in table.parts)
        # What lies beside the table is large: only what is asked for is copied.
        is_toasted = bytes_in_table > 1.5 * table.pages * 8192 + 1_000_000
        copied_columns = [column["name"] for column in table.columns if column["read"]]
        max_rows = _MAX_ROWS
        if is_toasted:
            needed = {column["name"] for column in table.columns if column["indexed"]}.union(needed_columns)
            copied_columns = [name for name in copied_columns if name in needed]
            max_rows = _limit_toasted_rows(table, bytes_in_table)
        for part in table.parts:
            await self._create_copy(table, part, copied_columns)
        share = min(1.0, _MAX_PAGES / max(table.pages, 1))
        for part in table.parts:
            if part["leaf"] and part["pages"]:
                await self._copy_rows(part, copied_columns, share, max_rows)

    async def _create_copy(self, table: SampledTable, part: Mapping[str, Any], copied_columns: Collection[str]) -> None:
        """Create an empty temporary table like a table or a partition; what is not copied may be NULL there."""
        name = quote_identifier(part["name"])
        key = ""
        if part["key"]:
            key = f" PARTITION BY {part['key']}"
        if part["parent"] is not None:
            parent = quote_identifier(part["parent"])
            await self._run(f"CREATE TEMP TABLE {name} PARTITION OF pg_temp.{parent} {part['bound']}{key}")
            return
        await self._run(
            f"CREATE TEMP TABLE {name} (LIKE {part['spelled']} INCLUDING INDEXES INCLUDING STATISTICS){key}"
        )
        omitted = [column["name"] for column in table.columns if column["name"] not in copied_columns]
        if omitted:
            nullable = ", ".join(f"ALTER {column} DROP NOT NULL" for column in omitted)
            await self._run(f"ALTER TABLE pg_temp.{name} {nullable}")

    async def _copy_rows(self, part: Mapping[str, Any], columns: Sequence[str], share: float, max_rows: int) -> None:
        column_list = ", ".join(columns)
        sampled = ""
        if share < 1:
            sampled = f" TABLESAMPLE SYSTEM ({100 * share:.4f}) REPEATABLE (0)"
        read_sql = f"COPY (SELECT {column_list} FROM ONLY {part['spelled']}{sampled} LIMIT {max_rows}) TO STDOUT"
        chunks: list[Any] = []
        async with self.session.cursor().copy(read_sql.encode()) as source:
            chunks += [bytes(chunk) async for chunk in source]
        # Frozen, so that an index alone may answer where that is so in the table itself.
        options = " (FREEZE)" if part["visible"] else ""
        write_sql = f"COPY pg_temp.{quote_identifier(part['name'])} ({column_list}) FROM STDIN{options}"
        async with self.session.cursor().copy(write_sql.encode()) as target:
            for chunk in chunks:
                await target.write(chunk)
        self.row_count += len(chunks)

    async def _find_views(self, statements: Sequence[AnalyzedStatement]) -> list[_View]:
        """Return the views on these tables that statements name, those first that others are made of."""
        text = await self.session.fetch_value(_VIEWS, "{" + ",".join(table.oid for table in self.tables) + "}")
        views = [_View(*row) for row in cast("list[list[str]]", json.loads(text or "[]"))]
        texts = [item.statement.sql.casefold() for item in statements]
        named_views: list[_View] = []
        for view in reversed(views):
            if any(view.name.casefold() in text for text in texts):
                named_views.append(view._replace(definition=view.definition.rstrip(" ;")))
                texts.append(view.definition.casefold())
        named_views.reverse()
        return named_views

    async def _set_search_path(self, path: str) -> None:
        await self.session.fetch_value("SELECT pg_catalog.set_config('search_path', $1, true)", path)

    async def _run(self, sql: str) -> None:
        await self.session.run(sql)


def _remove_schemas(sql: str, tables: Collection[tuple[str, str]]) -> str:
    """Return a statement that names these tables without their schemas, so that temporary ones are meant."""
    if not tables:
        return sql
    pairs = "|".join(
        rf"{_name_pattern(schema)}\s*\.\s*(?={_name_pattern(name)}(?![\w$\"]))"
        for schema, name in sorted(tables, reverse=True)
    )
    return re.sub(
        rf"{_SKIPPED_TEXT}|(?<![\w$.\"])(?:{pairs})",
        lambda match: match["skip"] or "",
        sql,
        flags=re.DOTALL,
    )


def _name_pattern(name: str) -> str:
    exact = re.escape(quote_identifier(name))
    if name == name.lower():
        return rf"(?:{exact}|(?i:{re.escape(name)}))"
    return exact


def _limit_toasted_rows(table: SampledTable, bytes_in_table: int) -> int:
    """Return how many rows of a table with large values fill the bytes that a sample may have."""
    # The rows that were counted lay in the pages that were counted: there may be others by now.
    counted_parts = [part for part in table.parts if part["rows"] > 0 and part["counted"]]
    counted_pages = sum(part["counted"] for part in counted_parts)
    rows = sum(part["rows"] for part in counted_parts) / max(counted_pages, 1) * table.pages
    if not rows:
        return 20_001
    return int(min(_MAX_ROWS, _MAX_BYTES * rows / bytes_in_table)) + 1
