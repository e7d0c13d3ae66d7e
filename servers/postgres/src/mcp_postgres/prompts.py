"""Prompts for people: the most frequent questions about a database."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from mcp_batteries.errors import quote
from mcp_batteries.server.declaration.decorators import Messages, prompt
from mcp_batteries.sql import prompts
from mcp_batteries.sql.policy import escape_uri_part
from mcp_batteries.sql.prompts import DatabaseName, SlowStatement
from mcp_batteries.sql.resources import Resources

__all__ = ["Prompts"]


@dataclass(frozen=True)
class Prompts(prompts.Prompts[Resources[Any]]):
    """Questions about a PostgreSQL database."""

    PRODUCT = "PostgreSQL"
    PITFALLS = "joins that multiply rows, NULL in NOT IN, time zones"

    @prompt("Explore a schema")
    async def explore_schema(
        self,
        schema: Annotated[str, Field(description="Which schema; all unless named.")] = "",
        database: DatabaseName = "",
    ) -> Messages:
        """Get to know a database nobody has explained."""
        ask = (
            f"Explore {f'the schema {quote(schema)} of ' if schema else ''}{self.name_database(database)}, "
            "whose definitions are attached. Describe the tables that others refer to, with sample rows. Say what the "
            "data is about, how the tables belong together, how much there is and of which time, and what looks odd: "
            "empty tables, columns that are always NULL, keys that point nowhere. End with five questions it can "
            "answer."
        )
        return await self.with_resource(ask, database, f"{escape_uri_part(schema)}/.schema" if schema else ".schema")

    @prompt("Tune a query")
    async def tune_query(self, sql: SlowStatement, database: DatabaseName = "") -> str:
        """Find out why a query is slow and what would help."""
        return (
            f"This statement on {self.name_database(database)} is slow:\n\n{sql}\n\nUse `explain_query` (with "
            "`analyze` if it only reads and may take its time) and `get_table` for each table it reads. Say which step "
            "costs most and why: a wrong estimate, a missing index, rows read and thrown away, work on disk. Propose, "
            "the best first: a way of writing it that can use the indexes there are, an index with its price for "
            "writes, tried by `indexes` of `explain_query` or `find_indexes` where they are offered, a setting. Show "
            "the plan each would give. Change nothing."
        )

    @prompt("Morning health report")
    async def report_health(self, database: DatabaseName = "") -> Messages:
        """See how a database is doing, and what to do about it."""
        ask = (
            f"Write this morning's report on {self.name_database(database)} from the findings attached, and "
            "from `list_sessions`, `list_top_queries` and `list_settings` where they are offered. Begin with one line: "
            "fine, needs attention, or urgent. Then each finding, the most urgent first: what it means here, what "
            "happens if nothing is done, the exact statement that mends it and what that locks. Run none of them."
        )
        return await self.with_resource(ask, database, ".health")

    @prompt("Plan a migration")
    async def plan_migration(
        self,
        change: Annotated[str, Field(description="What the schema should be able to do.")],
        database: DatabaseName = "",
    ) -> Messages:
        """Plan a change of the schema that holds up nobody."""
        ask = (
            f"Plan this change of {self.name_database(database)}, whose schema is attached: {change}\n\n"
            "Give the statements in order, split so that each is safe on a busy database: which lock each takes and "
            "for how long, given the tables' sizes; NOT VALID and VALIDATE apart; indexes CONCURRENTLY; back-fills in "
            "batches; what old and new program versions see between the steps; and the way back. Where `edit_schema` "
            "is offered try each with `dry_run`; carry out nothing."
        )
        return await self.with_resource(ask, database)
