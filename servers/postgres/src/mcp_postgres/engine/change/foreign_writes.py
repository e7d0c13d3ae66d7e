"""Changes of foreign tables: not every foreign data wrapper takes them back with the transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from mcp_batteries.errors import Refused, quote
from mcp_postgres.engine.audit.visible_schema import RELATION_LISTED
from mcp_postgres.engine.connection.session import Session, fetch_json

__all__ = ["ForeignWrite", "describe_foreign_writes", "read_foreign_writes", "refuse_untried_write"]

# Their documentation says that they end the other side's transaction as this one ends.
_TRANSACTIONAL_WRAPPERS = "'postgres_fdw', 'oracle_fdw'"
# What a statement changes is locked when it is prepared; what its triggers and partitions change, when it runs.
_FOREIGN_WRITES = f"""
SELECT coalesce(json_agg(json_build_array(CASE WHEN {RELATION_LISTED} THEN format('%I.%I', n.nspname, c.relname) END,
    w.fdwname) ORDER BY c.oid), '[]')::text
FROM pg_locks l JOIN pg_foreign_table f ON f.ftrelid = l.relation JOIN pg_foreign_server s ON s.oid = f.ftserver
JOIN pg_foreign_data_wrapper w ON w.oid = s.srvfdw JOIN pg_class c ON c.oid = f.ftrelid
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE l.pid = pg_backend_pid() AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND l.mode = 'RowExclusiveLock' AND w.fdwname NOT IN ({_TRANSACTIONAL_WRAPPERS})
"""


class ForeignWrite(NamedTuple):
    """A foreign table whose rows change, and its wrapper; no table where it is not served."""

    table: str | None
    wrapper: str

    def __str__(self) -> str:
        if self.table is None:
            return f"a foreign table of {quote(self.wrapper)}"
        return f"{quote(self.table)} of {quote(self.wrapper)}"


async def read_foreign_writes(session: Session) -> list[ForeignWrite]:
    """Return the foreign tables that change in this transaction, but those that are taken back with it."""
    return [ForeignWrite(*row) for row in await fetch_json(session, _FOREIGN_WRITES)]


def refuse_untried_write(writes: Sequence[ForeignWrite]) -> None:
    """Refuse to try what may not be taken back.

    Raises:
        Refused: there is any.
    """
    if writes:
        raise Refused(
            f"A change of {writes[0]} can't be tried: its foreign data wrapper may keep what is rolled back here.",
            "Look at the rows by `query_rows`; without `dry_run` the change is made.",
        )


def describe_foreign_writes(writes: Sequence[ForeignWrite]) -> list[tuple[str, Sequence[str]]]:
    """Return that a try may have changed what others keep."""
    if not writes:
        return []
    title = "Changed on another server, whose foreign data wrapper may have kept it:"
    return [(title, [str(write) for write in writes])]
