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
_BEGINNING = re.compile(r"(?P<jdbc>jdbc:)?(?P<system>[a-z0-9]+)(?P<driver>\+\w+)?:(?!\\)/?/?", re.IGNORECASE)
_FILE = re.compile(r"\.(db3?|sqlite3?|s3db)$", re.IGNORECASE)


def refuse_other_systems(address: str, own: System) -> None:
    """Check that `address` has the form of the system `own`, as far as its beginning shows.

    The error does not repeat the address, which can hold a password.

    Raises:
        Unavailable: it is another system's address, or in another program's form.
    """
    _, form = _SERVERS[own]
    if own == "PostgreSQL":
        _refuse_plain_text(address, form)
    match = _BEGINNING.match(address)
    if match is None:
        return
    system = _SYSTEMS.get(match["system"].lower())
    if system == own:
        if own == "SQLite" or match["jdbc"] or match["driver"]:
            failure = f"A database's address begins with `{match[0]}`, as other programs write it."
            raise Unavailable(failure, f"Write {form}.")
    elif system is not None:
        raise _explain_other_system(match[0], system, own)
    elif "://" in address:
        raise Unavailable(f"A database's address begins with `{match[0]}`, which nobody here knows.", f"Write {form}.")


def _refuse_plain_text(address: str, form: str) -> None:
    """Refuse an address of PostgreSQL that is neither a URL nor `key=value` text."""
    if not address or "=" in address or "://" in address:
        return
    advice = " `mcp-sqlite` serves SQLite files." if _FILE.search(address) else ""
    raise Unavailable("A database's address is neither a URL nor `key=value` text.", f"Write {form}.{advice}")


def _explain_other_system(beginning: str, system: str, own: System) -> Unavailable:
    """Return the problem of an address that begins as those of another system do."""
    command, form = _SERVERS[own]
    failure = f"`{command}` serves {own}, and a database's address begins with `{beginning}`: that is {system}."
    advice = f" `{_SERVERS[system][0]}` serves {system}." if system in _SERVERS else ""
    return Unavailable(failure, f"Write {form}.{advice}")
