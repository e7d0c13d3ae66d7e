"""Plans of statements, and findings of what was looked at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Plan", "Report"]


@dataclass(frozen=True)
class Plan:
    """What PostgreSQL would do, or did, for a statement.

    Attributes:
        tree: a line per step, indented.
        findings: what stands out.
        notes: how the plan came about.
        for_views: the row width of each step, which models do not read.
    """

    tree: Sequence[str]
    findings: Sequence[str] = ()
    notes: Sequence[str] = ()
    for_views: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def text(self) -> str:
        return "\n".join([*(f"[{note}]" for note in self.notes), *self.tree, *self.findings])


@dataclass(frozen=True)
class Report:
    """Findings, each a heading with lines below it."""

    sections: Sequence[tuple[str, Sequence[str]]]
    notes: Sequence[str] = ()

    def text(self) -> str:
        lines = [f"[{note}]" for note in self.notes]
        for title, section_lines in self.sections:
            lines += [title, *section_lines]
        return "\n".join(lines)
