"""Arguments that several tools share, described in the same words everywhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

__all__ = [
    "Body", "Branch", "Cursor", "Fields", "Limit", "Names", "Number", "OptionalBody", "OptionalNumber", "OptionalPath",
    "OptionalRef", "OptionalRepo", "OptionalTitle", "Path", "Ref", "RepoName", "Since", "Title", "said",
]  # fmt: skip


def _words(given: object) -> object:
    return given.replace(",", " ").split() if isinstance(given, str) else given


# Bounds that nobody comes near by intention are checked, and told where they are broken: in the schemas of all tools
# they would be paid for by every conversation.
def _positive(number: int | None) -> int | None:
    if number is not None and number < 1:
        raise ValueError("must be 1 or more")
    return number


def _page(limit: int) -> int:
    if not 1 <= limit <= 100:
        raise ValueError("must be an integer from 1 to 100")
    return limit


def _at_most(characters: int) -> Callable[[str | None], str | None]:
    def fits(text: str | None) -> str | None:
        if text is not None and len(text) > characters:
            raise ValueError(f"must have at most {characters} characters")
        return text

    return fits


def said(text: str) -> str:
    """`text`, which has to be there and is no book."""
    if not 0 < len(text) <= 10_000:
        raise ValueError("must have 1 to 10000 characters")
    return text


_repo = Field(description="owner/name")
RepoName = Annotated[str, _repo]
OptionalRepo = Annotated[str | None, _repo]
Number = Annotated[int, AfterValidator(_positive)]
OptionalNumber = Annotated[int | None, AfterValidator(_positive)]
_ref = Field(description="Branch, tag or commit")
Ref = Annotated[str, _ref]
OptionalRef = Annotated[str | None, _ref]
Branch = Annotated[str, Field(description="Name")]
_path = Field(description="From the top")
Path = Annotated[str, _path]
OptionalPath = Annotated[str | None, _path]
Fields = Annotated[
    list[str] | None,
    BeforeValidator(_words),
    # One text is what models write with the fewest tokens; a list is taken as well.
    WithJsonSchema({"type": "string", "description": "With commas"}),
]
Limit = Annotated[int, AfterValidator(_page)]
Cursor = Annotated[str | None, Field()]
Since = Annotated[str | None, Field(description="ISO 8601")]
_title, _title_fits = Field(description="One line"), AfterValidator(_at_most(1000))
Title = Annotated[str, _title, _title_fits]
OptionalTitle = Annotated[str | None, _title, _title_fits]
_body, _body_fits = Field(description="Markdown"), AfterValidator(_at_most(65_536))
Body = Annotated[str, _body, _body_fits]
OptionalBody = Annotated[str | None, _body, _body_fits]
Names = Annotated[list[str] | None, Field(description="All, or +name and -name")]
