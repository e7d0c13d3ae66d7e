"""Finds what one transaction changed in the catalog, before and after, however large the database is.

A transaction leaves its number on every row of the catalogue that it writes (`xmin`) and takes away (`xmax`), so that
its changes cost what they are about. A cursor still sees what was there when it was declared: what these queries read,
those of `objects` too, must come from the tables of the catalogue, and not by functions that know only what there is
now.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field

from mcp_postgres.engine.catalog.relation_sql import RELATION_WORD
from mcp_postgres.engine.change.database_object import DatabaseObject, ObjectsByKey
from mcp_postgres.engine.change.objects import (
    READ_OBJECTS,
    RELATIONS,
    TYPE,
    array_literal,
    parse_objects,
    read_objects,
)
from mcp_postgres.engine.connection.session import Session

__all__ = ["CatalogTraces", "read_changed_objects", "read_traces", "start_tracing"]

# Whether this transaction, or a part of it, has written this number; not others, under way or committed since.
#
# A part that has ended holds no lock on its number any more, as those that are under way do.
_WRITTEN_HERE = """CASE WHEN age({0}) <= 0 THEN {0} <> ALL (ARRAY(SELECT l.transactionid FROM pg_locks l
    WHERE l.locktype = 'transactionid' AND l.granted AND l.pid IS DISTINCT FROM pg_backend_pid()))
    AND pg_xact_status((pg_current_xact_id()::text::bigint - age({0}))::text::xid8) = 'in progress' END"""
# Tables of the catalogue, and the columns that say which objects a row is about.
_TRACED_CATALOGS = {
    "pg_attribute": ("attrelid",), "pg_attrdef": ("adrelid",), "pg_constraint": ("oid", "conrelid", "contypid"),
    "pg_index": ("indexrelid", "indrelid"), "pg_rewrite": ("oid", "ev_class"), "pg_trigger": ("oid", "tgrelid"),
    "pg_policy": ("oid", "polrelid"), "pg_proc": ("oid",), "pg_enum": ("enumtypid",), "pg_range": ("rngtypid",),
    "pg_sequence": ("seqrelid",), "pg_inherits": ("inhrelid", "inhparent"), "pg_description": ("objoid",),
    "pg_statistic_ext": ("oid",), "pg_collation": ("oid",), "pg_extension": ("oid",), "pg_default_acl": ("oid",),
    "pg_auth_members": ("member",),
}  # fmt: skip
# Tables of objects that no statement makes again, what these are called, and how each is.
_UNMAKEABLE_CATALOGS = {
    "pg_operator": ("operator", "(SELECT format('%I.%s (%s, %s)', n.nspname, t.oprname, coalesce("
        f"{TYPE.format('t.oprleft')}, 'NONE'), {TYPE.format('t.oprright')}) FROM pg_namespace n "
        "WHERE n.oid = t.oprnamespace)"),
    "pg_cast": ("cast", f"format('(%s AS %s)', {TYPE.format('t.castsource')}, {TYPE.format('t.casttarget')})"),
    "pg_opclass": ("operator class", "t.opcname"), "pg_opfamily": ("operator family", "t.opfname"),
    "pg_am": ("access method", "t.amname"), "pg_language": ("language", "t.lanname"),
    "pg_conversion": ("conversion", "t.conname"), "pg_ts_config": ("text search configuration", "t.cfgname"),
    "pg_ts_dict": ("text search dictionary", "t.dictname"), "pg_ts_parser": ("text search parser", "t.prsname"),
    "pg_ts_template": ("text search template", "t.tmplname"),
    "pg_foreign_data_wrapper": ("foreign data wrapper", "t.fdwname"), "pg_foreign_server": ("server", "t.srvname"),
    "pg_event_trigger": ("event trigger", "t.evtname"), "pg_publication": ("publication", "t.pubname"),
    "pg_transform": ("transform for", TYPE.format("t.trftype")), "pg_largeobject_metadata": ("large object", "t.oid"),
}  # fmt: skip


def _trace_rows(catalog: str, columns: Iterable[str], mark: str) -> str:
    oids = ", ".join(f"(t.{column})" for column in columns)
    mine = _WRITTEN_HERE.format(f"t.{mark}")
    return f"SELECT x.oid, NULL, NULL, NULL FROM {catalog} t, LATERAL (VALUES {oids}) x(oid) WHERE {mine}"


def _trace_unmakeable(catalog: str, kind: str, name: str, mark: str) -> str:
    return f"""SELECT t.oid, 'z', format('{kind} %s', {name}), concat('{catalog} ', t.xmin) FROM {catalog} t
    WHERE {_WRITTEN_HERE.format(f"t.{mark}")} AND NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.classid =
    '{catalog}'::regclass
        AND d.objid = t.oid AND d.deptype IN ('a', 'e', 'i'))"""


def _traces_query(mark: str) -> str:
    parts = [
        f"""SELECT c.oid, 'c', format('%s %I.%I', {RELATION_WORD}, n.nspname, c.relname), nullif(c.relfilenode, 0)::text
        FROM {RELATIONS} WHERE {_WRITTEN_HERE.format(f"c.{mark}")} AND c.relkind <> 't'""",
        f"SELECT n.oid, 'n', n.nspname::text, NULL FROM pg_namespace n WHERE {_WRITTEN_HERE.format(f'n.{mark}')}",
        f"""SELECT t.oid, 'y', format('%I.%I', n.nspname, t.typname), NULL FROM pg_type t
        JOIN pg_namespace n ON n.oid = t.typnamespace WHERE {_WRITTEN_HERE.format(f"t.{mark}")}""",
        # An owner of a sequence is known by what it depends on only.
        f"""SELECT d.objid, NULL, NULL, NULL FROM pg_depend d WHERE d.classid = 'pg_class'::regclass
        AND d.refclassid = 'pg_class'::regclass AND d.deptype = 'a' AND {_WRITTEN_HERE.format(f"d.{mark}")}""",
        # Roles are in no table that everybody may read: all of them, where one is another now.
        """SELECT r.oid, NULL, NULL, NULL FROM pg_roles r WHERE EXISTS (SELECT 1 FROM pg_locks l
        WHERE l.pid = pg_backend_pid() AND l.mode = 'RowExclusiveLock'
        AND l.relation IN ('pg_authid'::regclass, 'pg_db_role_setting'::regclass))""",
        f"""SELECT d.objoid, 'z', 'comment on what all databases share', concat('pg_shdescription ', d.xmin)
        FROM pg_shdescription d WHERE {_WRITTEN_HERE.format(f"d.{mark}")}""",
        *(_trace_rows(catalog, columns, mark) for catalog, columns in _TRACED_CATALOGS.items()),
        *(_trace_unmakeable(catalog, kind, name, mark) for catalog, (kind, name) in _UNMAKEABLE_CATALOGS.items()),
    ]
    union = " UNION ".join(parts)
    return f"""SELECT coalesce(json_agg(json_build_array(oid::text, kind, label, more)), '[]')::text
    FROM ({union}) x(oid, kind, label, more) WHERE oid <> 0"""


_TRACES_NOW = _traces_query("xmin")
# What has others' names in its own: what lies in schemas, functions by the types of their arguments; and the tables of
# sequences, whose columns say how these count.
_RELATED = """
WITH given AS MATERIALIZED (SELECT $1::oid[] AS oids, $2::oid[] AS named)
SELECT coalesce(json_agg(DISTINCT x.oid::text), '[]')::text FROM (
    SELECT d.refobjid FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = ANY ((SELECT oids FROM
        given)::oid[]) AND d.refclassid = 'pg_class'::regclass AND d.deptype IN ('a', 'i')
    UNION SELECT oid FROM pg_class WHERE relnamespace = ANY ((SELECT named FROM given)::oid[]) AND relkind <> 't'
    UNION SELECT oid FROM pg_proc WHERE pronamespace = ANY ((SELECT named FROM given)::oid[])
    UNION SELECT oid FROM pg_type WHERE typnamespace = ANY ((SELECT named FROM given)::oid[])
    UNION SELECT oid FROM pg_statistic_ext WHERE stxnamespace = ANY ((SELECT named FROM given)::oid[])
    UNION SELECT oid FROM pg_collation WHERE collnamespace = ANY ((SELECT named FROM given)::oid[])
    UNION SELECT d.objid FROM pg_type t JOIN pg_depend d ON d.refclassid = 'pg_type'::regclass AND d.refobjid = t.oid
        AND d.classid = 'pg_proc'::regclass WHERE cardinality((SELECT named FROM given)) > 0
        AND (SELECT named FROM given)::oid[] && ARRAY[t.oid, t.typelem, t.typrelid, t.typnamespace]
) x(oid)
"""
# A setting that tells a cursor what is asked for: it has no parameters when it is read.
_OIDS_SETTING = "mcp_look.oids"
_DECLARE_TRACES = f"""DECLARE mcp_traces NO SCROLL CURSOR FOR {_traces_query("xmax")}"""
_DECLARE_OBJECTS = (
    f"DECLARE mcp_objects NO SCROLL CURSOR FOR {READ_OBJECTS.format(f'current_setting({_OIDS_SETTING!r}, true)')}"
)


@dataclass(frozen=True)
class CatalogTraces:
    """What rows of the catalogue that one transaction wrote are about.

    Attributes:
        oids: of all objects.
        relations: the names, and the files, of relations by their oid.
        names: those of relations, schemas and types.
        others: objects that no statement makes again.
    """

    oids: set[str] = field(default_factory=set[str])
    relations: dict[str, tuple[str, str | None]] = field(default_factory=dict[str, tuple[str, "str | None"]])
    names: dict[str, str] = field(default_factory=dict[str, str])
    others: ObjectsByKey = field(default_factory=ObjectsByKey)

    @staticmethod
    def parse(text: str | None) -> CatalogTraces:
        """Return what a query for it found."""
        traces = CatalogTraces()
        for oid, kind, label, more in json.loads(text or "[]"):
            if kind == "z":
                key = f"z{more.partition(' ')[0]}/{oid}"
                traces.others[key] = DatabaseObject(key, "", label, label, (more,))
                continue
            traces.oids.add(oid)
            if kind:
                traces.names[oid] = label
            if kind == "c":
                traces.relations[oid] = label, more
        return traces


async def start_tracing(session: Session, *, objects: bool) -> None:
    """Keep what is there now in sight, for `read_changed_objects`.

    Args:
        objects: not relations only, whose rows are to be changed.
    """
    await session.run(_DECLARE_TRACES)
    if objects:
        await session.run(f"SELECT pg_catalog.set_config('{_OIDS_SETTING}', '{{}}', true)")
        await session.run(_DECLARE_OBJECTS)


async def read_traces(session: Session) -> tuple[CatalogTraces, CatalogTraces]:
    """Return what this transaction has changed since `start_tracing`: as it was then, and as it is now."""
    was = CatalogTraces.parse(await session.fetch_value("FETCH NEXT FROM mcp_traces"))
    return was, CatalogTraces.parse(await session.fetch_value(_TRACES_NOW))


async def read_changed_objects(
    session: Session, old_traces: CatalogTraces, new_traces: CatalogTraces
) -> tuple[ObjectsByKey, ObjectsByKey]:
    """Return the objects that a change is about, as they were when `start_tracing` was called, and as they are now."""
    oids = old_traces.oids | new_traces.oids
    renamed = [
        oid for oid in old_traces.names if new_traces.names.get(oid, old_traces.names[oid]) != old_traces.names[oid]
    ]
    oids |= await _read_related(session, oids, renamed)
    await session.fetch_value("SELECT pg_catalog.set_config($1, $2, true)", _OIDS_SETTING, array_literal(oids))
    before = parse_objects(await session.fetch_value("FETCH NEXT FROM mcp_objects"))
    after = await read_objects(session, oids)
    # What others did to schemas meanwhile is not part of it.
    foreign_schemas = [key for key in {*before} ^ {*after} if key[0] == "n" and key[1:] not in oids]
    for key in foreign_schemas:
        (before if key in before else after).pop(key)
    return before | old_traces.others, after | new_traces.others


async def _read_related(session: Session, oids: Iterable[str], renamed: Iterable[str]) -> set[str]:
    return {*json.loads(await session.fetch_value(_RELATED, array_literal(oids), array_literal(renamed)) or "[]")}
