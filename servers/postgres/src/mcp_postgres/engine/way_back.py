"""The way back from a change of the schema: statements for what came, and for what went as the catalogue spells it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

import psycopg

from mcp_batteries.sql.renames import renames_back
from mcp_postgres.engine.catalog import NAMED, OWN, RELATION
from mcp_postgres.engine.connections import Session

__all__ = ["LABELS", "by_name", "parts_of", "unrenamed", "way_back"]

LABELS = f"""
SELECT coalesce(json_object_agg(x.key, x.label), '{{}}')::text FROM (
    SELECT 'c' || c.oid AS key, format('%s %I.%I', {RELATION}, n.nspname, c.relname) AS label
        FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE {OWN} AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'i', 'I', 'S')
    UNION ALL SELECT concat('a', a.attrelid, '.', a.attnum), format('column %I.%I.%I', n.nspname, c.relname, a.attname)
        FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE {OWN} AND a.attnum > 0 AND NOT a.attisdropped AND c.relkind IN ('r', 'p', 'f')
    UNION ALL SELECT 'k' || oid, format('constraint %I on %s', conname, {NAMED.format(oid="conrelid")})
        FROM pg_constraint WHERE conrelid <> 0 AND contype <> 'n'
    UNION ALL SELECT 't' || oid, format('trigger %I on %s', tgname, {NAMED.format(oid="tgrelid")}) FROM pg_trigger
        WHERE NOT tgisinternal
    UNION ALL SELECT 'p' || oid, format('policy %I on %s', polname, {NAMED.format(oid="polrelid")}) FROM pg_policy
) x
"""
"""What can get another name, by what stays the same."""
_PARTS = f"""
SELECT coalesce(json_agg(x.label), '[]')::text FROM (
    SELECT format('%s %I.%I', {RELATION}, n.nspname, c.relname) AS label FROM pg_class c
    JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('i', 'I', 'S') AND (EXISTS (SELECT 1
        FROM pg_index i WHERE i.indexrelid = c.oid AND {NAMED.format(oid="i.indrelid")} = ANY ($1::text[]))
        OR EXISTS (SELECT 1 FROM pg_constraint k WHERE k.conindid = c.oid AND k.contype <> 'f')
        OR c.relkind = 'S' AND EXISTS (SELECT 1 FROM pg_depend d WHERE d.classid = 'pg_class'::regclass
            AND d.objid = c.oid AND d.deptype IN ('a', 'i') AND d.refclassid = 'pg_class'::regclass))) x
"""
"""Indexes and sequences that go with one of these tables; indexes of a constraint, sequences of a column."""
_BACK = """
WITH wanted AS (SELECT * FROM json_to_recordset($1::json) AS w (sign text, kind text, name text,
    place text, parts text))
