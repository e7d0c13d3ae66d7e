"""Arguments that several tools share, described in the same words everywhere."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

__all__ = ["IncludeIgnored"]

IncludeIgnored = Annotated[bool, Field(description="Include git-ignored files.")]
