"""Finds out whose code a statement could run, from PostgreSQL's catalog, cached until that changes.

A function is one of many things that run when a table is read: a domain's CHECK, an index or statistics expression that
the planner folds, an operator's estimator, an aggregate's parts, a partition key. They run with the rights of
the role that reads. For a role that could do harm the world is therefore closed: everything that a statement touches,
and everything that this leads to, is PostgreSQL's own or belongs to a superuser. What belongs to another role is let
through where no code hangs on it: tables, plain indexes, enums, CHECKs and views made of PostgreSQL's own functions.

A label (IMMUTABLE, STABLE) does not say that a function won't run what it is given. So a function of an extension must
be known to only compute or read (`extensions`), and the body of any other must run no text as SQL, nor call what does;
the operator can vouch for one.

Objects are followed by the numbers that stand in their catalogue rows and stored expressions. Any number that could be
an object's counts, whatever field it stands in: a mistake refuses too much, never too little.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from mcp_postgres.engine.audit.builtin_functions import INPUT_RUNNING_FUNCTIONS, READ_ONLY_FUNCTIONS
from mcp_postgres.engine.audit.catalog_reader import CatalogReader, QueryResult
from mcp_postgres.engine.audit.dangers import CatalogRow, describe_own_code, find_dangers, spread_to_referrers
from mcp_postgres.engine.audit.extensions import ExtensionFunction, load_extension_rules
from mcp_postgres.engine.audit.procedures import (
    FIRST_OWN,
    Cause,
    Harm,
    KnownFunctions,
    Procedure,
    find_functions,
    find_input_runners,
    find_objects,
)
from mcp_postgres.engine.audit.visible_schema import VisibleObjects

__all__ = ["SNAPSHOT", "CodeAudit"]

# Changes with every commit; a standby does not list what was committed meanwhile, so it always changes there.
SNAPSHOT = (
    "SELECT concat_ws(' ', CASE WHEN pg_is_in_recovery() THEN clock_timestamp()::text"
    " ELSE pg_current_snapshot()::text END, pg_postmaster_start_time(), current_database())"
)

_KEYS = {
    "pg_attribute": "attrelid", "pg_aggregate": "aggfnoid::oid", "pg_index": "indexrelid", "pg_inherits": "inhrelid",
    "pg_partitioned_table": "partrelid", "pg_range": "rngtypid", "pg_foreign_table": "ftrelid",
}  # fmt: skip
# Two states are equal only if no row came, went or changed: what is written later has a greater `xmin`.
_CATALOG_STATE = "SELECT concat_ws(' ', current_user, (SELECT string_agg(oid::text, ',' ORDER BY oid) FROM pg_roles" + (
    " WHERE rolsuper), {})".format(
        ", ".join(
            f"(SELECT concat(count(*), '/', sum(xmin::text::bigint)) FROM {name}"
            f" WHERE {_KEYS.get(name, 'oid')} >= {FIRST_OWN})"
            for name in (
                "pg_class", "pg_attribute", "pg_attrdef", "pg_constraint", "pg_index", "pg_proc", "pg_aggregate",
                "pg_type", "pg_range", "pg_operator", "pg_opclass", "pg_opfamily", "pg_amop", "pg_amproc", "pg_cast",
                "pg_rewrite", "pg_trigger", "pg_statistic_ext", "pg_inherits", "pg_partitioned_table",
                "pg_foreign_table", "pg_foreign_server", "pg_foreign_data_wrapper", "pg_extension", "pg_namespace",
            )
        )
    )
)  # fmt: skip

_OWNERS = """
strangers AS (SELECT oid, CASE WHEN NOT rolsuper AND rolname <> current_user THEN rolname END AS who FROM pg_roles),
relations AS (SELECT c.oid, c.relkind, c.relname::text AS name, format('%I.%I', n.nspname, c.relname) AS spelled,
    CASE WHEN s.oid IS NULL THEN 'nobody' ELSE s.who END AS who FROM pg_class c
    JOIN pg_namespace n ON n.oid = c.relnamespace LEFT JOIN strangers s ON s.oid = c.relowner WHERE c.oid >= 16384),
