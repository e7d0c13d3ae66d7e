"""Results of listing and undoing steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from mcp_batteries.server.calling.results import TextResult
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
        paths = ", ".join(self.paths[:_MAX_PATHS])
        if len(self.paths) > _MAX_PATHS:
            paths += f" and {len(self.paths) - _MAX_PATHS:,} more"
        return "\t".join([self.id, moment, self.tool, paths])


@dataclass(frozen=True, slots=True)
class UndoStepPage(TextResult):
    """The steps that can be undone, newest first.

    Attributes:
        total: of how many these are the newest.
        unreadable_count: steps that can't be read, of any caller.
    """

    steps: Sequence[UndoStep]
    total: int
    unreadable_count: int = 0

    def text(self) -> str:
        head = "no steps that could be taken back"
        if self.steps:
            head = pluralize(self.total, "step")
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
        head = "taken back"
        if self.dry_run:
            head = "nothing was changed: repeat with dry_run=false"
        lines = [f"[{'; '.join([head, *self.notes])}]", *self.lines[:_MAX_NAMED]]
        if len(self.lines) > _MAX_NAMED:
            lines.append(f"and {len(self.lines) - _MAX_NAMED:,} more")
        if self.diffs:
            lines.append(clip_diff("\n".join(self.diffs)))
        return "\n".join(lines)
