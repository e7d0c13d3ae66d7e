"""Turns GitHub's refusals into problems."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any, cast

from mcp_batteries.errors import Conflict, Invalid, NotFound, Problem, Refused, TooLarge, Unavailable, quote
from mcp_github.client.rate_limits import EVERYTHING, RateLimits, limited
from mcp_github.client.response import Reply
from mcp_github.safety.scrub import scrub_text

__all__ = ["graphql_problem", "graphql_words", "needs", "problem"]

needs: ContextVar[tuple[str, ...]] = ContextVar("needs", default=())
"""The permissions that the tool at work needs, for a refusal in which GitHub names none."""

_TURNED_OFF = re.compile(r"\b(?:(?:is|are|been) disabled|not (?:been )?enabled|must be enabled)\b")
"""A feature that is off is answered with any of several statuses: no other token would help against it. A label or
branch of the caller's that is called so is quoted without the verb."""
_TOO_LARGE = re.compile(r"too[ _]large")
"""No token helps against it, though GitHub says 403."""
_BROKE_OFF = re.compile(r"(?i)something went wrong|time(?:d )?out")
"""A failure of GitHub's own in the middle of a GraphQL request, which comes without a type."""
_SECONDARY_SECONDS = 60.0
"""What GitHub asks to wait when it names no time."""


def problem(reply: Reply, what: str, limits: RateLimits, *, token: bool) -> Problem:
    """The problem a reply of 400 or more stands for; a limit is remembered by `limits`.

    Args:
        what: what was asked for, for messages.
        token: whether a token was sent.
    """
    found = _problem(reply, what, limits, token=token)
    found.status = reply.status
    return found


def _problem(reply: Reply, what: str, limits: RateLimits, *, token: bool) -> Problem:
    said = _said(reply)
    limit = _limit(reply, said, limits)
    if limit is not None:
        return limit
    words = f" GitHub says: {quote(said, 300)}." if said else ""
    match reply.status:
        case 401:
            return Refused(
                "GitHub does not accept the token." + words, "The operator has to renew it; other calls fail too."
            )
        case 403 | 404 | 410 | 422 if _TURNED_OFF.search(said):
            return NotFound(
                f"GitHub has nothing for {what}.{words}", "The repository's owner can turn that on in its settings."
            )
        case 403 | 422 if _TOO_LARGE.search(said):
            return TooLarge(f"GitHub's API does not send so much of {what}.{words}", "Ask for a part of it.")
        case 403:
            return _forbidden(reply, said, what)
        case 404 | 409 if "is empty" in said:
            return NotFound(f"GitHub has nothing for {what}: the repository has no commit yet.", "Push a first one.")
        case 404 | 410:
            hint = "" if token else " There is no token here, so private repositories can't be seen."
            gone = " It was there and is gone." if reply.status == 410 else ""
            why = "" if said in ("", "Not Found") else words
            return NotFound(
                f"GitHub does not find {what}, or hides it from this token.{gone}{why}{hint}", _scopes(reply)
            )
        case 405 | 409:
            return Conflict(f"GitHub could not do it for {what} as things are.{words}", "Look at it again.")
        case 406:
            return TooLarge(f"GitHub does not make that of {what}.{words}", "Ask for a part of it, file by file.")
        case 412:
            return Conflict(f"The {what} has changed meanwhile.", "Read it again.")
        case 413:
            return TooLarge(f"GitHub takes no request of that size for {what}.", "Send it in parts.")
        case 422 if said.startswith("No commit found"):
            return NotFound(
                f"GitHub does not find {what}.{words}", "`list_refs` shows branches and tags, `list_commits` commits."
            )
        case 400 | 422:
            return Invalid(f"GitHub can't use the request for {what}.{words}", _fields(reply))
        case 451:
            return Refused(f"GitHub blocks {what} for legal reasons.")
        case status if status >= 500:
            after = _number(reply.headers.get("retry-after"))
            when = "in a moment" if after is None else f"in {after:.0f} s"
            return Unavailable(f"GitHub failed on {what} (status `{status}`).", f"Try again {when}.", retry_after=after)
        case status:
            return Unavailable(f"GitHub answered status `{status}` for {what}.{words}")


def graphql_problem(errors: list[Any], reply: Reply, what: str, limits: RateLimits) -> Problem:
    """The problem GraphQL's `errors` in `reply` stand for."""
    first, words = _first(errors), graphql_words(errors)
    if "secondary rate limit" in words or "abuse detection" in words:
        return _secondary(limits, _number(reply.headers.get("retry-after")))
    match first.get("type"):
        case "RATE_LIMITED" | "RATE_LIMIT":
            reset = _number(reply.headers.get("x-ratelimit-reset"))
            spent = reply.headers.get("x-ratelimit-remaining") == "0" and reset is not None
            until = reset if spent and reset else time.time() + _SECONDARY_SECONDS
            limits.reached("graphql", until)
            return limited("graphql", until - time.time())
        case "NOT_FOUND":
            return NotFound(f"GitHub does not find {what}, or hides it from this token.{words}")
        case "FORBIDDEN" | "INSUFFICIENT_SCOPES":
            fix = _needed() or "The operator has to widen the token."
            return Refused(f"The token may not do that to {what}.{words}", fix)
        case "STALE_DATA":
            return Conflict(f"The {what} has changed meanwhile.{words}", "Read it again.")
        case "UNPROCESSABLE":
            return Conflict(f"GitHub could not do it for {what} as things are.{words}", "Look at it again.")
        case "RESOURCE_LIMITS_EXCEEDED" | "MAX_NODE_LIMIT_EXCEEDED":
            return TooLarge(f"That is too much of {what} at once.{words}", "Ask for less, with a smaller `limit`.")
        case "INTERNAL" | "SERVICE_UNAVAILABLE" | "TIMEOUT":
            return Unavailable(f"GitHub failed on {what}.{words}", "Try again in a moment.")
        case None if _BROKE_OFF.search(words):
            return Unavailable(f"GitHub failed on {what}.{words}", "Try again in a moment.")
        case _:
            return Invalid(f"GitHub can't use the request for {what}.{words}")


