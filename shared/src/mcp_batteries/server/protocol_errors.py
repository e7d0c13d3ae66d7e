"""Turns a `Problem` into the error of the protocol."""

from __future__ import annotations

from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS

from mcp_batteries.errors import Problem, Unavailable

__all__ = ["to_mcp_error"]


def to_mcp_error(problem: Problem) -> MCPError:
    """Return the JSON-RPC error with the text and fields of `problem`."""
    code = INTERNAL_ERROR if isinstance(problem, Unavailable) else INVALID_PARAMS
    return MCPError(code, str(problem), dict(problem.fields))