types AS (SELECT t.*, format('%I.%I', n.nspname, t.typname) AS spelled,
    CASE WHEN s.oid IS NULL THEN 'nobody' ELSE s.who END AS who FROM pg_type t
    JOIN pg_namespace n ON n.oid = t.typnamespace LEFT JOIN strangers s ON s.oid = t.typowner WHERE t.oid >= 16384)
"""
_UNTRUSTED_OWNER = "CASE WHEN s.oid IS NULL THEN 'nobody' ELSE s.who END"

_PROCEDURES = f"""
WITH {_OWNERS}
SELECT p.oid::text, p.proname, n.nspname, format('%I.%I', n.nspname, p.proname), {_UNTRUSTED_OWNER},
    p.provolatile::text,
    coalesce(e.extname, ''), coalesce(e.extversion, ''),
    (SELECT string_agg(t.typname, ' ' ORDER BY a.at) FROM unnest(p.proargtypes::oid[]) WITH ORDINALITY a (type, at)
        JOIN pg_type t ON t.oid = a.type),
    EXISTS (SELECT 1 FROM pg_proc b WHERE b.proname = p.proname AND b.oid < 16384),
    concat_ws(' ', a.aggtransfn::oid, a.aggfinalfn::oid, a.aggcombinefn::oid, a.aggmtransfn::oid, a.aggminvtransfn::oid,
        a.aggmfinalfn::oid),
    concat_ws(' ', p.prosupport::oid, p.prorettype, p.proargtypes, array_to_string(p.proallargtypes, ' '),
        a.aggtransfn::oid, a.aggfinalfn::oid, a.aggcombinefn::oid, a.aggserialfn::oid, a.aggdeserialfn::oid,
        a.aggmtransfn::oid, a.aggminvtransfn::oid, a.aggmfinalfn::oid, a.aggsortop, a.aggtranstype, a.aggmtranstype),
    concat_ws(' ', p.prosqlbody::text, p.proargdefaults::text),
    CASE WHEN l.lanname IN ('c', 'internal') OR p.prosqlbody IS NOT NULL OR p.prokind = 'a' THEN NULL
        ELSE concat(l.lanname, E'\\n', p.prosrc) END
FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace JOIN pg_language l ON l.oid = p.prolang
LEFT JOIN pg_aggregate a ON a.aggfnoid = p.oid LEFT JOIN strangers s ON s.oid = p.proowner
LEFT JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
    AND d.refclassid = 'pg_extension'::regclass
LEFT JOIN pg_extension e ON e.oid = d.refobjid
WHERE p.oid >= 16384
"""
_BUILT_IN = """
SELECT oid::text, proname FROM pg_proc WHERE oid < 16384 AND (provolatile = 'v' OR proname = ANY ($1::text[]))
"""
# oid, name, kind, whether only for changes, what it is, who (if not trusted), numbers, trees.
_CATALOG_ROWS = f"""
WITH {_OWNERS}
SELECT o.oid::text, o.oprname::text, 'operator', false, format('operator %s', o.oid::regoperator), {_UNTRUSTED_OWNER},
    concat_ws(' ', o.oprcode::oid, o.oprrest::oid, o.oprjoin::oid, o.oprcom, o.oprnegate, o.oprleft, o.oprright), ''
    FROM pg_operator o LEFT JOIN strangers s ON s.oid = o.oprowner WHERE o.oid >= 16384
UNION ALL SELECT o.oid::text, '', 'class', false, format('operator class %I', o.opcname), {_UNTRUSTED_OWNER},
    o.opcfamily::text, ''
    FROM pg_opclass o LEFT JOIN strangers s ON s.oid = o.opcowner WHERE o.oid >= 16384
UNION ALL SELECT o.oid::text, '', 'class', false, format('operator family %I', o.opfname), {_UNTRUSTED_OWNER}, '', ''
    FROM pg_opfamily o LEFT JOIN strangers s ON s.oid = o.opfowner WHERE o.oid >= 16384
UNION ALL SELECT amprocfamily::text, '', '', false, '', NULL, amproc::oid::text, '' FROM pg_amproc WHERE oid >= 16384
UNION ALL SELECT amopfamily::text, '', '', false, '', NULL, amopopr::text, '' FROM pg_amop WHERE oid >= 16384
UNION ALL SELECT opcintype::text, '', '', false, '', NULL, concat_ws(' ', oid, opcfamily), ''
    FROM pg_opclass WHERE oid >= 16384
