"""Plans as readable trees, what stands out in them, and how they would be with indexes that do not exist."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, cast

import psycopg

from mcp_batteries.errors import Invalid, Refused, quote
from mcp_postgres.engine.admission.statements import admit, judge
from mcp_postgres.engine.connection.errors import problem
from mcp_postgres.engine.connection.pool import Session
from mcp_postgres.engine.connection.session import own_names, their_names
from mcp_postgres.models import Plan
from mcp_postgres.policy import PlanOf, ReadStatement

__all__ = ["PLAIN", "drawn", "explained", "hypopg_schema", "hypothetical", "plan_of", "unjudged"]

_Node = dict[str, Any]
_MANY = 10_000
_MOST_PARTS = 8
"""Parts of a partitioned table that a plan shows: the most expensive."""
PLAIN = re.compile(
    r"\s*CREATE\s+INDEX\s+ON\s+(?:\w+\.)?\w+\s*(?:USING\s+\w+\s*)?\(\s*\w+(?:\s+(?:ASC|DESC))?"
    r"(?:\s*,\s*\w+(?:\s+(?:ASC|DESC))?)*\s*\)\s*",
    re.IGNORECASE,
)
_PARAMETER = re.compile(r"\$\d")
HYPOPG = "This needs the extension `hypopg`, which isn't in this database."
HYPOPG_FIX = "An administrator can install it with the system's packages, then `CREATE EXTENSION hypopg`."


async def explained(session: Session, wanted: PlanOf, *, analyze: bool) -> tuple[Plan, _Node]:
    """The plan of a statement, as text and as it is; with `analyze` it runs, inside the read-only gate.

    Raises:
        Problem: the statement is refused, or hypopg is missing.
    """
    statement, indexes = wanted.statement, wanted.indexes
    notes: list[str] = []
    if indexes:
        if analyze:
            raise Invalid("`analyze` runs the query, which can't use `indexes` that don't exist.", "Take one of them.")
        notes += [f"as if there were {item}" for item in await hypothetical(session, indexes, statement.database.name)]
    if analyze:
        await admit(session, statement)
        notes.append("it was run, and rolled back")
    generic = not statement.parameters and bool(_PARAMETER.search(statement.sql))
    if generic and not analyze:
        notes.append("for any values of the parameters; pass some to see the plan for those")
    try:
        top = await plan_of(session, statement, analyze=analyze, generic=generic and not analyze)
        if indexes:
            await session.value(f"SELECT {await hypopg_schema(session)}.hypopg_reset()::text")
    except psycopg.Error as error:
        ours = _PREPARE if generic and not analyze else explaining(analyze=analyze)
        raise problem(error, statement.database.name, before=len(ours)) from error
    widths: list[int] = []
    lines = drawn(top["Plan"], widths)
    lines += [f"{word}: {top[word]} ms" for word in ("Planning Time", "Execution Time") if word in top]
    return Plan(lines, _findings(top["Plan"], analyze), notes, {"widths": widths}), top["Plan"]


async def plan_of(session: Session, statement: ReadStatement, *, analyze: bool = False, generic: bool = False) -> _Node:
    """The plan as PostgreSQL has it.

    Raises:
        psycopg.Error: it has none.
    """
    # Planning runs code too: what is constant, and estimates.
    await judge(session, statement, planned=True)
    return await unjudged(session, statement, analyze=analyze, generic=generic)


_PREPARE = "PREPARE mcp_plan AS "


def explaining(*, analyze: bool) -> str:
    """What stands before the statement that is explained."""
    # In parentheses: nothing but a statement can follow, so what isn't analyzed can't be. VERBOSE says of every column
    # whose it is.
    return f"EXPLAIN ({'ANALYZE, BUFFERS, ' * analyze}VERBOSE, FORMAT JSON) "


async def unjudged(
    session: Session, statement: ReadStatement, *, analyze: bool = False, generic: bool = False
) -> _Node:
    """The plan of a statement that was judged in this transaction, with names as it means them."""
    if not generic:
        (answer,) = await session.together((explaining(analyze=analyze) + statement.sql, statement.parameters))
        await own_names(session)
        return _first(answer.first())
    await session.simple("SELECT pg_catalog.set_config('plan_cache_mode', 'force_generic_plan', true)")
    await session.together((_PREPARE + statement.sql, ()))
    await own_names(session)
    try:
        count = await session.value(
            "SELECT cardinality(parameter_types)::text FROM pg_prepared_statements WHERE name = 'mcp_plan'"
        )
        values = f"({', '.join(['NULL'] * int(count or 0))})" if count and count != "0" else ""
        await their_names(session)
        (answer,) = await session.together((f"{explaining(analyze=analyze)}EXECUTE mcp_plan{values}", ()))
        await own_names(session)
        return _first(answer.first())
    finally:
        if session.raw.info.transaction_status != psycopg.pq.TransactionStatus.INERROR:
            await session.simple("DEALLOCATE mcp_plan")
        else:
            session.spent = True


def _first(row: tuple[str | None, ...] | None) -> _Node:
    assert row is not None and row[0] is not None
    return cast("list[_Node]", json.loads(row[0]))[0]


async def hypopg_schema(session: Session) -> str | None:
    """The schema of hypopg, as SQL spells it; None where the database has no hypopg."""
    return await session.value(
        "SELECT quote_ident(n.nspname) FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace"
        " WHERE e.extname = 'hypopg'"
    )


async def hypothetical(session: Session, indexes: Sequence[str], database: str) -> list[str]:
    """Make indexes that only the planner of this session believes in; their names.

    Raises:
        Problem: hypopg is missing or does not understand one.
    """
    schema = await hypopg_schema(session)
    if schema is None:
        raise Refused(HYPOPG, HYPOPG_FIX)
    session.spent = True
    made: list[str] = []
    for index in indexes:
        text = index if re.match(r"\s*CREATE\s", index, re.I) else f"CREATE INDEX ON {index}"
        if (session.world.closed or session.world.part.part) and not PLAIN.fullmatch(text):
            # hypopg parses and folds it, and PostgreSQL can't be asked before what that would run. What an index with
            # a condition would cost tells how many rows have masked values.
            raise Refused(
                f"The role {session.role.because()}, and {quote(index)} may run code: only columns can be indexed.",
                "Write `table (column, ...)`, without expressions and conditions.",
            )
        try:
            await their_names(session)
            name = await session.value(f"SELECT indexname FROM {schema}.hypopg_create_index($1::pg_catalog.text)", text)
            await own_names(session)
        except psycopg.Error as error:
            raise problem(error, database, before=len(text) - len(index)) from error
        if name is None:
            raise Invalid(f"{quote(index)} is not an index.", "Write `table (column, ...)`.")
        made.append(text.removeprefix("CREATE INDEX ON "))
    return made


def drawn(plan: _Node, widths: list[int] | None = None) -> list[str]:
    """A plan as lines, a step each; how wide the rows of each step are goes into `widths`."""
    lines: list[str] = []
    _draw(plan, lines, [] if widths is None else widths, 0)
    return lines


def _draw(node: _Node, lines: list[str], widths: list[int], depth: int) -> None:
    what = str(node["Node Type"])
    if join := node.get("Join Type"):
        what = what if join == "Inner" else f"{what} ({join})"
    if strategy := node.get("Strategy"):
        what = f"{what} ({strategy.lower()})" if strategy != "Plain" else what
    if "Index Name" in node:
        what += f" using {node['Index Name']}"
    if "Relation Name" in node:
        alias = node.get("Alias")
        what += f" on {node['Relation Name']}" + (f" {alias}" if alias not in (None, node["Relation Name"]) else "")
    elif "Function Name" in node or "CTE Name" in node:
        what += f" on {node.get('Function Name') or node['CTE Name']}"
    facts = f"cost {node['Total Cost']:.0f}, {node['Plan Rows']:,} rows"
    if "Actual Total Time" in node:
        loops = node["Actual Loops"]
        facts = f"{node['Actual Total Time']:.2f} ms, {node['Actual Rows']:,.0f} of" if loops else "never run,"
        facts += f" {node['Plan Rows']:,} rows expected"
        facts += f", {loops:,} times" if loops > 1 else ""
        facts += f", {node['Workers Launched']} workers" if "Workers Launched" in node else ""
        if node.get("Shared Read Blocks"):
            facts += f", {node['Shared Read Blocks']:,} blocks read"
    lines.append(f"{'  ' * depth}{_one_line(what)}: {facts}")
    widths.append(node["Plan Width"])
    for word in (
        "Index Cond",
        "Hash Cond",
        "Merge Cond",
        "Join Filter",
        "Recheck Cond",
        "Filter",
        "Sort Key",
        "Group Key",
    ):
        if word in node:
            value = ", ".join(cast("list[str]", node[word])) if isinstance(node[word], list) else str(node[word])
            value = _one_line(value)
            lines.append(f"{'  ' * depth}  {word.lower()}: {value if len(value) <= 300 else value[:299] + '…'}")
    children = cast("list[_Node]", node.get("Plans", []))
    shown = children
    if node["Node Type"] in ("Append", "Merge Append") and len(children) > _MOST_PARTS + 2:
        costly = sorted(children, key=_weight, reverse=True)[:_MOST_PARTS]
        shown = [child for child in children if child in costly]
    for child in shown:
        _draw(child, lines, widths, depth + 1)
    if len(shown) < len(children):
        lines.append(f"{'  ' * depth}  … {len(children) - len(shown)} more parts, each of them cheaper")


def _weight(node: _Node) -> float:
    return node.get("Actual Total Time", 0) * node.get("Actual Loops", 1) or node["Total Cost"]


def _one_line(text: str) -> str:
    # A name with a line end in it would look like a step of its own.
    return " ".join(text.splitlines())


def _findings(node: _Node, analyzed: bool) -> list[str]:
    found: list[str] = []
    relation = node.get("Relation Name")
    if node["Node Type"] == "Seq Scan" and "Filter" in node:
        read = node["Plan Rows"]
        if analyzed:
            read = node["Actual Rows"] + node.get("Rows Removed by Filter", 0)
            if read >= _MANY and node["Actual Rows"] * 10 < read:
                kept = f"keeps {node['Actual Rows']:,.0f} of {read:,.0f} rows"
                found.append(f"Reads `{relation}` whole and {kept}: an index on what it filters by may help.")
        elif node["Total Cost"] > 1000 and read * 10 < node["Total Cost"]:
            found.append(f"Reads `{relation}` whole for a few rows: an index on what it filters by may help.")
    if analyzed:
        expected, actual = max(node["Plan Rows"], 1), max(node["Actual Rows"], 1)
        if max(expected, actual) >= 1000 and not 0.1 <= expected / actual <= 10 and not node.get("Plans"):
            found.append(
                f"`{relation or node['Node Type']}`: {actual:,.0f} rows, {expected:,} were expected: ANALYZE may help."
            )
        if node.get("Sort Space Type") == "Disk":
            found.append(f"Sorts {node['Sort Space Used']:,} kB on disk: more `work_mem`, or an index in that order.")
        if node.get("Hash Batches", 1) > 1:
            found.append(f"Hashes in {node['Hash Batches']} batches, on disk: more `work_mem`.")
    for child in cast("list[_Node]", node.get("Plans", [])):
        found += _findings(child, analyzed)
    return list(dict.fromkeys(found))
