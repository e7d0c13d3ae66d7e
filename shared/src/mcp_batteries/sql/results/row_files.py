"""The files with rows in the operator's folder, as the first list of the tables names them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from mcp_batteries.sql.results.rows import format_count, format_size, to_one_line

__all__ = ["RowFiles"]

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
    def measure(cls, folder: str, names: Sequence[str]) -> RowFiles:
        """Return files of a folder; those that went away meanwhile are left out."""
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
