"""What a transaction did to a database, seen from inside it: objects, locks, rewritten files, rows, and the way back.

Two looks, before and after, are compared; PostgreSQL's catalogue and statistics say the rest.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import psycopg

from mcp_batteries.sql.changes import Sample
from mcp_batteries.sql.rows import count, size
from mcp_postgres.engine.admission import columns_of
from mcp_postgres.engine.catalog import NAMED, OWN, RELATION
from mcp_postgres.engine.cells import Lines
from mcp_postgres.engine.connections import Session
from mcp_postgres.engine.way_back import LABELS, by_name, parts_of, unrenamed, way_back

__all__ = ["OBJECTS", "Effects", "difference"]

_SHOWN = 5
_SAMPLED = 4
"""Tables whose rows are shown."""
_CELL = 100
_PATIENCE = 1000
"""Milliseconds that finding rows for a sample may take."""

_NOT_OF_EXTENSION = """NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.classid = 'pg_{name}'::regclass
    AND d.objid = {table}.oid AND d.deptype = 'e')"""
_GRANTS = """SELECT format('grant of %s on %s to %s', lower(a.privilege_type), o.what, CASE a.grantee WHEN 0 THEN
    'public' ELSE quote_ident(pg_get_userbyid(a.grantee)) END) || E'\\t' || a.is_grantable AS line
    FROM ({objects}) o, aclexplode(o.acl) a WHERE a.grantee <> o.owner"""
OBJECTS = f"""
SELECT coalesce(string_agg(line, E'\\n' ORDER BY line), '') FROM (
    SELECT format('%s %I.%I', {RELATION}, n.nspname, c.relname) || E'\\t' || concat(c.xmin, ' ',
        CASE WHEN c.relkind IN ('v', 'm') THEN (SELECT w.xmin FROM pg_rewrite w WHERE w.ev_class = c.oid
            AND w.rulename = '_RETURN') END) AS line
        FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE {OWN}
    UNION ALL SELECT format('column %I.%I.%I', n.nspname, c.relname, a.attname) || E'\\t' || concat_ws('/',
        a.attnotnull, coalesce(md5(pg_get_expr(e.adbin, e.adrelid)), ''), concat(a.attidentity, a.attgenerated),
        format_type(a.atttypid, a.atttypmod))
        FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
        LEFT JOIN pg_attrdef e ON e.adrelid = a.attrelid AND e.adnum = a.attnum
        WHERE {OWN} AND a.attnum > 0 AND NOT a.attisdropped AND c.relkind IN ('r', 'p', 'f')
    UNION ALL SELECT format('constraint %I on %s', conname, {
    NAMED.format(oid="conrelid")
}) || E'\\t' || xmin FROM pg_constraint
        WHERE conrelid <> 0 AND contype <> 'n'
    UNION ALL SELECT format('function %s', p.oid::regprocedure) || E'\\t' || p.xmin FROM pg_proc p JOIN pg_namespace n
        ON n.oid = p.pronamespace WHERE {OWN} AND {_NOT_OF_EXTENSION.format(name="proc", table="p")}
    UNION ALL SELECT format('trigger %I on %s', tgname, {
    NAMED.format(oid="tgrelid")
}) || E'\\t' || xmin FROM pg_trigger WHERE
        NOT tgisinternal
    UNION ALL SELECT format('policy %I on %s', polname, {NAMED.format(oid="polrelid")}) || E'\\t' || xmin FROM pg_policy
    UNION ALL SELECT format('rule %I on %s', rulename, {NAMED.format(oid="ev_class")}) || E'\\t' || xmin FROM pg_rewrite
        WHERE rulename <> '_RETURN' AND oid >= 16384
    UNION ALL SELECT format('statistics %I.%I', n.nspname, s.stxname) || E'\\t' || s.xmin FROM pg_statistic_ext s
        JOIN pg_namespace n ON n.oid = s.stxnamespace
    UNION ALL SELECT format('schema %I', n.nspname) || E'\\t' || n.xmin FROM pg_namespace n WHERE {OWN}
    UNION ALL SELECT format('type %I.%I', n.nspname, t.typname) || E'\\t' || t.xmin FROM pg_type t
        JOIN pg_namespace n ON n.oid = t.typnamespace WHERE t.typtype IN ('e', 'd', 'r')
        AND t.oid >= 16384 AND {_NOT_OF_EXTENSION.format(name="type", table="t")}
    UNION ALL SELECT format('label %s of %s', e.enumlabel, e.enumtypid::regtype) || E'\\t' || e.xmin FROM pg_enum e
    UNION ALL SELECT format('extension %I', extname) || E'\\t' || extversion FROM pg_extension
    UNION ALL SELECT format('comment on %s', pg_describe_object(d.classoid, d.objoid, d.objsubid)) || E'\\t' || d.xmin
        FROM pg_description d WHERE d.objoid >= 16384
    UNION ALL SELECT format('role %I', rolname) || E'\\t' || concat_ws(' ', rolsuper, rolinherit, rolcreaterole,
        rolcreatedb, rolcanlogin, rolreplication, rolbypassrls, rolconnlimit, rolvaliduntil, rolconfig) FROM pg_roles
    UNION ALL SELECT format('membership of %s in %s', pg_get_userbyid(member), pg_get_userbyid(roleid)) || E'\\t'
        || admin_option FROM pg_auth_members
    UNION ALL {
    _GRANTS.format(
        objects=f'''
        SELECT format('%I.%I', n.nspname, c.relname) AS what, c.relowner AS owner, c.relacl AS acl FROM pg_class c
            JOIN pg_namespace n ON n.oid = c.relnamespace WHERE {OWN}
        UNION ALL SELECT format('%I.%I.%I', n.nspname, c.relname, b.attname), c.relowner, b.attacl FROM pg_attribute b
            JOIN pg_class c ON c.oid = b.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
            WHERE {OWN} AND b.attacl IS NOT NULL
        UNION ALL SELECT format('schema %I', n.nspname), n.nspowner, n.nspacl FROM pg_namespace n WHERE {OWN}
        UNION ALL SELECT format('function %s', p.oid::regprocedure), p.proowner, p.proacl FROM pg_proc p
            JOIN pg_namespace n ON n.oid = p.pronamespace WHERE {OWN}
        UNION ALL SELECT format('%s to come%s', CASE e.defaclobjtype WHEN 'r' THEN 'tables' WHEN 'S' THEN 'sequences'
            WHEN 'f' THEN 'functions' WHEN 'T' THEN 'types' ELSE 'schemas' END,
            ' in ' || e.defaclnamespace::regnamespace::text), e.defaclrole, e.defaclacl FROM pg_default_acl e'''
    )
}) x
"""
"""A line for each object: its name, and what is another after a change."""

_LOCKS = """
SELECT coalesce(json_agg(json_build_array(l.relation::text, l.mode)), '[]')::text FROM pg_locks l
WHERE l.pid = pg_backend_pid() AND l.locktype = 'relation' AND l.granted AND l.mode <> 'AccessShareLock'
    AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND l.relation >= 16384
