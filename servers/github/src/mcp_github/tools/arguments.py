"""Arguments that several tools share, described in the same words everywhere."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

__all__ = [
    "Body", "Branch", "Cursor", "Fields", "Limit", "Names", "Number", "OptionalBody", "OptionalNumber", "OptionalPath",
    "OptionalRef", "OptionalRepo", "OptionalTitle", "Path", "Ref", "RepoName", "Since", "Title",
]  # fmt: skip

_repo = Field(description="owner/name.")
RepoName = Annotated[str, _repo]
OptionalRepo = Annotated[str | None, _repo]
Number = Annotated[int, Field(ge=1)]
OptionalNumber = Annotated[int | None, Field(ge=1)]
_ref = Field(description="Branch, tag or commit.")
Ref = Annotated[str, _ref]
OptionalRef = Annotated[str | None, _ref]
Branch = Annotated[str, Field(description="Its name.")]
_path = Field(description="From the repository's top.")
Path = Annotated[str, _path]
OptionalPath = Annotated[str | None, _path]
Fields = Annotated[list[str] | None, Field(description="Columns; a wrong one tells all.")]
Limit = Annotated[int, Field(ge=1, le=100)]
Cursor = Annotated[str | None, Field()]
Since = Annotated[str | None, Field(description="ISO 8601.")]
_title = Field(max_length=1000, description="One line.")
Title = Annotated[str, _title]
OptionalTitle = Annotated[str | None, _title]
_body = Field(max_length=65_536, description="Markdown.")
Body = Annotated[str, _body]
OptionalBody = Annotated[str | None, _body]
Names = Annotated[list[str] | None, Field(description="All there are to be, or +name and -name.")]
