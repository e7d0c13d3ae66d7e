"""Finds out whose code a statement could run, from PostgreSQL's catalog, cached until that changes.

A function is one of many things that run when a table is read: a domain's CHECK, an index or statistics expression that
the planner folds, an operator's estimator, an aggregate's parts, a partition key. They run with the rights of
the role that reads. For a role that could do harm the world is therefore closed: everything that a statement touches,
and everything that this leads to, is PostgreSQL's own or belongs to a superuser. What belongs to another role is let
through where no code hangs on it: tables, plain indexes, enums, CHECKs and views made of PostgreSQL's own functions.

Objects are followed by the numbers that stand in their catalogue rows and stored expressions. Any number that could be
an object's counts, whatever field it stands in: a mistake refuses too much, never too little.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mcp_postgres.engine.connections import Session
    from mcp_postgres.engine.part import ServedPart
    from mcp_postgres.engine.trips import Answer

__all__ = ["FIRST_OWN", "GATE", "READING", "World", "functions_in", "objects_in"]

FIRST_OWN = 16384
"""The first number of an object that is not PostgreSQL's own."""

READING = {
    "random", "random_normal", "clock_timestamp", "timeofday", "gen_random_uuid", "uuidv4", "uuidv7", "pg_sleep",
    "pg_sleep_for", "pg_sleep_until", "array_shuffle", "array_sample", "currval", "lastval", "setseed", "lo_get",
    "pg_database_size", "pg_relation_size", "pg_table_size", "pg_total_relation_size", "pg_indexes_size",
    "pg_tablespace_size", "pg_lock_status", "pg_blocking_pids", "pg_safe_snapshot_blocking_pids", "pg_is_in_recovery",
    "pg_current_wal_lsn", "pg_current_wal_insert_lsn", "pg_current_wal_flush_lsn", "pg_last_wal_receive_lsn",
    "pg_last_wal_replay_lsn", "pg_last_xact_replay_timestamp", "pg_is_wal_replay_paused", "pg_show_all_settings",
    "pg_prepared_xact", "pg_prepared_statement", "pg_cursor", "pg_timezone_names", "pg_timezone_abbrevs",
    "pg_available_extensions", "pg_available_extension_versions", "pg_sequence_last_value", "pg_get_sequence_data",
    "pg_control_system", "pg_control_checkpoint", "pg_control_recovery", "pg_control_init",
    "pg_notification_queue_usage", "bernoulli", "system",
    "pg_xact_commit_timestamp", "pg_last_committed_xact", "pg_get_replication_slots", "pg_get_shmem_allocations",
    "pg_get_backend_memory_contexts", "pg_stat_get_progress_info", "pg_get_wait_events", "pg_jit_available",
    "pg_show_replication_origin_status", "pg_partition_tree", "pg_partition_ancestors", "pg_get_publication_tables",
    "pg_get_aios", "pg_get_shmem_allocations_numa", "pg_config", "pg_stat_have_stats", "pg_relation_filenode",
    "pg_relation_filepath", "pg_trigger_depth", "pg_stat_clear_snapshot",
    "pg_stat_get_io", "pg_stat_get_backend_io", "pg_stat_get_backend_wal", "pg_stat_get_recovery_prefetch",
    "pg_stat_get_xact_blocks_fetched", "pg_stat_get_xact_blocks_hit", "pg_stat_get_xact_function_calls",
    "pg_stat_get_xact_function_self_time", "pg_stat_get_xact_function_total_time", "pg_stat_get_xact_numscans",
    "pg_stat_get_xact_tuples_deleted", "pg_stat_get_xact_tuples_fetched", "pg_stat_get_xact_tuples_hot_updated",
    "pg_stat_get_xact_tuples_inserted", "pg_stat_get_xact_tuples_newpage_updated", "pg_stat_get_xact_tuples_returned",
    "pg_stat_get_xact_tuples_updated", "pg_show_all_file_settings", "pg_hba_file_rules", "pg_ident_file_mappings",
}  # fmt: skip
"""Volatile functions of PostgreSQL's own that only read, or only wait."""

