"""Arguments that several tools share, described in the same words everywhere.

What can only mean one thing is taken: the address of an issue for its number, one name where several could be given.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Annotated
from urllib.parse import unquote

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WithJsonSchema,
    WrapValidator,
)

from mcp_batteries.errors import Invalid
from mcp_batteries.server.fields import in_header
from mcp_github.client.polling import LONGEST

__all__ = [
    "Body", "Branch", "Comment", "Cursor", "Due", "Fields", "Limit", "Listed", "Names", "Number", "OptionalBody",
    "OptionalComment", "OptionalNumber", "OptionalPath", "OptionalRef", "OptionalRepo", "OptionalTitle", "Path", "Ref",
    "RepoName", "Since", "Title", "Until", "Waiting", "on_lines", "one_of", "refuse_beside", "said",
]  # fmt: skip

_NUMBERS = {
    "run_id": r"/runs/(\d+)", "job_id": r"/jobs?/(\d+)", "artifact": r"/artifacts/(\d+)", "project": r"/projects/(\d+)",
    "comment": r"#(?:issuecomment-|discussion_r)(\d+)", "review_id": r"#pullrequestreview-(\d+)",
}  # fmt: skip
"""Where an address has the number, by the argument's name."""
_AGO = re.compile(r"(\d{1,6}) ?(m|min|minutes?|h|hours?|d|days?|w|weeks?)(?: ago)?")
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_NUMBER = r"/(?:issues|pulls?|discussions|milestones?|security/\w[\w-]*)/(\d+)"
_ADDRESS = re.compile(r"https?://[^/]+/(?:api/v3/)?(?:repos/)?([\w.-]+/[\w.-]+)(/.*)")
_AT_REF = re.compile(r"/(?:tree|blob|raw|blame|edit|commits?|compare|releases/tag)/([^?#]+)")
_SHORT = re.compile(r"([\w.-]+/[\w.-]+)?#?(\d{1,18})")


def _words(given: object) -> object:
    return given.replace(",", " ").split() if isinstance(given, str) else given


def _listed(texts: list[str] | None) -> list[str] | None:
    """One text as the list of what its commas divide, but for those between quotation marks: a label may have one."""
    if texts is None or len(texts) != 1:
        return texts
    parts = map(str.strip, re.findall(r'\s*[+-]?"[^"]*"\s*(?=,|$)|[^,]+', texts[0]))
    return [re.sub(r'([+-]?)"(.*,.*)"', r"\1\2", part) for part in parts if part]


def _number(given: object, info: ValidationInfo) -> object:
    if not isinstance(given, str):
        return given
    text, place, number = given.strip(), None, None
    if found := _SHORT.fullmatch(text):
        place, number = found.groups()
        if place is not None and "#" not in text:
            return given
    elif found := _ADDRESS.fullmatch(text):
        place, rest = found.groups()
        there = re.search(_NUMBERS.get(info.field_name or "", _NUMBER), rest)
        if there is None:
            raise ValueError(f"is an address without `{info.field_name}`")
        number = there[1]
    if number is None:
        return given
    repo = info.data.get("repo")
    if place is not None and isinstance(repo, str):
        named = _ADDRESS.fullmatch(f"{repo}/")
        if place.lower() != (named[1] if named else repo).lower().removesuffix(".git"):
            raise ValueError(f"is of `{place}`, but `repo` is `{repo}`")
    return int(number)


class _CommentId(int):
    """The id of a comment whose address says whether it is on lines of code: both kinds count from 1."""

    on_lines: bool


def _comment(given: object, handler: ValidatorFunctionWrapHandler, info: ValidationInfo) -> object:
    number = handler(_number(given, info))
    if number is None or not isinstance(given, str) or "#" not in given:
        return number
    made = _CommentId(number)
    made.on_lines = "#discussion_r" in given
    return made


def on_lines(comment: int | None, review: bool) -> bool:
    """Whether `comment` is one on lines of a pull request: what its address says, else `review`."""
    return comment.on_lines if isinstance(comment, _CommentId) else review


def _ref_of_address(given: object, info: ValidationInfo) -> object:
    """What the address of a repository says about the branch; dropped, another branch would be shown as that."""
    repo = info.data.get("repo")
    found = _ADDRESS.fullmatch(repo) if isinstance(repo, str) and given is None else None
    place = found and _AT_REF.match(found[2])
    if not found or not place:
        return given
    if "/" not in (name := unquote(place[1]).strip("/")) and "..." not in name:
        return name
    raise ValueError(f"`repo` has `{name}` after `{found[1]}`: pass what of it is the branch as `ref`, the rest apart")


def refuse_beside(what: str, /, **others: object) -> None:
    """Raise `Invalid` for each of `others` that was given: beside `what` it would be ignored without a word."""
    if named := [f"`{name}`" for name, value in others.items() if value is not None and value is not False]:
        raise Invalid(f"{' and '.join(named)} can't go with {what}.", "Leave one or the other out.")


