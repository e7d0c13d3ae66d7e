"""PostgreSQL's own functions of which the audit knows by name what they do: the lists in `builtin_functions.toml`."""

from __future__ import annotations

import tomllib
from importlib.resources import files

__all__ = ["INPUT_RUNNING_FUNCTIONS", "READ_ONLY_FUNCTIONS"]

_LISTS: dict[str, list[str]] = tomllib.loads(
    files("mcp_postgres.engine.audit").joinpath("builtin_functions.toml").read_text("utf-8")
)
READ_ONLY_FUNCTIONS = frozenset(_LISTS["read_only"])
INPUT_RUNNING_FUNCTIONS = frozenset(_LISTS["run_input"])
