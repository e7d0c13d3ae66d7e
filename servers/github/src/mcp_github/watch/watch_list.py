"""The watch list: a file of what the user works on."""

from __future__ import annotations

from typing import Any, cast

from mcp_batteries.errors import Problem
from mcp_batteries.subscriptions.config_file import ConfigFile
from mcp_github.policy import Policy
from mcp_github.watch.followed_uris import parse_number, parse_uri

__all__ = ["WatchList"]

# The part of a URI that names a thing of each kind, below its repository.
_URI_PARTS = {"repositories": "", "issues": "issues", "pull_requests": "pulls", "runs": "runs"}
_MAX_ENTRIES = 1000


class WatchList(ConfigFile[str]):
    """What each URI is called that the file lists: `repositories = ["owner/name"]`, and `issues`, `pull_requests` and
    `runs` as `["owner/name#1"]`.
    """

    def __init__(self, policy: Policy, path: str | None) -> None:
        self._policy = policy
        super().__init__(path, "The watch list")

    def entries(self, content: dict[str, Any]) -> dict[str, str]:
        """Return the entries of the parsed file: names by URI."""
        unknown_kinds = sorted(content.keys() - _URI_PARTS.keys())
        if unknown_kinds:
            choices = ", ".join(f"`{kind}`" for kind in _URI_PARTS)
            raise ValueError(f"`{unknown_kinds[0]}` is none of {choices}.")
        names_by_uri: dict[str, str] = {}
        for kind, names in content.items():
            if not isinstance(names, list):
                raise ValueError(f"`{kind}` is not a list.")
            for name in cast("list[Any]", names):
                names_by_uri[self._parse_entry(kind, str(name))] = str(name)
        if len(names_by_uri) > _MAX_ENTRIES:
            raise ValueError(f"it has more than {_MAX_ENTRIES} entries.")
        return names_by_uri

    def _parse_entry(self, kind: str, name: str) -> str:
        """Return the URI of an entry."""
        full_name, _, number = name.partition("#")
        try:
            path = ""
            if _URI_PARTS[kind]:
                path = f"/{_URI_PARTS[kind]}/{parse_number(number)}"
            elif number:
                raise ValueError(f"`{kind}` has `{name}`, which is not a repository.")
            followed = parse_uri(self._policy, f"github://{self._policy.repo(full_name).key}{path}")
        except Problem as problem:
            raise ValueError(f"`{kind}` has `{name}`: {problem}") from problem
        assert followed is not None
        return followed.uri