def one_of(*choices: str) -> Callable[[str | None], str | None]:
    """A check for choices that the schema does not list, whatever the case of their letters."""

    def check(given: str | None) -> str | None:
        if given is None or given.lower() in choices:
            return given and given.lower()
        raise ValueError(f"must be one of {', '.join(f'`{item}`' for item in choices)}")

    return check


def _time(given: str) -> datetime | date:
    text, now = " ".join(given.lower().split()), datetime.now(UTC)
    if text in ("today", "yesterday"):
        return now.date() - timedelta(days=text == "yesterday")
    if found := _AGO.fullmatch(text):
        try:
            return now - timedelta(**{_UNITS[found[2][0]]: int(found[1])})
        except OverflowError:
            pass
    for kind in (date, datetime):
        try:
            return kind.fromisoformat(given.strip())
        except ValueError:
            pass
    raise ValueError("must be a time such as 2026-01-31, 2026-01-31T08:00:00Z or `7 days ago`")


def _moment(of_a_day: str) -> Callable[[str | None], str | None]:
    """A time as GitHub takes it; a day alone is its moment `of_a_day`."""

    def written(given: str | None) -> str | None:
        if given is None:
            return None
        time = _time(given)
        if not isinstance(time, datetime):
            return f"{time}T{of_a_day}Z"
        return (time.astimezone(UTC) if time.tzinfo else time).strftime("%Y-%m-%dT%H:%M:%SZ")

    return written


def _due(given: str | None) -> str | None:
    # GitHub keeps the day alone, and that of California: midnight in UTC would be the day before.
    return given and _moment("12:00:00")(str(_time(given))[:10])


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


def _seconds(wait: int | None) -> int | None:
    if wait is not None and not 0 <= wait <= LONGEST:
        raise ValueError(f"must be 0 to {LONGEST} seconds")
    return wait


def _at_most(characters: int) -> Callable[[str | None], str | None]:
    def fits(text: str | None) -> str | None:
        if text is not None and len(text) > characters:
            raise ValueError(f"must have at most {characters} characters")
        return text

    return fits


def _something(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be empty")
    return text


def said(text: str) -> str:
    """`text`, which has to be there and is not a book."""
    if not 0 < len(text) <= 10_000:
        raise ValueError("must have 1 to 10000 characters")
    return text


_repo = Field(description="owner/name", json_schema_extra=in_header("Repo"))
_bare = BeforeValidator(lambda given: given.strip("`<>/ \t\r\n") if isinstance(given, str) else given)
RepoName = Annotated[str, _bare, _repo]
OptionalRepo = Annotated[str | None, _bare, _repo]
Number = Annotated[int, BeforeValidator(_number), AfterValidator(_positive)]
OptionalNumber = Annotated[int | None, BeforeValidator(_number), AfterValidator(_positive)]
Comment = Annotated[int, WrapValidator(_comment), AfterValidator(_positive)]
OptionalComment = Annotated[int | None, WrapValidator(_comment), AfterValidator(_positive)]
_ref = "Branch, tag, commit"
Ref = Annotated[str, Field(description=_ref)]
OptionalRef = Annotated[str | None, BeforeValidator(_ref_of_address), Field(description=_ref, validate_default=True)]
Branch = Annotated[str, Field(description="Name")]
_path = Field(description="In `repo`")
Path = Annotated[str, _path]
OptionalPath = Annotated[str | None, _path]
Fields = Annotated[
    list[str] | None,
    BeforeValidator(_words),
    # One text is what models write with the fewest tokens; a list is taken as well.
    WithJsonSchema({"type": "string", "description": "Only these: `a,b`"}),
]
Limit = Annotated[int, AfterValidator(_page)]
Cursor = Annotated[str | None, Field()]
Waiting = Annotated[int | None, AfterValidator(_seconds), Field(description="Seconds")]
_iso = Field(description="ISO 8601")
Since = Annotated[str | None, AfterValidator(_moment("00:00:00")), _iso]
Until = Annotated[str | None, AfterValidator(_moment("23:59:59")), _iso]
Due = Annotated[str | None, AfterValidator(_due), _iso]
_title, _title_fits = Field(description="One line"), AfterValidator(_at_most(1000))
Title = Annotated[str, _title, AfterValidator(_something), _title_fits]
OptionalTitle = Annotated[str | None, _title, _title_fits]
_body, _body_fits = Field(description="Markdown"), AfterValidator(_at_most(65_536))
Body = Annotated[str, _body, AfterValidator(_something), _body_fits]
OptionalBody = Annotated[str | None, _body, _body_fits]
Listed = Annotated[list[str] | None, AfterValidator(_listed)]
Names = Annotated[Listed, Field(description="All, or +name and -name")]
