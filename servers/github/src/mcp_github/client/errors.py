"""Turns GitHub's refusals into problems."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any, cast

from mcp_batteries.errors import Conflict, Invalid, NotFound, Problem, Refused, TooLarge, Unavailable, quote
from mcp_github.call_context import current_call
from mcp_github.client.rate_limits import EVERYTHING, RateLimits, rate_limit_problem
from mcp_github.client.refusals import find_refusal
from mcp_github.client.response import Response
from mcp_github.safety.scrub import scrub_text

__all__ = [
    "empty_repository_problem", "graphql_problem_of", "hidden_organisations_note", "partial_data_note", "problem_of",
]  # fmt: skip

# A feature that is off is answered with any of several statuses: no other token would help against it. A label or
# branch of the caller's that is called so is quoted without the verb.
_TURNED_OFF = re.compile(r"\b(?:(?:is|are|been) disabled|not (?:been )?enabled|must be enabled)\b")
# No token helps against it, though GitHub says 403.
_TOO_LARGE = re.compile(r"too[ _]large")
# GitHub gave up on a difference. It has several statuses for that, and another try ends alike.
_NO_DIFFERENCE = re.compile(r"(?i)this diff is taking too long|problem generating this diff")
# A failure of GitHub's own in the middle of a GraphQL request, which comes without a type.
_BROKE_OFF = re.compile(r"(?i)something went wrong|time(?:d )?out")
# Beside the words with which GitHub says what stands in the way.
_CHANGE_FIRST = "Change that first: the same call fails until then."
_READ_FIRST = "Read what it holds now, then call again."
# Those that stand for many reasons, which only the message tells apart.
_STATUSES_WITH_REASONS = (403, 405, 409, 422)
# What GitHub asks to wait when it names no time.
_SECONDARY_LIMIT_SECONDS = 60.0
_MAX_QUOTED_CHARACTERS = 300
_MAX_QUOTED_ERRORS = 5


def problem_of(response: Response, description: str, limits: RateLimits, *, has_token: bool) -> Problem:
    """Return the problem that a response of 400 or more stands for; a limit is remembered by `limits`.

    Args:
        description: what was asked for, for messages.
        has_token: whether a token was sent.
    """
    message = _message_of(response)
    problem = _rate_limit_problem_of(response, message, limits)
    if problem is None and response.status in _STATUSES_WITH_REASONS:
        problem = _sign_on_problem_of(response, description) or _known_problem_of(message, description)
    if problem is None:
        problem = _problem_of_words(response, message, description)
    if problem is None:
        problem = _problem_of_status(response, message, description, has_token=has_token)
    problem.status = response.status
    return problem


def _known_problem_of(message: str, description: str) -> Problem | None:
    refusal = find_refusal(message)
    if refusal is None:
        return None
    return refusal.to_problem(description, _quotation(message))


def _problem_of_words(response: Response, message: str, description: str) -> Problem | None:
    """Return the problem that only the message tells from others with the same status; None if it tells none."""
    quotation = _quotation(message)
    match response.status:
        case 403 | 404 | 410 | 422 if _TURNED_OFF.search(message):
            return NotFound(
                f"GitHub has nothing for {description}.{quotation}",
                "The repository's owner can turn that on in its settings.",
            )
        case 403 | 422 if _TOO_LARGE.search(message):
            return TooLarge(f"GitHub's API does not send so much of {description}.{quotation}", "Ask for a part of it.")
        case 422 | 500 | 502 | 503 if _NO_DIFFERENCE.search(message):
            return TooLarge(
                f"GitHub can't work out the difference of {description}.{quotation}",
                "Compare what is closer together, or single commits; `read_file` shows a file at either end.",
            )
        case 404 | 409 if "is empty" in message:
            return empty_repository_problem(description)
        case 422 if message.startswith("No commit found"):
            return NotFound(
                f"GitHub does not find {description}.{quotation}",
                "`list_refs` shows branches and tags, `list_commits` commits.",
            )
        case _:
            return None


def _problem_of_status(response: Response, message: str, description: str, *, has_token: bool) -> Problem:
    """Return the problem that the status stands for, whatever the message says."""
    quotation = _quotation(message)
    match response.status:
        case 401:
            return Refused(
                "GitHub does not accept the token." + quotation,
                "Other calls fail too. The operator can renew it: `gh auth login`, GITHUB_TOKEN, --token-file, or "
                "--auth login for a code in the browser.",
            )
        case 403:
            return _forbidden(response, message, description)
        case 404 | 410:
            return _not_found(response, message, description, has_token=has_token)
        case 405 | 409:
            return Conflict(f"GitHub could not do it for {description} as things are.{quotation}", _CHANGE_FIRST)
        case 406:
            return TooLarge(
                f"GitHub does not make that of {description}.{quotation}", "Ask for a part of it, file by file."
            )
        case 412:
            return Conflict(f"The {description} has changed meanwhile.", _READ_FIRST)
        case 413:
            return TooLarge(f"GitHub takes no request of that size for {description}.", "Send it in parts.")
        case 400 | 422:
            return Invalid(f"GitHub can't use the request for {description}.{quotation}", _fields_to_look_at(response))
        case 451:
            return Refused(f"GitHub blocks {description} for legal reasons.")
        case status if status >= 500:
            return _server_failure(response, description, quotation)
        case status:
            identity = _request_id(response)
            return Unavailable(f"GitHub answered status `{status}`{identity} for {description}.{quotation}")


def graphql_problem_of(errors: list[Any], response: Response, description: str, limits: RateLimits) -> Problem:
    """Return the problem that GraphQL's `errors` in `response` stand for; a limit is remembered by `limits`."""
    error = _first_error(errors)
    quotation = quote_graphql_error(errors)
    if "secondary rate limit" in quotation or "abuse detection" in quotation:
        return _secondary_limit(limits, _parse_number(response.headers.get("retry-after")))
    refusal = find_refusal(str(error.get("message") or ""))
    if refusal is not None:
        return refusal.to_problem(description, quotation)
    if _is_unknown_field(error):
        return NotFound(
            f"This GitHub does not know what is asked of {description}: an Enterprise Server is too old for it."
            f"{quotation}",
            "The operator can update it; no other call gets that there.",
        )
    if error.get("type") in ("RATE_LIMITED", "RATE_LIMIT"):
        return _graphql_limit(response, limits)
    return _problem_of_graphql_type(error.get("type"), response, description, quotation)


