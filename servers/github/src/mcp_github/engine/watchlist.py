"""The file of what the user works on: read again when it changes, and never worse than its last good version."""

from __future__ import annotations

import logging
import tomllib
from typing import Any, cast

from mcp_batteries.errors import Problem
from mcp_github.engine.subjects import number_of, subject
from mcp_github.policy import Policy

__all__ = ["WatchList"]

logger = logging.getLogger(__name__)

_PLACES = {"repositories": "", "issues": "issues", "pull_requests": "pulls", "runs": "runs"}
_MOST = 1000


class WatchList:
    """What the TOML file `path` lists: `repositories = ["owner/name"]`, and `issues`, `pull_requests` and `runs` as
    `["owner/name#1"]`.

    Attributes:
        problem: why the file as it is now cannot be used; None if it can.
    """

    def __init__(self, policy: Policy, path: str | None) -> None:
        self.path = path
        self.problem: str | None = None
        self._policy = policy
        self._found: dict[str, str] = {}
        self.refresh()

    def all(self) -> dict[str, str]:
        """What each URI is called."""
        return self._found

    def refresh(self) -> bool:
        """Read the file again; whether anything a client can see has changed. Blocks for a moment."""
        if self.path is None:
            return False
        before = (self._found, self.problem)
        try:
            with open(self.path, "rb") as file:
                self._found, self.problem = self._entries(tomllib.load(file)), None
        except FileNotFoundError:
            self.problem = "it does not exist."
        except OSError as error:
            self.problem = f"it cannot be read: {error.strerror}."
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            self.problem = f"it is not TOML: {error}."
        except ValueError as error:
            self.problem = str(error)
        changed = (self._found, self.problem) != before
        if changed and self.problem:
            logger.warning("The watch list is not used: %s", self.problem)
        return changed

    def _entries(self, given: dict[str, Any]) -> dict[str, str]:
        if unknown := sorted(given.keys() - _PLACES.keys()):
            raise ValueError(f"`{unknown[0]}` is none of {', '.join(f'`{kind}`' for kind in _PLACES)}.")
        found: dict[str, str] = {}
        for kind, names in given.items():
            if not isinstance(names, list):
                raise ValueError(f"`{kind}` is no list.")
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
                raise ValueError(f"`{kind}` has `{name}`, which is no repository.")
            found = subject(self._policy, f"github://{self._policy.repo(full).key}{place}")
        except Problem as problem:
            raise ValueError(f"`{kind}` has `{name}`: {problem}") from problem
        assert found is not None
        return found.uri