def graphql_words(errors: list[Any]) -> str:
    """What GraphQL says of the first of `errors`, as a sentence behind another; empty if nothing."""
    said = scrub_text(str(_first(errors).get("message") or ""))[0].rstrip(".")
    return f" GitHub says: {quote(said, 300)}." if said else ""


def _first(errors: list[Any]) -> Mapping[str, Any]:
    return cast("dict[str, Any]", errors[0] if errors and isinstance(errors[0], dict) else {})


def _limit(reply: Reply, said: str, limits: RateLimits) -> Problem | None:
    if reply.status not in (403, 429):
        return None
    headers = reply.headers
    if (after := _number(headers.get("retry-after"))) is not None:
        return _secondary(limits, after)
    if headers.get("x-ratelimit-remaining") == "0" and (reset := _number(headers.get("x-ratelimit-reset"))) is not None:
        resource = headers.get("x-ratelimit-resource", "core")
        limits.reached(resource, reset)
        return limited(resource, reset - time.time())
    if reply.status == 429 or "rate limit" in said.lower() or "abuse detection" in said.lower():
        return _secondary(limits, None)
    return None


def _secondary(limits: RateLimits, seconds: float | None) -> Problem:
    """The problem that a secondary limit is, of so many seconds as GitHub says, if it does."""
    wait = _SECONDARY_SECONDS if seconds is None else seconds
    limits.reached(EVERYTHING, time.time() + wait)
    return limited(EVERYTHING, wait)


def _forbidden(reply: Reply, said: str, what: str) -> Problem:
    words = f" GitHub says: {quote(said, 300)}." if said else ""
    if "archived" in said:
        return Conflict(
            f"{what[:1].upper()}{what[1:]} can't be changed: the repository is archived.",
            "Its owner can unarchive it on GitHub.",
        )
    if "x-github-sso" in reply.headers:
        return Refused(
            f"The organisation of {what} wants the token authorised for single sign-on.",
            "The user can do that on the page of their tokens.",
        )
    return Refused(f"The token may not do that to {what}.{words}", _scopes(reply) or _needed())


def _needed() -> str:
    return f"A fine-grained token needs for this tool: {', '.join(needs.get())}." if needs.get() else ""


def _scopes(reply: Reply) -> str:
    wanted = reply.headers.get("x-accepted-github-permissions")
    if wanted:
        return f"A fine-grained token needs the permission {quote(wanted)}."
    accepted = reply.headers.get("x-accepted-oauth-scopes", "").strip()
    has = {scope.strip() for scope in reply.headers.get("x-oauth-scopes", "").split(",")}
    if accepted and not has & {scope.strip() for scope in accepted.split(",")}:
        return (
            f"A classic token needs one of the scopes {quote(accepted)}; this one has {quote(', '.join(sorted(has)))}."
        )
    return ""


def _body(reply: Reply) -> Mapping[str, Any]:
    try:
        body: object = json.loads(reply.body)
    except ValueError:
        return {}
    return cast("dict[str, Any]", body) if isinstance(body, dict) else {}


def _said(reply: Reply) -> str:
    body = _body(reply)
    parts = [str(body.get("message") or "")]
    errors = body.get("errors")
    for error in cast("list[Any]", errors if isinstance(errors, list) else [errors] if errors else [])[:5]:
        if isinstance(error, dict):
            item = cast("dict[str, Any]", error)
            about = (item.get(name) for name in ("resource", "field", "code", "value"))
            parts.append(str(item.get("message") or " ".join(str(word) for word in about if word is not None)))
        else:
            parts.append(str(error))
    return scrub_text("; ".join(part.rstrip(".") for part in parts if part))[0]


def _fields(reply: Reply) -> str:
    errors = _body(reply).get("errors")
    named = [
        str(cast("dict[str, Any]", item).get("field"))
        for item in cast("list[Any]", errors if isinstance(errors, list) else [])
        if isinstance(item, dict) and item.get("field")  # pyright: ignore
    ]
    # A search is called `q` there.
    names = ["query" if name == "q" else name for name in named[:5]]
    return f"Look at {', '.join(quote(name, 40) for name in names)}." if names else "Change the arguments."


def _number(text: str | None) -> float | None:
    try:
        return None if text is None else max(0.0, float(text))
    except ValueError:
        return None