def _problem_of_graphql_type(error_type: object, response: Response, description: str, quotation: str) -> Problem:
    match error_type:
        case "NOT_FOUND":
            return NotFound(f"GitHub does not find {description}, or hides it from this token.{quotation}")
        case "FORBIDDEN" | "INSUFFICIENT_SCOPES":
            fix = _permissions_of_tool() or "The operator has to widen the token."
            return Refused(f"The token may not do that to {description}.{quotation}", fix)
        case "STALE_DATA":
            return Conflict(f"The {description} has changed meanwhile.{quotation}", _READ_FIRST)
        case "UNPROCESSABLE":
            return Conflict(f"GitHub could not do it for {description} as things are.{quotation}", _CHANGE_FIRST)
        case "RESOURCE_LIMITS_EXCEEDED" | "MAX_NODE_LIMIT_EXCEEDED":
            return TooLarge(
                f"That is too much of {description} at once.{quotation}", "Ask for less, with a smaller `limit`."
            )
        case "INTERNAL" | "SERVICE_UNAVAILABLE" | "TIMEOUT":
            return _graphql_failure(response, description, quotation)
        case None if _BROKE_OFF.search(quotation):
            return _graphql_failure(response, description, quotation)
        case _:
            return Invalid(f"GitHub can't use the request for {description}.{quotation}")


def partial_data_note(errors: list[Any], description: str) -> str:
    """Return what GraphQL left out of an answer and why, as a note: how many parts, and the reasons once each."""
    objects = [cast("dict[str, Any]", error) for error in errors if isinstance(error, dict)]
    reasons = dict.fromkeys(quote_graphql_error([error]).strip() for error in objects)
    parts = f"{len(objects)} parts"
    if len(objects) < 2:
        parts = "a part"
    sentences = [f"GitHub leaves out {parts} of {description}.", *list(reasons)[:_MAX_QUOTED_ERRORS]]
    for error in objects:
        refusal = find_refusal(str(error.get("message")))
        if refusal is not None:
            sentences.append(refusal.fix)
            break
    return " ".join(sentence for sentence in sentences if sentence)


def quote_graphql_error(errors: list[Any]) -> str:
    """Return what GraphQL says of the first of `errors`, as a sentence behind another; empty if nothing."""
    message, _ = scrub_text(str(_first_error(errors).get("message") or ""))
    return _quotation(message.rstrip("."))


def _quotation(message: str) -> str:
    """Return GitHub's own message as a sentence behind another; empty if there is none."""
    if not message:
        return ""
    return f" GitHub says: {quote(message, _MAX_QUOTED_CHARACTERS)}."


