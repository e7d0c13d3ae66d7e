"""Completes names of databases, tables and columns."""

from mcp_batteries.sql import completions
from mcp_sqlite.engine.service import Engine
from mcp_sqlite.policy import Policy

__all__ = ["Completions"]


class Completions(completions.Completions[Policy, Engine]):
    """The completions that every SQL server has."""