UNION ALL SELECT t.oid::text, '', '', false, '', NULL, k.castfunc::text, '' FROM pg_cast k
    LEFT JOIN types f ON f.oid = k.castsource JOIN types t ON t.oid =
        CASE WHEN f.oid IS NULL OR f.who IS NULL AND EXISTS (SELECT 1 FROM types o WHERE o.oid = k.casttarget
            AND o.who IS NOT NULL) THEN k.casttarget ELSE k.castsource END
    WHERE k.oid >= 16384 AND k.castfunc <> 0
UNION ALL SELECT t.oid::text, t.typname::text, 'type', false, '', NULL, concat_ws(' ', t.typbasetype, t.typelem,
    t.typrelid, r.rngsubtype, r.rngsubopc), ''
    FROM types t LEFT JOIN pg_range r ON t.oid IN (r.rngtypid, r.rngmultitypid)
UNION ALL SELECT t.oid::text, t.typname::text, 'input', false, '', NULL, concat_ws(' ', t.typinput::oid,
    t.typoutput::oid, t.typreceive::oid, t.typsend::oid, t.typmodin::oid, t.typmodout::oid, t.typanalyze::oid,
    t.typsubscript::oid), ''
    FROM types t WHERE t.typtype = 'b'
UNION ALL SELECT t.oid::text, t.typname::text, 'input', false, format('range type %s', t.spelled), NULL,
    concat_ws(' ', r.rngcanonical::oid, r.rngsubdiff::oid), ''
    FROM pg_range r JOIN types t ON t.oid IN (r.rngtypid, r.rngmultitypid)
UNION ALL SELECT t.oid::text, t.typname::text, 'input', false, format('constraint %I of domain %s', k.conname,
    t.spelled), t.who, '', k.conbin::text FROM pg_constraint k JOIN types t ON t.oid = k.contypid
    WHERE k.conbin IS NOT NULL
UNION ALL SELECT DISTINCT r.oid::text, r.name, 'column', false, '', NULL, a.atttypid::text, '' FROM pg_attribute a
    JOIN relations r ON r.oid = a.attrelid
    WHERE a.attrelid >= 16384 AND a.atttypid >= 16384 AND a.attnum > 0 AND NOT a.attisdropped
UNION ALL SELECT r.oid::text, '', '', false, format('index %s', i.indexrelid::regclass), r.who, i.indclass::text,
    concat_ws(' ', i.indexprs::text, i.indpred::text) FROM pg_index i JOIN relations r ON r.oid = i.indrelid
UNION ALL SELECT r.oid::text, '', '', false, format('constraint %I of %s', k.conname, r.spelled), r.who, '',
    k.conbin::text FROM pg_constraint k JOIN relations r ON r.oid = k.conrelid WHERE k.conbin IS NOT NULL
UNION ALL SELECT r.oid::text, '', '', false, format('the partition key of %s', r.spelled), r.who, p.partclass::text,
    p.partexprs::text FROM pg_partitioned_table p JOIN relations r ON r.oid = p.partrelid
UNION ALL SELECT r.oid::text, '', '', false, format('statistics %I', x.stxname), coalesce(r.who, {_UNTRUSTED_OWNER}),
    '',
    x.stxexprs::text FROM pg_statistic_ext x JOIN relations r ON r.oid = x.stxrelid
    LEFT JOIN strangers s ON s.oid = x.stxowner WHERE x.stxexprs IS NOT NULL
UNION ALL SELECT r.oid::text, '', '', w.ev_type <> '1', format('rule %I of %s', w.rulename, r.spelled), r.who, '',
    concat_ws(' ', w.ev_action::text, w.ev_qual::text) FROM pg_rewrite w JOIN relations r ON r.oid = w.ev_class
    WHERE r.relkind <> 'm'
UNION ALL SELECT r.oid::text, '', '', a.attgenerated <> 'v', format('column %I of %s', a.attname, r.spelled), r.who, '',
    d.adbin::text FROM pg_attrdef d JOIN relations r ON r.oid = d.adrelid
    JOIN pg_attribute a ON a.attrelid = d.adrelid AND a.attnum = d.adnum
