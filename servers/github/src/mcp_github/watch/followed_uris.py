"""What a `github://` URI shows, as the request that shows whether it changed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, unquote

from mcp_batteries.errors import Invalid, NotFound, quote
from mcp_github.policy import Policy, Repo

__all__ = ["NOTIFICATIONS", "WATCH_LIST", "Subject", "number_of", "subject"]

NOTIFICATIONS = "github://notifications"
WATCH_LIST = "github://watch-list"

_JSON, _OBJECT = "application/vnd.github+json", "application/vnd.github.object+json"
_RAW = "application/vnd.github.raw+json"


@dataclass(frozen=True)
class Subject:
    """What a subscriber follows.

    Attributes:
        uri: in its one spelling; GitHub ignores the case of owners and repositories.
        what: of the answer counts: all of it, or with `head` only which commits it is about.
    """

    uri: str
    path: str
    what: str = "all"
    accept: str = _JSON
    params: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def key(self) -> str:
        """The request as a key of the cache."""
        return json.dumps([self.path, dict(self.params), self.accept, self.what], sort_keys=True)


def subject(policy: Policy, uri: str) -> Subject | None:
    """What `uri` means; None for URIs of another kind.

    Raises:
        Problem: it has no meaning here, or is not served.
    """
    if not uri.lower().startswith("github://") or uri == WATCH_LIST:
        return None
    if uri.rstrip("/").lower() == NOTIFICATIONS:
        return Subject(NOTIFICATIONS, "/notifications", params={"per_page": 50})
    rest, _, query = uri[len("github://") :].partition("?")
    owner, _, rest = rest.partition("/")
    name, _, rest = rest.partition("/")
    repo = policy.repo(f"{unquote(owner)}/{unquote(name)}")
    top = f"github://{repo.key}"
    if rest.startswith("contents/"):
        return _contents(policy, repo, top, rest.removeprefix("contents/"), query)
    match rest.split("/"):
        case [""]:
            return Subject(top, repo.path)
        case ["readme"]:
            return Subject(f"{top}/readme", f"{repo.path}/readme", accept=_RAW)
        case ["issues", number]:
            return Subject(f"{top}/issues/{number_of(number)}", f"{repo.path}/issues/{number_of(number)}")
        case ["pulls", number]:
            return Subject(f"{top}/pulls/{number_of(number)}", f"{repo.path}/pulls/{number_of(number)}")
        case ["pulls", number, "diff"]:
            path = f"{repo.path}/pulls/{number_of(number)}"
            return Subject(f"{top}/pulls/{number_of(number)}/diff", path, what="head")
        case ["runs", number]:
            return Subject(
                f"{top}/runs/{number_of(number)}", f"{repo.path}/actions/runs/{number_of(number)}", what="run"
            )
        case ["releases", tag]:
            at = policy.ref(unquote(tag))
            return Subject(f"{top}/releases/{at.path}", f"{repo.path}/releases/tags/{at.path}")
        case _:
            raise NotFound(f"No resource has the URI {quote(uri)}.", f"`{top}` is the repository.")


def number_of(text: str) -> int:
    """The number in a URI."""
    if not text.isascii() or not text.isdecimal() or not 0 < int(text) < 10**15:
        raise NotFound(f"{quote(text)} is not a number.", "Use that of an issue, pull request or run.")
    return int(text)


def _contents(policy: Policy, repo: Repo, top: str, rest: str, query: str) -> Subject:
    options = parse_qs(query)
    if options.keys() - {"ref"}:
        raise Invalid("The query of the URI is not understood.", "It takes `ref`.")
    path = policy.file(unquote(rest), spelt=False)
    ref = policy.ref(options["ref"][0]) if "ref" in options else None
    uri = f"{top}/contents/{path.path}{f'?ref={ref.path}' if ref else ''}"
    params = {"ref": ref.name} if ref else {}
    return Subject(uri, f"{repo.path}/contents/{path.path}", accept=_OBJECT, params=params)
