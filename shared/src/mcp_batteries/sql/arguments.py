"""Arguments that tools of both SQL servers take, with the same descriptions."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from mcp_batteries.server.declaration.fields import in_header

__all__ = ["ComparedWith", "DatabaseName", "FileName", "FilePath", "MaxCell", "NamePart", "Sample", "SearchWords"]

FileName = Annotated[str, Field(description="Plain name, no path.")]
FilePath = Annotated[str, Field(description="Path in the folder.")]
DatabaseName = Annotated[
    str | None, Field(description="Which, if several are served.", json_schema_extra=in_header("Database"))
]
ComparedWith = Annotated[str | None, Field(description="Another table or view.")]
MaxCell = Annotated[int, Field(ge=1, le=1_000_000, description="Longest cell shown whole.")]
NamePart = Annotated[str | None, Field(max_length=200, description="Only names that contain this.")]
Sample = Annotated[int, Field(ge=0, le=20, description="Rows to show.")]
SearchWords = Annotated[str, Field(min_length=1, max_length=1000, description="What to look for.")]