_BY_NAME = {
    "table_to_xml", "table_to_xmlschema", "table_to_xml_and_xmlschema", "schema_to_xml", "schema_to_xmlschema",
    "schema_to_xml_and_xmlschema", "database_to_xml", "database_to_xmlschema", "database_to_xml_and_xmlschema",
    "pg_input_is_valid", "pg_input_error_info", "pg_get_partition_constraintdef", "satisfies_hash_partition",
    "fmgr_sql_validator",
}  # fmt: skip
"""Functions of PostgreSQL's own, stable or immutable, that run what they are given the name or number of."""

_EXTENSIONS = {
    "pg_stat_statements",
    "pg_buffercache",
    "pgstattuple",
    "pg_freespacemap",
    "pg_visibility",
    "pgcrypto",
    "uuid-ossp",
}
_HARMFUL = {"pg_stat_statements_reset", "pg_truncate_visibility_map", "pg_buffercache_evict"}
_RUNNING = {"tablefunc", "xml2", "dblink", "postgres_fdw", "file_fdw", "adminpack"}
"""Extensions whose functions run SQL they are given as text, or reach files and servers; some are declared stable."""

_FUNCTION = re.compile(r":\w*(?:func|funcid|fnoid|handler) (\d+)", re.IGNORECASE)
_NO_OBJECT = re.compile(
    r":(?:\w*typmods?|\w*location\w*|stmt_len|list_(?:start|end)|queryId|constvalue \d+)"
    r" (?:-?\d+|\(i[ \d-]*\)|\[[ \d-]*\])"
)
"""Numbers of a tree that are known not to be an object's."""
_NUMBER = re.compile(r"\b\d{5,10}\b")
_WORD = re.compile(r"[\w$]+")
_RUNS_TEXT = re.compile(r"\bexecute\b|_to_xml|\bpg_input_|\bdblink|u&\"", re.IGNORECASE)

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
SELECT p.oid::text, p.proname, format('%I.%I', n.nspname, p.proname), {_WHO}, p.provolatile::text,
    coalesce((SELECT e.extname FROM pg_depend d JOIN pg_extension e ON e.oid = d.refobjid
        WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
        AND d.refclassid = 'pg_extension'::regclass), ''),
    concat_ws(' ', p.prosupport::oid, p.prorettype, p.proargtypes, array_to_string(p.proallargtypes, ' '),
        a.aggtransfn::oid, a.aggfinalfn::oid, a.aggcombinefn::oid, a.aggserialfn::oid, a.aggdeserialfn::oid,
        a.aggmtransfn::oid, a.aggminvtransfn::oid, a.aggmfinalfn::oid, a.aggsortop, a.aggtranstype, a.aggmtranstype),
    concat_ws(' ', p.prosqlbody::text, p.proargdefaults::text),
    CASE WHEN l.lanname IN ('c', 'internal') OR p.prosqlbody IS NOT NULL OR p.prokind = 'a' THEN NULL
        ELSE concat(l.lanname, E'\\n', p.prosrc) END
FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace JOIN pg_language l ON l.oid = p.prolang
LEFT JOIN pg_aggregate a ON a.aggfnoid = p.oid LEFT JOIN strangers s ON s.oid = p.proowner
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
    JOIN types t ON t.oid IN (k.castsource, k.casttarget) WHERE k.oid >= 16384 AND k.castfunc <> 0
    AND (t.who IS NOT NULL OR NOT EXISTS (SELECT 1 FROM types o WHERE o.oid IN (k.castsource, k.casttarget)
        AND o.who IS NOT NULL))
UNION ALL SELECT t.oid::text, t.typname::text, 'type', false, '', NULL, concat_ws(' ', t.typbasetype, t.typelem,
    t.typrelid, r.rngsubtype, r.rngsubopc), ''
    FROM types t LEFT JOIN pg_range r ON t.oid IN (r.rngtypid, r.rngmultitypid)
UNION ALL SELECT t.oid::text, '', '', false, '', NULL, concat_ws(' ', t.typinput::oid, t.typoutput::oid,
    t.typreceive::oid, t.typsend::oid, t.typmodin::oid, t.typmodout::oid, t.typanalyze::oid, t.typsubscript::oid), ''
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


