"""The part of a database that the operator serves: schemas, objects and masked columns, from the catalog.

PostgreSQL parses a statement, which names by number all that it touches; `query_trees` follows that through
subqueries and views. Whatever is not listed is refused, and so is what shows values without naming where they are from:
catalogues and statistics, other sessions, large objects, functions whose code is not in the tree. To list a view or a
function by its own name vouches for what it does inside. Masked columns stay so whatever leads to them.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from mcp_batteries.errors import Refused, quote
from mcp_batteries.sql.policy import VisibleSchema
from mcp_postgres.engine.audit.catalog_reader import CatalogReader
from mcp_postgres.engine.audit.procedures import FIRST_OWN, Procedure, find_functions
from mcp_postgres.engine.audit.query_trees import ColumnOrigins, ForbiddenReference, ReferencedRelation

__all__ = ["HAS_MASKED", "RELATION_LISTED", "SCHEMA_NAMED", "SESSION_QUERY", "WHOLE_SCHEMA_LISTED", "VisibleObjects"]

# In a query of our own: whether relation `c` of schema `n` is listed. `Session` puts in what stands for it.
RELATION_LISTED = "(/* listed */ true)"
# The same: whether all of schema `n` is listed.
WHOLE_SCHEMA_LISTED = "(/* whole */ true)"
# The same: whether anything of schema `n` is listed.
SCHEMA_NAMED = "(/* named in */ true)"
# The same: whether relation `c` has masked columns, whose values may stand in its expressions.
HAS_MASKED = "(/* masked */ false)"
# The same: what other sessions run, which has values in it.
SESSION_QUERY = "(/* query */ query)"

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
_FUNCTIONS = f"""
SELECT p.oid::text, n.nspname, p.proname, p.provolatile::text, coalesce((SELECT e.extname FROM pg_depend d
    JOIN pg_extension e ON e.oid = d.refobjid WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid
    AND d.deptype = 'e' AND d.refclassid = 'pg_extension'::regclass), '')
FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE p.oid >= {FIRST_OWN} OR p.proname ~ $1
"""
# Types whose values are rows of a relation: its own, arrays of it, and domains over these.
_ROW_TYPES = """
WITH RECURSIVE row_types (oid, relation) AS (
    SELECT t.oid, c.oid FROM pg_type t JOIN pg_class c ON c.oid = t.typrelid
        WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f')
    UNION SELECT t.oid, r.relation FROM row_types r JOIN pg_type t ON r.oid IN (t.typelem, t.typbasetype))
SELECT oid::text, relation::text FROM row_types
"""
# By relation, the columns that one of its rules compares: a CHECK, a unique or excluding index, a policy, or a NOT NULL
# of what is generated.
_RULES = f"""
SELECT d.refobjid::text, string_agg(DISTINCT d.refobjsubid::text, ' ') FROM pg_depend d
WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid >= {FIRST_OWN} AND d.refobjsubid > 0 AND (
    d.classid = 'pg_constraint'::regclass AND EXISTS (SELECT FROM pg_constraint k WHERE k.oid = d.objid
        AND k.conrelid = d.refobjid AND k.contype IN ('c', 'p', 'u', 'x'))
    OR d.classid = 'pg_class'::regclass AND EXISTS (SELECT FROM pg_index i WHERE i.indexrelid = d.objid
        AND i.indrelid = d.refobjid AND (i.indisunique OR i.indisexclusion))
    OR d.classid = 'pg_policy'::regclass AND EXISTS (SELECT FROM pg_policy p WHERE p.oid = d.objid
        AND p.polrelid = d.refobjid))
GROUP BY d.refobjid, d.classid, d.objid
UNION ALL SELECT a.attrelid::text, a.attnum::text FROM pg_attribute a
    WHERE a.attrelid >= {FIRST_OWN} AND a.attgenerated <> '' AND a.attnotnull
