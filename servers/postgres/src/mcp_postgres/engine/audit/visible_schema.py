"""The part of a database that the operator serves: schemas, objects and masked columns, from the catalog.

PostgreSQL parses a statement, which names by number all that it touches; `trees` follows that through subqueries and
views. Whatever is not listed is refused, and so is what shows values without naming where they are from: catalogues
and statistics, other sessions, large objects, functions whose code is not in the tree. To list a view or a function by
its own name vouches for what it does inside. Masked columns stay so whatever leads to them.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from mcp_batteries.errors import Refused, quote
from mcp_postgres.engine.audit.catalog_reader import CatalogReader
from mcp_postgres.engine.audit.procedures import FIRST_OWN, Procedure, functions_in
from mcp_postgres.engine.audit.query_trees import Barred, Flow, Touched
from mcp_postgres.policy import Part

__all__ = ["LISTED", "NAMED_IN", "QUERY", "WHOLE", "ServedPart"]

LISTED = "(/* listed */ true)"
"""In a query of our own: whether relation `c` of schema `n` is listed. `Session` puts in what stands for it."""
WHOLE = "(/* whole */ true)"
"""The same: whether all of schema `n` is listed."""
NAMED_IN = "(/* named in */ true)"
"""The same: whether anything of schema `n` is listed."""
QUERY = "(/* query */ query)"
"""The same: what other sessions run, which has values in it."""

_RELATIONS = f"""
SELECT c.oid::text, n.nspname, c.relname, format('%I.%I', n.nspname, c.relname), c.relkind::text, c.relispartition,
    EXISTS (SELECT 1 FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e'),
    EXISTS (SELECT 1 FROM pg_rewrite w WHERE w.ev_class = c.oid AND w.ev_type <> '1'),
    (SELECT string_agg(inhparent::text, ' ') FROM pg_inherits i WHERE i.inhrelid = c.oid),
    CASE WHEN c.relkind IN ('v', 'm') THEN (SELECT w.ev_action::text FROM pg_rewrite w
        WHERE w.ev_class = c.oid AND w.ev_type = '1') END
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S', 't') AND c.oid >= {FIRST_OWN}
"""
_COLUMNS = f"""
SELECT a.attrelid::text, a.attname, a.attnum::text, CASE WHEN a.attgenerated <> '' THEN d.adbin::text END
FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE a.attrelid >= {FIRST_OWN} AND a.attnum > 0 AND NOT a.attisdropped
"""
_PROCS = f"""
SELECT p.oid::text, n.nspname, p.proname, p.provolatile::text, coalesce((SELECT e.extname FROM pg_depend d
    JOIN pg_extension e ON e.oid = d.refobjid WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid
    AND d.deptype = 'e' AND d.refclassid = 'pg_extension'::regclass), '')
FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE p.oid >= {FIRST_OWN} OR p.proname ~ $1
"""
_TELLING = (
    "^(pg_|lo_|loread|lowrite|to_reg|has_|currtid|ts_stat|ts_rewrite|query_|cursor_|binary_upgrade|brin_|gin_clean|"
    "row_security|set_config|nextval|setval|currval|lastval|format_type|makeaclitem|acldefault)|_to_xml|_to_xmlschema|"
    "_description$"
)
"""PostgreSQL's own functions that tell of more than their arguments, or act."""
_TELLING_NOTHING = re.compile(
    "pg_(typeof|size_pretty|size_bytes|column_size|sleep.*|lsn.*|collation_for|backend_pid|is_in_recovery|"
    "postmaster_start_time|char_to_encoding|encoding_to_char|client_encoding|wal_lsn_diff|snapshot_.*)"
)
_COMPUTING = {
    "btree_gin", "btree_gist", "citext", "cube", "earthdistance", "fuzzystrmatch", "hstore", "intarray", "isn", "ltree",
    "pg_trgm", "pgcrypto", "seg", "unaccent", "uuid-ossp", "vector",
}  # fmt: skip
"""Extensions whose stable functions depend on settings, and on nothing in tables."""
_NAMES = "(?:24|1008|2202|2205|2206|2207|2210|2211|4089|4090|4096|4097)"
"""Types whose values are numbers of relations, functions, types, schemas and roles, shown by name; and arrays."""
_NAMING = re.compile(
    rf":(?:consttype|paramtype|resulttype) {_NAMES} |:funcid (?!1619 )\d+ :funcresulttype {_NAMES} "
    rf"|(?:funccoltypes|(?<!:self_reference true )(?<!:self_reference false ):coltypes) \(o (?:\d+ )*{_NAMES}[ )]"
)
"""In a tree: where such a value is made of something else. `pg_typeof`, 1619, tells of what is there."""
_TABLE_OF_ROW = re.compile(r"\{RELABELTYPE :arg \{VAR [^{}]*:varattno -6 [^{}]*\} :resulttype 2205 ")
_ATTNO = re.compile(r":varattno (\d+)")
_LIST = "`list_objects` lists what is served."


@dataclass(frozen=True)
class _Relation:
    schema: str
    table: str
    name: str
    kind: str
    partition: bool
    extension: bool
    rules: bool
    parents: tuple[int, ...]
    tree: str | None


@dataclass
class ServedPart:
    """What of one database is served; loaded with `World`, whenever the catalogue has changed.

    Args:
        part: what the operator says.
    """

    part: Part
    _relations: dict[int, _Relation] = field(default_factory=dict[int, _Relation])
    _masked: dict[int, frozenset[int]] = field(default_factory=dict[int, frozenset[int]])
    _names: dict[int, frozenset[str]] = field(default_factory=dict[int, frozenset[str]])
    _children: dict[int, list[int]] = field(default_factory=dict[int, list[int]])
    _telling: dict[int, str] = field(default_factory=dict[int, str])
    _missing: str | None = None

    async def load(self, session: CatalogReader, own: Mapping[int, Procedure]) -> None:
        """Be as the catalogue is now.

        Args:
            own: the functions that are not PostgreSQL's own.
        """
        relations, columns, procs = await session.together((_RELATIONS, ()), (_COLUMNS, ()), (_PROCS, (_TELLING,)))
        self._relations = {
            int(oid): _Relation(
                schema, table, name, kind, part == "t", extension == "t", rules == "t",
                tuple(map(int, (parents or "").split())), tree,
            )
            for oid, schema, table, name, kind, part, extension, rules, parents, tree in relations.rows()
        }  # fmt: skip
        self._children = defaultdict(list)
        for oid, relation in self._relations.items():
            for parent in relation.parents:
                self._children[parent].append(oid)
        self._mask([(int(oid), name, int(number), tree) for oid, name, number, tree in columns.rows()])
        self._telling = {
            int(oid): name
            for oid, schema, name, volatility, extension in procs.rows()
            if not self._computes(int(oid), schema, name, volatility, extension, own.get(int(oid)))
        }

    def check(self) -> None:
        """Return if all that is to be masked is there.

        Raises:
            Refused: it is not.
        """
        if self._missing is not None:
            raise Refused(
                f"The operator masks {quote(self._missing)}, which is not there: nothing is served until that is so.",
                "The operator can mend `--mask`.",
            )

    def outputs(self, trees: Sequence[str]) -> frozenset[int]:
        """The outputs, counted from 0, that have to be masked of a statement with these parsed trees.

        Raises:
            Refused: it touches what is not served, or a masked column is more than an output.
        """
        self.check()
        try:
            (tree,) = trees
            if self.part.only and _NAMING.search(_TABLE_OF_ROW.sub("", tree)):
                raise Barred(
                    "A value of the type regclass, or one like it, may tell names of what is not served.",
                    "Only `tableoid::regclass` may be shown; `pg_typeof(value)::text` tells a type.",
                )
            return Flow(self).outputs(tree)
        except Barred as why:
            raise Refused(why.what, why.fix) from None
        except (ValueError, RecursionError):
            raise Refused("What `sql` touches can't be told.", "Write it in a simpler way.") from None

    def relation(self, oid: int) -> Touched:
        found = self.anything(oid)
        relation = self._relations[oid]
        if not self._is_listed(oid):
            raise Barred(f"{quote(relation.name)} is not served.", _LIST)
        if relation.rules:
            raise Barred(f"{quote(relation.name)} has rules, which may lead elsewhere.", _LIST)
        for child in self._below(oid):
            if not self._is_listed(child):
                raise Barred(f"{quote(relation.name)} has rows of another table, which is not served.", _LIST)
        return found

    def anything(self, oid: int) -> Touched:
        relation = self._relations.get(oid)
        if relation is None or relation.schema.startswith("pg_"):
            raise Barred("PostgreSQL's own catalogues and statistics are not served.", _LIST)
        masked = self._masked.get(oid, frozenset())
        return Touched(relation.name, masked, relation.tree, (relation.schema, relation.table) in self.part.only)

    def functions(self, tree: str) -> None:
        for oid in functions_in(tree):
            if (name := self._telling.get(oid)) is not None:
                raise Barred(
                    f"{quote(name + '()')} may tell of more than is served.",
                    "The operator can vouch for a function of the database by `--only SCHEMA.FUNCTION`.",
                )

    def masked(self, oid: int) -> frozenset[str]:
        """The masked columns of a table, by name."""
        return self._names.get(oid, frozenset())

    def filled(self, sql: str) -> str:
        """A query of our own, with what is listed in the place of `LISTED` and the like."""
        if not self.part:
            return sql
        sql = sql.replace(QUERY, "'not shown'::text")
        if not self.part.only:
            return sql
        whole = _row(name for name, *more in self.part.only if not more)
        named = _row(name for name, *_ in self.part.only)
        single = ", ".join(f"({', '.join(map(_literal, item))})" for item in self.part.only if len(item) > 1)
        listed = f"(n.nspname IN ({whole}) OR (n.nspname, c.relname) IN ({single or '(NULL, NULL)'}))"
        return (
            sql.replace(LISTED, listed)
            .replace(WHOLE, f"(n.nspname IN ({whole}))")
            .replace(NAMED_IN, f"(n.nspname IN ({named}))")
        )

    def _is_listed(self, oid: int) -> bool:
        relation = self._relations[oid]
        if not self.part.only or (relation.schema, relation.table) in self.part.only:
            return True
        if (relation.schema,) in self.part.only and not relation.extension:
            return True
        return relation.partition and any(parent in self._relations and self._is_listed(parent)
                                          for parent in relation.parents)  # fmt: skip

    def _below(self, oid: int) -> list[int]:
        return [each for child in self._children.get(oid, ()) for each in (child, *self._below(child))]

    def _above(self, oid: int) -> list[int]:
        parents = self._relations[oid].parents if oid in self._relations else ()
        return [each for parent in parents for each in (parent, *self._above(parent))]

    def _mask(self, columns: Sequence[tuple[int, str, int, str | None]]) -> None:
        """Find what is to be masked; a table's parents and children have the same values, and so has what is made."""
        numbers: dict[int, dict[str, int]] = defaultdict(dict)
        for oid, name, number, _ in columns:
            numbers[oid][name] = number
        by_name = {(item.schema, item.table): oid for oid, item in self._relations.items()}
        masked: dict[int, set[int]] = defaultdict(set)
        self._missing = None
        for schema, table, column in self.part.masked:
            oid = by_name.get((schema, table))
            if oid is None or column not in numbers[oid]:
                self._missing = f"{schema}.{table}.{column}"
                return
            self._mask_family(oid, column, numbers, masked)
        for oid, name, _, made_of in columns:
            if made_of is not None and masked[oid] & set(map(int, _ATTNO.findall(made_of))):
                self._mask_family(oid, name, numbers, masked)
        self._masked = {oid: frozenset(found) for oid, found in masked.items() if found}
        self._names = {
            oid: frozenset(name for name, number in numbers[oid].items() if number in found)
            for oid, found in self._masked.items()
        }

    def _mask_family(
        self, oid: int, column: str, numbers: Mapping[int, Mapping[str, int]], masked: dict[int, set[int]]
    ) -> None:
        below = [oid, *self._below(oid)]
        for each in {*below, *(above for child in below for above in self._above(child))}:
            if column in numbers[each]:
                masked[each].add(numbers[each][column])

    def _computes(
        self, oid: int, schema: str, name: str, volatility: str, extension: str, procedure: Procedure | None
    ) -> bool:
        """Whether a function tells of its arguments only, or the operator vouches for it."""
        if oid < FIRST_OWN:
            return _TELLING_NOTHING.fullmatch(name) is not None
        if (schema, name) in self.part.only:
            return True
        if not extension or procedure is None or procedure.runs_input() is not None or procedure.reads_named_table:
            return False
        return volatility == "i" or (volatility == "s" and extension in _COMPUTING)


def _row(names: Iterable[str]) -> str:
    return ", ".join(map(_literal, dict.fromkeys(names))) or "NULL"


def _literal(text: str) -> str:
    # Unicode by number, so that the text is the same whatever `standard_conforming_strings` says.
    quoted = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"E'{quoted}'"
