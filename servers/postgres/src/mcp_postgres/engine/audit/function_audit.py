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
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from mcp_postgres.engine.audit.builtin_functions import INPUT_RUNNING_FUNCTIONS, READ_ONLY_FUNCTIONS
from mcp_postgres.engine.audit.catalog_reader import CatalogReader, QueryResult
from mcp_postgres.engine.audit.extensions import ExtensionFunction, load_extension_rules
from mcp_postgres.engine.audit.procedures import (
    CALLED,
    FIRST_OWN,
    RUNS_TEXT,
    Procedure,
    find_functions,
    find_input_runners,
    find_objects,
)
from mcp_postgres.engine.audit.visible_schema import VisibleObjects

__all__ = ["SNAPSHOT", "Cause", "CodeAudit", "Harm"]

_WORD = re.compile(r"[\w$]+")
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
# Kinds that are code, or lead to some, whatever they are made of.
_CODE_KINDS = {"operator", "class", "foreign", "function"}


class Cause(Enum):
    """Why a statement is not run."""

    STRANGER = "it could run another role's code"
    EFFECT = "it may do more than read"
    INPUT = "it may run what it is given"


class Harm(NamedTuple):
    """What a statement could do beside reading.

    Attributes:
        description: the function, type or other object.
        reason: for `Cause.INPUT`, what is known of it.
        vouch: how the operator can vouch for it.
    """

    cause: Cause
    description: str
    reason: str = ""
    vouch: str = ""