SELECT coalesce(json_agg(x.back ORDER BY x.rank), '[]')::text FROM (
    SELECT 1 AS rank, 'CREATE ' || substr(pg_get_indexdef(c.oid), 8) || ';' AS back FROM wanted w JOIN pg_class c
        ON w.sign = '-' AND w.kind = 'index' AND c.oid = to_regclass(w.name)
        WHERE NOT EXISTS (SELECT 1 FROM pg_constraint k WHERE k.conindid = c.oid)
  UNION ALL SELECT 2, format('ALTER TABLE %s ADD COLUMN %I %s%s%s; -- its values are lost', a.attrelid::regclass,
        a.attname, format_type(a.atttypid, a.atttypmod), ' DEFAULT ' || pg_get_expr(e.adbin, e.adrelid),
        CASE WHEN a.attnotnull THEN ' /* NOT NULL */' ELSE '' END)
        FROM wanted w JOIN pg_attribute a ON w.sign = '-' AND w.kind = 'column' AND a.attrelid = to_regclass(w.place)
        AND quote_ident(a.attname) = w.name LEFT JOIN pg_attrdef e ON e.adrelid = a.attrelid AND e.adnum = a.attnum
        WHERE NOT EXISTS (SELECT 1 FROM wanted t WHERE t.sign = '-' AND t.kind LIKE '%table'
            AND to_regclass(t.name) = a.attrelid)
  UNION ALL SELECT 2, format('ALTER TABLE %s %s;', a.attrelid::regclass, concat_ws(', ',
        CASE WHEN strpos(w.parts, 't') > 0 THEN format('ALTER COLUMN %I TYPE %s', a.attname,
            format_type(a.atttypid, a.atttypmod)) END,
        CASE WHEN strpos(w.parts, 'n') > 0 THEN format('ALTER COLUMN %I %s NOT NULL', a.attname,
            CASE WHEN a.attnotnull THEN 'SET' ELSE 'DROP' END) END,
        CASE WHEN strpos(w.parts, 'd') > 0 THEN format('ALTER COLUMN %I %s', a.attname,
            coalesce('SET DEFAULT ' || pg_get_expr(e.adbin, e.adrelid), 'DROP DEFAULT')) END))
        FROM wanted w JOIN pg_attribute a ON w.sign = '~' AND w.kind = 'column' AND a.attrelid = to_regclass(w.place)
        AND quote_ident(a.attname) = w.name LEFT JOIN pg_attrdef e ON e.adrelid = a.attrelid AND e.adnum = a.attnum
        WHERE a.attgenerated = '' AND a.attidentity = '' AND w.parts <> ''
  UNION ALL SELECT 3, format('ALTER TABLE %s ADD CONSTRAINT %I %s;', k.conrelid::regclass, k.conname,
        pg_get_constraintdef(k.oid)) FROM wanted w JOIN pg_constraint k ON w.sign = '-' AND w.kind = 'constraint'
        AND k.conrelid = to_regclass(w.place) AND quote_ident(k.conname) = w.name WHERE k.contype <> 'n'
        AND NOT EXISTS (SELECT 1 FROM wanted t WHERE t.sign = '-' AND t.kind LIKE '%table'
            AND to_regclass(t.name) = k.conrelid)
  UNION ALL SELECT 4, rtrim(pg_get_functiondef(p.oid), E'\\n') || ';' FROM wanted w JOIN pg_proc p
        ON w.sign IN ('-', '~') AND w.kind = 'function' AND p.oid = to_regprocedure(w.name)
        WHERE p.prokind IN ('f', 'p')
  UNION ALL SELECT 5, format('CREATE OR REPLACE VIEW %s AS %s', c.oid::regclass, pg_get_viewdef(c.oid))
        FROM wanted w JOIN pg_class c ON w.sign IN ('-', '~') AND w.kind = 'view' AND c.oid = to_regclass(w.name)
  UNION ALL SELECT 5, format('CREATE MATERIALIZED VIEW %s AS %s', c.oid::regclass, pg_get_viewdef(c.oid))
        FROM wanted w JOIN pg_class c ON w.sign = '-' AND w.kind = 'materialized view' AND c.oid = to_regclass(w.name)
  UNION ALL SELECT 6, pg_get_triggerdef(t.oid) || ';' FROM wanted w JOIN pg_trigger t ON w.sign IN ('-', '~')
        AND w.kind = 'trigger' AND t.tgrelid = to_regclass(w.place) AND quote_ident(t.tgname) = w.name
  UNION ALL SELECT 7, format('-- no statement brings back %s with its %s rows: pg_dump --table=%s saves it',
        c.oid::regclass, greatest(c.reltuples, 0)::bigint, c.oid::regclass) FROM wanted w JOIN pg_class c
        ON w.sign = '-' AND w.kind = 'table' AND c.oid = to_regclass(w.name)
) x
"""


_DROPS = {
    "partitioned table": "DROP TABLE {name};", "foreign table": "DROP FOREIGN TABLE {name};",
    "table": "DROP TABLE {name};",
    "materialized view": "DROP MATERIALIZED VIEW {name};", "view": "DROP VIEW {name};",
    "sequence": "DROP SEQUENCE {name};", "index": "DROP INDEX {name};", "type": "DROP TYPE {name};",
    "column": "ALTER TABLE {place} DROP COLUMN {name};", "constraint": "ALTER TABLE {place} DROP CONSTRAINT {name};",
    "function": "DROP FUNCTION {name};", "trigger": "DROP TRIGGER {name} ON {place};",
    "policy": "DROP POLICY {name} ON {place};", "schema": "DROP SCHEMA {name};", "extension": "DROP EXTENSION {name};",
    "role": "DROP ROLE {name};", "statistics": "DROP STATISTICS {name};",
}  # fmt: skip
_ON = ("constraint", "trigger", "policy")
_SPELLED = {
    "+": (*_DROPS, "grant"),
    "-": ("grant", "index", "column", "constraint", "function", "view", "materialized view", "trigger", "table"),
    "~": ("column", "function", "view", "trigger"),
}
_BESIDE = ("index", "sequence", "table", "partitioned table", "foreign table", "materialized view")
"""Kinds that also change with something else, such as a table with its new index."""
_BECAME = {"+": "new", "-": "dropped", "~": "changed"}
_RELATIONS = (
    "table ", "partitioned table ", "foreign table ", "materialized view ", "view ", "index ", "sequence ",
)  # fmt: skip


_COLUMN = re.compile(r'(.*)\.("(?:[^"]|"")*"|[^."]+)')


_GRANT = re.compile(r"grant of (.*) on (schema |function |)(.*) to (.*)")


def by_name(text: str) -> dict[str, str]:
    """What is known of each object, by its name, from an answer of `OBJECTS`."""
    return {name: value for name, _, value in (line.partition("\t") for line in text.split("\n") if line)}


def unrenamed(objects: Sequence[str], was: dict[str, str], now: dict[str, str]) -> tuple[Sequence[str], Sequence[str]]:
    """The objects that did not only get another name, and the statements that give those that did their old ones.

    Args:
        was: an answer of `LABELS` from before the change; `now` one from behind it.
    """
    others = {label: now[key] for key, label in was.items() if now.get(key, label) != label}
    if not others:
        return objects, []
    relations = {old: new for old, new in others.items() if old.startswith(_RELATIONS)}
    if not {*relations}.isdisjoint(now.values()) or not {*relations.values()}.isdisjoint(was.values()):
        new = [label for key, label in now.items() if key not in was and label in relations]
        return _exchanged(objects, relations, new)
    names = {old[_kind(old) :]: new[_kind(new) :] for old, new in relations.items()}
    known = re.compile(rf'(?<![\w".$])(?:{"|".join(map(re.escape, names))})(?![\w"$])') if names else None
    came = {line[2:] for line in objects if line.startswith("+ ")}
    inner, outer, only = list[str](), list[str](), set[str]()
    for old in (line[2:] for line in objects if line.startswith("- ")):
        led = known.sub(lambda match: names[match[0]], old) if known else old
        new = others.get(old, led)
        if new not in came:
            continue
        only |= {f"- {old}", f"+ {new}"}
        if old in relations:
            outer += _renamed(old, new)
        elif new != led:
            inner.append(_inner(led, new))
    # An index of a constraint goes by the constraint's name.
    keys = {line.rpartition(" TO ")[2] for line in inner if " CONSTRAINT " in line}
    outer = [line for line in outer if not (line.startswith("ALTER INDEX") and line.rpartition(" TO ")[2] in keys)]
    return [line for line in objects if line not in only], [*inner, *outer]


def _exchanged(
    objects: Sequence[str], relations: dict[str, str], new: Sequence[str]
) -> tuple[Sequence[str], Sequence[str]]:
    """The same where a name means another relation than before: what else became of those can't be told apart."""
    names = [re.escape(label[_kind(label) :]) for label in (*relations, *relations.values())]
    about = re.compile(rf'(?<![\w".$])(?:{"|".join(names)})(?![\w"$])')

    def spare(label: str, number: int) -> str:
        kind = _kind(label)
        return f"{label[:kind]}{_divided(label[kind:])[0]}.mcp_back_{number}"

    steps = renames_back(relations, spare)
    kinds = {label: label[: _kind(label)].strip() for label in new}
    # Indexes and sequences go with their table.
    lines = [
        _DROPS[kind].format(name=label[_kind(label) :])
        for label, kind in kinds.items()
        if kind not in ("index", "sequence")
    ]
    lines += [line for now, old in steps for line in _renamed(old, now)]
    lines.append("-- not undone: what became of these besides their names")
    return [line for line in objects if not about.search(line)], lines


