"""Rows of the tables that a transaction changed, as they were and as they are."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import psycopg

from mcp_batteries.sql.results.changes import Sample
from mcp_postgres.engine.admission.statements import result_columns
from mcp_postgres.engine.connection.result_values import RowWriter
from mcp_postgres.engine.connection.session import Session

__all__ = ["MAX_SAMPLED_TABLES", "TableNames", "sample_changed_rows"]

# Tables whose rows are shown.
MAX_SAMPLED_TABLES = 4
_MAX_SHOWN_ROWS = 3
# Rows of a table that are looked at, to show those that differ.
_MAX_COMPARED_ROWS = 50
_CELL_CHARACTERS = 100
# Milliseconds that finding rows for a sample may take.
_SAMPLE_MILLISECONDS = 1000

_TRANSACTION_IDS = """
SELECT coalesce(json_agg(transactionid::text), '[]')::text FROM pg_locks
WHERE pid = pg_backend_pid() AND locktype = 'transactionid' AND granted
"""


# Whether policies hide rows of a table from its owner, who can lift that; nothing where there is no such table.
_HIDES_FROM_OWNER = """
SELECT (relforcerowsecurity AND pg_has_role(relowner, 'USAGE'))::text FROM pg_class WHERE oid = to_regclass($1)
"""


# The columns of the primary key, as an array of JSON.
_KEY_COLUMNS = """
SELECT coalesce(json_agg(a.attname), '[]')::text FROM pg_index i
JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey)
WHERE i.indrelid = to_regclass($1) AND i.indisprimary
"""


class TableNames(NamedTuple):
    """The names of one table, as SQL spells them, before and after a change."""

    was: str
    now: str


class _Rows(NamedTuple):
    """Rows of a table.

    Attributes:
        columns: their names.
        lines: the rows as lines of JSON.
        key_columns: those of the primary key.
    """

    columns: Sequence[str]
    lines: list[str]
    key_columns: Sequence[str] = ()


async def sample_changed_rows(
    session: Session, changed: Sequence[TableNames], rewritten: Iterable[TableNames], *, keep: str
) -> list[Sample]:
    """Return rows of tables as they were and as they are; ends by going back to the savepoint `keep`.

    Of a table that was written anew the first rows stand for all of them: they keep their order.

    Args:
        session: where the change is under way.
        changed: tables of which rows changed.
        rewritten: tables that were written anew, as a whole.
        keep: the savepoint before the change.
    """
    sampler = _RowSampler(session, "{" + ",".join(await _read_transaction_ids(session)) + "}")
    after = [await sampler.read_written_rows(table.now) for table in changed]
    # Rows that were locked only, for a foreign key, are there still.
    locked = [await sampler.find_locked_rows(table.now) for table in changed]
    changed_names = {table.now for table in changed}
    anew = [table for table in rewritten if table.now not in changed_names][: MAX_SAMPLED_TABLES - len(changed)]
    first_after = [await sampler.read_first_rows(table.now) for table in anew]
    await session.run(f"ROLLBACK TO SAVEPOINT {keep}")
    first_before = [await sampler.read_first_rows(table.was) for table in anew]
    before = [
        await sampler.read_deleted_rows(table.was, excluded_rows)
        for table, excluded_rows in zip(changed, locked, strict=True)
    ]
    return _compare_rows(changed, before, after) + _sample_rewritten(anew, first_before, first_after)


def _compare_rows(
    tables: Iterable[TableNames], before: Iterable[_Rows | None], after: Iterable[_Rows | None]
) -> list[Sample]:
    """Return the rows of tables that are only there before, or only after."""
    samples: list[Sample] = []
    for table, was, now in zip(tables, before, after, strict=True):
        if was is None or now is None:
            continue
        lines_before = _lines_missing_in(was.lines, now.lines)
        lines_after = _lines_missing_in(now.lines, was.lines)
        if lines_before or lines_after:
            samples.append(_make_sample(table, was, now, lines_before, lines_after))
    return samples


def _sample_rewritten(
    tables: Iterable[TableNames], before: Iterable[_Rows | None], after: Iterable[_Rows | None]
) -> list[Sample]:
    """Return the first rows of tables that were written anew."""
    samples: list[Sample] = []
    for table, was, now in zip(tables, before, after, strict=True):
        if was and now and was.lines:
            samples.append(_make_sample(table, was, now, "".join(was.lines), "".join(now.lines)))
    return samples


def _make_sample(table: TableNames, was: _Rows, now: _Rows, lines_before: str, lines_after: str) -> Sample:
    """Return the sample of a table that shows these lines of its rows before and after a change."""
    return Sample(
        table=table.now,
        columns=now.columns,
        before=lines_before,
        after=lines_after,
        old_columns=was.columns,
        key_columns=now.key_columns,
    )


async def _read_transaction_ids(session: Session) -> list[str]:
    """Return the numbers of this transaction, and of its parts that are under way."""
    return json.loads(await session.fetch_value(_TRANSACTION_IDS) or "null")


class _RowSampler:
    """Reads some rows of tables, None where that takes long or can't be done.

    Attributes:
        transaction_ids: those of this transaction, as an array of SQL.
    """

    def __init__(self, session: Session, transaction_ids: str) -> None:
        self.session = session
        self.transaction_ids = transaction_ids

    async def read_first_rows(self, table: str) -> _Rows | None:
        return await self._query_quickly(table, f"SELECT * FROM ONLY {table} LIMIT {_MAX_SHOWN_ROWS}")

    async def read_written_rows(self, table: str) -> _Rows | None:
        """Return some rows that the transaction wrote."""
        return await self._read_marked_rows(table, "xmin", "{}")

    async def read_deleted_rows(self, table: str, excluded_rows: str) -> _Rows | None:
        """Return some rows that the transaction took away: those that were rolled back still say so."""
        return await self._read_marked_rows(table, "xmax", excluded_rows)

    async def find_locked_rows(self, table: str) -> str:
        """Return the places of rows that the transaction locked, as an array of SQL."""
        sql = f"SELECT ctid::text FROM ONLY {table} WHERE xmax::text = ANY ($1::text[]) LIMIT 1000"
        rows = await self._query_quickly(table, sql, self.transaction_ids)
        places = [json.loads(line)[0] for line in rows.lines] if rows else []
        return "{" + ",".join(f'"{place}"' for place in places) + "}"

    async def _read_marked_rows(self, table: str, mark: str, excluded_rows: str) -> _Rows | None:
        condition = f"{mark}::text = ANY ($1::text[]) AND ctid <> ALL ($2::tid[])"
        sql = f"SELECT * FROM ONLY {table} WHERE {condition} LIMIT {_MAX_COMPARED_ROWS}"
        return await self._query_quickly(table, sql, self.transaction_ids, excluded_rows)

    async def _query_quickly(self, table: str, sql: str, *values: str) -> _Rows | None:
        """Return columns and lines of a query of a table; None where it takes long or fails."""
        session = self.session
        await session.run(
            f"SAVEPOINT mcp_sample; SELECT pg_catalog.set_config('statement_timeout', '{_SAMPLE_MILLISECONDS}', true)"
        )
        try:
            hides_from_owner = await session.fetch_value(_HIDES_FROM_OWNER, table)
            if hides_from_owner is None:
                await session.run("ROLLBACK TO SAVEPOINT mcp_sample")
                return _Rows((), [])
            if hides_from_owner == "true":
                # What a new policy hides is not gone; this too goes back with the savepoint.
                await session.run(f"ALTER TABLE ONLY {table} NO FORCE ROW LEVEL SECURITY")
            key_columns: list[str] = json.loads(await session.fetch_value(_KEY_COLUMNS, table) or "[]")
            (answer,) = await session.run_pipeline((sql, values))
        except psycopg.Error:
            await session.run("ROLLBACK TO SAVEPOINT mcp_sample")
            return None
        columns = result_columns(answer)
        writer = RowWriter(columns, _CELL_CHARACTERS)
        lines = [writer.write(row) for row in answer.rows()]
        await session.run("ROLLBACK TO SAVEPOINT mcp_sample")
        return _Rows([column.name for column in columns], lines, key_columns)


def _lines_missing_in(lines: Sequence[str], others: Sequence[str]) -> str:
    """Return the first of the lines that are not among the others: an update may leave a row as it was."""
    return "".join(sorted(line for line in lines if line not in others)[:_MAX_SHOWN_ROWS])
