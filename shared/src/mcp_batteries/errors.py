"""The failures that a caller can act on, as one small family.

Everything a server refuses or cannot do is a `Problem`: what failed, then the next move. Tools report it
as `isError` with this text, resources as a JSON-RPC error with the same text. Any other exception is our defect: its
text stays in the log, and the client only learns that the server failed. Programs find the same in `_meta` of the
result, or in `data` of the error: `kind` (the class below in snake case), `status` and `retry_after_s`.

    Problem
    ├── NotFound      the thing named does not exist
    ├── Refused       policy refuses, whoever asks
    ├── Invalid       the request itself makes no sense here
    ├── Conflict      the world changed under the caller
    ├── TooLarge      beyond a limit, with the way to ask for less
    └── Unavailable   not now; `retry_after` seconds when known
"""

from __future__ import annotations

import os
import re
from typing import Self, cast

from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError, ToolError

from mcp_batteries.redaction.own import mask_own

__all__ = [
    "Conflict",
    "Invalid",
    "NotFound",
    "Problem",
    "Refused",
    "TooLarge",
    "Unavailable",
    "describe_os_error",
    "first_exception",
    "quote",
    "well_formed",
]


def well_formed(text: str) -> str:
    """Return `text` with every lone surrogate replaced by U+FFFD.

    Python spells undecodable bytes of file names as lone surrogates, and no JSON encoder accepts them.
    """
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def quote(text: str, limit: int = 120) -> str:
    """Return a caller's own text in a message: in backticks, on one line, at most `limit` characters."""
    line = well_formed(text).replace("\r", "\\r").replace("\n", "\\n").replace("\0", "\\0")
    if len(line) > limit:
        line = f"{line[: limit - 1]}…"
    return f"`{line}`"


def first_exception(error: BaseException) -> BaseException:
    """Return `error`, or the first exception inside a group, nested or not."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    return error


def describe_os_error(error: OSError) -> str:
    """Return why the system refused, in the C library's words, because Windows' own come in the user's language."""
    if getattr(error, "winerror", None) and error.errno:
        reason = os.strerror(error.errno)
        if not reason.startswith("Unknown error"):
            return reason
    return error.strerror or type(error).__name__


class Problem(ToolError, ResourceError):
    """Raised when a request fails for a reason that the caller can understand and often fix.

    Args:
        failure: what failed, one sentence, identifiers in backticks, no path outside what is served.
        fix: the next move, one sentence; empty when there is none.
        status: the HTTP status behind it, where a service gave one.
    """

    def __init__(self, failure: str, fix: str = "", *, status: int | None = None) -> None:
        self.status = status
        # Words of a library can quote what this process was told: an address, a header, a path.
        self.failure = mask_own(well_formed(failure))
        self.fix = mask_own(well_formed(fix))
        super().__init__(f"{self.failure} {self.fix}" if fix else self.failure)

    def reword(self, failure: str, fix: str) -> Self:
        """Return the same problem in other words, with all else that is known of it."""
        other = type(self).__new__(type(self))
        vars(other).update(vars(self))
        Problem.__init__(other, failure, fix, status=self.status)
        return other

    @property
    def fields(self) -> dict[str, str | int | float]:
        """What programs read: `kind`, and if known `status` and `retry_after_s`."""
        name = next(cls for cls in type(self).__mro__ if cls.__module__ == __name__).__name__
        values = {"status": self.status, "retry_after_s": getattr(self, "retry_after", None)}
        kind = re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
        return {"kind": kind, **{key: value for key, value in values.items() if value is not None}}


class NotFound(Problem, ResourceNotFoundError):
    """Raised when the named thing does not exist, or the caller may not know that it exists."""


class Refused(Problem):
    """Raised when policy forbids the request: outside the served world, read-only, a closed gate."""


class Invalid(Problem):
    """Raised when an argument cannot be used as it is."""


class Conflict(Problem):
    """Raised when the thing is not in the state the caller expected; names the state it is in."""


class TooLarge(Problem):
    """Raised when a result or an input is beyond a limit; names the limit and how to ask for less."""


class Unavailable(Problem):
    """Raised when something that we depend on does not answer now.

    Args:
        retry_after: seconds until another try makes sense, when known.
    """

    def __init__(
        self, failure: str, fix: str = "", *, retry_after: float | None = None, status: int | None = None
    ) -> None:
        self.retry_after = retry_after
        super().__init__(failure, fix, status=status)
