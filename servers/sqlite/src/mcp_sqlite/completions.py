"""Names of databases, tables and columns, completed."""

from mcp_batteries.sql import completions
from mcp_sqlite.engine.service import Engine
from mcp_sqlite.policy import Policy

__all__ = ["Completions"]


class Completions(completions.Completions[Policy, Engine]):
    """Nothing beyond what every SQL server completes."""
