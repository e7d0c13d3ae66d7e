"""The files with rows in the operator's folder, as the first list of the tables names them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from mcp_batteries.concurrency.threads import run_in_thread
from mcp_batteries.sql.results.rows import format_count, format_size, to_one_line
from mcp_batteries.sql.transfer.files import READ_FILE_SUFFIXES, list_files

__all__ = ["RowFileFolder", "RowFiles"]

# Files that are named; more are counted.
_MAX_NAMED_FILES = 20


@dataclass(frozen=True)
class RowFiles:
    """Files with rows.

    Attributes:
        sizes: the first of them, with their bytes.
        count: how many there are.
    """

    sizes: Sequence[tuple[str, int]]
    count: int

    @classmethod
    def in_folder(cls, folder: str | None) -> RowFiles | None:
        """Return the files with rows in a folder and below it, but those that go away meanwhile; None without one."""
        if folder is None:
            return None
        names = [name for name in list_files(folder) if name.lower().endswith(READ_FILE_SUFFIXES)]
        sizes: list[tuple[str, int]] = []
        for name in names[:_MAX_NAMED_FILES]:
            try:
                sizes.append((name, os.lstat(os.path.join(folder, name)).st_size))
            except OSError:
                continue
        return cls(sizes, len(names))

    def text(self) -> str:
        """Return a line for the folder, and one for each file."""
        lines = [f"the folder for files: {format_count(self.count, 'file')} with rows"]
        lines += [to_one_line(f"- {name}: {format_size(size)}") for name, size in self.sizes]
        if self.count > _MAX_NAMED_FILES:
            lines.append(f"- {self.count - _MAX_NAMED_FILES} more")
        return "\n".join(lines)


@dataclass(frozen=True)
class RowFileFolder:
    """The operator's folder for files; without a path there is none."""

    path: str | None

    async def list_files(self) -> RowFiles | None:
        """Return its files with rows; None where there is no folder."""
        return await run_in_thread(lambda _: RowFiles.in_folder(self.path))
