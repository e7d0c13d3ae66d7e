"""Arguments that several tools share, described in the same words everywhere, with the parser of each."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from mcp_batteries.server.declaration.fields import in_header
from mcp_batteries.server.declaration.trusted import trusted
from mcp_git.policy import (
    FetchableRepository,
    NewName,
    Policy,
    PullableRepository,
    PushableRepository,
    Repository,
    RepositoryPath,
    Revision,
    WritableRepository,
    parse_new_name,
    parse_path,
    parse_path_or_glob,
    parse_ref,
    parse_revision,
)

__all__ = [
    "FetchableRepo",
    "FilePath",
    "LineNumber",
    "OptionalName",
    "OptionalPathOrGlob",
    "OptionalRef",
    "OptionalRevision",
    "PathOrGlob",
    "PullableRepo",
    "PushableRepo",
    "Repo",
    "Rev",
    "WritableRepo",
]

_PATH = Field(description="From the repository's root.")
_PATH_OR_GLOB = Field(description="From the repository's root, or a glob.")
# Its name says all; which there are stands in the instructions, and in the error where none is named.
_REPO = Field(json_schema_extra=in_header("Repo"))

# Left out, each is the only served one: `default("")`.
Repo = Annotated[Repository, trusted(Policy.repository), _REPO]
WritableRepo = Annotated[WritableRepository, trusted(Policy.writable_repository), _REPO]
FetchableRepo = Annotated[FetchableRepository, trusted(Policy.fetchable_repository), _REPO]
PullableRepo = Annotated[PullableRepository, trusted(Policy.pullable_repository), _REPO]
PushableRepo = Annotated[PushableRepository, trusted(Policy.pushable_repository), _REPO]

Rev = Annotated[Revision, trusted(parse_revision), Field(description="Commit, branch, tag or `HEAD~2`.")]
OptionalRevision = Annotated[Revision | None, trusted(parse_revision)]
OptionalRef = Annotated[Revision | None, trusted(parse_ref)]
OptionalName = Annotated[NewName | None, trusted(parse_new_name)]
FilePath = Annotated[RepositoryPath, trusted(parse_path), _PATH]
PathOrGlob = Annotated[RepositoryPath, trusted(parse_path_or_glob), _PATH_OR_GLOB]
OptionalPathOrGlob = Annotated[RepositoryPath | None, trusted(parse_path_or_glob), _PATH_OR_GLOB]
LineNumber = Annotated[int, Field(ge=1)]
