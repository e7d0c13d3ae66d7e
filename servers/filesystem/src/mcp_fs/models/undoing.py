"""Results of listing and undoing steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from mcp_batteries.server.results import TextResult
from mcp_fs.models.formatting import pluralize
from mcp_fs.models.writing import clip_diff

__all__ = ["UndoResult", "UndoStep", "UndoStepPage"]

_MAX_NAMED = 50
_MAX_PATHS = 3


@dataclass(frozen=True, slots=True)
class UndoStep:
    """What one call changed, as far as it can be undone.

    Attributes:
        time: when, in seconds since 1970.
        paths: as tools take them.
    """

    id: str
    time: float
    tool: str
    paths: Sequence[str]

    def line(self) -> str:
        moment = datetime.fromtimestamp(int(self.time), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        more = f" and {len(self.paths) - _MAX_PATHS:,} more" if len(self.paths) > _MAX_PATHS else ""
        return "\t".join([self.id, moment, self.tool, ", ".join(self.paths[:_MAX_PATHS]) + more])


@dataclass(frozen=True, slots=True)
class UndoStepPage(TextResult):
    """The steps that can be undone, newest first.

    Attributes:
        total: of how many these are the newest.
        unread: the number of unreadable steps, of any caller.
    """

    steps: Sequence[UndoStep]
    total: int
    unreadable_count: int = 0

    def text(self) -> str:
        head = pluralize(self.total, "step") if self.steps else "no steps that could be taken back"
        if self.total > len(self.steps):
            head = f"{len(self.steps)} of {head}"
        if self.unreadable_count:
            head += f", {self.unreadable_count:,} more can't be read"
        if self.steps:
            head += ", newest first"
        return "\n".join([f"[{head}]", *(step.line() for step in self.steps)])


@dataclass(frozen=True, slots=True)
class UndoResult(TextResult):
    """What was undone, or would be.

    Attributes:
        lines: one for each entry.
        notes: what could not be kept.
        diffs: how text files would change.
    """

    lines: Sequence[str]
    dry_run: bool
    notes: Sequence[str]
    diffs: Sequence[str] = ()

    def text(self) -> str:
        head = "nothing was changed: repeat with dry_run=false" if self.dry_run else "taken back"
        cut = self.lines[:_MAX_NAMED]
        more = [f"and {len(self.lines) - len(cut):,} more"] if len(self.lines) > len(cut) else []
        diff = [clip_diff("\n".join(self.diffs))] if self.diffs else []
        return "\n".join([f"[{'; '.join([head, *self.notes])}]", *cut, *more, *diff])
