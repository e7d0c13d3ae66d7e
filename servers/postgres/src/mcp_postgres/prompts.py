"""Messages for people: what one asks about a database most often."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from mcp_types import EmbeddedResource, PromptMessage, TextContent
from pydantic import Field

from mcp_batteries.errors import quote
from mcp_batteries.server.declare import prompt
from mcp_postgres.policy import Policy, escaped
from mcp_postgres.resources import Resources

__all__ = ["Prompts"]

Database = Annotated[str, Field(description="Which database; not needed when only one is served.")]


@dataclass(frozen=True)
class Prompts:
    policy: Policy
    resources: Resources

    @prompt("Explore a schema")
    async def explore_schema(
        self, schema: Annotated[str, Field(description="Which schema; all unless named.")] = "", database: Database = ""
    ) -> list[PromptMessage]:
        """Get to know a database nobody has explained."""
        name = self._name(database)
        ask = (
            f"Explore {f'the schema {quote(schema)} of ' if schema else ''}the PostgreSQL database {quote(name)}, "
            "whose definitions are attached. Describe the tables that others refer to, with sample rows. Say what the "
            "data is about, how the tables belong together, how much there is and of which time, and what looks odd: "
            "empty tables, columns that are always NULL, keys that point nowhere. End with five questions it can "
            "answer."
        )
        return [_text(ask), await self._schema(name, schema)]

    @prompt("Write a query")
    async def write_query(
        self,
        question: Annotated[str, Field(description="What you want to know, in your words.")],
        database: Database = "",
    ) -> list[PromptMessage]:
        """Turn a question into SQL, run it and check the answer."""
        name = self._name(database)
        ask = (
            f"Answer this from the PostgreSQL database {quote(name)}, whose schema is attached: {question}\n\n"
            "Write one SELECT with bound parameters, look at its plan with `explain_query` if a table is large, run it "
            "with `query_rows`, and check the result by a second, differently built query where a mistake is easy "
            "(joins that multiply rows, NULL in NOT IN, time zones). Give the answer first, then the SQL."
        )
        return [_text(ask), await self._schema(name, "")]

    @prompt("Tune a query")
    async def tune_query(
        self, sql: Annotated[str, Field(description="The statement that takes too long.")], database: Database = ""
    ) -> str:
        """Find out why a query is slow and what would help."""
        name = self._name(database)
        return (
            f"This statement on the PostgreSQL database {quote(name)} is slow:\n\n{sql}\n\nUse `explain_query` (with "
            "`analyze` if it only reads and may take its time) and `get_table` for each table it reads. Say which step "
            "costs most and why: a wrong estimate, a missing index, rows read and thrown away, work on disk. Propose, "
            "the best first: a way of writing it that can use the indexes there are, an index with its price for "
            "writes, tried by `indexes` of `explain_query` or `find_indexes` where they are offered, a setting. Show "
            "the plan each would give. Change nothing."
        )

    @prompt("Morning health report")
    async def report_health(self, database: Database = "") -> list[PromptMessage]:
        """See how a database is doing, and what to do about it."""
        name = self._name(database)
        ask = (
            f"Write this morning's report on the PostgreSQL database {quote(name)} from the findings attached, and "
            "from `list_sessions`, `list_top_queries` and `list_settings` where they are offered. Begin with one line: "
            "fine, needs attention, or urgent. Then each finding, the most urgent first: what it means here, what "
            "happens if nothing is done, the exact statement that mends it and what that locks. Run none of them."
        )
        return [_text(ask), await self._resource(f"postgres://{name}/.health")]

    @prompt("Plan a migration")
    async def plan_migration(
        self,
        change: Annotated[str, Field(description="What the schema should be able to do.")],
        database: Database = "",
    ) -> list[PromptMessage]:
        """Plan a change of the schema that holds up nobody."""
        name = self._name(database)
        ask = (
            f"Plan this change of the PostgreSQL database {quote(name)}, whose schema is attached: {change}\n\n"
            "Give the statements in order, split so that each is safe on a busy database: which lock each takes and "
            "for how long, given the tables' sizes; NOT VALID and VALIDATE apart; indexes CONCURRENTLY; back-fills in "
            "batches; what old and new program versions see between the steps; and the way back. Where `edit_schema` "
            "is offered try each with `dry_run`; carry out nothing."
        )
        return [_text(ask), await self._schema(name, "")]

    def _name(self, database: str) -> str:
        return self.policy.database(database or None).name

    async def _schema(self, name: str, schema: str) -> PromptMessage:
        return await self._resource(f"postgres://{name}/{f'{escaped(schema)}/' if schema else ''}.schema")

    async def _resource(self, uri: str) -> PromptMessage:
        contents = await self.resources.read_schema(uri)
        return PromptMessage(role="user", content=EmbeddedResource(type="resource", resource=contents))


def _text(text: str) -> PromptMessage:
    return PromptMessage(role="user", content=TextContent(type="text", text=text))