"""
# By relation, what decides whether a trigger runs on an update or a delete, or whether a row is kept that an update
# leaves as it was.
_TRIGGER_CONDITIONS = f"""
SELECT t.tgrelid::text, t.tgqual::text FROM pg_trigger t
WHERE t.tgrelid >= {FIRST_OWN} AND t.tgenabled <> 'D' AND t.tgtype & 24 <> 0
    AND (t.tgqual IS NOT NULL OR t.tgfoid = 'pg_catalog.suppress_redundant_updates_trigger'::regproc)
"""
# By foreign key, the table and columns that point, and those that they point to: what happens to these tells of those.
_FOREIGN_KEYS = f"""
SELECT k.conrelid::text, array_to_string(k.conkey, ' '), k.confrelid::text, array_to_string(k.confkey, ' '),
    k.confdeltype, k.confupdtype
FROM pg_constraint k WHERE k.contype = 'f' AND k.conrelid >= {FIRST_OWN}
"""
_CASCADE = "c"
# To NULL, to the default.
_SETS = ("n", "d")
# PostgreSQL's own functions that tell of more than their arguments, or act.
_REVEALING = (
    "^(pg_|lo_|loread|lowrite|to_reg|has_|currtid|ts_stat|ts_rewrite|query_|cursor_|binary_upgrade|brin_|gin_clean|"
    "row_security|set_config|nextval|setval|currval|lastval|format_type|makeaclitem|acldefault)|_to_xml|_to_xmlschema|"
    "_description$"
)
_REVEALING_NOTHING = re.compile(
    "pg_(typeof|size_pretty|size_bytes|column_size|sleep.*|lsn.*|collation_for|backend_pid|is_in_recovery|"
    "postmaster_start_time|char_to_encoding|encoding_to_char|client_encoding|wal_lsn_diff|snapshot_.*)"
)
# Extensions whose stable functions depend on settings, and on nothing in tables.
_COMPUTING_EXTENSIONS = {
    "btree_gin", "btree_gist", "citext", "cube", "earthdistance", "fuzzystrmatch", "hstore", "intarray", "isn", "ltree",
    "pg_trgm", "pgcrypto", "seg", "unaccent", "uuid-ossp", "vector",
}  # fmt: skip
# Types whose values are numbers of relations, functions, types, schemas and roles, shown by name; and arrays.
_NAMING_TYPES = "(?:24|1008|2202|2205|2206|2207|2210|2211|4089|4090|4096|4097)"
# In a tree: where such a value is made of something else. `pg_typeof`, 1619, tells of what is there.
_NAMING_VALUE = re.compile(
    rf":(?:consttype|paramtype|resulttype) {_NAMING_TYPES} |:funcid (?!1619 )\d+ :funcresulttype {_NAMING_TYPES} "
    rf"|(?:funccoltypes|(?<!:self_reference true )(?<!:self_reference false ):coltypes) "
    rf"\(o (?:\d+ )*{_NAMING_TYPES}[ )]"
)
_TABLE_OF_ROW = re.compile(r"\{RELABELTYPE :arg \{VAR [^{}]*:varattno -6 [^{}]*\} :resulttype 2205 ")
# In a tree: the type of what a statement makes itself, as `NULL::orders`, and no column of a relation that it reads.
_MADE_TYPE = re.compile(r":(?:consttype|paramtype|resulttype|row_typeid|array_typeid|typid) (\d+) ")
_MADE_COLUMN_TYPES = re.compile(
    r"(?:funccoltypes|(?<!:self_reference true )(?<!:self_reference false ):coltypes) \(o ([\d ]+)\)"
)
# In a tree: a relation, and the columns of it that are updated, each counted from the first that the system has.
_UPDATED_COLUMNS = re.compile(r":relid (\d+) [^{}]*:updatedCols \(b ([\d ]+)\)")
_SYSTEM_COLUMNS = 7
# In a tree: a relation, and what the statement does with it.
_USED_RELATION = re.compile(r":relid (\d+) [^{}]*:requiredPerms (\d+) ")
_DELETES = 8
_COLUMN_NUMBER = re.compile(r":varattno (\d+)")
# In the condition of a trigger: a column of the row before the change, which is 1, or after it, which is 2.
_OLD_OR_NEW_COLUMN = re.compile(r":varno (\d+) :varattno (\d+)")
_WHOLE_ROW = 0
_OLD_AND_NEW_ROW = frozenset({(1, _WHOLE_ROW), (2, _WHOLE_ROW)})
_LIST_FIX = "`list_objects` lists what is served."


@dataclass(frozen=True)
class _Rule:
    """What one constraint, index, policy or trigger of a relation compares.

    Attributes:
        compares_masked_values: several masked values, as the old and the new one of a column.
    """

    relation: int
    columns: set[int]
    compares_masked_values: bool = False

    @classmethod
    def parse(cls, relation: str, columns: str) -> _Rule:
        return cls(int(relation), _parse_numbers(columns))


@dataclass(frozen=True)
class _ForeignKey:
    """Columns that point to a key of another relation.

    Attributes:
        on_delete: what becomes of a row when the one that it points to is deleted, as `pg_constraint` has it.
        on_update: the same when the key is changed that it points to.
    """

    relation: int
    columns: set[int]
    referenced: int
    referenced_columns: set[int]
    on_delete: str
    on_update: str

    @classmethod
    def parse(
        cls, relation: str, columns: str, referenced: str, referenced_columns: str, on_delete: str, on_update: str
    ) -> _ForeignKey:
        numbers = _parse_numbers(columns)
        return cls(int(relation), numbers, int(referenced), _parse_numbers(referenced_columns), on_delete, on_update)

    @property
    def deletes_rows(self) -> bool:
        """Whether a row goes with the one that it points to."""
        return self.on_delete == _CASCADE

    @property
    def updates_on_delete(self) -> bool:
        """Whether a row is changed when the one that it points to goes."""
        return self.on_delete in _SETS

    @property
    def updates_on_update(self) -> bool:
        """Whether a row is changed when the key is that it points to."""
        return self.on_update in (_CASCADE, *_SETS)


@dataclass(frozen=True)
class _Relation:
    schema: str
    name: str
    qualified_name: str
    kind: str
    is_partition: bool
    is_of_extension: bool
    has_rules: bool
    parents: tuple[int, ...]
    tree: str | None

    @classmethod
    def parse(
        cls,
        schema: str,
        name: str,
        qualified_name: str,
        kind: str,
        is_partition: str,
        is_of_extension: str,
        has_rules: str,
        parents: str | None,
        tree: str | None,
    ) -> _Relation:
        """Return a row of `_RELATIONS`, behind its number."""
        numbers = tuple(int(number) for number in (parents or "").split())
        return cls(
            schema,
            name,
            qualified_name,
            kind,
            is_partition == "t",
            is_of_extension == "t",
            has_rules == "t",
            numbers,
            tree,
        )


class _Column(NamedTuple):
    """A column of a relation.

    Attributes:
        relation: the relation's number.
        generated_from: the tree of the expression that it is made of; None where it is not.
    """

    relation: int
    name: str
    number: int
    generated_from: str | None


class _Function(NamedTuple):
    """A row of `_FUNCTIONS`."""

    oid: str
    schema: str
    name: str
    volatility: str
    extension: str

    @property
    def number(self) -> int:
        return int(self.oid)


@dataclass
class VisibleObjects:
    """What of one database is served; loaded with `CodeAudit`, whenever the catalogue has changed.

    Args:
        schema: what the operator says.
    """

    schema: VisibleSchema
    _relations: dict[int, _Relation] = field(default_factory=dict[int, _Relation])
    _masked: dict[int, frozenset[int]] = field(default_factory=dict[int, frozenset[int]])
    _names: dict[int, frozenset[str]] = field(default_factory=dict[int, frozenset[str]])
    _children: dict[int, list[int]] = field(default_factory=dict[int, list[int]])
    _revealing: dict[int, str] = field(default_factory=dict[int, str])
    _row_types: dict[int, int] = field(default_factory=dict[int, int])
    # By table, the names of columns that a rule compares with a masked one: to set one tells what the other is.
    _bound: dict[int, frozenset[str]] = field(default_factory=dict[int, frozenset[str]])
    # Tables that a masked column points to: to delete a row of one tells how many rows have its key.
    _referenced: set[int] = field(default_factory=set[int])
    _missing_mask: str | None = None
    # By relation, the number of each column.
    _numbers: Mapping[int, Mapping[str, int]] = field(default_factory=dict[int, Mapping[str, int]])

    async def load(self, session: CatalogReader, procedures: Mapping[int, Procedure]) -> None:
        """Be as the catalogue is now.

        Args:
            procedures: the functions that are not PostgreSQL's own.
        """
        relations, column_rows, functions, row_types, rules, triggers, foreign_keys = await session.run_pipeline(
            (_RELATIONS, ()),
            (_COLUMNS, ()),
            (_FUNCTIONS, (_REVEALING,)),
            (_ROW_TYPES, ()),
            (_RULES, ()),
            (_TRIGGER_CONDITIONS, ()),
            (_FOREIGN_KEYS, ()),
        )
        self._relations = {int(oid): _Relation.parse(*row) for oid, *row in relations.rows()}
        self._children = defaultdict(list)
        for oid, relation in self._relations.items():
            for parent in relation.parents:
                self._children[parent].append(oid)
        columns = [_Column(int(oid), name, int(number), tree) for oid, name, number, tree in column_rows.rows()]
        self._find_masked(columns)
        conditions = [self._parse_trigger(int(oid), condition) for oid, condition in triggers.rows()]
        self._find_bound(columns, [*(_Rule.parse(*row) for row in rules.rows()), *conditions])
        self._bind_referenced([_ForeignKey.parse(*row) for row in foreign_keys.rows()])
        self._row_types = {int(oid): int(relation) for oid, relation in row_types.rows()}
        self._revealing = {}
        for row in functions.rows():
            function = _Function(*row)
            if not self._is_harmless(function, procedures.get(function.number)):
                self._revealing[function.number] = function.name

    def check_masks(self) -> None:
        """Check that all that is to be masked is there.

        Raises:
            Refused: it is not.
        """
        if self._missing_mask is not None:
            raise Refused(
                f"The operator masks {quote(self._missing_mask)}, which is not there: nothing is served until that "
                "is so.",
                "The operator can mend `--mask`.",
            )

    def masked_outputs(self, trees: Sequence[str]) -> frozenset[int]:
        """Return the outputs, counted from 0, that have to be masked of a statement with these parsed trees.

        Raises:
            Refused: it touches what is not served, or a masked column is more than an output.
        """
        self.check_masks()
        try:
            (tree,) = trees
            if self.schema.only and _NAMING_VALUE.search(_TABLE_OF_ROW.sub("", tree)):
                raise ForbiddenReference(
                    "A value of the type regclass, or one like it, may tell names of what is not served.",
                    "Only `tableoid::regclass` may be shown; `pg_typeof(value)::text` tells a type.",
                )
            if self.schema.only:
                self._check_made_types(tree)
            return ColumnOrigins(self).masked_outputs(tree)
        except ForbiddenReference as reference:
            raise Refused(reference.failure, reference.fix) from None
        except (ValueError, RecursionError):
            raise Refused("What `sql` touches can't be told.", "Write it in a simpler way.") from None

    def check_changes(self, trees: Sequence[str]) -> None:
        """Check that nothing is updated or deleted which a rule compares with a masked column.

        Args:
            trees: those of a statement, with views resolved.

        Raises:
            Refused: something is.
        """
        for tree in trees:
            for oid, bits in _UPDATED_COLUMNS.findall(tree):
                self._check_update(int(oid), {number - _SYSTEM_COLUMNS for number in _parse_numbers(bits)})
            for oid, permissions in _USED_RELATION.findall(tree):
                if int(permissions) & _DELETES:
                    self._check_delete(int(oid))

    def _check_delete(self, oid: int) -> None:
        if self._referenced.isdisjoint({oid, *self._descendants(oid)}):
            return
        rows = "Rows that the view shows"
        if self._is_listed(oid):
            rows = f"Rows of {quote(self._relations[oid].qualified_name)}"
        raise Refused(
            f"{rows} can't be deleted here: a foreign key compares them with a masked column.",
            "Delete rows of other tables; the operator can delete these.",
        )

    def _check_update(self, oid: int, numbers: set[int]) -> None:
        names = _names_of(self._numbers.get(oid, {}), numbers)
        for relation in (oid, *self._descendants(oid)):
            bound = names & self._bound.get(relation, frozenset())
            if bound:
                column = "A column of what the view shows"
                if self._is_listed(oid):
                    column = quote(f"{self._relations[oid].qualified_name}.{min(bound)}")
                rule = "a constraint, policy or trigger compares it with a masked column"
                raise Refused(
                    f"{column} can't be updated here: {rule}.", "Change other columns, or insert the row anew."
                )

    def _check_made_types(self, tree: str) -> None:
        """Check that no value is made of the type of a relation that is not listed: it would tell of its columns.

        Raises:
            ForbiddenReference: one is.
        """
        types = {int(oid) for oid in _MADE_TYPE.findall(tree)}
        for oids in _MADE_COLUMN_TYPES.findall(tree):
            types.update(map(int, oids.split()))
        for relation in {self._row_types[oid] for oid in types if oid in self._row_types}:
            reference = self.any_relation(relation)
            if not self._is_listed(relation):
                raise ForbiddenReference(f"{quote(reference.name)} is not served.", _LIST_FIX)

    def relation(self, oid: int) -> ReferencedRelation:
        reference = self.any_relation(oid)
        relation = self._relations[oid]
        if not self._is_listed(oid):
            raise ForbiddenReference(f"{quote(relation.qualified_name)} is not served.", _LIST_FIX)
        if relation.has_rules:
            raise ForbiddenReference(
                f"{quote(relation.qualified_name)} has rules, which may lead elsewhere.", _LIST_FIX
            )
        for child in self._descendants(oid):
            if not self._is_listed(child):
                raise ForbiddenReference(
                    f"{quote(relation.qualified_name)} has rows of another table, which is not served.", _LIST_FIX
                )
        return reference

    def any_relation(self, oid: int) -> ReferencedRelation:
        relation = self._relations.get(oid)
        if relation is None or relation.schema.startswith("pg_"):
            raise ForbiddenReference("PostgreSQL's own catalogues and statistics are not served.", _LIST_FIX)
        masked = self._masked.get(oid, frozenset())
        return ReferencedRelation(
            relation.qualified_name, masked, relation.tree, (relation.schema, relation.name) in self.schema.only
        )

    def check_functions(self, tree: str) -> None:
        for oid in find_functions(tree):
            name = self._revealing.get(oid)
            if name is not None:
                raise ForbiddenReference(
                    f"{quote(name + '()')} may tell of more than is served.",
                    "The operator can vouch for a function of the database by `--only SCHEMA.FUNCTION`.",
                )

    def masked_columns(self, oid: int) -> frozenset[str]:
        """Return the masked columns of a table, by name."""
        return self._names.get(oid, frozenset())

    def fill_placeholders(self, sql: str) -> str:
        """Return a query of our own, with what is listed in the place of `RELATION_LISTED` and the like."""
        if not self.schema:
            return sql
        sql = sql.replace(SESSION_QUERY, "'not shown'::text")
        sql = sql.replace(HAS_MASKED, f"(c.oid = ANY ('{{{','.join(map(str, self._names))}}}'::oid[]))")
        if not self.schema.only:
            return sql
        whole_schemas = f"(n.nspname IN ({_literal_list(item[0] for item in self.schema.only if len(item) == 1)}))"
        named_schemas = f"(n.nspname IN ({_literal_list(item[0] for item in self.schema.only)}))"
        sql = sql.replace(RELATION_LISTED, self._relation_condition())
        return sql.replace(WHOLE_SCHEMA_LISTED, whole_schemas).replace(SCHEMA_NAMED, named_schemas)

    def _relation_condition(self) -> str:
        """Return the condition of SQL that a relation is listed, by itself or with its schema."""
        schemas = _literal_list(item[0] for item in self.schema.only if len(item) == 1)
        relations = [_row_literal(item) for item in self.schema.only if len(item) > 1]
        return f"(n.nspname IN ({schemas}) OR (n.nspname, c.relname) IN ({', '.join(relations) or '(NULL, NULL)'}))"

    def _is_listed(self, oid: int) -> bool:
        relation = self._relations[oid]
        if not self.schema.only or (relation.schema, relation.name) in self.schema.only:
            return True
        if (relation.schema,) in self.schema.only and not relation.is_of_extension:
            return True
        return relation.is_partition and any(map(self._is_known_and_listed, relation.parents))

    def _is_known_and_listed(self, oid: int) -> bool:
        return oid in self._relations and self._is_listed(oid)

    def _descendants(self, oid: int) -> list[int]:
        descendants: list[int] = []
        for child in self._children.get(oid, ()):
            descendants += [child, *self._descendants(child)]
        return descendants

    def _ancestors(self, oid: int) -> list[int]:
        if oid not in self._relations:
            return []
        ancestors: list[int] = []
        for parent in self._relations[oid].parents:
            ancestors += [parent, *self._ancestors(parent)]
        return ancestors

    def _find_masked(self, columns: Sequence[_Column]) -> None:
        """Find what is to be masked; a table's parents and children have the same values, and so has what is made."""
        numbers: dict[int, dict[str, int]] = defaultdict(dict)
        for column in columns:
            numbers[column.relation][column.name] = column.number
        self._numbers = numbers
        masked: dict[int, set[int]] = defaultdict(set)
        self._missing_mask = self._mask_listed(numbers, masked)
        if self._missing_mask is not None:
            return
        for column in columns:
            if _is_made_of(column, masked.get(column.relation, set())):
                self._mask_family(column.relation, column.name, numbers, masked)
        self._masked = {oid: frozenset(columns_of) for oid, columns_of in masked.items() if columns_of}
        self._names = {oid: _names_of(numbers[oid], masked_numbers) for oid, masked_numbers in self._masked.items()}

    def _parse_trigger(self, oid: int, condition: str | None) -> _Rule:
        """Return what a trigger's condition compares; without one, it compares the whole rows."""
        compared = set(_OLD_AND_NEW_ROW)
        if condition is not None:
            compared = {(int(row), int(number)) for row, number in _OLD_OR_NEW_COLUMN.findall(condition)}
        masked = self._masked.get(oid, frozenset())
        for row, number in [*compared]:
            # Of whole rows, only masked columns: to set another makes the rows differ whatever those hold.
            if number == _WHOLE_ROW:
                compared.remove((row, number))
                compared.update((row, masked_number) for masked_number in masked)
        numbers = {number for _, number in compared}
        return _Rule(oid, numbers, compares_masked_values=len([pair for pair in compared if pair[1] in masked]) > 1)

    def _find_bound(self, columns: Sequence[_Column], rules: Iterable[_Rule]) -> None:
        """Find the columns that a rule compares with masked ones."""
        sources: dict[int, dict[int, set[int]]] = defaultdict(dict)
        for column in columns:
            if column.generated_from is not None and column.relation in self._masked:
                sources[column.relation][column.number] = _parse_sources(column.generated_from)
        bound: dict[int, set[int]] = defaultdict(set)
        for rule in rules:
            masked = self._masked.get(rule.relation, frozenset())
            if masked.isdisjoint(rule.columns):
                continue
            generated = sources[rule.relation]
            # A generated column is made of stored ones only.
            stored = rule.columns - generated.keys()
            stored = stored.union(*(generated[number] for number in rule.columns & generated.keys()))
            # A masked column that is set alone tells nothing of others.
            if rule.compares_masked_values or len(stored & masked) > 1:
                bound[rule.relation] |= stored
            else:
                bound[rule.relation] |= stored - masked
        self._bound = {oid: _names_of(self._numbers[oid], numbers) for oid, numbers in bound.items()}

    def _bind_referenced(self, foreign_keys: Sequence[_ForeignKey]) -> None:
        """Bind the keys that masked columns point to, and what changes bound columns, or deletes such rows, with it."""
        self._referenced = set()
        for key in foreign_keys:
            if not key.columns.isdisjoint(self._masked.get(key.relation, frozenset())):
                self._bind_key(key)
                self._referenced.add(key.referenced)
        has_grown = True
        while has_grown:
            has_grown = False
            for key in foreign_keys:
                if self._bind_cause(key):
                    has_grown = True

    def _bind_cause(self, key: _ForeignKey) -> bool:
        """Bind what a foreign key hands on to bound columns, or to rows that may not be deleted; whether it was not."""
        names = _names_of(self._numbers.get(key.relation, {}), key.columns)
        is_bound = not names.isdisjoint(self._bound.get(key.relation, ()))
        has_grown = is_bound and key.updates_on_update and self._bind_key(key)
        deletes = key.deletes_rows and key.relation in self._referenced
        if (deletes or (is_bound and key.updates_on_delete)) and key.referenced not in self._referenced:
            self._referenced.add(key.referenced)
            has_grown = True
        return has_grown

    def _bind_key(self, key: _ForeignKey) -> bool:
        """Bind the columns that a foreign key points to; return whether one of them was not."""
        bound = self._bound.get(key.referenced, frozenset())
        names = _names_of(self._numbers.get(key.referenced, {}), key.referenced_columns)
        self._bound[key.referenced] = bound | names
        return not names <= bound

    def _mask_listed(self, numbers: Mapping[int, Mapping[str, int]], masked: dict[int, set[int]]) -> str | None:
        """Mask what the operator lists; returns the first that is not there."""
        by_name = {(item.schema, item.name): oid for oid, item in self._relations.items()}
        for schema, table, column in self.schema.masked:
            oid = by_name.get((schema, table))
            if oid is None or column not in numbers[oid]:
                return f"{schema}.{table}.{column}"
            self._mask_family(oid, column, numbers, masked)
        return None

    def _mask_family(
        self, oid: int, column: str, numbers: Mapping[int, Mapping[str, int]], masked: dict[int, set[int]]
    ) -> None:
        descendants = [oid, *self._descendants(oid)]
        family = {*descendants}
        for child in descendants:
            family.update(self._ancestors(child))
        for relation in family:
            if column in numbers[relation]:
                masked[relation].add(numbers[relation][column])

    def _is_harmless(self, function: _Function, procedure: Procedure | None) -> bool:
        """Return whether a function tells of its arguments only, or the operator vouches for it."""
        if function.number < FIRST_OWN:
            return _REVEALING_NOTHING.fullmatch(function.name) is not None
        if (function.schema, function.name) in self.schema.only:
            return True
        if not function.extension or procedure is None:
            return False
        if procedure.explain_running_input() is not None or procedure.reads_named_table:
            return False
        is_computing = function.volatility == "s" and function.extension in _COMPUTING_EXTENSIONS
        return function.volatility == "i" or is_computing


def _is_made_of(column: _Column, masked: set[int]) -> bool:
    """Return whether a column is made of one that is masked."""
    if column.generated_from is None:
        return False
    return not masked.isdisjoint(_parse_sources(column.generated_from))


def _parse_sources(expression: str) -> set[int]:
    """Return the numbers of the columns in the tree of an expression."""
    return set(map(int, _COLUMN_NUMBER.findall(expression)))


def _parse_numbers(text: str) -> set[int]:
    return set(map(int, text.split()))


def _names_of(numbers: Mapping[str, int], chosen: Collection[int]) -> frozenset[str]:
    return frozenset(name for name, number in numbers.items() if number in chosen)


def _row_literal(values: Iterable[str]) -> str:
    return f"({', '.join(map(_literal, values))})"


def _literal_list(names: Iterable[str]) -> str:
    return ", ".join(map(_literal, dict.fromkeys(names))) or "NULL"


def _literal(text: str) -> str:
    # Unicode by number, so that the text is the same whatever `standard_conforming_strings` says.
    quoted = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"E'{quoted}'"
