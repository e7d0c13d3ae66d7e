"""Calls every function of every extension that this PostgreSQL has, with texts and objects that would leave a trace.

The list of allowed functions (`audit/extensions.toml`) was made by reading; this is how it is tried. Each extension
gets a database, in which a role without powers has laid functions, views and tables that do harm to whoever runs them.
Some bear the names of tables that extensions look up, in a schema that comes first on the path.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import psycopg

from mcp_postgres.engine.audit.extensions import load_extension_rules

__all__ = ["LAY", "Function", "calls", "functions_of", "is_refused", "lay_decoys"]

LAY = """
CREATE FUNCTION evil.evil_each(double precision[], integer[], VARIADIC text[]) RETURNS double precision LANGUAGE plpgsql
    IMMUTABLE AS 'BEGIN RETURN evil.harm(1); END';
CREATE FUNCTION evil.evil_each(double precision, integer[], VARIADIC text[]) RETURNS double precision LANGUAGE plpgsql
    IMMUTABLE AS 'BEGIN RETURN evil.harm(1); END';
CREATE FUNCTION evil.evil_each(double precision[], text, VARIADIC text[]) RETURNS double precision LANGUAGE plpgsql
    IMMUTABLE AS 'BEGIN RETURN evil.harm(1); END';
CREATE FUNCTION evil.evil_columns() RETURNS TABLE (id integer, seq integer, word text, stdword text, token integer,
    rule text, geom text, rast text, pcid integer, srid integer, schema text, name text, unit bytea, shift float8,
    prefix text, factor float8, proj4text text, auth_name text, auth_srid integer, srtext text)
    LANGUAGE plpgsql IMMUTABLE AS 'BEGIN PERFORM evil.harm(1); RETURN; END';
CREATE VIEW evil.evil_seen AS SELECT * FROM evil.evil_columns();
GRANT SELECT ON evil.evil_seen TO PUBLIC;
"""
_LOOKED_UP = (
    "CREATE VIEW postgres.{name} AS SELECT * FROM evil.evil_columns(); GRANT SELECT ON postgres.{name} TO PUBLIC;"
)
"""A view in the schema that comes first on the path of the role `postgres`."""
_FUNCTIONS = """
SELECT p.proname, p.prokind::text, n.nspname,
    (SELECT coalesce(array_agg(format_type(a.type, NULL) ORDER BY a.at), '{}')
        FROM unnest(p.proargtypes::oid[]) WITH ORDINALITY a (type, at))
FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
JOIN pg_extension e ON e.oid = d.refobjid AND d.refclassid = 'pg_extension'::regclass
WHERE e.extname = %s AND p.prokind <> 'p' AND NOT 'internal'::regtype = ANY (p.proargtypes::oid[])
    AND p.prorettype NOT IN ('trigger'::regtype, 'event_trigger'::regtype, 'internal'::regtype)
