"""Messages for people: what one asks about a database most often."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from mcp_types import EmbeddedResource, PromptMessage, TextContent
from pydantic import Field

from mcp_batteries.errors import quote
from mcp_batteries.server.declare import prompt
from mcp_sqlite.policy import Policy
from mcp_sqlite.resources import Resources

__all__ = ["Prompts"]

Database = Annotated[str, Field(description="Which database; not needed when only one is served.")]


@dataclass(frozen=True)
class Prompts:
    policy: Policy
    resources: Resources

    @prompt("Explore a database")
    async def explore_database(self, database: Database = "") -> str:
        """Get to know a database nobody has explained."""
        name = self._name(database)
        return (
            f"Explore the SQLite database {quote(name)}. Begin with `list_tables`, then describe the tables that the "
            "others refer to, with sample rows. Say what the data is about, how the tables belong together, how much "
            "there is and of which time, and what looks odd: empty tables, columns that are always NULL, keys that "
            "point nowhere. Note each finding worth keeping with `create_insight`. End with five questions this "
            "database can answer."
        )

    @prompt("Write a query")
    async def write_query(
        self,
        question: Annotated[str, Field(description="What you want to know, in your words.")],
        database: Database = "",
    ) -> list[PromptMessage]:
        """Turn a question into SQL, run it and check the answer."""
        name = self._name(database)
        ask = (
            f"Answer this from the SQLite database {quote(name)}, whose schema is attached: {question}\n\nWrite one "
            "SELECT with bound parameters, look at its plan with `explain_query` if a table is large, run it with "
            "`query_rows`, and check the result by a second, differently built query where a mistake is easy (joins "
            "that multiply rows, NULL in NOT IN, dates as text). Give the answer first, then the SQL."
        )
        return [_text(ask), await self._schema(name)]

    @prompt("Explain a slow query")
    async def explain_slow_query(
        self, sql: Annotated[str, Field(description="The statement that takes too long.")], database: Database = ""
    ) -> list[PromptMessage]:
        """Find out why a query is slow and what would help."""
        name = self._name(database)
        ask = (
            f"This statement on the SQLite database {quote(name)} is slow:\n\n{sql}\n\nUse `explain_query`, and "
            "`get_table` for each table it reads. Say which step costs most and why, then propose, the best first: an "
            "index (with its price for writes), a way of writing the query that can use the indexes there are, or a "
            "change of the schema. Show the plan each would give where that can be tried. Change nothing."
        )
        return [_text(ask), await self._schema(name)]

    @prompt("Summarise recent changes")
    async def summarise_changes(
        self,
        since: Annotated[str, Field(description="How far back, such as today or 2026-11-01.")] = "today",
        database: Database = "",
    ) -> str:
        """Summarise what was added or changed lately."""
        name = self._name(database)
        return (
            f"Summarise what changed in the SQLite database {quote(name)} since {quote(since)}. Find the columns that "
            "tell when a row was made or changed (names and types in `list_tables`, `search_schema` for date, time, "
            "created, updated), and where there is none the highest keys. Count by table and day, show typical and "
            "unusual rows, and say plainly which tables hold nothing that would tell."
        )

    def _name(self, database: str) -> str:
        return self.policy.database(database or None).name

    async def _schema(self, name: str) -> PromptMessage:
        contents = await self.resources.read_schema(f"sqlite://{name}/.schema")
        return PromptMessage(role="user", content=EmbeddedResource(type="resource", resource=contents))


def _text(text: str) -> PromptMessage:
    return PromptMessage(role="user", content=TextContent(type="text", text=text))