@dataclass(frozen=True)
class _CatalogRow:
    """A row of the catalogue that hangs on object `oid`: what it is, whose (None: trusted), and what it leads to."""

    oid: int
    name: str
    kind: str
    only_for_changes: bool
    description: str
    owner: str | None
    references: frozenset[int]
    calls: frozenset[int]
    body: str | None = None


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
        self._built_in: dict[int, str] = {}
        self._procedures: dict[int, Procedure] = {}
        # Functions that may run what they are given, and why.
        self._input_runners: dict[int, str] = {}
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
        snapshot = None
        if row:
            snapshot = row[0]
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
        return next((why for name, why in self.harmful_names.items() if re.search(_name_pattern(name), text)), None)

    def harm_of_trees(self, trees: Sequence[str], *, sequences: bool, planned: bool) -> Harm | None:
        """Return what a statement with these rewritten trees could do beside reading.

        Args:
            sequences: functions that advance a sequence are fine.
            planned: it will be planned only, which runs no volatile function.
        """
        for tree in trees:
            objects = find_objects(tree)
            if self.closed and (stranger := self._find_strangers_code(tree, objects, planned=planned)) is not None:
                return Harm(Cause.STRANGER, stranger)
            called = find_functions(tree).union(*(self._operator_functions.get(oid, frozenset()) for oid in objects))
            for oid in called:
                if (harm := self._harm_of_function(oid, sequences=sequences, planned=planned)) is not None:
                    return harm
            for oid in objects & self._harmful_types.keys():
                return self._harmful_types[oid]
        return None

    def _find_strangers_code(self, tree: str, objects: set[int], *, planned: bool) -> str | None:
        targets = {int(oid) for oid, lock in _TARGET_RELATION.findall(tree) if int(lock) >= _ROW_EXCLUSIVE_MODE}
        for oid in objects:
            if oid in self._read_dangers:
                return self._read_dangers[oid]
            if oid in targets and not planned and oid in self._write_dangers:
                return self._write_dangers[oid]
        return None

    def _harm_of_function(self, oid: int, *, sequences: bool, planned: bool = False) -> Harm | None:
        """Return what a function may do beside reading."""
        if oid < FIRST_OWN:
            name = self._built_in.get(oid)
            if name is None or (sequences and name in ("nextval", "setval")):
                return None
            if planned and name not in INPUT_RUNNING_FUNCTIONS:
                return None
            return Harm(Cause.EFFECT, f"{name}()")
        proc = self._procedures.get(oid)
        if proc is None:
            return Harm(Cause.EFFECT, f"function {oid}")
        if planned and proc.function.volatility == "v":
            return None
        vouch = f"{proc.schema}.{proc.name}"
        if proc.may_change_data():
            return Harm(Cause.EFFECT, f"{proc.name}()", vouch=vouch)
        if oid in self._input_runners:
            return Harm(Cause.INPUT, f"{proc.name}()", self._input_runners[oid], vouch)
        return None

    async def _load(self, session: CatalogReader) -> None:
        built_in, procedures, objects = await session.run_pipeline(
            (_BUILT_IN, ("{" + ",".join(INPUT_RUNNING_FUNCTIONS) + "}",)), (_PROCEDURES, ()), (_CATALOG_ROWS, ())
        )
        self._built_in = {int(oid): name for oid, name in built_in.rows() if name not in READ_ONLY_FUNCTIONS}
        self._procedures = {}
        rows = list[_CatalogRow]()
        for row in procedures.rows():
            oid, name, schema, spelled, owner, volatility, extension, version, *details = row
            arguments, is_overload, parts, numbers, tree, body = details
            calls = find_functions(tree) | {int(number) for number in parts.split()}
            vouched = bool({(schema, name), (extension,)} & self._trusted) or (schema, name) in self.visible.schema.only
            function = ExtensionFunction(extension, version, name, tuple((arguments or "").split()), volatility)
            self._procedures[int(oid)] = Procedure(
                function, schema, body, frozenset(calls - {0}), vouched, is_overload == "t"
            )
            references = find_objects(f"{numbers} {tree}")
            rows.append(
                _CatalogRow(
                    int(oid), name, "function", False, f"{spelled}()", owner, frozenset(references), frozenset(),
                    _add_relations(body, extension),
                )
            )  # fmt: skip
        for oid, name, kind, changes, what, owner, numbers, tree in objects.rows():
            references = find_objects(f"{numbers} {tree or ''}")
            if owner is not None:
                calls = find_functions(tree or "")
            else:
                calls = set[int]()
            rows.append(
                _CatalogRow(int(oid), name, kind, changes == "t", what, owner, frozenset(references), frozenset(calls))
            )
        self._operator_functions = {
            thing.oid: thing.references & self._procedures.keys() for thing in rows if thing.kind == "operator"
        }
        self._input_runners = find_input_runners(self._procedures)
        if self.closed:
            self._read_dangers = self._spread_danger([thing for thing in rows if not thing.only_for_changes])
            self._write_dangers = self._spread_danger(rows)
        self._collect_harmful_names(rows)
        if self.visible.schema:
            await self.visible.load(session, self._procedures)

    def _collect_harmful_names(self, rows: Sequence[_CatalogRow]) -> None:
        """Know the names with which a literal would run code that nobody knows."""
        type_rows = [thing for thing in rows if thing.kind in ("type", "column", "input")]
        harms: dict[int, Harm] = {}
        for thing in type_rows:
            if (harm := self._harm_of_input(thing)) is not None:
                harms.update(
                    {oid: harm for oid in _spread_to_referrers(type_rows, {thing.oid: ""}) if oid not in harms}
                )
        users = [thing for thing in rows if thing.kind in ("function", "operator") and thing.references & harms.keys()]
        self.harmful_names = {
            thing.name.casefold(): harms.get(thing.oid) or next(harms[oid] for oid in thing.references if oid in harms)
            for thing in [*(thing for thing in type_rows if thing.oid in harms), *users]
        }
        types = {thing.oid for thing in type_rows if thing.kind != "column"}
        self._harmful_types = {oid: harm for oid, harm in harms.items() if oid in types and harm.cause is Cause.INPUT}

    def _harm_of_input(self, row: _CatalogRow) -> Harm | None:
        if row.kind != "input":
            return None
        if self.closed:
            reason = self._describe_own_code(row) or next(
                (self._read_dangers[oid] for oid in row.references if oid in self._read_dangers), None
            )
            if reason is not None:
                return Harm(Cause.STRANGER, reason)
        for oid in row.references & self._input_runners.keys():
            proc = self._procedures[oid]
            description = f"{row.name}, whose values {proc.name}() handles"
            return Harm(
                Cause.INPUT,
                description,
                self._input_runners[oid],
                proc.function.extension or f"{proc.schema}.{proc.name}",
            )
        return None

    def _describe_own_code(self, row: _CatalogRow) -> str | None:
        """Return why a thing is no good by itself."""
        if row.owner is None:
            return None
        if row.kind in _CODE_KINDS:
            return f"{row.description} of {row.owner}"
        for oid in row.calls:
            # A stranger's expression may well call what the superuser laid, with what the stranger chose.
            if (harm := self._harm_of_function(oid, sequences=row.only_for_changes)) is not None:
                return f"{row.description} of {row.owner}, which calls {harm.description}"
        return None

    def _spread_danger(self, rows: Sequence[_CatalogRow]) -> dict[int, str]:
        """Return objects that lead to a stranger's code, and why."""
        dangers = {thing.oid: reason for thing in rows if (reason := self._describe_own_code(thing))}
        bodies = [thing for thing in rows if thing.body is not None and thing.oid not in dangers]
        while True:
            dangers = _spread_to_referrers(rows, dangers)
            if not dangers:
                return dangers
            names = self._collect_names(rows, dangers)
            new_dangers: dict[int, str] = {}
            for thing in bodies:
                if thing.oid in dangers:
                    continue
                proc = self._procedures.get(thing.oid)
                is_listed = proc is not None and proc.is_listed
                if (reason := _find_mention(thing.body or "", names, is_listed=is_listed)) is not None:
                    new_dangers[thing.oid] = (
                        f"{thing.description}, whose body may reach what belongs to others: {reason}"
                    )
            if not new_dangers:
                return dangers
            dangers |= new_dangers

    def _collect_names(self, rows: Sequence[_CatalogRow], dangers: Mapping[int, str]) -> _DangerousNames:
        """Return the names by which a body could mean something bad."""
        names = _DangerousNames()
        harmless = {proc.name.casefold() for oid, proc in self._procedures.items() if oid not in dangers}
        for thing in rows:
            name = thing.name.casefold()
            if not name or thing.oid not in dangers:
                continue
            if thing.kind == "function" and thing.owner is None:
                # PostGIS has a `geometry()` of a topology, and many that only convert.
                if not (self._procedures[thing.oid].function.extension and name in harmless):
                    names.called.add(name)
            elif thing.kind == "operator" and thing.owner is None:
                names.operators.add(name)
            elif _WORD.fullmatch(name):
                names.words.add(name)
            else:
                names.signs.add(name)
        return names