"""
_STOPS = {
    "AccessExclusiveLock": "stops every read and write", "ExclusiveLock": "stops writes",
    "ShareRowExclusiveLock": "stops writes", "ShareLock": "stops writes",
    "ShareUpdateExclusiveLock": "stops VACUUM and schema changes", "RowExclusiveLock": "stops schema changes",
    "RowShareLock": "stops schema changes",
}  # fmt: skip
"""Modes of locks, the strongest first, and what other sessions can't do meanwhile."""
_FILES = f"""
SELECT coalesce(json_object_agg(c.oid, json_build_array(format('%s %I.%I', {RELATION}, n.nspname, c.relname),
    nullif(c.relfilenode, 0)::text, CASE WHEN c.relkind IN ('r', 'm', 'i') THEN pg_relation_size(c.oid) END)),
    '{{}}')::text
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE {OWN}
"""
_ROWS = """
SELECT coalesce(json_object_agg(format('%I.%I', schemaname, relname), json_build_array(n_tup_ins, n_tup_upd, n_tup_del,
    seq_tup_read)), '{}')::text FROM pg_stat_xact_user_tables
"""
_NUMBERS = """
SELECT coalesce(json_agg(transactionid::text), '[]')::text FROM pg_locks
WHERE pid = pg_backend_pid() AND locktype = 'transactionid' AND granted
"""


