"""Decides which repositories are served, and their owners: the allow-list of `--repos`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeVar
from urllib.parse import unquote

from mcp_batteries.errors import Invalid, Refused, Unavailable, quote
from mcp_github.policy.addresses import api_url
from mcp_github.policy.names import LOGIN, is_encodable, ref, require_logins
from mcp_github.policy.repositories import Head, HeadFilter, Owner, Repo

__all__ = ["AllowedRepo", "RepositoryAllowList"]

T = TypeVar("T")

_REPO_NAME = re.compile(r"[A-Za-z0-9._-]{1,100}")
_NO_NAMES = (".", "..")
# The address of a repository or of anything in one: by HTTP, SSH or git.
_ADDRESS = re.compile(r"(?:[a-z+]+://)?(?:git@)?([^/:@]+)(?::\d+)?[/:](.*)", re.I | re.S)
# Qualifiers of a search that name repositories.
_REPO_QUALIFIER = re.compile(
    r"""(?:^|[\s(\-"'])(repo|user|org|owner|team-review-requested|team|enterprise|props\.\S*?):""", re.I
)
_OR = re.compile(r"(?:^|[\s)])OR(?:[\s(]|$)")
# In one search.
_MAX_OPERATORS = 5
_SEARCH_LOGIC = re.compile(r"(?:^|\s)(?:OR|AND|NOT)(?:\s|$)|[()]")


class AllowedRepo(NamedTuple):
    """An entry of the allow-list, in lower case; the name `*` is all repositories of the owner."""

    owner: str
    name: str

    @property
    def is_whole_owner(self) -> bool:
        return self.name == "*"

    def permits(self, owner: str, name: str) -> bool:
        """Return whether it allows the repository with this owner and name, both in lower case."""
        return owner == self.owner and (self.is_whole_owner or name == self.name)


class RepositoryAllowList:
    """The repositories that may be reached; all if `repos` names none.

    Args:
        api: the address of GitHub.
        repos: `owner/name` or `owner/*`.

    Raises:
        Unavailable: one of them can't be used.
    """

    def __init__(self, api: str, repos: Sequence[str]) -> None:
        self.api_url = api_url(api)
        self.allow_list = tuple(_parse_entry(repo) for repo in repos)

    @property
    def named_repos(self) -> list[str]:
        """The repositories that the allow-list names individually."""
        return [f"{entry.owner}/{entry.name}" for entry in self.allow_list if not entry.is_whole_owner]

    @property
    def only_repo(self) -> str | None:
        """The `owner/name` of the repository that alone is served; None if there may be others."""
        if len(set(self.allow_list)) != 1 or not self.named_repos:
            return None
        return self.named_repos[0]

    @property
    def allow_list_text(self) -> str:
        """The allow-list for messages."""
        entries = [f"`{entry.owner}/{entry.name}`" for entry in self.allow_list]
        return ", ".join(entries) or "all repositories of the token"

    def only_served(self, items: Iterable[T], *, key: Callable[[T], str]) -> list[T]:
        """Return those of `items` whose repository is on the allow-list.

        Args:
            key: the `owner/name` of an item's repository.
        """
        return [item for item in items if self._permits(key(item))]

    def only_owners_served(self, items: Iterable[T], *, key: Callable[[T], str]) -> list[T]:
        """Return those of `items` whose user or organisation has a repository on the allow-list.

        Args:
            key: the login an item belongs to.
        """
        owners = {entry.owner for entry in self.allow_list}
        return [item for item in items if not owners or key(item).lower() in owners]

    def require_served(self, full_name: str, description: str) -> None:
        """Raise `Refused` unless the repository that something belongs to is on the allow-list.

        Args:
            full_name: `owner/name` of the repository.
            description: the thing, in words for messages.
        """
        if not self._permits(full_name):
            raise Refused(f"The {description} is of a repository that is not served here.")

    def require_redirect_served(self, full_name: str, description: str) -> None:
        """Raise `Refused` unless a redirect leads to a repository, `full_name` (`owner/name`), on the allow-list."""
        if "/" not in full_name or not self._permits(unquote(full_name)):
            raise Refused(f"GitHub redirects {description} to a repository that is not served here.")

    def require_no_allow_list(self, description: str) -> None:
        """Raise `Refused` if there is an allow-list, for what belongs to no repository."""
        if self.allow_list:
            raise Refused(f"{description} are outside of `--repos`.", f"Served are only: {self.allow_list_text}.")

    def repo(self, text: str) -> Repo:
        """Return the repository `text` (`owner/name`) names.

        Raises:
            Invalid: it is not the name of a repository.
            Refused: it is not on the allow-list.
        """
        owner, _, name = self._strip_address(text.strip()).partition("/")
        name = name.removesuffix(".git")
        if not LOGIN.fullmatch(owner) or not _REPO_NAME.fullmatch(name) or name in _NO_NAMES:
            raise Invalid(f"{quote(text)} names no repository.", "Write it as `owner/name`.")
        if not self._permits(f"{owner}/{name}"):
            raise Refused(f"The repository {quote(text)} is not served here.", f"Served are: {self.allow_list_text}.")
        return Repo(owner, name)

    def owner(self, text: str) -> Owner:
        """Return a user or an organisation.

        Raises:
            Invalid: `text` is not a login.
            Refused: no repository of theirs is on the allow-list.
        """
        login = text.strip().removeprefix("@")
        if login.lower() == "me" and login != text.strip():
            raise Invalid("`@me` is not a login.", "`get_me` shows yours.")
        if not LOGIN.fullmatch(login):
            raise Invalid(f"{quote(text)} is not a login of a user or an organisation.")
        if self.allow_list and not self._entries_of(login):
            raise Refused(f"{quote(text)} is not served here.", f"Served are: {self.allow_list_text}.")
        return Owner(login)

    def head(self, text: str) -> Head:
        """Return the source of a pull request: a branch, `owner:branch` of a fork, or `owner/name:branch`.

        Raises:
            Refused: no fork of theirs is on the allow-list; it would publish or pull in what is not served.
        """
        fork, colon, branch = text.rpartition(":")
        owner, slash, name = fork.partition("/")
        label = f"{owner}{colon}{ref(branch).name}"
        if not colon:
            return Head(label)
        require_logins([owner])
        if slash:
            named_fork = self.repo(f"{owner}/{name}")
            if not self.allow_list:
                return Head(label, named_fork.name)
            return Head(label, named_fork.name, (named_fork,))
        if not self.allow_list:
            return Head(label)
        entries = self._entries_of(owner)
        if any(entry.is_whole_owner for entry in entries):
            return Head(label)
        if not entries:
            raise Refused(f"No fork of {quote(owner)} is served here.", f"Served are: {self.allow_list_text}.")
        return Head(label, None, tuple(Repo(owner, entry.name) for entry in entries), owner)

    def head_filter(self, text: str) -> HeadFilter:
        """Return a branch or `owner:branch` as a filter for pull requests."""
        owner, _, branch = text.rpartition(":")
        if owner:
            require_logins([owner])
        return HeadFilter(owner, ref(branch).name)

    def restrict_query(self, query: str, repo: Repo | None, *, bound: bool = True, has_logic: bool = False) -> str:
        """Return `query` restricted to what is served, or nearly; more qualifiers may be put behind it.

        Args:
            bound: whether the results belong to repositories.
            has_logic: whether the search knows `OR` and brackets. It wants all that stands side by side to hold at
                once, several repositories too, and `OR` divides what is not in brackets to its very ends.

        Raises:
            Refused: with an allow-list, the query names repositories itself or has logic that could bypass it.
        """
        if not is_encodable(query):
            raise Invalid("`query` holds half of a character.")
        qualifiers: list[str] = []
        if repo is not None:
            qualifiers.append(f"repo:{repo.full_name}")
        if self.allow_list and bound:
            _refuse_bypass(query)
            if repo is None:
                qualifiers = self._qualifiers(has_logic=has_logic)
        if has_logic and _OR.search(query):
            query = f"({query})"
        if has_logic and len(qualifiers) > 1:
            qualifiers = [f"({' OR '.join(qualifiers)})"]
        return " ".join([query, *qualifiers]).strip()

    def _qualifiers(self, *, has_logic: bool) -> list[str]:
        """Return the qualifiers of a search of all that is served, or of more if that is too much for one search."""
        qualifiers = [_qualifier_of(entry) for entry in self.allow_list]
        if has_logic and len(qualifiers) > _MAX_OPERATORS + 1:
            return list(dict.fromkeys(f"user:{entry.owner}" for entry in self.allow_list))
        return qualifiers

    def _strip_address(self, text: str) -> str:
        """Return the `owner/name` in an address of a repository, or of anything in one; any other text as it is."""
        match = _ADDRESS.match(text)
        if match is None:
            return text
        host = match[1].lower()
        own_host = self.api_url.host
        if "://" not in text and "@" not in text and host not in (own_host, f"www.{own_host}"):
            return text
        if host.removeprefix("www.").removeprefix("api.") != own_host:
            raise Invalid(f"{quote(text)} is not on {quote(own_host)}.", "Only repositories there can be reached.")
        path, *_ = re.split("[?#]", match[2])
        path = path.removeprefix("api/v3/").removeprefix("repos/")
        return "/".join(path.split("/")[:2])

    def _permits(self, full_name: str) -> bool:
        if not self.allow_list:
            return True
        owner, _, name = full_name.lower().partition("/")
        return any(entry.permits(owner, name) for entry in self.allow_list)

    def _entries_of(self, owner: str) -> list[AllowedRepo]:
        return [entry for entry in self.allow_list if entry.owner == owner.lower()]


def _refuse_bypass(query: str) -> None:
    """Raise `Refused` for a query that could find what is not on the allow-list."""
    match = _REPO_QUALIFIER.search(query)
    if match is not None:
        raise Refused(f"With `--repos`, a query may not hold {quote(match[1] + ':')}.", "Name one as `repo` instead.")
    if _SEARCH_LOGIC.search(query):
        raise Refused("With `--repos`, a query may not hold `OR`, `AND`, `NOT` or brackets.", "Search twice.")


def _qualifier_of(entry: AllowedRepo) -> str:
    if entry.is_whole_owner:
        return f"user:{entry.owner}"
    return f"repo:{entry.owner}/{entry.name}"


def _parse_entry(text: str) -> AllowedRepo:
    """Return an entry of the allow-list."""
    owner, _, name = text.lower().removesuffix(".git").partition("/")
    is_name = name == "*" or (_REPO_NAME.fullmatch(name) is not None and name not in _NO_NAMES)
    if not LOGIN.fullmatch(owner) or not is_name:
        raise Unavailable(
            f"{quote(text)} in --repos is not a repository.", "Write owner/name, or owner/* for all of one."
        )
    return AllowedRepo(owner, name)