def functions_in(tree: str) -> set[int]:
    """The functions that a tree of PostgreSQL's calls by name, as numbers of `pg_proc`."""
    return {int(number) for number in _FUNCTION.findall(tree)} - {0}


def objects_in(text: str) -> set[int]:
    """Every number in a tree that may be an object's which is not PostgreSQL's own."""
    return {found for number in _NUMBER.findall(_NO_OBJECT.sub("", text)) if (found := int(number)) >= FIRST_OWN}


@dataclass(frozen=True)
class _Proc:
    name: str
    volatility: str
    extension: str

    def reads(self) -> bool:
        if self.extension in _EXTENSIONS:
            return self.name not in _HARMFUL
        return self.volatility in ("i", "s") and self.extension not in _RUNNING


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

    Attributes:
        armed: names, in lower case, of what is made of types whose literals run a stranger's code; and why.
    """

    def __init__(self, *, closed: bool, part: ServedPart) -> None:
        self.closed, self.part = closed, part
        self._gate: str | None = None
        self._state: str | None = None
        self._built_in: dict[int, str] = {}
        self._procs: dict[int, _Proc] = {}
        self._operators: dict[int, frozenset[int]] = {}
        self._read: dict[int, str] = {}
        self._changed: dict[int, str] = {}
        self.armed: dict[str, str] = {}

    async def look(self, session: Session, answer: Answer) -> None:
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

    async def look_at_part(self, session: Session) -> None:
        """Know which columns are masked now, for who shows of a table more than a statement would.

        Raises:
            Refused: one that is to be masked is not there.
        """
        if self.part.part:
            (answer,) = await session.together((GATE, ()))
            await self.look(session, answer)
            self.part.check()

    def literal(self, sql: str) -> str | None:
        """What merely parsing `sql` could run, before PostgreSQL can be asked for its tree.

        A literal is read while a statement is parsed: `'{1}'::d[]` checks the domain `d`. Where such a type would run
        a stranger's code, its name and those of all that is made of it may not occur in the text, wherever it stands.
        """
        if not self.armed:
            return None
        text = sql.casefold().replace("\u0307", "")
        if 'u&"' in text:
            return 'U&"...", a name that is spelled by numbers'
        text = f"{text} {text.replace(chr(34) * 2, chr(34))}"
        return next((why for name, why in self.armed.items() if re.search(_spelled(name), text)), None)

    def harm(self, trees: Sequence[str], *, sequences: bool, planned: bool) -> tuple[str, bool] | None:
        """What a statement with these rewritten trees could do beside reading: in words, and whether a stranger could.

        Args:
            sequences: functions that advance a sequence are fine.
            planned: it will be planned only, which runs no volatile function.
        """
        for tree in trees:
            objects = objects_in(tree)
            if self.closed:
                targets = {int(oid) for oid, lock in _TARGET.findall(tree) if int(lock) >= _ROW_EXCLUSIVE}
                for oid in objects:
                    if oid in self._read:
                        return self._read[oid], True
                    if oid in targets and not planned and oid in self._changed:
                        return self._changed[oid], True
            called = functions_in(tree).union(*(self._operators.get(oid, frozenset()) for oid in objects))
            for oid in called:
                if (name := self._more(oid, sequences=sequences, planned=planned)) is not None:
                    return f"{name}()", False
        return None

    def _more(self, oid: int, *, sequences: bool, planned: bool = False) -> str | None:
        """The name of a function that may do more than read."""
        if oid < FIRST_OWN:
            name = self._built_in.get(oid)
            if name is None or (sequences and name in ("nextval", "setval")):
                return None
            return None if planned and name not in _BY_NAME else name
        proc = self._procs.get(oid)
        if proc is None:
            return f"function {oid}"
        return None if proc.reads() or (planned and proc.volatility == "v") else proc.name

    async def _load(self, session: Session) -> None:
        built_in, procs, things = await session.together(
            (_BUILT_IN, ("{" + ",".join(_BY_NAME) + "}",)), (_PROCS, ()), (_THINGS, ())
        )
        self._built_in = {int(oid): name for oid, name in built_in.rows() if name not in READING}
        self._procs, found = {}, list[_Thing]()
        for oid, name, spelled, who, volatility, extension, refs, tree, body in procs.rows():
            self._procs[int(oid)] = _Proc(name, volatility, extension)
            leads = objects_in(f"{refs} {tree}")
            found.append(
                _Thing(int(oid), name, "function", False, f"{spelled}()", who, frozenset(leads), frozenset(), body)
            )
        for oid, name, kind, changes, what, who, refs, tree in things.rows():
            leads = objects_in(f"{refs} {tree or ''}")
            calls = functions_in(tree or "") if who is not None else set[int]()
            found.append(_Thing(int(oid), name, kind, changes == "t", what, who, frozenset(leads), frozenset(calls)))
        self._operators = {thing.oid: thing.leads & self._procs.keys() for thing in found if thing.kind == "operator"}
        if self.closed:
            self._judge(found)
        if self.part.part:
            await self.part.load(session)

    def _judge(self, things: Sequence[_Thing]) -> None:
        self._read = self._spread([thing for thing in things if not thing.changes])
        self._changed = self._spread(things)
        shaped = [thing for thing in things if thing.kind in ("type", "column", "input")]
        armed = _reached(shaped, {thing.oid: why for thing in shaped if (why := self._input(thing))})
        users = [thing for thing in things if thing.kind in ("function", "operator") and thing.leads & armed.keys()]
        self.armed = {
            thing.name.casefold(): armed.get(thing.oid) or next(armed[oid] for oid in thing.leads if oid in armed)
            for thing in [*(thing for thing in shaped if thing.oid in armed), *users]
        }

    def _input(self, thing: _Thing) -> str | None:
        if thing.kind != "input":
            return None
        why = self._own(thing)
        return why or next((self._read[oid] for oid in thing.leads if oid in self._read), None)

    def _own(self, thing: _Thing) -> str | None:
        """Why a thing is no good by itself."""
        if thing.who is None:
            return None
        if thing.kind in _CODE:
            return f"{thing.what} of {thing.who}"
        for oid in thing.calls:
            # A stranger's expression may well call what the superuser laid, with what the stranger chose.
            if (name := self._more(oid, sequences=thing.changes)) is not None:
                return f"{thing.what} of {thing.who}, which calls {name}()"
        return None

    def _spread(self, things: Sequence[_Thing]) -> dict[int, str]:
        """Objects that lead to a stranger's code, and why."""
        bad = {thing.oid: why for thing in things if (why := self._own(thing))}
        bodies = [thing for thing in things if thing.body is not None and thing.oid not in bad]
        while True:
            bad = _reached(things, bad)
            names = {thing.name.casefold() for thing in things if thing.name and thing.oid in bad}
            words, signs = {name for name in names if _WORD.fullmatch(name)}, set[str]()
            signs = names - words
            more = {
                thing.oid: f"{thing.what}, whose body may reach what belongs to others: {why}"
                for thing in bodies
                if thing.oid not in bad and bad and (why := _mentions(thing.body or "", words, signs))
            }
            if not more:
                return bad
            bad |= more


def _spelled(name: str) -> str:
    """A pattern for a name, whole; PostgreSQL cuts names of 64 bytes and more, so that longer ones mean it too."""
    before = r"(?<![a-z_])" if re.match(r"[a-z_]", name) else ""
    after = r"(?![a-z0-9_$])" if re.search(r"[a-z0-9_$]$", name) and len(name.encode()) < 60 else ""
    return before + re.escape(name) + after


_TARGET = re.compile(r":relid (\d+)(?: :\w+ \w+)*? :rellockmode (\d+)")
_ROW_EXCLUSIVE = 3


def _mentions(body: str, words: Iterable[str], signs: Iterable[str]) -> str | None:
    """What in the source of a function could lead to one of these names; PostgreSQL knows no more of it than its text.

    Its author is trusted, so nothing hides in it.
    """
    language, _, source = body.partition("\n")
    if language not in ("sql", "plpgsql"):
        return f"it is written in {language}"
    text = source.casefold()
    if found := _RUNS_TEXT.search(text):
        return f"`{found[0]}`"
    own = set(_WORD.findall(text))
    return next((f"`{name}`" for name in words if name in own), None) or next(
        (f"`{sign}`" for sign in signs if sign in text), None
    )


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
