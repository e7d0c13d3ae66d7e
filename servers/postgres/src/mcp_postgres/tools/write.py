"""Changing rows and schemas, as tools; each opened by a switch of the operator's."""

from __future__ import annotations

from mcp_batteries.sql import tools
from mcp_batteries.sql.tools import in_words_of
from mcp_postgres.engine.service import Engine
from mcp_postgres.policy import Policy
from mcp_postgres.tools.arguments import Parameters, Sql

__all__ = ["SchemaTools", "WriteTools"]

_ROWS = """Insert, update, delete or merge rows by one statement, in a transaction.

Says how many rows it touched. Try with `dry_run` first; RETURNING shows the rows."""
_SCHEMA = """Run one CREATE, ALTER, DROP, COMMENT, GRANT, REVOKE, REFRESH, REINDEX, ANALYZE or VACUUM.

In a transaction, unless VACUUM or CONCURRENTLY, which have no dry run. Says what changed."""


@in_words_of({"write_rows": _ROWS}, {"sql": Sql, "parameters": Parameters})
class WriteTools(tools.WriteTools[Policy, Engine]):
    """One statement at a time."""


@in_words_of({"edit_schema": _SCHEMA}, {"sql": Sql})
class SchemaTools(tools.SchemaTools[Policy, Engine]):
    """One statement at a time."""
