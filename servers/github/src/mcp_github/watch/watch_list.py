"""The watch list: a file of what the user works on."""

from __future__ import annotations

from typing import Any, cast

from mcp_batteries.errors import Problem
from mcp_batteries.subscriptions.config_file import ConfigFile
from mcp_github.policy import Policy
from mcp_github.watch.followed_uris import number_of, subject

__all__ = ["WatchList"]

_PLACES = {"repositories": "", "issues": "issues", "pull_requests": "pulls", "runs": "runs"}
_MOST = 1000


class WatchList(ConfigFile[str]):
    """What each URI is called that the file lists: `repositories = ["owner/name"]`, and `issues`, `pull_requests` and
    `runs` as `["owner/name#1"]`.
    """

    def __init__(self, policy: Policy, path: str | None) -> None:
        self._policy = policy
        super().__init__(path, "The watch list")

    def entries(self, given: dict[str, Any]) -> dict[str, str]:
        if unknown := sorted(given.keys() - _PLACES.keys()):
            raise ValueError(f"`{unknown[0]}` is none of {', '.join(f'`{kind}`' for kind in _PLACES)}.")
        found: dict[str, str] = {}
        for kind, names in given.items():
            if not isinstance(names, list):
                raise ValueError(f"`{kind}` is not a list.")
            for name in cast("list[Any]", names):
                found[self._uri(kind, str(name))] = str(name)
        if len(found) > _MOST:
            raise ValueError(f"it has more than {_MOST} entries.")
        return found

    def _uri(self, kind: str, name: str) -> str:
        full, _, number = name.partition("#")
        try:
            place = f"/{_PLACES[kind]}/{number_of(number)}" if _PLACES[kind] else ""
            if number and not place:
                raise ValueError(f"`{kind}` has `{name}`, which is not a repository.")
            found = subject(self._policy, f"github://{self._policy.repo(full).key}{place}")
        except Problem as problem:
            raise ValueError(f"`{kind}` has `{name}`: {problem}") from problem
        assert found is not None
        return found.uri
