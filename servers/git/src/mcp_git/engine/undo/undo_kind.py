"""How an operation is undone, and how the calls that do it name commits."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["BEFORE_IT_BEGAN", "HASH_LENGTH", "UndoKind"]

# Of a hash that a call to undo names.
HASH_LENGTH = 12
# What a call to undo says that leads to before what was in progress.
BEFORE_IT_BEGAN = " (to before it began)"


class UndoKind(StrEnum):
    """How an operation is undone.

    Attributes:
        KEEP, SOFT, MIXED, HARD: by a reset of that mode.
        UNCOMMIT_ALL: by taking apart a commit that also staged its files.
        FILES: by writing files again.
        INDEX: by staging what was staged.
        CARRIED: by another call, and then the files that it did not carry along.
    """

    KEEP = "keep"
    SOFT = "soft"
    MIXED = "mixed"
    HARD = "hard"
    UNCOMMIT_ALL = "uncommit all"
    FILES = "files"
    INDEX = "index"
    CARRIED = "carried"

    @property
    def is_reset(self) -> bool:
        return self in (UndoKind.KEEP, UndoKind.SOFT, UndoKind.MIXED, UndoKind.HARD)
