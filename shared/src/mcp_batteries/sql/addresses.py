"""Recognises the address of another database system before a driver fails on it."""

from __future__ import annotations

import re
from typing import Literal

from mcp_batteries.errors import Unavailable

__all__ = ["System", "refuse_other_systems"]

System = Literal["PostgreSQL", "SQLite"]

_SYSTEMS = {
    "postgresql": "PostgreSQL", "postgres": "PostgreSQL", "sqlite": "SQLite", "sqlite3": "SQLite", "mysql": "MySQL",
    "mariadb": "MariaDB", "mssql": "SQL Server", "sqlserver": "SQL Server", "oracle": "Oracle", "mongodb": "MongoDB",
    "redis": "Redis", "rediss": "Redis", "duckdb": "DuckDB", "snowflake": "Snowflake", "clickhouse": "ClickHouse",
    "cockroachdb": "CockroachDB", "bigquery": "BigQuery", "http": "an HTTP service", "https": "an HTTP service",
}  # fmt: skip
_SERVERS: dict[str, tuple[str, str]] = {
    "PostgreSQL": ("mcp-postgres", "postgresql://user@host:5432/name"),
    "SQLite": ("mcp-sqlite", "/path/to/file.db"),
}
_FILE = re.compile(r"\.(db3?|sqlite3?|s3db)$", re.IGNORECASE)


def refuse_other_systems(address: str, own: System) -> None:
    """Check that `address` has the form of the system `own`, as far as its beginning shows.

    The error does not repeat the address, which can hold a password.

    Raises:
        Unavailable: it is another system's address, or in another program's form.
    """
    command, form = _SERVERS[own]
    found = re.match(r"(jdbc:)?([a-z0-9]+)(\+\w+)?:(?!\\)/?/?", address, re.IGNORECASE)
    if own == "PostgreSQL" and address and "=" not in address and "://" not in address:
        other = " `mcp-sqlite` serves SQLite files." if _FILE.search(address) else ""
        raise Unavailable("A database's address is neither a URL nor `key=value` text.", f"Write {form}.{other}")
    if found is None:
        return
    system = _SYSTEMS.get(found[2].lower())
    if system == own == "PostgreSQL" and not found[1] and not found[3]:
        return
    if system == own:
        what = f"A database's address begins with `{found[0]}`, as other programs write it."
        raise Unavailable(what, f"Write {form}.")
    if system is not None:
        other = f" `{_SERVERS[system][0]}` serves {system}." if system in _SERVERS else ""
        what = f"`{command}` serves {own}, and a database's address begins with `{found[0]}`: that is {system}."
        raise Unavailable(what, f"Write {form}.{other}")
    if "://" in address:
        raise Unavailable(f"A database's address begins with `{found[0]}`, which nobody here knows.", f"Write {form}.")
