"""Decides which repositories are served, and their owners: the allow-list of `--repos`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import quote as percent
from urllib.parse import unquote

from mcp_batteries.errors import Invalid, Refused, Unavailable, quote
from mcp_github.policy.addresses import api_url
from mcp_github.policy.names import is_encodable, ref

__all__ = ["Head", "Owner", "Repo", "RepositoryAllowList", "WriteRepo", "parse_owner_setting", "require_logins"]

T = TypeVar("T")

_OWNER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}(?:\[bot\])?")
_NAME = re.compile(r"[A-Za-z0-9._-]{1,100}")
_REACHES = re.compile(
    r"""(?:^|[\s(\-"'])(repo|user|org|owner|team-review-requested|team|enterprise|props\.\S*?):""", re.I
)
_LOGIC = re.compile(r"(?:^|\s)(?:OR|AND|NOT)(?:\s|$)|[()]")


@dataclass(frozen=True)
class Repo:
    """A repository on the allow-list; it may turn out not to exist."""

    owner: str
    name: str

    @property
    def full_name(self) -> str:
        return f"{self.owner}/{self.name}"

    @property
    def key(self) -> str:
        """Its canonical spelling, because GitHub ignores case."""
        return self.full_name.lower()

    @property
    def account(self) -> Owner:
        """The user or organisation it belongs to."""
        return Owner(self.owner)

    @property
    def path(self) -> str:
        return f"/repos/{percent(self.owner, safe='')}/{percent(self.name, safe='')}"

    @property
    def uri(self) -> str:
        return f"github://{self.full_name}"


@dataclass(frozen=True)
class WriteRepo(Repo):
    """A repository that may be written to."""


@dataclass(frozen=True)
class Owner:
    """A user or an organisation."""

    login: str

    def __str__(self) -> str:
        return percent(self.login, safe="")


@dataclass(frozen=True)
class Head:
    """The source of a pull request.

    Attributes:
        repo: the name of the fork, where the caller gave it.
        among: the repositories of which one has to be the fork that is meant; None for any.
    """

    label: str
    repo: str | None = None
    candidates: Sequence[Repo] | None = None


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
        self.allow_list = tuple(_pattern(item) for item in repos)

    @property
    def named_repos(self) -> list[str]:
        """The repositories that the allow-list names individually."""
        return [f"{owner}/{name}" for owner, name in self.allow_list if name != "*"]

    @property
    def allow_list_text(self) -> str:
        """The allow-list for messages."""
        return ", ".join(f"`{owner}/{name}`" for owner, name in self.allow_list) or "all repositories of the token"

    def only_served(self, items: Iterable[T], *, key: Callable[[T], str]) -> list[T]:
        """Those of `items` whose repository is on the allow-list.

        Args:
            key: the `owner/name` of an item's repository.
        """
        return [item for item in items if self._permits(key(item))]

    def only_owners_served(self, items: Iterable[T], *, key: Callable[[T], str]) -> list[T]:
        """Those of `items` whose user or organisation has a repository on the allow-list.

        Args:
            key: the login an item belongs to.
        """
        owners = {owner for owner, _ in self.allow_list}
        return [item for item in items if not owners or key(item).lower() in owners]

    def require_served(self, full: str, what: str) -> None:
        """Raise `Refused` unless `full`, the `owner/name` of the repository of `what`, is on the allow-list."""
        if not self._permits(full):
            raise Refused(f"The {what} is of a repository that is not served here.")

    def require_redirect_served(self, full: str, what: str) -> None:
        """Raise `Refused` unless a redirect leads to a repository, `full` (`owner/name`), on the allow-list."""
        if "/" not in full or not self._permits(unquote(full)):
            raise Refused(f"GitHub redirects {what} to a repository that is not served here.")

    def require_no_allow_list(self, what: str) -> None:
        """Raise `Refused` if there is an allow-list and `what` belongs to no repository."""
        if self.allow_list:
            raise Refused(f"{what} are outside of `--repos`.", f"Served are only: {self.allow_list_text}.")

    def repo(self, text: str) -> Repo:
        """The repository `text` (`owner/name`) names.

        Raises:
            Invalid: it is not the name of a repository.
            Refused: it is not on the allow-list.
        """
        owner, _, name = self._plain(text.strip()).partition("/")
        name = name.removesuffix(".git")
        if not _OWNER.fullmatch(owner) or not _NAME.fullmatch(name) or name in (".", ".."):
            raise Invalid(f"{quote(text)} names no repository.", "Write it as `owner/name`.")
        if not self._permits(f"{owner}/{name}"):
            raise Refused(f"The repository {quote(text)} is not served here.", f"Served are: {self.allow_list_text}.")
        return Repo(owner, name)

    def owner(self, text: str) -> Owner:
        """A user or an organisation.

        Raises:
            Invalid: `text` is not a login.
            Refused: no repository of theirs is on the allow-list.
        """
        login = text.strip().removeprefix("@")
        if login.lower() == "me" and login != text.strip():
            raise Invalid("`@me` is not a login.", "`get_me` shows yours.")
        if not _OWNER.fullmatch(login):
            raise Invalid(f"{quote(text)} is not a login of a user or an organisation.")
        if self.allow_list and all(login.lower() != owner for owner, _ in self.allow_list):
            raise Refused(f"{quote(text)} is not served here.", f"Served are: {self.allow_list_text}.")
        return Owner(login)

    def head(self, repo: Repo, text: str) -> Head:
        """The source of a pull request to `repo`: a branch, `owner:branch` of a fork, or `owner/name:branch`.

        Raises:
            Refused: no fork of theirs is on the allow-list; it would publish or pull in what is not served.
        """
        owner, colon, branch = text.rpartition(":")
        owner, slash, name = owner.partition("/")
        label = f"{owner}{colon}{ref(branch).name}"
        if not colon:
            return Head(label)
        require_logins([owner])
        if slash:
            named = self.repo(f"{owner}/{name}")
            return Head(label, named.name, (named,) if self.allow_list else None)
        names = [allowed for of, allowed in self.allow_list if of == owner.lower()]
        if not self.allow_list or "*" in names or owner.lower() == repo.owner.lower():
            return Head(label)
        if not names:
            raise Refused(f"No fork of {quote(owner)} is served here.", f"Served are: {self.allow_list_text}.")
        return Head(label, None, tuple(Repo(owner, name) for name in names))

    def head_filter(self, repo: Repo, text: str) -> str:
        """`text`, a branch or `owner:branch`, as a filter for pull requests: GitHub ignores a branch alone."""
        owner, _, branch = text.rpartition(":")
        require_logins([owner] if owner else [])
        return f"{owner or repo.owner}:{ref(branch).name}"

    def restrict_query(self, query: str, repo: str | None, *, bound: bool = True) -> str:
        """`query` restricted to what is served.

        Args:
            bound: whether the results belong to repositories.

        Raises:
            Refused: with an allow-list, the query names repositories itself or has logic that could bypass it.
        """
        if not is_encodable(query):
            raise Invalid("`query` holds half of a character.")
        where = [f"repo:{self.repo(repo).full_name}"] if repo is not None else []
        if self.allow_list and bound:
            if found := _REACHES.search(query):
                raise Refused(
                    f"With `--repos`, a query may not hold {quote(found[1] + ':')}.", "Name one as `repo` instead."
                )
            if _LOGIC.search(query):
                raise Refused("With `--repos`, a query may not hold `OR`, `AND`, `NOT` or brackets.", "Search twice.")
            if repo is None:
                where = [f"user:{owner}" if name == "*" else f"repo:{owner}/{name}" for owner, name in self.allow_list]
        return " ".join([query, *where]).strip()

    def _plain(self, text: str) -> str:
        """The `owner/name` in an address of a repository, or of anything in one."""
        found = re.match(r"(?:[a-z+]+://)?(?:git@)?([^/:@]+)(?::\d+)?[/:](.*)", text, re.I | re.S)
        host = self.api_url.host
        if found is None or ("://" not in text and found[1].lower() not in (host, f"www.{host}") and "@" not in text):
            return text
        if found[1].lower().removeprefix("www.").removeprefix("api.") != host:
            raise Invalid(f"{quote(text)} is not on {quote(host)}.", "Only repositories there can be reached.")
        path = re.split("[?#]", found[2])[0].removeprefix("api/v3/").removeprefix("repos/")
        return "/".join(path.split("/")[:2])

    def _permits(self, full: str) -> bool:
        owner, _, name = full.lower().partition("/")
        return not self.allow_list or any(
            owner == allowed and match in ("*", name) for allowed, match in self.allow_list
        )


def require_logins(texts: Sequence[str]) -> list[str]:
    """People to assign, request or mention; they need not own anything that is served."""
    for text in texts:
        if not _OWNER.fullmatch(text):
            raise Invalid(f"{quote(text)} is not a login.")
    return list(texts)


def parse_owner_setting(text: str, setting: str) -> str:
    """A login in `setting`, in the form for comparison."""
    login = text.strip().removeprefix("@").lower()
    if not _OWNER.fullmatch(login):
        raise Unavailable(f"{quote(text)} in {setting} is not a login.", "Name users or organisations.")
    return login


def _pattern(text: str) -> tuple[str, str]:
    owner, _, name = text.lower().removesuffix(".git").partition("/")
    if not _OWNER.fullmatch(owner) or not (name == "*" or _NAME.fullmatch(name)) or name in (".", ".."):
        raise Unavailable(
            f"{quote(text)} in --repos is not a repository.", "Write owner/name, or owner/* for all of one."
        )
    return owner, name