def _divided(name: str) -> tuple[str, str]:
    """What stands before the last part of a name, and that part."""
    match = _COLUMN.fullmatch(name)
    return (match[1], match[2]) if match else ("", name)


def _kind(label: str) -> int:
    """Where the name begins behind a relation's kind."""
    return len(next(kind for kind in _RELATIONS if label.startswith(kind)))


def _renamed(old: str, new: str) -> list[str]:
    what = old[: _kind(old)].strip().removeprefix("partitioned ").upper()
    (place, name), (there, called) = (_divided(label[_kind(label) :]) for label in (old, new))
    lines = [f"ALTER {what} {there}.{called} RENAME TO {name};"] if called != name else []
    if place != there and what not in ("INDEX", "SEQUENCE"):
        lines.append(f"ALTER {what} {there}.{name} SET SCHEMA {place};")
    return lines


def _inner(old: str, new: str) -> str:
    """The statement for a part of a table, both labels with the table's name of now."""
    kind, rest = old.split(" ", 1)
    called = new.split(" ", 1)[1]
    if kind == "column":
        table, now = _divided(called)
        return f"ALTER TABLE {table} RENAME COLUMN {now} TO {rest[len(table) + 1 :]};"
    (name, _, table), (now, _, _) = rest.partition(" on "), called.partition(" on ")
    if kind == "constraint":
        return f"ALTER TABLE {table} RENAME CONSTRAINT {now} TO {name};"
    return f"ALTER {kind.upper()} {now} ON {table} RENAME TO {name};"