def _name_pattern(name: str) -> str:
    """Return a pattern for a name, whole.

    PostgreSQL cuts names of 64 bytes and more, so that longer ones mean it too.
    """
    start = r"(?<![a-z_])" if re.match(r"[a-z_]", name) else ""
    end = r"(?![a-z0-9_$])" if re.search(r"[a-z0-9_$]$", name) and len(name.encode()) < 60 else ""
    return start + re.escape(name) + end


_TARGET_RELATION = re.compile(r":relid (\d+)(?: :\w+ \w+)*? :rellockmode (\d+)")
_ROW_EXCLUSIVE_MODE = 3


def _add_relations(body: str | None, extension: str) -> str | None:
    """Return the body of a function, with the tables that functions of the extension look up by name."""
    rules = load_extension_rules().get(extension)
    if rules is None or not rules.relations:
        return body
    return f"{body or 'sql'}\n{' '.join(rules.relations)}"


@dataclass(frozen=True)
class _DangerousNames:
    """Names by which a body could mean what leads to a stranger's code.

    Attributes:
        words: of strangers' functions, of types and of relations.
        signs: the same, where they are no words.
        called: of trusted functions.
        operators: that are trusted.
    """

    words: set[str] = field(default_factory=set[str])
    signs: set[str] = field(default_factory=set[str])
    called: set[str] = field(default_factory=set[str])
    operators: set[str] = field(default_factory=set[str])


def _find_mention(body: str, names: _DangerousNames, *, is_listed: bool) -> str | None:
    """Return what in the source of a function could lead to one of these names.

    PostgreSQL knows no more of it than its text.

    Its author is trusted, so nothing hides in it.

    Args:
        is_listed: people have read what it does. Still another role's function could fit a call in it better.
    """
    language, _, source = body.partition("\n")
    if language not in ("sql", "plpgsql"):
        return f"it is written in {language}"
    text = source.casefold()
    mentions = names.words & set(_WORD.findall(text)) | {sign for sign in names.signs if sign in text}
    if not is_listed:
        if runs := RUNS_TEXT.search(text):
            return f"`{runs[0]}`"
        mentions |= names.called & set(CALLED.findall(text)) | {sign for sign in names.operators if sign in text}
    if mentions:
        return f"`{min(mentions)}`"
    return None


def _spread_to_referrers(rows: Iterable[_CatalogRow], dangers: dict[int, str]) -> dict[int, str]:
    """`bad`, with everything that leads there."""
    referrers: defaultdict[int, list[_CatalogRow]] = defaultdict(list)
    for thing in rows:
        for oid in thing.references:
            referrers[oid].append(thing)
    reached = dict(dangers)
    pending = list(dangers)
    while pending:
        oid = pending.pop()
        for thing in referrers[oid]:
            if thing.oid not in reached:
                reached[thing.oid] = f"{thing.description}: {reached[oid]}" if thing.description else reached[oid]
                pending.append(thing.oid)
    return reached