def _first_error(errors: list[Any]) -> Mapping[str, Any]:
    if errors and isinstance(errors[0], dict):
        return cast("dict[str, Any]", errors[0])
    return {}


def _is_unknown_field(error: Mapping[str, Any]) -> bool:
    """Return whether GraphQL's schema lacks something that a query has."""
    extensions: object = error.get("extensions")
    if not isinstance(extensions, dict):
        return False
    return str(cast("dict[str, Any]", extensions).get("code")).startswith(("undefined", "argumentNotAccepted"))


def _rate_limit_problem_of(response: Response, message: str, limits: RateLimits) -> Problem | None:
    """Return the problem if a limit is why GitHub refused, else None."""
    if response.status not in (403, 429):
        return None
    headers = response.headers
    retry_after = _parse_number(headers.get("retry-after"))
    if retry_after is not None:
        return _secondary_limit(limits, retry_after)
    reset = _parse_number(headers.get("x-ratelimit-reset"))
    if headers.get("x-ratelimit-remaining") == "0" and reset is not None:
        resource = headers.get("x-ratelimit-resource", "core")
        return _primary_limit(limits, resource, reset - _server_time(response))
    lower_message = message.lower()
    if response.status == 429 or "rate limit" in lower_message or "abuse detection" in lower_message:
        return _secondary_limit(limits, None)
    return None


def _secondary_limit(limits: RateLimits, seconds: float | None) -> Problem:
    """Return the problem that a secondary limit is, of so many seconds as GitHub says, if it does."""
    wait = seconds
    if wait is None:
        wait = _SECONDARY_LIMIT_SECONDS
    limits.block_until(EVERYTHING, time.time() + wait)
    return rate_limit_problem(EVERYTHING, wait)


def _graphql_limit(response: Response, limits: RateLimits) -> Problem:
    wait = _SECONDARY_LIMIT_SECONDS
    reset = _parse_number(response.headers.get("x-ratelimit-reset"))
    if reset and response.headers.get("x-ratelimit-remaining") == "0":
        wait = reset - _server_time(response)
    return _primary_limit(limits, "graphql", wait)


def _primary_limit(limits: RateLimits, resource: str, seconds: float) -> Problem:
    """Return the problem that the limit on `resource` is, which ends in so many seconds."""
    limits.block_until(resource, time.time() + seconds)
    return rate_limit_problem(resource, seconds)


def _server_time(response: Response) -> float:
    """Return the time that GitHub's clock shows, by which it says when a limit ends: the one here may be wrong."""
    try:
        return parsedate_to_datetime(response.headers.get("date", "")).timestamp()
    except ValueError:
        return time.time()


def _forbidden(response: Response, message: str, description: str) -> Problem:
    fix = _permissions_of_headers(response) or _permissions_of_tool()
    return Refused(f"The token may not do that to {description}.{_quotation(message)}", fix)


def _sign_on_problem_of(response: Response, description: str) -> Problem | None:
    """Return the problem if an organisation wants the token authorised, with the page that does so; else None.

    The header and the hour that its page is good for are those of
    https://docs.github.com/rest/authentication/authenticating-to-the-rest-api#personal-access-tokens-and-saml-sso.
    """
    header = response.headers.get("x-github-sso", "")
    if not header.startswith("required"):
        return None
    fix = "The user can do that on the page of their tokens, at `Configure SSO`."
    url = re.search(r"url=(https://[^\s;]+)", header)
    if url is not None:
        fix = f"The user can do that at {url[1]} within an hour."
    return Refused(f"The organisation of {description} wants the token authorised for single sign-on.", fix)


def empty_repository_problem(description: str) -> NotFound:
    """Return the problem of asking for what only a commit has, in a repository that has none."""
    return NotFound(
        f"GitHub has nothing for {description}: the repository has no commit yet.",
        "`write_files` makes the first one, as does a push.",
    )


def hidden_organisations_note(headers: Mapping[str, str]) -> str:
    """Return that GitHub left out what organisations have that want single sign-on; empty if it left out nothing."""
    header = headers.get("x-github-sso", "")
    if not header.startswith("partial-results"):
        return ""
    ids = re.findall(r"\d+", header)
    number = "some organisations"
    if ids:
        number = f"{len(ids)} organisation{'s'[: len(ids) > 1]} (id {', '.join(ids[:_MAX_QUOTED_ERRORS])})"
    return (
        f"What {number} would show is missing: the token is not authorised for single sign-on there. The user can "
        "do that on the page of their tokens, at `Configure SSO`."
    )