async def parts_of(session: Session, objects: Sequence[str]) -> frozenset[str]:
    """Indexes and sequences that go with a new table of `objects`, or with a constraint or column."""
    tables = "{" + ",".join(_array(name) for name in _new_tables(objects)) + "}"
    return frozenset(json.loads(await session.value(_PARTS, tables) or "[]"))


async def way_back(
    session: Session,
    objects: Sequence[str],
    was: dict[str, str],
    now: dict[str, str],
    along: frozenset[str],
    renames: Sequence[str],
) -> Sequence[str]:
    """Statements that undo a change of `objects`, asked for when the change is not there any more.

    Args:
        was: what is known of each object as it was, by its name; `now` as it would be.
        along: objects that go with another.
        renames: what gives those that got another name their old ones; it goes behind what drops what is new.
    """
    wanted: list[dict[str, str]] = []
    lines: list[str] = []
    again: list[str] = []
    last: list[str] = []
    tables = _new_tables(objects)
    made = {rest.partition(" ")[2] for rest in (line[2:] for line in objects if line.startswith("+ "))}
    for line in objects:
        sign, rest = line.split(" ", 1)
        if found := _GRANT.fullmatch(rest) if sign != "~" else None:
            column = _COLUMN.fullmatch(found[3])
            if found[3] not in made and not (column and column[1] in made):
                (again if sign == "-" else lines).insert(0, _ungranted(*found.groups(), again=sign == "-"))
            continue
        kind = next((kind for kind in _DROPS if rest.startswith(kind + " ")), "")
        if not kind or (sign == "+" and rest in along):
            continue
        name, _, place = rest[len(kind) + 1 :].partition(" on ") if kind in _ON else (rest[len(kind) + 1 :], "", "")
        if found := _COLUMN.fullmatch(name) if kind == "column" else None:
            place, name = found.groups()
        if sign != "+":
            parts = _parts(was[rest], now[rest]) if kind == "column" and sign == "~" else ""
            wanted.append({"sign": sign, "kind": kind, "name": name, "place": place, "parts": parts})
        elif place not in tables:
            # A schema may hold what goes back to another first.
            (last if kind == "schema" else lines).insert(0, _DROPS[kind].format(name=name, place=place))
    lines += renames
    lines += _not_undone(objects)
    if wanted:
        await session.simple("SAVEPOINT mcp_back")
        try:
            lines += json.loads(await session.value(_BACK, json.dumps(wanted)) or "[]")
        except psycopg.Error as error:
            await session.simple("ROLLBACK TO SAVEPOINT mcp_back")
            lines.append(f"-- what was there before could not be spelled: {error.diag.message_primary}")
    return lines + again + last


def _not_undone(objects: Sequence[str]) -> list[str]:
    """A remark for each object for which there is no statement, and that does not go along with another."""
    lines: list[str] = []
    whole = {
        line[2:].split(" ")[-1] for line in objects if line[0] != "~" and line[2:].startswith((*_RELATIONS, "type "))
    }
    alone = all(line[0] == "~" for line in objects)
    for line in objects:
        sign, rest = line.split(" ", 1)
        kind = next((kind for kind in (*_DROPS, "grant") if rest.startswith(kind + " ")), "")
        if kind in _SPELLED[sign] or (sign == "~" and kind in _BESIDE and not alone):
            continue
        of = rest.split(" ")[-1]
        if of in whole or (rest.startswith("comment ") and of in {name.rpartition(".")[2] for name in whole}):
            continue
        lines.append(f"-- not undone: {rest}, {_BECAME[sign]}")
    return lines


def _ungranted(right: str, kind: str, what: str, whom: str, *, again: bool) -> str:
    """What takes a grant back, or gives it again."""
    if not kind and (column := _COLUMN.fullmatch(what)) and "." in column[1]:
        right, what = f"{right} ({column[2]})", column[1]
    return f"{'GRANT' if again else 'REVOKE'} {right} ON {kind.upper()}{what} {'TO' if again else 'FROM'} {whom};"


def _new_tables(objects: Sequence[str]) -> set[str]:
    kinds = ("+ table ", "+ partitioned table ", "+ foreign table ", "+ materialized view ")
    return {line.removeprefix(kind) for line in objects for kind in kinds if line.startswith(kind)}


def _array(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _parts(was: str, now: str) -> str:
    """What of a column is another: (n)ot null, (d)efault, (t)ype."""
    pairs = list(zip(was.split("/", 3), now.split("/", 3), strict=True))
    return "".join(part for part, (one, other) in zip("ndit", pairs, strict=True) if one != other)
