"""Repositories and their owners, as trusted types: `allow_list` makes them, once it has checked what they name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote as percent

__all__ = [
    "DeleteReleaseRepo", "DeleteRepo", "ForceRepo", "Head", "HeadFilter", "MergeRepo", "Owner", "ReleaseRepo", "Repo",
    "RunRepo", "WriteOwner", "WriteRepo",
]  # fmt: skip


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
        """The canonical spelling of its name, because GitHub ignores case."""
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
class MergeRepo(WriteRepo):
    """A repository whose pull requests may be merged."""


@dataclass(frozen=True)
class DeleteRepo(WriteRepo):
    """A repository that may be deleted, and what is in it."""


@dataclass(frozen=True)
class RunRepo(WriteRepo):
    """A repository whose workflows may be run."""


@dataclass(frozen=True)
class ReleaseRepo(WriteRepo):
    """A repository whose releases may be made and changed."""


@dataclass(frozen=True)
class DeleteReleaseRepo(ReleaseRepo, DeleteRepo):
    """A repository whose releases may be deleted."""


@dataclass(frozen=True)
class ForceRepo(WriteRepo):
    """A repository whose branches may be moved."""


@dataclass(frozen=True)
class Owner:
    """A user or an organisation."""

    login: str

    def __str__(self) -> str:
        return percent(self.login, safe="")


@dataclass(frozen=True)
class WriteOwner(Owner):
    """A user or an organisation whose projects may be written to."""


@dataclass(frozen=True)
class Head:
    """The source of a pull request.

    Attributes:
        repo: the name of the fork, where the caller gave it.
        candidates: the repositories of which one has to be the fork that is meant; None for any.
        owner: whose fork it is, where the caller did not name it.
    """

    label: str
    repo: str | None = None
    candidates: Sequence[Repo] | None = None
    owner: str | None = None

    def candidates_for(self, repo: Repo) -> Sequence[Repo] | None:
        """Return the repositories of which one has to be the fork; None for any, and for `repo` itself."""
        if self.owner is not None and self.owner.lower() == repo.owner.lower():
            return None
        return self.candidates


@dataclass(frozen=True)
class HeadFilter:
    """The source by which pull requests are listed.

    Attributes:
        owner: whose branch it is; empty for the owner of the repository.
    """

    owner: str
    branch: str

    def text_for(self, repo: Repo) -> str:
        """Return it as GitHub takes it, which ignores a branch alone."""
        return f"{self.owner or repo.owner}:{self.branch}"