@dataclass
class Effects:
    """What was seen before and while statements run; `begin` first."""

    session: Session
    before: str = ""
    after: str = ""
    labels: dict[str, str] = field(default_factory=dict[str, str])
    parts: frozenset[str] = frozenset()
    """Objects that went along with a new table or constraint."""
    remade: Sequence[str] = ()
    """Objects that got more than another name."""
    renames: Sequence[str] = ()
    """What gives the others their old names."""
    files: dict[str, list[Any]] = field(default_factory=dict[str, list[Any]])
    rows: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    changes_rows: bool = False
    """Whether rows of a table that was there changed."""
    counted: bool = False
    """Whether PostgreSQL counted any row that changed: not those of foreign tables, nor with `track_counts` off."""
    locks: dict[tuple[str, str], float] = field(default_factory=dict[tuple[str, str], float])
    """When each was taken, at the earliest: as its statement began."""

    async def begin(self) -> None:
        """Look before the first statement."""
        self.before = await self.session.value(OBJECTS) or ""
        self.files, self.rows = await self._json(_FILES), await self._json(_ROWS)
        self.labels = await self._json(LABELS)

    async def step(self, began: float) -> Sequence[str]:
        """Look behind one statement: the tables it locked, for what says of nothing else what it was about."""
        fresh: list[str] = []
        for oid, mode in await self._json(_LOCKS):
            # What is new is nobody else's to wait for.
            what = str(self.files[oid][0]) if oid in self.files else ""
            if what and not what.startswith("index ") and (what, mode) not in self.locks:
                self.locks[what, mode] = began
                fresh.append(what)
        return fresh

    async def end(self) -> tuple[Sequence[str], Sequence[tuple[str, Sequence[str]]]]:
        """Look behind the last: objects gained, lost and changed; and what stands out."""
        self.after = await self.session.value(OBJECTS) or ""
        now = time.monotonic()
        there = {str(what) for what, *_ in self.files.values()}
        held: dict[str, tuple[str, float]] = {}
        for (what, mode), since in self.locks.items():
            strongest = min(mode, held.get(what, (mode, 0.0))[0], key=list(_STOPS).index)
            held[what] = strongest, min(since, held.get(what, ("", since))[1])
        locks = [
            f"{what}: {mode} for {1000 * (now - since):.0f} ms, {_STOPS.get(mode, '')}"
            for what, (mode, since) in held.items()
        ]
        files: dict[str, list[Any]] = await self._json(_FILES)
        rewritten = [
            f"{files[oid][0]}, {size(files[oid][2])}"
            for oid, (_, file, bytes_) in self.files.items()
            if oid in files and bytes_ is not None and files[oid][1] != file
        ]
        lasting = {str(what) for oid, (what, *_) in files.items() if oid in self.files}
        touched, read = list[str](), list[str]()
        for table, numbers in (await self._json(_ROWS)).items():
            made, changed, gone, looked = (
                now - was for now, was in zip(numbers, self.rows.get(table, [0, 0, 0, 0]), strict=True)
            )
            said = [
                f"{number:,} {word}" for number, word in ((made, "in"), (changed, "changed"), (gone, "out")) if number
            ]
            touched += [f"{table}: {', '.join(said)}"] if said else []
            self.changes_rows |= bool(said) and f"table {table}" in lasting
            read += [f"{table}: {count(looked, 'row')}"] if looked > 0 and f"table {table}" in there else []
        self.counted = bool(touched)
        found = [
            ("Locks, each until the end:", locks),
            ("Written anew, whole:", rewritten),
            ("Rows, by triggers and cascades too:", touched),
            ("Read whole:", read),
        ]
        objects = difference(self.before, self.after)
        self.remade, self.renames = unrenamed(objects, self.labels, await self._json(LABELS))
        self.parts = await parts_of(self.session, self.remade)
        return objects, [(title, lines) for title, lines in found if lines]

    async def samples(self, *, keep: str) -> Sequence[Sample]:
        """Rows of tables that changed, as they were and as they are; ends by going back to the savepoint `keep`.

        Of a table that was written anew the first rows stand for all of them: they keep their order.
        """
        session = self.session
        changed = [
            table
            for table, numbers in (await self._json(_ROWS)).items()
            if numbers[:3] != self.rows.get(table, [0, 0, 0, 0])[:3]
        ][:_SAMPLED]
        numbers = "{" + ",".join(await self._json(_NUMBERS)) + "}"
        after = {table: await self._some(table, "xmin", numbers) for table in changed}
        # Rows that were locked only, for a foreign key, are there still.
        locked = {table: await self._locked(table, numbers) for table in changed}
        anew = [names for names in await self._anew() if names[1] not in changed][: _SAMPLED - len(changed)]
        is_now = {table: await self._quickly(f"SELECT * FROM ONLY {table} LIMIT {_SHOWN}") for _, table in anew}
        await session.simple(f"ROLLBACK TO SAVEPOINT {keep}")
        was = {table: await self._quickly(f"SELECT * FROM ONLY {name} LIMIT {_SHOWN}") for name, table in anew}
        # A row that a rolled back transaction changed still says so.
        before = {table: await self._some(table, "xmax", numbers, locked[table]) for table in changed}
        return [
            Sample(table, (after[table] or before[table])[0], before[table][1], after[table][1])
            for table in changed
            if before[table][1] or after[table][1]
        ] + [
            Sample(table, is_now[table][0], "".join(was[table][1]), "".join(is_now[table][1]), was[table][0])
            for _, table in anew
            if was[table][1]
        ]

    async def _anew(self) -> Sequence[tuple[str, str]]:
        """The names, before and after, of tables whose file is another one now."""
        files = await self._json(_FILES)
        return [
            (str(was[0]).removeprefix("table "), str(files[oid][0]).removeprefix("table "))
            for oid, was in self.files.items()
            if oid in files and str(was[0]).startswith("table ") and was[1] != files[oid][1]
        ]

    async def back(self) -> Sequence[str]:
        """Statements that undo the change, asked for when it is not there any more."""
        was, now = by_name(self.before), by_name(self.after)
        return await way_back(self.session, self.remade, was, now, self.parts, self.renames)

    async def _some(self, table: str, mark: str, numbers: str, without: str = "{}") -> tuple[Sequence[str], str]:
        """Some rows that one of these transactions wrote, or that it took away; none where that takes long."""
        which = f"{mark}::text = ANY ($1::text[]) AND ctid <> ALL ($2::tid[])"
        sql = f"SELECT * FROM ONLY {table} WHERE {which} LIMIT {_SHOWN}"
        names, rows = await self._quickly(sql, numbers, without)
        return names, "".join(sorted(rows))

    async def _locked(self, table: str, numbers: str) -> str:
        sql = f"SELECT ctid::text FROM ONLY {table} WHERE xmax::text = ANY ($1::text[]) LIMIT 1000"
        return "{" + ",".join(f'"{json.loads(row)[0]}"' for row in (await self._quickly(sql, numbers))[1]) + "}"

    async def _quickly(self, sql: str, *values: str) -> tuple[Sequence[str], list[str]]:
        """Columns and lines of a query; none where it takes long."""
        session = self.session
        await session.simple(
            f"SAVEPOINT mcp_sample; SELECT pg_catalog.set_config('statement_timeout', '{_PATIENCE}', true)"
        )
        try:
            (answer,) = await session.together((sql, values))
        except psycopg.Error:
            await session.simple("ROLLBACK TO SAVEPOINT mcp_sample")
            return (), []
        columns = columns_of(answer)
        writer = Lines(columns, _CELL)
        lines = [writer.line(row) for row in answer.rows()]
        await session.simple("ROLLBACK TO SAVEPOINT mcp_sample")
        return [column.name for column in columns], lines

    async def _json(self, sql: str) -> Any:
        return json.loads(await self.session.value(sql) or "null")


def difference(before: str, after: str) -> list[str]:
    """The objects that came (+), went (-) and have another form (~) between two answers of `OBJECTS`."""
    was, now = by_name(before), by_name(after)
    lines = [f"- {item}" for item in was if item not in now]
    lines += [f"+ {item}" for item in now if item not in was]
    lines += [f"~ {item}" for item in now if item in was and now[item] != was[item]]
    return sorted(lines, key=lambda line: line[2:])
