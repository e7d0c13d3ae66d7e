"""Arguments that several tools share, described in the same words everywhere."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

__all__ = ["IncludeHidden", "IncludeIgnored"]

IncludeHidden = Annotated[bool, Field(description="Names that begin with a dot too.")]

IncludeIgnored = Annotated[bool, Field(description="What .gitignore names too.")]
