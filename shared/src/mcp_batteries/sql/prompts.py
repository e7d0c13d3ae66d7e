"""The common part of both SQL servers' prompts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Generic, TypeVar

from pydantic import Field

from mcp_batteries.errors import quote
from mcp_batteries.server.declaration.decorators import Messages, prompt
from mcp_batteries.sql.resources import Resources

__all__ = ["DatabaseName", "Prompts", "SlowStatement"]

DatabaseName = Annotated[str, Field(description="Which, if several are served.")]
SlowStatement = Annotated[str, Field(description="The statement that takes too long.")]

R = TypeVar("R", bound=Resources[Any])


@dataclass(frozen=True)
class Prompts(Generic[R]):
    """Prompts about the databases whose resources these are."""

    resources: R

    # The kind of database, as prompts call it.
    PRODUCT: ClassVar[str]
    # Says where a query is easily wrong.
    PITFALLS: ClassVar[str]

    @prompt("Write a query")
    async def write_query(
        self,
        question: Annotated[str, Field(description="What you want to know, in your words.")],
        database: DatabaseName = "",
    ) -> Messages:
        """Turn a question into SQL, run it and check the answer."""
        ask = (
            f"Answer this from {self.name_database(database)}, whose schema is attached: {question}\n\nWrite one "
            "SELECT with bound parameters, look at its plan with `explain_query` if a table is large, run it with "
            "`query_rows`, and check the result by a second, differently built query where a mistake is easy "
            f"({self.PITFALLS}). Give the answer first, then the SQL."
        )
        return await self.with_resource(ask, database)

    def name_database(self, database: str) -> str:
        """Return a database's name in a sentence.

        Raises:
            Problem: it is not served.
        """
        return f"the {self.PRODUCT} database {quote(self.resources.policy.database(database).name)}"

    async def with_resource(self, ask: str, database: str, path: str = ".schema") -> Messages:
        """Return a prompt's text with a resource of a database."""
        policy = self.resources.policy
        uri = f"{policy.SCHEME}://{policy.database(database).uri_name}/{path}"
        return [ask, await self.resources.contents(uri)]