def _not_found(response: Response, message: str, description: str, *, has_token: bool) -> Problem:
    sentences = f"GitHub does not find {description}, or hides it from this token."
    if response.status == 410:
        sentences += " It was there and is gone."
    if message not in ("", "Not Found"):
        sentences += _quotation(message)
    if not has_token:
        sentences += " There is no token here, so private repositories can't be seen."
    return NotFound(sentences, _permissions_of_headers(response))


def _server_failure(response: Response, description: str, quotation: str) -> Problem:
    retry_after = _parse_number(response.headers.get("retry-after"))
    moment = "in a moment"
    if retry_after is not None:
        moment = f"in {retry_after:.0f} s"
    return Unavailable(
        f"GitHub failed on {description} (status `{response.status}`{_request_id(response)}).{quotation}",
        f"Try again {moment}.",
        retry_after=retry_after,
    )


def _graphql_failure(response: Response, description: str, quotation: str) -> Problem:
    identity = _request_id(response).removeprefix(", ")
    if identity:
        identity = f" ({identity})"
    return Unavailable(f"GitHub failed on {description}{identity}.{quotation}", "Try again in a moment.")


def _request_id(response: Response) -> str:
    """Return by what GitHub's support finds a request; empty if the answer does not say."""
    identity = response.headers.get("x-github-request-id")
    if not identity:
        return ""
    return f", request {quote(identity, 60)}"


def _permissions_of_tool() -> str:
    """Return what a token needs for the tool under way, as a sentence; empty outside of tools."""
    permissions = current_call().needed_permissions
    if not permissions:
        return ""
    return f"A fine-grained token needs for this tool: {', '.join(permissions)}."


def _permissions_of_headers(response: Response) -> str:
    """Return what GitHub says that a token needs, as a sentence; empty if it does not, or the token has it."""
    permissions = response.headers.get("x-accepted-github-permissions")
    if permissions:
        return f"A fine-grained token needs the permission {quote(permissions)}."
    accepted = response.headers.get("x-accepted-oauth-scopes", "").strip()
    scopes = _parse_scopes(response.headers.get("x-oauth-scopes", ""))
    if accepted and not scopes & _parse_scopes(accepted):
        own_scopes = quote(", ".join(sorted(scopes)))
        return f"A classic token needs one of the scopes {quote(accepted)}; this one has {own_scopes}."
    return ""


def _parse_scopes(header: str) -> set[str]:
    return {scope.strip() for scope in header.split(",")}


def _body_of(response: Response) -> Mapping[str, Any]:
    """Return the JSON object in `response`; empty if it is none."""
    try:
        body: object = json.loads(response.body)
    except ValueError:
        return {}
    if isinstance(body, dict):
        return cast("dict[str, Any]", body)
    return {}


def _message_of(response: Response) -> str:
    """Return what GitHub says is wrong: its message, then those of the first errors."""
    body = _body_of(response)
    errors: Any = body.get("errors")
    if not errors:
        errors = []
    elif not isinstance(errors, list):
        errors = [errors]
    messages = [str(body.get("message") or "")]
    messages += [_error_message(error) for error in cast("list[Any]", errors)[:_MAX_QUOTED_ERRORS]]
    message, _ = scrub_text("; ".join(text.rstrip(".") for text in messages if text))
    return message


def _error_message(error: Any) -> str:
    if not isinstance(error, dict):
        return str(error)
    item = cast("dict[str, Any]", error)
    if item.get("message"):
        return str(item["message"])
    facts = [item.get(name) for name in ("resource", "field", "code", "value")]
    return " ".join(str(fact) for fact in facts if fact is not None)


def _fields_to_look_at(response: Response) -> str:
    """Return the next move after a request with a field that GitHub does not take."""
    errors: Any = _body_of(response).get("errors")
    if not isinstance(errors, list):
        errors = []
    objects = [cast("dict[str, Any]", error) for error in cast("list[Any]", errors) if isinstance(error, dict)]
    fields = [str(error["field"]) for error in objects if error.get("field")]
    if not fields:
        return "Change the arguments."
    # A search is called `q` there.
    names = ["query" if field == "q" else field for field in fields[:_MAX_QUOTED_ERRORS]]
    return f"Look at {', '.join(quote(name, 40) for name in names)}."


def _parse_number(text: str | None) -> float | None:
    """Return the number of seconds in a header; None if it has none."""
    if text is None:
        return None
    try:
        return max(0.0, float(text))
    except ValueError:
        return None
