"""Plans as readable trees, what stands out in them, and how they would be with indexes that do not exist."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import psycopg

from mcp_batteries.errors import Invalid, Refused, quote
from mcp_postgres.engine.admission.statements import admit, judge
from mcp_postgres.engine.connection.errors import to_problem
from mcp_postgres.engine.connection.session import Session, use_catalog_path, use_role_path
from mcp_postgres.models import Plan
from mcp_postgres.policy import PlannerSettings, ReadStatement

__all__ = [
    "FORGET_PLAN",
    "PLAIN_INDEX",
    "QUERY_CANCELED",
    "AnalyzedStatement",
    "create_hypothetical",
    "explain",
    "find_hypopg_schema",
    "format_plan",
    "plan_judged",
    "plan_or_nothing",
    "plan_unjudged",
]

_Node = dict[str, Any]
_MANY_ROWS = 10_000
# An average of fewer rows than this is shown with its fraction.
_FEW_ROWS = 10
# The cost from which reading a table as a whole is worth a word.
_COSTLY = 1000
# Goes back to where a plan was asked for.
FORGET_PLAN = "ROLLBACK TO SAVEPOINT mcp_cost; DEALLOCATE ALL"
QUERY_CANCELED = "57014"
_MAX_FIELD_CHARACTERS = 300
_SHOWN_FIELDS = (
    "Index Cond", "Hash Cond", "Merge Cond", "Join Filter", "Recheck Cond", "Filter", "Sort Key", "Group Key",
)  # fmt: skip
# Parts of a partitioned table that a plan shows: the most expensive.
_MAX_PARTS = 8
PLAIN_INDEX = re.compile(
    r"\s*CREATE\s+INDEX\s+ON\s+(?:\w+\.)?\w+\s*(?:USING\s+\w+\s*)?\(\s*\w+(?:\s+(?:ASC|DESC))?"
    r"(?:\s*,\s*\w+(?:\s+(?:ASC|DESC))?)*\s*\)\s*",
    re.IGNORECASE,
)
_PARAMETER = re.compile(r"\$\d")
HYPOPG_MISSING = "This needs the extension `hypopg`, which isn't in this database."
HYPOPG_FIX = "An administrator can install it with the system's packages, then `CREATE EXTENSION hypopg`."


class AnalyzedStatement(NamedTuple):
    """A statement, and how much its cost counts.

    Attributes:
        is_generic: it is planned for any values of its parameters, since none are there.
    """

    statement: ReadStatement
    is_generic: bool
    weight: float = 1.0

    @classmethod
    def of(cls, statement: ReadStatement, weight: float = 1.0) -> AnalyzedStatement:
        is_generic = not statement.parameters and bool(_PARAMETER.search(statement.sql))
        return cls(statement, is_generic, weight)


async def explain(
    session: Session,
    statement: ReadStatement,
    indexes: Sequence[str],
    settings: PlannerSettings | None = None,
    *,
    analyze: bool,
) -> tuple[Plan, _Node]:
    """Return the plan of a statement, as text and as it is; with `analyze` it runs, inside the read-only gate.

    Args:
        indexes: what follows `CREATE INDEX ON`; it is planned as if there were these too.

    Raises:
        Problem: the statement is refused, or hypopg is missing.
    """
    if indexes and analyze:
        raise Invalid("`analyze` runs the query, which can't use `indexes` that don't exist.", "Take one of them.")
    notes: list[str] = []
    if indexes:
        created = await create_hypothetical(session, indexes, statement.database.name)
        notes += [f"as if there were {item}" for item in created]
    if settings is not None:
        notes.append("with " + await _apply_settings(session, settings, statement.database.name))
    if analyze:
        await admit(session, statement)
        notes.append("it was run, and rolled back")
    is_generic = AnalyzedStatement.of(statement).is_generic and not analyze
    if is_generic:
        notes.append("for any values of the parameters; pass some to see the plan for those")
    try:
        top = await plan_judged(session, statement, analyze=analyze, generic=is_generic)
        if indexes:
            await session.fetch_value(f"SELECT {await find_hypopg_schema(session)}.hypopg_reset()::text")
    except psycopg.Error as error:
        prefix = _PREPARE if is_generic else explain_prefix(analyze=analyze)
        raise to_problem(error, statement.database.name, prefix_length=len(prefix)) from error
    widths: list[int] = []
    lines = [*format_plan(top["Plan"], widths), *_format_times(top)]
    return Plan(lines, _find_problems(top["Plan"], analyze), notes, {"widths": widths}), top["Plan"]


async def _apply_settings(session: Session, settings: PlannerSettings, database: str) -> str:
    """Set what the planner is to believe in this transaction, and return it in words."""
    try:
        for name, value in settings.values.items():
            await session.fetch_value("SELECT pg_catalog.set_config($1, $2, true)", name, value)
    except psycopg.Error as error:
        raise to_problem(error, database) from error
    return ", ".join(f"{name} = {value}" for name, value in settings.values.items())


def _format_times(top: _Node) -> list[str]:
    return [f"{name}: {top[name]} ms" for name in ("Planning Time", "Execution Time") if name in top]


async def plan_or_nothing(session: Session, item: AnalyzedStatement) -> _Node:
    """Return the plan of a statement; `{}` where it has none."""
    await session.run("SAVEPOINT mcp_cost")
    try:
        return (await plan_judged(session, item.statement, generic=item.is_generic))["Plan"]
    except (psycopg.Error, Refused):
        await session.run(FORGET_PLAN)
        return {}


async def plan_judged(
    session: Session, statement: ReadStatement, *, analyze: bool = False, generic: bool = False
) -> _Node:
    """Return the plan as PostgreSQL has it.

    Raises:
        psycopg.Error: it has none.
    """
    # Planning runs code too: what is constant, and estimates.
    await judge(session, statement, only_planned=True)
    return await plan_unjudged(session, statement, analyze=analyze, generic=generic)


_PREPARE = "PREPARE mcp_plan AS "


def explain_prefix(*, analyze: bool) -> str:
    """Return what stands before the statement that is explained."""
    # In parentheses: nothing but a statement can follow, so what isn't analyzed can't be. VERBOSE says of every column
    # whose it is.
    return f"EXPLAIN ({'ANALYZE, BUFFERS, ' * analyze}VERBOSE, FORMAT JSON) "


async def plan_unjudged(
    session: Session, statement: ReadStatement, *, analyze: bool = False, generic: bool = False
) -> _Node:
    """Return the plan of a statement that was judged in this transaction, with names as it means them."""
    if not generic:
        (answer,) = await session.run_pipeline((explain_prefix(analyze=analyze) + statement.sql, statement.parameters))
        await use_catalog_path(session)
        return _parse_plan(answer.first())
    await session.run("SELECT pg_catalog.set_config('plan_cache_mode', 'force_generic_plan', true)")
    await session.run_pipeline((_PREPARE + statement.sql, ()))
    await use_catalog_path(session)
    try:
        count = await session.fetch_value(
            "SELECT cardinality(parameter_types)::text FROM pg_prepared_statements WHERE name = 'mcp_plan'"
        )
        values = ""
        if count and count != "0":
            values = f"({', '.join(['NULL'] * int(count or 0))})"
        await use_role_path(session)
        (answer,) = await session.run_pipeline((f"{explain_prefix(analyze=analyze)}EXECUTE mcp_plan{values}", ()))
        await use_catalog_path(session)
        return _parse_plan(answer.first())
    finally:
        if session.connection.info.transaction_status != psycopg.pq.TransactionStatus.INERROR:
            await session.run("DEALLOCATE mcp_plan")
        else:
            session.must_be_closed = True


def _parse_plan(row: tuple[str | None, ...] | None) -> _Node:
    assert row is not None and row[0] is not None
    return cast("list[_Node]", json.loads(row[0]))[0]


async def find_hypopg_schema(session: Session) -> str | None:
    """Return the schema of hypopg, as SQL spells it; None where the database has no hypopg."""
    return await session.fetch_value(
        "SELECT quote_ident(n.nspname) FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace"
        " WHERE e.extname = 'hypopg'"
    )


async def create_hypothetical(session: Session, indexes: Sequence[str], database: str) -> list[str]:
    """Make indexes that only the planner of this session believes in; their names.

    Raises:
        Problem: hypopg is missing or does not understand one.
    """
    schema = await find_hypopg_schema(session)
    if schema is None:
        raise Refused(HYPOPG_MISSING, HYPOPG_FIX)
    session.must_be_closed = True
    return [await _create_one(session, schema, index, database) for index in indexes]


async def _create_one(session: Session, schema: str, index: str, database: str) -> str:
    """Make one index with hypopg, whose schema is given; returns what it is on."""
    text = index
    if not re.match(r"\s*CREATE\s", index, re.I):
        text = f"CREATE INDEX ON {index}"
    if (session.audit.closed or session.audit.visible.schema) and not PLAIN_INDEX.fullmatch(text):
        # hypopg parses and folds it, and PostgreSQL can't be asked before what that would run. What an index with
        # a condition would cost tells how many rows have masked values.
        raise Refused(
            f"The role {session.role.explain_judging()}, and {quote(index)} may run code: only columns can be indexed.",
            "Write `table (column, ...)`, without expressions and conditions.",
        )
    try:
        await use_role_path(session)
        name = await session.fetch_value(
            f"SELECT indexname FROM {schema}.hypopg_create_index($1::pg_catalog.text)", text
        )
        await use_catalog_path(session)
    except psycopg.Error as error:
        raise to_problem(error, database, prefix_length=len(text) - len(index)) from error
    if name is None:
        raise Invalid(f"{quote(index)} is not an index.", "Write `table (column, ...)`.")
    return text.removeprefix("CREATE INDEX ON ")


def format_plan(plan: _Node, widths: list[int] | None = None) -> list[str]:
    """Return a plan as lines, a step each; how wide the rows of each step are goes into `widths`."""
    lines: list[str] = []
    _format_node(plan, lines, [] if widths is None else widths, 0)
    return lines


def _format_node(node: _Node, lines: list[str], widths: list[int], depth: int) -> None:
    indent = "  " * depth
    lines.append(f"{indent}{_one_line(_format_title(node))}: {_format_facts(node)}")
    widths.append(node["Plan Width"])
    lines += [f"{indent}  {name.lower()}: {_format_field(node[name])}" for name in _SHOWN_FIELDS if name in node]
    children = cast("list[_Node]", node.get("Plans", []))
    shown_children = _choose_children(node, children)
    for child in shown_children:
        _format_node(child, lines, widths, depth + 1)
    if len(shown_children) < len(children):
        lines.append(f"{indent}  … {len(children) - len(shown_children)} more parts, each of them cheaper")


def _format_title(node: _Node) -> str:
    """Return what a step is called, with the index and the relation that it reads."""
    title = str(node["Node Type"])
    join = node.get("Join Type")
    if join and join != "Inner":
        title += f" ({join})"
    strategy = node.get("Strategy")
    if strategy and strategy != "Plain":
        title += f" ({strategy.lower()})"
    if "Index Name" in node:
        title += f" using {node['Index Name']}"
    if "Relation Name" in node:
        title += f" on {node['Relation Name']}"
        alias = node.get("Alias")
        if alias not in (None, node["Relation Name"]):
            title += f" {alias}"
    elif "Function Name" in node or "CTE Name" in node:
        title += f" on {node.get('Function Name') or node['CTE Name']}"
    return title


def _format_facts(node: _Node) -> str:
    """Return what a step costs, or what it took where it was run."""
    if "Actual Total Time" not in node:
        return f"cost {node['Total Cost']:.0f}, {node['Plan Rows']:,} rows"
    loops = node["Actual Loops"]
    facts = "never run,"
    if loops:
        facts = f"{node['Actual Total Time']:.2f} ms, {_format_actual_rows(node)} of"
    facts += f" {node['Plan Rows']:,} rows expected"
    if loops > 1:
        facts += f", on average of {loops:,} times"
    if "Workers Launched" in node:
        facts += f", {node['Workers Launched']} workers"
    if node.get("Shared Read Blocks"):
        facts += f", {node['Shared Read Blocks']:,} blocks read"
    return facts


def _format_actual_rows(node: _Node) -> str:
    """Return how many rows a step gave; where it ran several times that is their average, which may be a fraction."""
    rows = node["Actual Rows"]
    if node["Actual Loops"] > 1 and 0 < rows < _FEW_ROWS:
        return f"{rows:.2f}".rstrip("0").rstrip(".")
    return f"{rows:,.0f}"


def _format_field(value: Any) -> str:
    if isinstance(value, list):
        value = ", ".join(cast("list[str]", value))
    text = _one_line(str(value))
    if len(text) > _MAX_FIELD_CHARACTERS:
        return text[: _MAX_FIELD_CHARACTERS - 1] + "…"
    return text


def _choose_children(node: _Node, children: list[_Node]) -> list[_Node]:
    """Return the steps below a step that are shown: all, but of many partitions the most expensive."""
    if node["Node Type"] not in ("Append", "Merge Append") or len(children) <= _MAX_PARTS + 2:
        return children
    costly = sorted(children, key=_node_cost, reverse=True)[:_MAX_PARTS]
    return [child for child in children if child in costly]


def _node_cost(node: _Node) -> float:
    return node.get("Actual Total Time", 0) * node.get("Actual Loops", 1) or node["Total Cost"]


def _one_line(text: str) -> str:
    # A name with a line end in it would look like a step of its own.
    return " ".join(text.splitlines())


def _find_problems(node: _Node, was_run: bool, *, ends_early: bool = False) -> list[str]:
    """Return what stands out in a step and those below it.

    Args:
        ends_early: whether a step above takes no more rows once it has enough.
    """
    if was_run:
        findings = [*_find_wasteful_scan(node), *_find_wrong_estimate(node, ends_early), *_find_disk_use(node)]
    else:
        findings = _find_expected_scan(node)
    ends_early = _children_end_early(node, ends_early)
    for child in cast("list[_Node]", node.get("Plans", [])):
        findings += _find_problems(child, was_run, ends_early=ends_early)
    return list(dict.fromkeys(findings))


def _children_end_early(node: _Node, ends_early: bool) -> bool:
    """Return whether the steps below one may stop before they have given all their rows."""
    kind = node["Node Type"]
    if kind in ("Limit", "Merge Join") or node.get("Join Type") in ("Semi", "Anti"):
        return True
    if kind in ("Sort", "Hash") or (kind == "Aggregate" and node.get("Strategy") != "Sorted"):
        return False
    return ends_early


def _is_filtered_scan(node: _Node) -> bool:
    return node["Node Type"] == "Seq Scan" and "Filter" in node


def _find_expected_scan(node: _Node) -> list[str]:
    """Return that a table would be read as a whole for few of its rows."""
    if not _is_filtered_scan(node) or node["Total Cost"] <= _COSTLY or node["Plan Rows"] * 10 >= node["Total Cost"]:
        return []
    relation = node.get("Relation Name")
    return [f"Reads `{relation}` whole for a few rows: an index on what it filters by may help."]


def _find_wasteful_scan(node: _Node) -> list[str]:
    """Return that a table was read as a whole for few of its rows.

    PostgreSQL gives averages of all times that a step ran, and of all processes that shared it.
    """
    if not _is_filtered_scan(node):
        return []
    loops = node["Actual Loops"]
    rows = node["Actual Rows"] * loops
    read_rows = rows + node.get("Rows Removed by Filter", 0) * loops
    if read_rows < _MANY_ROWS or rows * 10 >= read_rows:
        return []
    scan = f"Reads `{node.get('Relation Name')}` whole"
    if loops == 1:
        kept_rows = f"{rows:,.0f}"
    elif rows:
        kept_rows = f"about {rows:,.0f}"
    else:
        # PostgreSQL before 18 rounds averages to whole rows.
        kept_rows = "almost none"
    if loops > 1 and not node.get("Parallel Aware"):
        scan += f" {loops:,} times"
    return [f"{scan} and keeps {kept_rows} of {read_rows:,.0f} rows: an index on what it filters by may help."]


def _find_wrong_estimate(node: _Node, ends_early: bool) -> list[str]:
    """Return that a step without others below it gave many more or fewer rows than PostgreSQL thought.

    Fewer mean nothing where the step may have been ended early.
    """
    loops = node["Actual Loops"]
    expected = max(node["Plan Rows"], 1)
    actual = max(node["Actual Rows"], 1)
    if not loops or node.get("Plans") or max(expected, actual) < 1000 or 0.1 <= expected / actual <= 10:
        return []
    if ends_early and actual < expected:
        return []
    name = node.get("Relation Name") or node["Node Type"]
    average = ""
    if loops > 1:
        average = f" on average of {loops:,} times"
    return [f"`{name}`: {_format_actual_rows(node)} rows{average}, {expected:,} were expected: ANALYZE may help."]


def _find_disk_use(node: _Node) -> list[str]:
    """Return that a step had too little memory."""
    findings: list[str] = []
    if node.get("Sort Space Type") == "Disk":
        findings.append(f"Sorts {node['Sort Space Used']:,} kB on disk: more `work_mem`, or an index in that order.")
    if node.get("Hash Batches", 1) > 1:
        findings.append(f"Hashes in {node['Hash Batches']} batches, on disk: more `work_mem`.")
    return findings
