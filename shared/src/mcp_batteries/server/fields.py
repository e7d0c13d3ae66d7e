"""Arguments that several servers take, in the same words."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

__all__ = ["LIMIT", "Cursor", "DryRun", "Limit", "MaxBytes"]

LIMIT = "Most entries of one answer."

Cursor = Annotated[str | None, Field(description="From a truncated answer.")]
Limit = Annotated[int, Field(ge=1, le=5000, description=LIMIT)]
DryRun = Annotated[bool, Field(description="Only show what it would do.")]
MaxBytes = Annotated[int, Field(ge=1000, le=1_000_000, description="Size of one answer.")]