ORDER BY p.oid
"""
_TEXTS = (
    "evil.evil_seen", "evil_seen", "evil.harm(1)", "evil.harm", "(SELECT evil.harm(1))", "SELECT evil.harm(1)",
    "SELECT * FROM evil.evil_seen", "SELECT 1 AS id, 1 AS source, 2 AS target, evil.harm(1)::float8 AS cost",
    "evil.evil_each(double precision[],integer[],text[])", "postgres.spatial_ref_sys", "[rast] + (SELECT evil.harm(1))",
    'geom") AS extent, evil.harm(1) FROM public.t --', "geom'); SELECT evil.harm(1); --",
    "x' || evil.harm(1)::text || '", "id = evil.harm(1)", "1 ORDER BY evil.harm(1)",
)  # fmt: skip
_CALLBACKS = (
    "evil.harm(integer)", "evil.evil_each(double precision[],integer[],text[])",
    "evil.evil_each(double precision,integer[],text[])",
    "evil.evil_each(double precision[],text,text[])",
)  # fmt: skip
_NAMING = {
    "text": _TEXTS, "character varying": _TEXTS, "character": _TEXTS, "cstring": _TEXTS, "name": ("evil_seen", "t"),
    "regclass": ("evil.evil_seen", "public.t"), "regprocedure": _CALLBACKS, "regproc": ("evil.do_harm",),
    "regtype": ("evil.evil_seen",), "oid": ("evil.evil_seen", "evil.harm(integer)"),
}  # fmt: skip
"""What could name something, for each type of argument, and for arrays of it."""
_HARMLESS = {
    "oid": "public.t", "regclass": "public.t", "regprocedure": "abs(integer)", "regproc": "now", "regtype": "integer",
}  # fmt: skip
_RASTER = "public.st_addband(public.st_makeemptyraster(4, 4, 0, 0, 1, -1, 0, 0, 4326), '32BF'::text, 1, 0)"
_VALUES = {
    "integer": "1", "bigint": "1", "smallint": "1::smallint", "double precision": "1", "real": "1", "numeric": "1",
    "boolean": "true", "bytea": "'\\x01'::bytea", "json": "'{}'::json", "jsonb": "'{}'::jsonb", "xml": "'<a/>'::xml",
    "date": "'2026-01-01'::date", "interval": "'1 day'::interval",
    "uuid": "'00000000-0000-0000-0000-000000000000'::uuid",
    "timestamp without time zone": "'2026-01-01'::timestamp", "timestamp with time zone": "'2026-01-01'::timestamptz",
    "anyelement": "1", "anynonarray": "1", "anyarray": "ARRAY[1]", '"any"': "1", "record": "ROW(1)",
    "geometry": "'SRID=4326;POLYGON((0 0,1 0,1 1,0 0))'::public.geometry",
    "geography": "'SRID=4326;POINT(1 1)'::public.geography", "raster": _RASTER, "hstore": "'a=>1'::public.hstore",
    "integer[]": "ARRAY[1]", "double precision[]": "ARRAY[1]::float8[]", "bigint[]": "ARRAY[1]::bigint[]",
    "rastbandarg[]": f"ARRAY[ROW({_RASTER}, 1)]::public.rastbandarg[]",
}  # fmt: skip


@dataclass(frozen=True)
class Function:
    """A function that a statement could call.

    Attributes:
        kind: as in `pg_proc.prokind`.
    """

    name: str
    kind: str
    schema: str
    types: list[str]

    @property
    def spelled(self) -> str:
        return f"{self.schema}.{self.name}({', '.join(self.types)})"


def functions_of(connection: psycopg.Connection[Any], extension: str) -> list[Function]:
    """Return the functions of an extension that a statement could call."""
    return [Function(*row) for row in connection.execute(_FUNCTIONS, (extension,)).fetchall()]


def lay_decoys(extension: str) -> list[str]:
    """Return SQL that lays views with the names of tables that the extension looks up."""
    rules = load_extension_rules().get(extension)
    names = {
        *(rules.relations if rules else ()),
        "spatial_ref_sys",
        "unit_units",
        "unit_prefixes",
        "pointcloud_formats",
    }
    return [_LOOKED_UP.format(name=name) for name in sorted(names)]


def calls(function: Function) -> Iterator[str]:
    """The calls of one function: once with plain values, then with each naming text in each argument and in all."""
    types = function.types
    naming = [number for number, kind_of in enumerate(types) if _naming(kind_of)]
    most = max((len(_naming(types[number])) for number in naming), default=0)
    plain = [_plain(kind_of) for kind_of in types]
    yield _statement(function, plain)
    for turn in range(most):
        for places in (naming, *([number] for number in naming if len(naming) > 1)):
            arguments = list(plain)
            for number in places:
                choices = _naming(types[number])
                arguments[number] = _named(types[number], choices[turn % len(choices)])
            yield _statement(function, arguments)


def is_refused(said: str) -> bool:
    """Return whether the server refused a call, rather than PostgreSQL."""
    return "may run what it is given" in said or "may do more than read" in said or "code of another role" in said


def _naming(kind: str) -> tuple[str, ...]:
    return _NAMING.get(kind.removesuffix("[]"), ())


def _named(kind: str, text: str) -> str:
    quoted = "'" + text.replace("'", "''") + "'"
    if kind.removesuffix("[]") == "oid":
        quoted += "::regprocedure" if "(" in text else "::regclass"
    return f"ARRAY[{quoted}]::{kind}" if kind.endswith("[]") else f"{quoted}::{kind}"


def _plain(kind: str) -> str:
    if _naming(kind):
        return _named(kind, _HARMLESS.get(kind.removesuffix("[]"), "id"))
    word = re.sub(r'^"?\w+"?\.', "", kind)
    return _VALUES.get(word) or _VALUES.get(kind) or f"NULL::{kind}"


def _statement(function: Function, arguments: list[str]) -> str:
    call = f'"{function.schema}"."{function.name}"({", ".join(arguments)})'
    if function.kind == "w":
        return f"SELECT {call} OVER ()"
    if function.kind == "a":
        return f"SELECT {call} FROM public.t"
    return f"SELECT {call}"
