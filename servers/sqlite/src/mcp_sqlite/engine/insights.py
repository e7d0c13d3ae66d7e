"""The memo that grows while a model explores data, in a small separate database.

No statement of a caller runs here, only values are bound, so aiosqlite serves: the worker processes are for the rest.
"""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager

import aiosqlite
import anyio

from mcp_batteries.errors import TooLarge, Unavailable

__all__ = ["Insights"]

_MAX_NOTES = 200
_SCHEMA = """
CREATE TABLE IF NOT EXISTS notes (
    id INTEGER PRIMARY KEY,
    about TEXT NOT NULL, -- the databases, one path a line
    noted TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP,
    text TEXT NOT NULL
)
"""
_ADD = """
INSERT INTO notes (about, text) SELECT :about, :text WHERE (SELECT count(*) FROM notes WHERE about = :about) < :most
"""


class Insights:
    """Notes in the order they were made.

    Args:
        path: of the memo's database, which is made when the first note comes.
        about: paths of the databases that the notes are about; those about others in the same file are not seen.
    """

    def __init__(self, path: str, about: Iterable[str]) -> None:
        self._path = path
        self._about = "\n".join(sorted(about))

    async def add(self, note: str) -> int:
        """Add a note, and return how many there are.

        Raises:
            TooLarge: there are as many as the memo takes.
            Unavailable: the file can't be used.
        """
        async with self._open() as memo:
            added = await memo.execute(_ADD, {"about": self._about, "text": " ".join(note.split()), "most": _MAX_NOTES})
            await memo.commit()
            count = len(await self._notes(memo))
        if not added.rowcount:
            raise TooLarge(
                f"The memo `memo://insights` has {_MAX_NOTES} notes, the limit.", "Summarise them for the user."
            )
        return count

    async def text(self) -> str:
        """Return the memo as Markdown.

        Raises:
            Unavailable: the file can't be used.
        """
        async with self._open() as memo:
            notes = await self._notes(memo)
        lines = [f"- {note}\n" for note in notes] or ["None yet.\n"]
        return "# Insights\n\n" + "".join(lines)

    async def _notes(self, memo: aiosqlite.Connection) -> list[str]:
        rows = await memo.execute_fetchall("SELECT text FROM notes WHERE about = ? ORDER BY id", (self._about,))
        return [str(text) for (text,) in rows]

    @asynccontextmanager
    async def _open(self) -> AsyncGenerator[aiosqlite.Connection]:
        try:
            # Short, and aiosqlite's thread must not outlive the call.
            with anyio.CancelScope(shield=True):
                async with aiosqlite.connect(self._path) as memo:
                    await memo.execute(_SCHEMA)
                    yield memo
        except sqlite3.Error as error:
            raise Unavailable(
                f"The file of the insights can't be used: {error}.", "The operator can name another as `--insights`."
            ) from error
