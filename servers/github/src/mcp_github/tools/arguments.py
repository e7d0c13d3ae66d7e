"""Arguments that several tools share, described in the same words everywhere.

What can only mean one thing is taken: the address of an issue for its number, one name where several could be given.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Annotated, Any
from urllib.parse import unquote

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    ValidationInfo,
    WithJsonSchema,
)

from mcp_batteries.errors import Invalid
from mcp_batteries.server.declaration.fields import EMPTY_COUNTS, in_header
from mcp_batteries.server.declaration.trusted import FreeText, trusted
from mcp_github.client.polling import MAX_WAIT_SECONDS, Poller
from mcp_github.listing.projections import Projection, is_clipped
from mcp_github.number_forms import REPO_ADDRESS, leave_out_zero
from mcp_github.policy import (
    DeleteReleaseRepo,
    DeleteRepo,
    FilePath,
    ForceRepo,
    MergeRepo,
    Owner,
    Policy,
    Ref,
    ReleaseRepo,
    Repo,
    RunRepo,
    WriteOwner,
    WriteRepo,
)

__all__ = [
    "Body",
    "BranchName",
    "ChangedSince",
    "CommentText",
    "Cursor",
    "DeleteReleaseRepoName",
    "DeleteRepoName",
    "Due",
    "Fields",
    "ForceRepoName",
    "Limit",
    "Login",
    "MergeRepoName",
    "NameList",
    "Names",
    "OptionalBody",
    "OptionalBranchName",
    "OptionalDryRun",
    "OptionalOwnerName",
    "OptionalPath",
    "OptionalRefName",
    "OptionalRepoName",
    "OptionalTitle",
    "OptionalWriteRepoName",
    "OwnerName",
    "PathName",
    "RefName",
    "ReleaseNotes",
    "ReleaseRepoName",
    "RepoName",
    "RunRepoName",
    "Since",
    "Title",
    "Until",
    "Waiting",
    "WriteOwnerName",
    "WriteRepoName",
    "check_message",
    "choosing",
    "choosing_as",
    "drop_unset",
    "one_of",
    "refuse_beside",
]  # fmt: skip

# Arguments that name several objects to change; they stand before `dry_run`.
_SEVERAL = ("numbers", "each", "branches")
_REF_IN_ADDRESS = re.compile(r"/(?:tree|blob|raw|blame|edit|commits?|compare|releases/tag)/([^?#]+)")
_TIME_AGO = re.compile(r"(\d{1,6}) ?(m|min|minutes?|h|hours?|d|days?|w|weeks?)(?: ago)?")
_UNITS_BY_LETTER = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_MAX_ROWS = 1000
_MAX_MESSAGE_CHARACTERS = 10_000
_MAX_TITLE_CHARACTERS = 1000
_MAX_BODY_CHARACTERS = 65_536
# Of a release.
_MAX_NOTES_CHARACTERS = 125_000


def refuse_beside(choice: str, /, **others: object) -> None:
    """Raise `Invalid` for those of `others` that were passed: beside `choice` they would be ignored without a word."""
    names = [f"`{name}`" for name, value in others.items() if value is not None and value is not False]
    if names:
        raise Invalid(f"{' and '.join(names)} can't go with {choice}.", "Leave one or the other out.")


def drop_unset(**values: Any) -> dict[str, Any]:
    """Return what the caller passed."""
    return {name: value for name, value in values.items() if value is not None}


def _make_poller(seconds: int) -> Poller:
    """Return what waits for so many seconds."""
    return Poller(seconds)


def one_of(*choices: str) -> Callable[[str | None], str | None]:
    """Return a check for choices that the schema does not list, whatever the case of their letters."""

    def check(text: str | None) -> str | None:
        if text is None:
            return None
        choice = text.lower()
        if choice not in choices:
            raise ValueError(f"must be one of {', '.join(f'`{item}`' for item in choices)}")
        return choice

    return check


def check_message(text: str) -> str:
    """Return `text`, which has to be there and is not a book."""
    if not 0 < len(text) <= _MAX_MESSAGE_CHARACTERS:
        raise ValueError("must have 1 to 10000 characters")
    return text


def _split_fields(value: object) -> object:
    if not isinstance(value, str):
        return value
    return value.replace(",", " ").split()


def _strip_quotes(value: object) -> object:
    if not isinstance(value, str):
        return value
    return value.strip("`<>/ \t\r\n")


def _split_names(names: list[str] | None) -> list[str] | None:
    """Return the one text as the list of what its commas divide, except between quotation marks: a label may have
    one."""
    if names is None or len(names) != 1:
        return names
    (text,) = names
    parts = [part.strip() for part in re.findall(r'\s*[+-]?"[^"]*"\s*(?=,|$)|[^,]+', text)]
    return [re.sub(r'([+-]?)"(.*,.*)"', r"\1\2", part) for part in parts if part]


def _shows_first(dry_run: bool | None, info: ValidationInfo) -> bool:
    """Return whether a call only shows what it would do, as one for several objects does unless the caller says."""
    if dry_run is not None:
        return dry_run
    return any(info.data.get(name) for name in _SEVERAL)


def _empty_for_none(names: list[str] | None) -> list[str] | None:
    """Return no names for the word `none`, as it is written in filters; `+none` is the name."""
    if names is not None and [name.lower() for name in names] == ["none"]:
        return []
    return names


def _ref_of_address(value: object, info: ValidationInfo) -> object:
    """Return what the address of a repository says about the branch; dropped, another branch would be shown as that."""
    repo = info.data.get("repo")
    if not isinstance(repo, str) or value is not None:
        return value
    address = REPO_ADDRESS.fullmatch(repo)
    if address is None:
        return value
    repo_name, path = address.groups()
    match = _REF_IN_ADDRESS.match(path)
    if match is None:
        return value
    name = unquote(match[1]).strip("/")
    if "/" not in name and "..." not in name:
        return name
    raise ValueError(f"`repo` has `{name}` after `{repo_name}`: pass what of it is the branch as `ref`, the rest apart")


def _parse_time(text: str) -> datetime | date:
    now = datetime.now(UTC)
    words = " ".join(text.lower().split())
    if words == "today":
        return now.date()
    if words == "yesterday":
        return now.date() - timedelta(days=1)
    match = _TIME_AGO.fullmatch(words)
    if match is not None:
        count, unit = match.groups()
        try:
            return now - timedelta(**{_UNITS_BY_LETTER[unit[0]]: int(count)})
        except OverflowError:
            pass
    for kind in (date, datetime):
        try:
            return kind.fromisoformat(text.strip())
        except ValueError:
            pass
    raise ValueError("must be a time such as 2026-01-31, 2026-01-31T08:00:00Z or `7 days ago`")


def _time_parser(time_of_day: str) -> Callable[[str | None], str | None]:
    """Return what writes a time as GitHub takes it; a day alone is its moment `time_of_day`."""

    def parse(text: str | None) -> str | None:
        if text is None:
            return None
        time = _parse_time(text)
        if not isinstance(time, datetime):
            return f"{time}T{time_of_day}Z"
        if time.tzinfo:
            time = time.astimezone(UTC)
        return time.strftime("%Y-%m-%dT%H:%M:%SZ")

    return parse


def _parse_due(text: str | None) -> str | None:
    if not text:
        return text
    day = str(_parse_time(text))[: len("2026-01-31")]
    # GitHub keeps the day alone, and that of California: midnight in UTC would be the day before.
    return _time_parser("12:00:00")(day)


# Bounds that nobody comes near by intention are checked, and the text of the problem says them: in the schemas of all
# tools they would be paid for by every conversation.


def _check_limit(limit: int) -> int:
    if not 1 <= limit <= _MAX_ROWS:
        raise ValueError(f"must be an integer from 1 to {_MAX_ROWS}")
    return limit


def _check_wait(seconds: int | None) -> int | None:
    if seconds is not None and not 0 <= seconds <= MAX_WAIT_SECONDS:
        raise ValueError(f"must be 0 to {MAX_WAIT_SECONDS} seconds")
    return seconds


def _at_most(characters: int) -> Callable[[str | None], str | None]:
    def check(text: str | None) -> str | None:
        if text is not None and len(text) > characters:
            raise ValueError(f"must have at most {characters} characters")
        return text

    return check


def _check_not_empty(text: str | None) -> str | None:
    if text is not None and not text.strip():
        raise ValueError("must not be empty")
    return text


def _body_check(max_characters: int) -> Callable[[str | None], str | None]:
    """Return what refuses a text that is too long, or that an answer cut."""

    def check(text: str | None) -> str | None:
        if text is not None and is_clipped(text):
            raise ValueError("must be a whole text, not one that an answer cut (fields=body alone reads it whole)")
        return _at_most(max_characters)(text)

    return check


_REPO_FIELD = Field(description="owner/name", json_schema_extra=in_header("Repo"))
_UNQUOTED = BeforeValidator(_strip_quotes)
RepoName = Annotated[Repo, trusted(Policy.repo), _UNQUOTED, _REPO_FIELD]
OptionalRepoName = Annotated[Repo | None, trusted(Policy.repo), _UNQUOTED, _REPO_FIELD]
WriteRepoName = Annotated[WriteRepo, trusted(Policy.write_repo), _UNQUOTED, _REPO_FIELD]
OptionalWriteRepoName = Annotated[WriteRepo | None, trusted(Policy.write_repo), _UNQUOTED, _REPO_FIELD]
DeleteRepoName = Annotated[DeleteRepo, trusted(Policy.delete_repo), _UNQUOTED, _REPO_FIELD]
MergeRepoName = Annotated[MergeRepo, trusted(Policy.merge_repo), _UNQUOTED, _REPO_FIELD]
RunRepoName = Annotated[RunRepo, trusted(Policy.run_repo), _UNQUOTED, _REPO_FIELD]
ReleaseRepoName = Annotated[ReleaseRepo, trusted(Policy.release_repo), _UNQUOTED, _REPO_FIELD]
DeleteReleaseRepoName = Annotated[DeleteReleaseRepo, trusted(Policy.delete_release_repo), _UNQUOTED, _REPO_FIELD]
ForceRepoName = Annotated[ForceRepo, trusted(Policy.force_repo), _UNQUOTED, _REPO_FIELD]
_REF_DESCRIPTION = "Branch, tag, commit"
_REF_FIELD = Field(description=_REF_DESCRIPTION)
RefName = Annotated[Ref, trusted(Policy.ref), _REF_FIELD]
OptionalRefName = Annotated[
    Ref | None,
    trusted(Policy.ref),
    BeforeValidator(_ref_of_address),
    Field(description=_REF_DESCRIPTION, validate_default=True),
]
OptionalDryRun = Annotated[
    bool | None, AfterValidator(_shows_first), Field(description="Only show what it would do.", validate_default=True)
]
BranchName = Annotated[Ref, trusted(Policy.ref), Field(description="Name")]
OptionalBranchName = Annotated[Ref | None, trusted(Policy.ref), Field(description="Name")]
_PATH_FIELD = Field(description="In `repo`")
PathName = Annotated[FilePath, trusted(Policy.file), _PATH_FIELD]
OptionalPath = Annotated[FreeText | None, _PATH_FIELD]
Fields = Annotated[
    list[FreeText] | None,
    BeforeValidator(_split_fields),
    # One text is what models write with the fewest tokens; a list is taken as well.
    WithJsonSchema({"type": "string", "description": "Only these: `a,b`"}),
]


def choosing_as(list_tool: str) -> WithJsonSchema:
    """Return the schema of `Fields` of a tool that shows one object of those that another lists."""
    return WithJsonSchema({"type": "string", "description": f"Those of `{list_tool}`"})


def choosing(projection: Projection, noun: str = "") -> WithJsonSchema:
    """Return the schema of `Fields` of a tool that shows `projection`; it names the columns.

    Args:
        noun: what `projection` is of, in a tool that lists several kinds.
    """
    return WithJsonSchema({"type": "string", "description": projection.describe_columns(noun)})


Limit = Annotated[int, BeforeValidator(leave_out_zero), AfterValidator(_check_limit)]
_LOGIN_FIELD = Field(description="Login")
Login = Annotated[FreeText | None, _LOGIN_FIELD]
OwnerName = Annotated[Owner, trusted(Policy.owner), _LOGIN_FIELD]
OptionalOwnerName = Annotated[Owner | None, trusted(Policy.owner), _LOGIN_FIELD]
WriteOwnerName = Annotated[WriteOwner, trusted(Policy.write_owner), _LOGIN_FIELD]
Cursor = Annotated[FreeText | None, Field()]
Waiting = Annotated[Poller | None, trusted(_make_poller), AfterValidator(_check_wait), Field(description="Seconds")]
_TIME_FIELD = Field(description="ISO 8601")
_PARSED_SINCE = AfterValidator(_time_parser("00:00:00"))
Since = Annotated[FreeText | None, _PARSED_SINCE, _TIME_FIELD]
ChangedSince = Annotated[FreeText | None, _PARSED_SINCE, Field(description="Last change")]
Until = Annotated[FreeText | None, AfterValidator(_time_parser("23:59:59")), _TIME_FIELD]
Due = Annotated[FreeText | None, AfterValidator(_parse_due), _TIME_FIELD, EMPTY_COUNTS]
_TITLE_FIELD = Field(description="One line")
_TITLE_FITS = AfterValidator(_at_most(_MAX_TITLE_CHARACTERS))
Title = Annotated[FreeText, _TITLE_FIELD, AfterValidator(_check_not_empty), _TITLE_FITS]
OptionalTitle = Annotated[FreeText | None, _TITLE_FIELD, _TITLE_FITS]
_BODY_FIELD = Field(description="Markdown")
_BODY_FITS = AfterValidator(_body_check(_MAX_BODY_CHARACTERS))
Body = Annotated[FreeText, _BODY_FIELD, AfterValidator(_check_not_empty), _BODY_FITS]
CommentText = Annotated[FreeText | None, _BODY_FIELD, AfterValidator(_check_not_empty), _BODY_FITS]
OptionalBody = Annotated[FreeText | None, _BODY_FIELD, _BODY_FITS, EMPTY_COUNTS]
ReleaseNotes = Annotated[FreeText | None, _BODY_FIELD, AfterValidator(_body_check(_MAX_NOTES_CHARACTERS)), EMPTY_COUNTS]
NameList = Annotated[list[FreeText] | None, AfterValidator(_split_names)]
Names = Annotated[
    NameList, AfterValidator(_empty_for_none), Field(description="All, none, or +name and -name"), EMPTY_COUNTS
]
