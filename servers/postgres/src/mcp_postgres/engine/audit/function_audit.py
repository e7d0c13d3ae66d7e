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
from mcp_postgres.engine.audit.extensions import ExtensionFunction, extension_rules
from mcp_postgres.engine.audit.procedures import (
    CALLED,
    FIRST_OWN,
    RUNS_TEXT,
    Procedure,
    functions_in,
    input_runners,
    objects_in,
)
from mcp_postgres.engine.audit.visible_schema import ServedPart

__all__ = ["GATE", "Cause", "Harm", "World"]

_WORD = re.compile(r"[\w$]+")
GATE = (
    "SELECT concat_ws(' ', CASE WHEN pg_is_in_recovery() THEN clock_timestamp()::text"
    " ELSE pg_current_snapshot()::text END, pg_postmaster_start_time(), current_database())"
)
"""Changes with every commit; a standby does not list what was committed meanwhile, so it always changes there."""

_KEYS = {
    "pg_attribute": "attrelid", "pg_aggregate": "aggfnoid::oid", "pg_index": "indexrelid", "pg_inherits": "inhrelid",
    "pg_partitioned_table": "partrelid", "pg_range": "rngtypid", "pg_foreign_table": "ftrelid",
}  # fmt: skip
_STATE = "SELECT concat_ws(' ', current_user, (SELECT string_agg(oid::text, ',' ORDER BY oid) FROM pg_roles" + (
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
"""Two states are equal only if no row came, went or changed: what is written later has a greater `xmin`."""

_STRANGERS = """
strangers AS (SELECT oid, CASE WHEN NOT rolsuper AND rolname <> current_user THEN rolname END AS who FROM pg_roles),
relations AS (SELECT c.oid, c.relkind, c.relname::text AS name, format('%I.%I', n.nspname, c.relname) AS spelled,
    CASE WHEN s.oid IS NULL THEN 'nobody' ELSE s.who END AS who FROM pg_class c
    JOIN pg_namespace n ON n.oid = c.relnamespace LEFT JOIN strangers s ON s.oid = c.relowner WHERE c.oid >= 16384),
types AS (SELECT t.*, format('%I.%I', n.nspname, t.typname) AS spelled,
    CASE WHEN s.oid IS NULL THEN 'nobody' ELSE s.who END AS who FROM pg_type t
    JOIN pg_namespace n ON n.oid = t.typnamespace LEFT JOIN strangers s ON s.oid = t.typowner WHERE t.oid >= 16384)
"""
_WHO = "CASE WHEN s.oid IS NULL THEN 'nobody' ELSE s.who END"

_PROCS = f"""
WITH {_STRANGERS}
SELECT p.oid::text, p.proname, n.nspname, format('%I.%I', n.nspname, p.proname), {_WHO}, p.provolatile::text,
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
_THINGS = f"""
WITH {_STRANGERS}
SELECT o.oid::text, o.oprname::text, 'operator', false, format('operator %s', o.oid::regoperator), {_WHO},
    concat_ws(' ', o.oprcode::oid, o.oprrest::oid, o.oprjoin::oid, o.oprcom, o.oprnegate, o.oprleft, o.oprright), ''
    FROM pg_operator o LEFT JOIN strangers s ON s.oid = o.oprowner WHERE o.oid >= 16384
UNION ALL SELECT o.oid::text, '', 'class', false, format('operator class %I', o.opcname), {_WHO}, o.opcfamily::text, ''
    FROM pg_opclass o LEFT JOIN strangers s ON s.oid = o.opcowner WHERE o.oid >= 16384
UNION ALL SELECT o.oid::text, '', 'class', false, format('operator family %I', o.opfname), {_WHO}, '', ''
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
UNION ALL SELECT r.oid::text, '', '', false, format('statistics %I', x.stxname), coalesce(r.who, {_WHO}), '',
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
UNION ALL SELECT f.oid::text, '', 'foreign', false, format('server %I', f.srvname), {_WHO}, f.srvfdw::text, ''
    FROM pg_foreign_server f LEFT JOIN strangers s ON s.oid = f.srvowner
UNION ALL SELECT f.oid::text, '', 'foreign', false, format('foreign data wrapper %I', f.fdwname), {_WHO},
    concat_ws(' ', f.fdwhandler, f.fdwvalidator), ''
    FROM pg_foreign_data_wrapper f LEFT JOIN strangers s ON s.oid = f.fdwowner
"""
_CODE = {"operator", "class", "foreign", "function"}
"""Kinds that are code, or lead to some, whatever they are made of."""


class Cause(Enum):
    """Why a statement is not run."""

    STRANGER = "it could run another role's code"
    EFFECT = "it may do more than read"
    INPUT = "it may run what it is given"


class Harm(NamedTuple):
    """What a statement could do beside reading.

    Attributes:
        what: the function, type or other object.
        why: for `Cause.INPUT`, what is known of it.
        vouch: how the operator can vouch for it.
    """

    cause: Cause
    what: str
    why: str = ""
    vouch: str = ""


@dataclass(frozen=True)
class _Thing:
    """A row of the catalogue that hangs on object `oid`: what it is, whose (None: trusted), and what it leads to."""

    oid: int
    name: str
    kind: str
    changes: bool
    what: str
    who: str | None
    leads: frozenset[int]
    calls: frozenset[int]
    body: str | None = None


class World:
    """What is known of one database.

    Args:
        closed: whether what belongs to other roles than superusers is held to be hostile.
        part: what of the database is served; looked at together.
        trusted: functions, each by schema and name, and extensions for which the operator vouches.

    Attributes:
        armed: names, in lower case, of what is made of types whose literals run code that nobody knows; and why.
    """

    def __init__(self, *, closed: bool, part: ServedPart, trusted: frozenset[tuple[str, ...]] = frozenset()) -> None:
        self.closed, self.part, self._trusted = closed, part, trusted
        self._gate: str | None = None
        self._state: str | None = None
        self._built_in: dict[int, str] = {}
        self._procs: dict[int, Procedure] = {}
        self._inputs: dict[int, str] = {}
        """Functions that may run what they are given, and why."""
        self._types: dict[int, Harm] = {}
        """Types whose values are read or written by such functions."""
        self._operators: dict[int, frozenset[int]] = {}
        self._read: dict[int, str] = {}
        self._changed: dict[int, str] = {}
        self.armed: dict[str, Harm] = {}

    async def look(self, session: CatalogReader, answer: QueryResult) -> None:
        """Be as of `answer`, which is `GATE`'s: nothing to do if nobody committed since, little if no object changed.

        Names must mean PostgreSQL's own things.
        """
        row = answer.first()
        gate = row[0] if row else None
        if gate == self._gate:
            return
        async with session.itself():
            state = await session.value(_STATE)
            if state != self._state:
                await self._load(session)
        self._gate, self._state = gate, state

    async def look_at_part(self, session: CatalogReader) -> None:
        """Know which columns are masked now, for who shows of a table more than a statement would.

        Raises:
            Refused: one that is to be masked is not there.
        """
        if self.part.part:
            (answer,) = await session.together((GATE, ()))
            await self.look(session, answer)
            self.part.check()

    def literal(self, sql: str) -> Harm | None:
        """What merely parsing `sql` could run, before PostgreSQL can be asked for its tree.

        A literal is read while a statement is parsed: `'{1}'::d[]` checks the domain `d`. Where such a type would run
        code that nobody knows, its name and those of all that is made of it may not occur in the text, wherever it
        stands.
        """
        if not self.armed:
            return None
        text = sql.casefold().replace("\u0307", "")
        if 'u&"' in text:
            return Harm(Cause.STRANGER, 'U&"...", a name that is spelled by numbers')
        text = f"{text} {text.replace(chr(34) * 2, chr(34))}"
        return next((why for name, why in self.armed.items() if re.search(_spelled(name), text)), None)

    def harm(self, trees: Sequence[str], *, sequences: bool, planned: bool) -> Harm | None:
        """What a statement with these rewritten trees could do beside reading.

        Args:
            sequences: functions that advance a sequence are fine.
            planned: it will be planned only, which runs no volatile function.
        """
        for tree in trees:
            objects = objects_in(tree)
            if self.closed and (stranger := self._strangers_code(tree, objects, planned=planned)) is not None:
                return Harm(Cause.STRANGER, stranger)
            called = functions_in(tree).union(*(self._operators.get(oid, frozenset()) for oid in objects))
            for oid in called:
                if (harm := self._more(oid, sequences=sequences, planned=planned)) is not None:
                    return harm
            for oid in objects & self._types.keys():
                return self._types[oid]
        return None

    def _strangers_code(self, tree: str, objects: set[int], *, planned: bool) -> str | None:
        targets = {int(oid) for oid, lock in _TARGET.findall(tree) if int(lock) >= _ROW_EXCLUSIVE}
        for oid in objects:
            if oid in self._read:
                return self._read[oid]
            if oid in targets and not planned and oid in self._changed:
                return self._changed[oid]
        return None

    def _more(self, oid: int, *, sequences: bool, planned: bool = False) -> Harm | None:
        """What a function may do beside reading."""
        if oid < FIRST_OWN:
            name = self._built_in.get(oid)
            if name is None or (sequences and name in ("nextval", "setval")):
                return None
            return None if planned and name not in INPUT_RUNNING_FUNCTIONS else Harm(Cause.EFFECT, f"{name}()")
        proc = self._procs.get(oid)
        if proc is None:
            return Harm(Cause.EFFECT, f"function {oid}")
        if planned and proc.function.volatility == "v":
            return None
        vouch = f"{proc.schema}.{proc.name}"
        if proc.changes():
            return Harm(Cause.EFFECT, f"{proc.name}()", vouch=vouch)
        if oid in self._inputs:
            return Harm(Cause.INPUT, f"{proc.name}()", self._inputs[oid], vouch)
        return None

    async def _load(self, session: CatalogReader) -> None:
        built_in, procs, things = await session.together(
            (_BUILT_IN, ("{" + ",".join(INPUT_RUNNING_FUNCTIONS) + "}",)), (_PROCS, ()), (_THINGS, ())
        )
        self._built_in = {int(oid): name for oid, name in built_in.rows() if name not in READ_ONLY_FUNCTIONS}
        self._procs, found = {}, list[_Thing]()
        for row in procs.rows():
            oid, name, schema, spelled, who, volatility, extension, version, *more = row
            arguments, is_overload, made_of, refs, tree, body = more
            calls = functions_in(tree) | {int(number) for number in made_of.split()}
            vouched = bool({(schema, name), (extension,)} & self._trusted) or (schema, name) in self.part.part.only
            function = ExtensionFunction(extension, version, name, tuple((arguments or "").split()), volatility)
            self._procs[int(oid)] = Procedure(
                function, schema, body, frozenset(calls - {0}), vouched, is_overload == "t"
            )
            leads = objects_in(f"{refs} {tree}")
            found.append(
                _Thing(
                    int(oid), name, "function", False, f"{spelled}()", who, frozenset(leads), frozenset(),
                    _with_relations(body, extension),
                )
            )  # fmt: skip
        for oid, name, kind, changes, what, who, refs, tree in things.rows():
            leads = objects_in(f"{refs} {tree or ''}")
            calls = functions_in(tree or "") if who is not None else set[int]()
            found.append(_Thing(int(oid), name, kind, changes == "t", what, who, frozenset(leads), frozenset(calls)))
        self._operators = {thing.oid: thing.leads & self._procs.keys() for thing in found if thing.kind == "operator"}
        self._inputs = input_runners(self._procs)
        if self.closed:
            self._read = self._spread([thing for thing in found if not thing.changes])
            self._changed = self._spread(found)
        self._arm(found)
        if self.part.part:
            await self.part.load(session, self._procs)

    def _arm(self, things: Sequence[_Thing]) -> None:
        """Know the names with which a literal would run code that nobody knows."""
        shaped = [thing for thing in things if thing.kind in ("type", "column", "input")]
        armed: dict[int, Harm] = {}
        for thing in shaped:
            if (harm := self._harm_of_input(thing)) is not None:
                armed.update({oid: harm for oid in _reached(shaped, {thing.oid: ""}) if oid not in armed})
        users = [thing for thing in things if thing.kind in ("function", "operator") and thing.leads & armed.keys()]
        self.armed = {
            thing.name.casefold(): armed.get(thing.oid) or next(armed[oid] for oid in thing.leads if oid in armed)
            for thing in [*(thing for thing in shaped if thing.oid in armed), *users]
        }
        types = {thing.oid for thing in shaped if thing.kind != "column"}
        self._types = {oid: harm for oid, harm in armed.items() if oid in types and harm.cause is Cause.INPUT}

    def _harm_of_input(self, thing: _Thing) -> Harm | None:
        if thing.kind != "input":
            return None
        if self.closed:
            why = self._own(thing) or next((self._read[oid] for oid in thing.leads if oid in self._read), None)
            if why is not None:
                return Harm(Cause.STRANGER, why)
        for oid in thing.leads & self._inputs.keys():
            proc = self._procs[oid]
            what = f"{thing.name}, whose values {proc.name}() handles"
            return Harm(Cause.INPUT, what, self._inputs[oid], proc.function.extension or f"{proc.schema}.{proc.name}")
        return None

    def _own(self, thing: _Thing) -> str | None:
        """Why a thing is no good by itself."""
        if thing.who is None:
            return None
        if thing.kind in _CODE:
            return f"{thing.what} of {thing.who}"
        for oid in thing.calls:
            # A stranger's expression may well call what the superuser laid, with what the stranger chose.
            if (harm := self._more(oid, sequences=thing.changes)) is not None:
                return f"{thing.what} of {thing.who}, which calls {harm.what}"
        return None

    def _spread(self, things: Sequence[_Thing]) -> dict[int, str]:
        """Objects that lead to a stranger's code, and why."""
        bad = {thing.oid: why for thing in things if (why := self._own(thing))}
        bodies = [thing for thing in things if thing.body is not None and thing.oid not in bad]
        while True:
            bad = _reached(things, bad)
            if not bad:
                return bad
            names = self._names_of(things, bad)
            more: dict[int, str] = {}
            for thing in bodies:
                if thing.oid in bad:
                    continue
                proc = self._procs.get(thing.oid)
                listed = proc is not None and proc.is_listed
                if (why := _mentions(thing.body or "", names, is_listed=listed)) is not None:
                    more[thing.oid] = f"{thing.what}, whose body may reach what belongs to others: {why}"
            if not more:
                return bad
            bad |= more

    def _names_of(self, things: Sequence[_Thing], bad: Mapping[int, str]) -> _Names:
        """The names by which a body could mean something bad."""
        names = _Names()
        harmless = {proc.name.casefold() for oid, proc in self._procs.items() if oid not in bad}
        for thing in things:
            name = thing.name.casefold()
            if not name or thing.oid not in bad:
                continue
            if thing.kind == "function" and thing.who is None:
                # PostGIS has a `geometry()` of a topology, and many that only convert.
                if not (self._procs[thing.oid].function.extension and name in harmless):
                    names.called.add(name)
            elif thing.kind == "operator" and thing.who is None:
                names.operators.add(name)
            elif _WORD.fullmatch(name):
                names.words.add(name)
            else:
                names.signs.add(name)
        return names


def _spelled(name: str) -> str:
    """A pattern for a name, whole; PostgreSQL cuts names of 64 bytes and more, so that longer ones mean it too."""
    before = r"(?<![a-z_])" if re.match(r"[a-z_]", name) else ""
    after = r"(?![a-z0-9_$])" if re.search(r"[a-z0-9_$]$", name) and len(name.encode()) < 60 else ""
    return before + re.escape(name) + after


_TARGET = re.compile(r":relid (\d+)(?: :\w+ \w+)*? :rellockmode (\d+)")
_ROW_EXCLUSIVE = 3


def _with_relations(body: str | None, extension: str) -> str | None:
    """The body of a function, with the tables that functions of the extension look up by name."""
    rules = extension_rules().get(extension)
    if rules is None or not rules.relations:
        return body
    return f"{body or 'sql'}\n{' '.join(rules.relations)}"


@dataclass(frozen=True)
class _Names:
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


def _mentions(body: str, names: _Names, *, is_listed: bool) -> str | None:
    """What in the source of a function could lead to one of these names; PostgreSQL knows no more of it than its text.

    Its author is trusted, so nothing hides in it.

    Args:
        is_listed: people have read what it does. Still another role's function could fit a call in it better.
    """
    language, _, source = body.partition("\n")
    if language not in ("sql", "plpgsql"):
        return f"it is written in {language}"
    text = source.casefold()
    found = names.words & set(_WORD.findall(text)) | {sign for sign in names.signs if sign in text}
    if not is_listed:
        if runs := RUNS_TEXT.search(text):
            return f"`{runs[0]}`"
        found |= names.called & set(CALLED.findall(text)) | {sign for sign in names.operators if sign in text}
    return f"`{min(found)}`" if found else None


def _reached(things: Iterable[_Thing], bad: dict[int, str]) -> dict[int, str]:
    """`bad`, with everything that leads there."""
    leading: defaultdict[int, list[_Thing]] = defaultdict(list)
    for thing in things:
        for oid in thing.leads:
            leading[oid].append(thing)
    reached, waiting = dict(bad), list(bad)
    while waiting:
        oid = waiting.pop()
        for thing in leading[oid]:
            if thing.oid not in reached:
                reached[thing.oid] = f"{thing.what}: {reached[oid]}" if thing.what else reached[oid]
                waiting.append(thing.oid)
    return reached
