"""Prompts for people: the most frequent questions about a database."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from mcp_batteries.errors import quote
from mcp_batteries.server.declaration.decorators import Messages, prompt
from mcp_batteries.sql import prompts
from mcp_batteries.sql.prompts import DatabaseName, SlowStatement
from mcp_sqlite.resources import Resources

__all__ = ["Prompts"]


@dataclass(frozen=True)
class Prompts(prompts.Prompts[Resources]):
    """Questions about a SQLite database."""

    PRODUCT = "SQLite"
    PITFALLS = "joins that multiply rows, NULL in NOT IN, dates as text"

    @prompt("Explore a database")
    async def explore_database(self, database: DatabaseName = "") -> str:
        """Get to know a database nobody has explained."""
        return (
            f"Explore {self.name_database(database)}. Begin with `list_tables`, then describe the tables that the "
            "others refer to, with sample rows. Say what the data is about, how the tables belong together, how much "
            "there is and of which time, and what looks odd: empty tables, columns that are always NULL, keys that "
            "point nowhere. Note each finding worth keeping with `create_insight`. End with five questions this "
            "database can answer."
        )

    @prompt("Explain a slow query")
    async def explain_slow_query(self, sql: SlowStatement, database: DatabaseName = "") -> Messages:
        """Find out why a query is slow and what would help."""
        ask = (
            f"This statement on {self.name_database(database)} is slow:\n\n{sql}\n\nUse `explain_query`, and "
            "`get_table` for each table it reads. Say which step costs most and why, then propose, the best first: an "
            "index (with its price for writes), a way of writing the query that can use the indexes there are, or a "
            "change of the schema. Show the plan each would give where that can be tried. Change nothing."
        )
        return await self.with_resource(ask, database)

    @prompt("Summarise recent changes")
    async def summarise_changes(
        self,
        since: Annotated[str, Field(description="How far back, such as today or 2026-11-01.")] = "today",
        database: DatabaseName = "",
    ) -> str:
        """Summarise what was added or changed lately."""
        return (
            f"Summarise what changed in {self.name_database(database)} since {quote(since)}. Find the columns that "
            "tell when a row was made or changed (names and types in `list_tables`, `search_schema` for date, time, "
            "created, updated), and where there is none the highest keys. Count by table and day, show typical and "
            "unusual rows, and say plainly which tables hold nothing that would tell."
        )
