"""Numbers of issues, runs, comments and the like in the forms in which callers write them.

A number is taken as it is, as `#7` or `owner/name#7`, and as the address of the thing on GitHub.
"""

from __future__ import annotations

import re
from typing import Annotated, NamedTuple

from pydantic import AfterValidator, BeforeValidator, ValidationInfo, ValidatorFunctionWrapHandler, WrapValidator
from pydantic_core import PydanticUseDefault

__all__ = [
    "REPO_ADDRESS", "Comment", "Number", "NumberOrDefault", "OptionalComment", "OptionalNumber", "is_on_lines",
    "leave_out_zero",
]  # fmt: skip

# Where an address has the number, by the argument's name.
_NUMBER_PATTERNS = {
    "run_id": r"/runs/(\d+)", "job_id": r"/jobs?/(\d+)", "artifact": r"/artifacts/(\d+)", "project": r"/projects/(\d+)",
    "comment": r"#(?:issuecomment-|discussion_r)(\d+)", "review_id": r"#pullrequestreview-(\d+)",
}  # fmt: skip
_DEFAULT_NUMBER_PATTERN = r"/(?:issues|pulls?|discussions|milestones?|security/\w[\w-]*)/(\d+)"
REPO_ADDRESS = re.compile(r"https?://[^/]+/(?:api/v3/)?(?:repos/)?([\w.-]+/[\w.-]+)(/.*)")
_SHORT_NUMBER = re.compile(r"([\w.-]+/[\w.-]+)?#?(\d{1,18})")


class _NumberedThing(NamedTuple):
    """What an address or a short form names.

    Attributes:
        repo: `owner/name`; None where the text does not say.
    """

    repo: str | None
    number: int


class _CommentId(int):
    """The id of a comment whose address says whether it is on lines of code: both kinds count from 1."""

    is_on_lines: bool


def is_on_lines(comment: int | None, review: bool) -> bool:
    """Return whether `comment` is one on lines of a pull request: what its address says, else `review`."""
    if isinstance(comment, _CommentId):
        return comment.is_on_lines
    return review


def _parse_number(value: object, info: ValidationInfo) -> object:
    """Return the number in an address, in `owner/name#1` or in `#1`; anything else as it is.

    Raises:
        ValueError: the address has no such number, or is of another repository than the argument `repo`; or it is a
            boolean, which pydantic would take for 0 or 1.
    """
    if isinstance(value, bool):
        raise ValueError("must be a number")
    if not isinstance(value, str):
        return value
    thing = _parse_numbered_thing(value.strip(), info.field_name or "")
    if thing is None:
        return value
    repo = info.data.get("repo")
    if thing.repo is not None and isinstance(repo, str):
        repo_name = _repo_name(repo)
        if thing.repo.lower() != repo_name.lower().removesuffix(".git"):
            raise ValueError(f"is of `{thing.repo}`, but `repo` is `{repo}`")
    return thing.number


def _parse_numbered_thing(text: str, argument: str) -> _NumberedThing | None:
    """Return what `text` names, as the argument with this name; None if it is no form of a number."""
    short = _SHORT_NUMBER.fullmatch(text)
    if short is not None:
        repo, number = short.groups()
        if repo is not None and "#" not in text:
            return None
        return _NumberedThing(repo, int(number))
    address = REPO_ADDRESS.fullmatch(text)
    if address is None:
        return None
    repo, path = address.groups()
    match = re.search(_NUMBER_PATTERNS.get(argument, _DEFAULT_NUMBER_PATTERN), path)
    if match is None:
        raise ValueError(f"is an address without `{argument}`")
    return _NumberedThing(repo, int(match[1]))


def _repo_name(repo: str) -> str:
    """Return `owner/name` for the address of a repository; any other text as it is."""
    address = REPO_ADDRESS.fullmatch(f"{repo}/")
    if address is None:
        return repo
    return address[1]


def _parse_comment(value: object, handler: ValidatorFunctionWrapHandler, info: ValidationInfo) -> object:
    """Return the id of a comment; of one whose address was passed, with whether it is on lines of code."""
    number = handler(_parse_number(value, info))
    if number is None or not isinstance(value, str) or "#" not in value:
        return number
    comment = _CommentId(number)
    comment.is_on_lines = "#discussion_r" in value
    return comment


def leave_out_zero(value: object) -> object:
    """Return `value`; 0 is how clients write that an argument is left out, whose default then counts."""
    if value == 0 and not isinstance(value, bool):
        raise PydanticUseDefault
    return value


def _check_positive(number: int | None) -> int | None:
    if number is not None and number < 1:
        raise ValueError("must be 1 or more")
    return number


Number = Annotated[int, BeforeValidator(_parse_number), AfterValidator(_check_positive)]
_ZERO_IS_NOTHING = BeforeValidator(leave_out_zero)
OptionalNumber = Annotated[
    int | None, BeforeValidator(_parse_number), _ZERO_IS_NOTHING, AfterValidator(_check_positive)
]
# One with a default of its own.
NumberOrDefault = Annotated[Number, _ZERO_IS_NOTHING]
Comment = Annotated[int, WrapValidator(_parse_comment), AfterValidator(_check_positive)]
OptionalComment = Annotated[
    int | None, WrapValidator(_parse_comment), _ZERO_IS_NOTHING, AfterValidator(_check_positive)
]
