"""Arguments that several tools share, described in the same words everywhere."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from mcp_batteries.server.declaration.fields import in_header

__all__ = ["MAX_CALL_SECONDS", "FilePath", "LineNumber", "RepositoryName", "Rev"]

RepositoryName = Annotated[str, Field(description="Which, if several are served.", json_schema_extra=in_header("Repo"))]
Rev = Annotated[str, Field(description="Commit, branch, tag or `HEAD~2`.")]
FilePath = Annotated[str, Field(description="From the repository's root.")]
LineNumber = Annotated[int, Field(ge=1)]

# Seconds, beyond what `--timeout` and `--remote-timeout` can say, so that these speak.
MAX_CALL_SECONDS = 3700.0
