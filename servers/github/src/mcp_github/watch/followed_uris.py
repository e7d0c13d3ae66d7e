"""What a `github://` URI shows, as the request that shows whether it changed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any
from urllib.parse import parse_qs, unquote

from mcp_batteries.errors import Invalid, NotFound, quote
from mcp_github.client.http import JSON_TYPE
from mcp_github.policy import Policy, Repo

__all__ = ["NOTIFICATIONS", "WATCH_LIST", "Digest", "FollowedUri", "parse_number", "parse_uri"]

NOTIFICATIONS = "github://notifications"
WATCH_LIST = "github://watch-list"

_SCHEME = "github://"
_OBJECT_TYPE = "application/vnd.github.object+json"
_RAW_TYPE = "application/vnd.github.raw+json"
_MAX_NUMBER = 10**15


class Digest(StrEnum):
    """What of an answer counts when it is compared with the one before."""

    ALL = "all"
    # Of a pull request: which commits it is about.
    HEAD = "head"
    # Of a workflow run: how it stands.
    RUN = "run"
    # A list that is read to find out which of its entries changed.
    PROBE = "probe"


@dataclass(frozen=True)
class FollowedUri:
    """What a subscriber follows.

    Attributes:
        uri: in its one spelling; GitHub ignores the case of owners and repositories.
        path: of the request, with `accept` and `params`.
        digest: what of the answer counts.
    """

    uri: str
    path: str
    digest: Digest = Digest.ALL
    accept: str = JSON_TYPE
    params: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def key(self) -> str:
        """The request as a key of the cache."""
        return json.dumps([self.path, dict(self.params), self.accept, self.digest.value], sort_keys=True)

    @classmethod
    def from_key(cls, key: str) -> FollowedUri:
        """Return what a key of the cache stands for; its URI is not in it."""
        path, params, accept, digest = json.loads(key)
        return cls("", path, Digest(digest), accept, params)


def parse_uri(policy: Policy, uri: str) -> FollowedUri | None:
    """Return what `uri` means; None for URIs of another kind.

    Raises:
        Problem: it has no meaning here, or is not served.
    """
    if not uri.lower().startswith(_SCHEME) or uri == WATCH_LIST:
        return None
    if uri.rstrip("/").lower() == NOTIFICATIONS:
        return FollowedUri(NOTIFICATIONS, "/notifications", params={"per_page": 50})
    path, _, query = uri[len(_SCHEME) :].partition("?")
    owner, _, path = path.partition("/")
    name, _, path = path.partition("/")
    repo = policy.repo(f"{unquote(owner)}/{unquote(name)}")
    if path.startswith("contents/"):
        return _parse_contents(policy, repo, path.removeprefix("contents/"), query)
    followed = _parse_part(policy, repo, path)
    if followed is None:
        raise NotFound(f"No resource has the URI {quote(uri)}.", f"`{_base_uri(repo)}` is the repository.")
    return followed


def _parse_part(policy: Policy, repo: Repo, path: str) -> FollowedUri | None:
    """Return what the `path` behind a repository's name means; None if it means nothing."""
    base_uri = _base_uri(repo)
    match path.split("/"):
        case [""]:
            return FollowedUri(base_uri, repo.path)
        case ["readme"]:
            return FollowedUri(f"{base_uri}/readme", f"{repo.path}/readme", accept=_RAW_TYPE)
        case ["issues" | "pulls" as kind, text]:
            number = parse_number(text)
            return FollowedUri(f"{base_uri}/{kind}/{number}", f"{repo.path}/{kind}/{number}")
        case ["pulls", text, "diff"]:
            number = parse_number(text)
            return FollowedUri(f"{base_uri}/pulls/{number}/diff", f"{repo.path}/pulls/{number}", Digest.HEAD)
        case ["runs", text]:
            number = parse_number(text)
            return FollowedUri(f"{base_uri}/runs/{number}", f"{repo.path}/actions/runs/{number}", Digest.RUN)
        case ["releases", text]:
            tag = policy.ref(unquote(text))
            return FollowedUri(f"{base_uri}/releases/{tag.path}", f"{repo.path}/releases/tags/{tag.path}")
        case _:
            return None


def _parse_contents(policy: Policy, repo: Repo, text: str, query: str) -> FollowedUri:
    """Return what the path of a file or folder and the query behind it mean."""
    options = parse_qs(query)
    if options.keys() - {"ref"}:
        raise Invalid("The query of the URI is not understood.", "It takes `ref`.")
    path = policy.file(unquote(text), is_escaped=False)
    uri = f"{_base_uri(repo)}/contents/{path.path}"
    params: dict[str, str] = {}
    if "ref" in options:
        ref = policy.ref(options["ref"][0])
        uri = f"{uri}?ref={ref.path}"
        params["ref"] = ref.name
    return FollowedUri(uri, f"{repo.path}/contents/{path.path}", accept=_OBJECT_TYPE, params=params)


def parse_number(text: str) -> int:
    """Return the number in a URI."""
    if not text.isascii() or not text.isdecimal() or not 0 < int(text) < _MAX_NUMBER:
        raise NotFound(f"{quote(text)} is not a number.", "Use that of an issue, pull request or run.")
    return int(text)


def _base_uri(repo: Repo) -> str:
    return f"{_SCHEME}{repo.key}"