UNION ALL SELECT r.oid::text, '', '', true, format('trigger %I on %s', t.tgname, r.spelled), r.who, t.tgfoid::text,
    t.tgqual::text FROM pg_trigger t JOIN relations r ON r.oid = t.tgrelid
    WHERE t.tgfoid >= 16384 OR t.tgqual IS NOT NULL
UNION ALL SELECT inhparent::text, '', '', false, '', NULL, inhrelid::text, '' FROM pg_inherits
UNION ALL SELECT inhrelid::text, '', '', false, '', NULL, inhparent::text, '' FROM pg_inherits
UNION ALL SELECT confrelid::text, '', '', true, '', NULL, conrelid::text, '' FROM pg_constraint WHERE contype = 'f'
UNION ALL SELECT conrelid::text, '', '', true, '', NULL, confrelid::text, '' FROM pg_constraint WHERE contype = 'f'
UNION ALL SELECT r.oid::text, '', 'foreign', false, format('foreign table %s', r.spelled), r.who, f.ftserver::text, ''
    FROM pg_foreign_table f JOIN relations r ON r.oid = f.ftrelid
UNION ALL SELECT f.oid::text, '', 'foreign', false, format('server %I', f.srvname), {_UNTRUSTED_OWNER},
    f.srvfdw::text, ''
    FROM pg_foreign_server f LEFT JOIN strangers s ON s.oid = f.srvowner
UNION ALL SELECT f.oid::text, '', 'foreign', false, format('foreign data wrapper %I', f.fdwname), {_UNTRUSTED_OWNER},
    concat_ws(' ', f.fdwhandler, f.fdwvalidator), ''
    FROM pg_foreign_data_wrapper f LEFT JOIN strangers s ON s.oid = f.fdwowner
"""
# In a tree: a relation, and the lock on it, which says whether its rows are changed.
_TARGET_RELATION = re.compile(r":relid (\d+)(?: :\w+ \w+)*? :rellockmode (\d+)")
_ROW_EXCLUSIVE_MODE = 3


class CodeAudit:
    """What is known of one database.

    Args:
        closed: whether what belongs to other roles than superusers is held to be hostile.
        visible: what of the database is served; read together.
        trusted: functions, each by schema and name, and extensions for which the operator vouches.

    Attributes:
        harmful_names: names, in lower case, of what is made of types whose literals run code that nobody knows, each
            with the reason.
    """

    def __init__(
        self, *, closed: bool, visible: VisibleObjects, trusted: frozenset[tuple[str, ...]] = frozenset()
    ) -> None:
        self.closed = closed
        self.visible = visible
        self._trusted = trusted
        self._snapshot: str | None = None
        self._catalog_state: str | None = None
        self._functions = KnownFunctions()
        # Types whose values are read or written by such functions.
        self._harmful_types: dict[int, Harm] = {}
        self._operator_functions: dict[int, frozenset[int]] = {}
        self._read_dangers: dict[int, str] = {}
        self._write_dangers: dict[int, str] = {}
        self.harmful_names: dict[str, Harm] = {}

    async def refresh(self, session: CatalogReader, answer: QueryResult) -> None:
        """Be as of `answer`, which is `SNAPSHOT`'s.

        There is nothing to do if nobody committed since, and little if no object changed.

        Names must mean PostgreSQL's own things.
        """
        row = answer.first()
        snapshot = row[0] if row else None
        if snapshot == self._snapshot:
            return
        async with session.as_server_role():
            state = await session.fetch_value(_CATALOG_STATE)
            if state != self._catalog_state:
                await self._load(session)
        self._snapshot = snapshot
        self._catalog_state = state

    async def refresh_visible(self, session: CatalogReader) -> None:
        """Know which columns are masked now, for who shows of a table more than a statement would.

        Raises:
            Refused: one that is to be masked is not there.
        """
        if self.visible.schema:
            (answer,) = await session.run_pipeline((SNAPSHOT, ()))
            await self.refresh(session, answer)
            self.visible.check_masks()

    def harm_of_literals(self, sql: str) -> Harm | None:
        """Return what merely parsing `sql` could run, before PostgreSQL can be asked for its tree.

        A literal is read while a statement is parsed: `'{1}'::d[]` checks the domain `d`. Where such a type would run
        code that nobody knows, its name and those of all that is made of it may not occur in the text, wherever it
        stands.
        """
        if not self.harmful_names:
            return None
        text = sql.casefold().replace("\u0307", "")
        if 'u&"' in text:
            return Harm(Cause.STRANGER, 'U&"...", a name that is spelled by numbers')
        text = f"{text} {text.replace(chr(34) * 2, chr(34))}"
        for name, harm in self.harmful_names.items():
            if re.search(_name_pattern(name), text):
                return harm
        return None

    def harm_of_trees(self, trees: Sequence[str], *, sequences: bool, planned: bool) -> Harm | None:
        """Return what a statement with these rewritten trees could do beside reading.

        Args:
            sequences: functions that advance a sequence are fine.
            planned: it will be planned only, which runs no volatile function.
        """
        for tree in trees:
            harm = self._harm_of_tree(tree, sequences=sequences, planned=planned)
            if harm is not None:
                return harm
        return None

    def _harm_of_tree(self, tree: str, *, sequences: bool, planned: bool) -> Harm | None:
        objects = find_objects(tree)
        if self.closed:
            reason = self._find_strangers_code(tree, objects, planned=planned)
            if reason is not None:
                return Harm(Cause.STRANGER, reason)
        for oid in self._find_called(tree, objects):
            harm = self._functions.find_harm(oid, sequences=sequences, planned=planned)
            if harm is not None:
                return harm
        for oid in objects & self._harmful_types.keys():
            return self._harmful_types[oid]
        return None

    def _find_called(self, tree: str, objects: set[int]) -> set[int]:
        """Return the functions that a tree calls, also those of operators."""
        of_operators = [self._operator_functions.get(oid, frozenset[int]()) for oid in objects]
        return find_functions(tree).union(*of_operators)

    def _find_strangers_code(self, tree: str, objects: set[int], *, planned: bool) -> str | None:
        targets = {int(oid) for oid, lock in _TARGET_RELATION.findall(tree) if int(lock) >= _ROW_EXCLUSIVE_MODE}
        for oid in objects:
            if oid in self._read_dangers:
                return self._read_dangers[oid]
            if oid in targets and not planned and oid in self._write_dangers:
                return self._write_dangers[oid]
        return None

    async def _load(self, session: CatalogReader) -> None:
        """Read all functions and other objects, and find out what leads to harm."""
        built_in, procedures, objects = await session.run_pipeline(
            (_BUILT_IN, ("{" + ",".join(INPUT_RUNNING_FUNCTIONS) + "}",)), (_PROCEDURES, ()), (_CATALOG_ROWS, ())
        )
        function_rows = [_FunctionRow(*row) for row in procedures.rows()]
        procedures_by_oid = {int(row.oid): self._parse_procedure(row) for row in function_rows}
        self._functions = KnownFunctions(
            {int(oid): name for oid, name in built_in.rows() if name not in READ_ONLY_FUNCTIONS},
            procedures_by_oid,
            find_input_runners(procedures_by_oid),
        )
        rows = [row.catalog_row() for row in function_rows]
        rows += [_parse_catalog_row(*row) for row in objects.rows()]
        self._operator_functions = {
            row.oid: row.references & procedures_by_oid.keys() for row in rows if row.kind == "operator"
        }
        if self.closed:
            self._read_dangers = find_dangers([row for row in rows if not row.only_for_changes], self._functions)
            self._write_dangers = find_dangers(rows, self._functions)
        self._collect_harmful_names(rows)
        if self.visible.schema:
            await self.visible.load(session, procedures_by_oid)

    def _parse_procedure(self, row: _FunctionRow) -> Procedure:
        extension = row.extension
        is_vouched = (
            (row.schema, row.name) in self._trusted
            or (extension,) in self._trusted
            or (row.schema, row.name) in self.visible.schema.only
        )
        arguments = tuple((row.arguments or "").split())
        function = ExtensionFunction(extension, row.version, row.name, arguments, row.volatility)
        calls = find_functions(row.tree) | {int(number) for number in row.aggregate_functions.split()}
        return Procedure(
            function=function,
            schema=row.schema,
            body=row.body,
            called_functions=frozenset(calls - {0}),
            is_vouched=is_vouched,
            is_overload=row.is_overload == "t",
        )

    def _collect_harmful_names(self, rows: Sequence[CatalogRow]) -> None:
        """Know the names with which a literal would run code that nobody knows."""
        type_rows = [row for row in rows if row.kind in ("type", "column", "input")]
        harms = self._find_harmful_types(type_rows)
        harmful_rows = [row for row in type_rows if row.oid in harms]
        harmful_rows += [row for row in rows if row.kind in ("function", "operator") and row.references & harms.keys()]
        self.harmful_names = {row.name.casefold(): _harm_of_row(row, harms) for row in harmful_rows}
        types = {row.oid for row in type_rows if row.kind != "column"}
        self._harmful_types = {oid: harm for oid, harm in harms.items() if oid in types and harm.cause is Cause.INPUT}

    def _find_harmful_types(self, type_rows: Sequence[CatalogRow]) -> dict[int, Harm]:
        """Return the types whose literals run code that nobody knows, and what is made of them."""
        harms: dict[int, Harm] = {}
        for row in type_rows:
            harm = self._harm_of_input(row)
            if harm is None:
                continue
            for oid in spread_to_referrers(type_rows, {row.oid: ""}):
                harms.setdefault(oid, harm)
        return harms

    def _harm_of_input(self, row: CatalogRow) -> Harm | None:
        """Return what reading a value of a type may do."""
        if row.kind != "input":
            return None
        if self.closed:
            reason = self._find_strangers_input(row)
            if reason is not None:
                return Harm(Cause.STRANGER, reason)
        for oid in row.references & self._functions.input_runners.keys():
            procedure = self._functions.procedures[oid]
            return Harm(
                Cause.INPUT,
                f"{row.name}, whose values {procedure.name}() handles",
                self._functions.input_runners[oid],
                procedure.function.extension or f"{procedure.schema}.{procedure.name}",
            )
        return None

    def _find_strangers_input(self, row: CatalogRow) -> str | None:
        reason = describe_own_code(row, self._functions)
        if reason:
            return reason
        for oid in row.references:
            if oid in self._read_dangers:
                return self._read_dangers[oid]
        return None


class _FunctionRow(NamedTuple):
    """A row that `_PROCEDURES` finds."""

    oid: str
    name: str
    schema: str
    qualified_name: str
    owner: str | None
    volatility: str
    extension: str
    version: str
    arguments: str | None
    is_overload: str
    aggregate_functions: str
    references: str
    tree: str
    body: str | None

    def catalog_row(self) -> CatalogRow:
        return CatalogRow(
            int(self.oid),
            self.name,
            "function",
            only_for_changes=False,
            description=f"{self.qualified_name}()",
            owner=self.owner,
            references=frozenset(find_objects(f"{self.references} {self.tree}")),
            calls=frozenset(),
            body=_add_relations(self.body, self.extension),
        )


def _parse_catalog_row(
    oid: str, name: str, kind: str, changes: str, description: str, owner: str | None, numbers: str, tree: str | None
) -> CatalogRow:
    """Return a row that `_CATALOG_ROWS` finds."""
    calls = frozenset[int]()
    if owner is not None:
        calls = frozenset(find_functions(tree or ""))
    references = frozenset(find_objects(f"{numbers} {tree or ''}"))
    return CatalogRow(
        oid=int(oid),
        name=name,
        kind=kind,
        only_for_changes=changes == "t",
        description=description,
        owner=owner,
        references=references,
        calls=calls,
    )


def _harm_of_row(row: CatalogRow, harms: Mapping[int, Harm]) -> Harm:
    """Return the harm of a type, or of one of those that a function or operator is made of."""
    harm = harms.get(row.oid)
    if harm is not None:
        return harm
    return next(harms[oid] for oid in row.references if oid in harms)


def _name_pattern(name: str) -> str:
    """Return a pattern for a name, whole.

    PostgreSQL cuts names of 64 bytes and more, so that longer ones mean it too.
    """
    start = r"(?<![a-z_])" if re.match(r"[a-z_]", name) else ""
    end = r"(?![a-z0-9_$])" if re.search(r"[a-z0-9_$]$", name) and len(name.encode()) < 60 else ""
    return start + re.escape(name) + end


def _add_relations(body: str | None, extension: str) -> str | None:
    """Return the body of a function, with the tables that functions of the extension look up by name."""
    rules = load_extension_rules().get(extension)
    if rules is None or not rules.relations:
        return body
    return f"{body or 'sql'}\n{' '.join(rules.relations)}"
