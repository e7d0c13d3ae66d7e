"""The only place that refuses: turns a caller's string into a trusted repository, revision or path, or refuses it.

Git runs on a `Layout` that was checked just before; git never reads the repository's own configuration (module
`git_config`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import quote_from_bytes, unquote, unquote_to_bytes

from mcp_batteries.errors import NotFound, Refused, quote
from mcp_git import git_config
from mcp_git.policy.repositories import (
    FetchableRepository,
    NewWorktree,
    PullableRepository,
    PushableRepository,
    RemovableWorktree,
    Repositories,
    Repository,
    WritableRepository,
)
from mcp_git.policy.revisions import (
    HEAD,
    TOP_FOLDER,
    Author,
    Expectation,
    LineRange,
    Message,
    NewName,
    Range,
    RemoteName,
    RepositoryPath,
    Revision,
    RevisionList,
    expect,
    parse_author,
    parse_commits,
    parse_expectation,
    parse_lines,
    parse_message,
    parse_new_name,
    parse_path,
    parse_path_or_glob,
    parse_paths,
    parse_range,
    parse_ref,
    parse_remote_name,
    parse_revision,
    symmetric_range,
)
from mcp_git.remote_addresses import Address, parse_address
from mcp_git.repository_paths import Layout

__all__ = [
    "HEAD",
    "RESOURCE_KINDS",
    "TOP_FOLDER",
    "Author",
    "Expectation",
    "FetchableRepository",
    "GitResource",
    "LineRange",
    "Message",
    "NewName",
    "NewWorktree",
    "Policy",
    "PolicySettings",
    "PullableRepository",
    "PushableRepository",
    "Range",
    "Remote",
    "RemoteName",
    "RemovableWorktree",
    "Repository",
    "RepositoryPath",
    "Revision",
    "RevisionList",
    "WritableRepository",
    "expect",
    "parse_author",
    "parse_commits",
    "parse_expectation",
    "parse_lines",
    "parse_message",
    "parse_new_name",
    "parse_path",
    "parse_path_or_glob",
    "parse_paths",
    "parse_range",
    "parse_ref",
    "parse_remote_name",
    "parse_revision",
    "symmetric_range",
]

# What a repository has one of, as the last part of a URI.
RESOURCE_KINDS = ("status", "head", "branches", "log", "diff", "stash")


class PolicySettings(Protocol):
    """The settings that the policy needs."""

    @property
    def repositories(self) -> Sequence[str]: ...
    @property
    def read_only(self) -> bool: ...
    @property
    def write(self) -> bool: ...
    @property
    def fetch(self) -> bool: ...
    @property
    def push(self) -> bool: ...
    @property
    def hooks(self) -> bool: ...
    @property
    def sign(self) -> bool: ...
    @property
    def remote_folder(self) -> Sequence[str]: ...
    @property
    def worktree_folder(self) -> str | None: ...


@dataclass(frozen=True)
class Remote:
    """A remote of a repository's own configuration, by an address that git may talk to.

    Attributes:
        refspecs: which branches go where, all below `refs/remotes/` and its name.
    """

    name: str
    address: Address
    refspecs: Sequence[str]


@dataclass(frozen=True)
class GitResource:
    """The meaning of a `git://` URI.

    Attributes:
        kind: one of `RESOURCE_KINDS`, or `files`, which has a revision and a path.
    """

    repository: Repository
    kind: str
    revision: Revision = HEAD
    path: RepositoryPath = TOP_FOLDER

    @property
    def uri(self) -> str:
        if self.kind != "files":
            return self.repository.uri(self.kind)
        path = quote_from_bytes(os.fsencode(self.path.text))
        return self.repository.uri(f"files/{quote_from_bytes(self.revision.text.encode(), safe='')}/{path}")


class Policy(Repositories):
    """Decides what is served.

    Attributes:
        remote_folders: the real paths of the folders that may have remotes.
        runs_hooks: whether a change runs the hooks of a repository.
        signs: whether commits and tags are signed as the operator's configuration says.

    Raises:
        Unavailable: there are no folders, or none of them can be served.
    """

    def __init__(self, settings: PolicySettings) -> None:
        may_change = not settings.read_only
        super().__init__(
            settings.repositories,
            settings.worktree_folder,
            write=settings.write and may_change,
            fetch=settings.fetch and may_change,
            push=settings.push and may_change,
        )
        self.runs_hooks = settings.hooks
        self.signs = settings.sign
        self.remote_folders = [os.path.realpath(folder) for folder in settings.remote_folder]

    def remote(
        self,
        name: RemoteName,
        layout: Layout,
        entries: Sequence[git_config.Entry],
        users: Sequence[git_config.Entry],
        *,
        push: bool = False,
    ) -> Remote:
        """Return a remote by its name; blocks.

        Args:
            entries: of the repository's configuration.
            users: the operator's own configuration, which may rewrite some addresses.
            push: whether to return the address for pushes.

        Raises:
            NotFound: there is none of that name.
            Refused: git may not use its address.
        """
        url = _choose_url(name.text, entries, users, push=push)
        address = parse_address(url, layout.work_tree or layout.git_dir, self.remote_folders)
        return Remote(name.text, address, _list_refspecs(name.text, entries))

    def resource(self, uri: str) -> GitResource | None:
        """Return the meaning of a URI; None if it belongs to another server.

        Raises:
            NotFound: the resource or repository does not exist.
            Problem: as `parse_revision` and `parse_path`.
        """
        scheme, _, remainder = uri.partition("://")
        if scheme.lower() != "git":
            return None
        name, _, path_text = remainder.partition("/")
        repository = self.repository(unquote(name) or "?")
        if path_text in RESOURCE_KINDS:
            return GitResource(repository, path_text)
        kind, _, remainder = path_text.partition("/")
        revision, slash, path = remainder.partition("/")
        if kind != "files" or not slash or not path:
            raise NotFound(f"There is no resource {quote(uri)}.", "`resources/list` has those there are.")
        parsed_path = parse_path(os.fsdecode(unquote_to_bytes(path)))
        return GitResource(repository, kind, parse_revision(unquote(revision)), parsed_path)


def _choose_url(
    name: str, entries: Sequence[git_config.Entry], users: Sequence[git_config.Entry], *, push: bool
) -> str:
    """Return the address of a remote, as the operator's configuration rewrites it."""
    fetch_urls = _list_values(entries, f"remote.{name}.url")
    if not fetch_urls:
        raise NotFound(f"There is no remote {quote(name)}.", _name_remotes(entries))
    if not push:
        return git_config.rewrite_url(fetch_urls[0], users, push=False)
    push_urls = _list_values(entries, f"remote.{name}.pushurl")
    urls = push_urls or fetch_urls
    if len(urls) > 1:
        raise Refused(f"The remote {quote(name)} has several addresses to push to.", "Use `git` itself for that.")
    return git_config.rewrite_url(urls[0], users, push=not push_urls)


def _list_refspecs(name: str, entries: Sequence[git_config.Entry]) -> list[str]:
    """Return the configured refspecs of a remote that stay below its own name; else the usual one."""
    tracking = re.escape(f"refs/remotes/{name}/")
    allowed = re.compile(rf"\+?refs/heads/([^\s:]+):{tracking}([^\s:]+)")
    refspecs = [value for value in _list_values(entries, f"remote.{name}.fetch") if allowed.fullmatch(value)]
    return refspecs or [f"+refs/heads/*:refs/remotes/{name}/*"]


def _list_values(entries: Sequence[git_config.Entry], key: str) -> list[str]:
    return [value for entry_key, value in entries if entry_key == key]


def _name_remotes(entries: Sequence[git_config.Entry]) -> str:
    """Return the sentence that names the remotes that a configuration has."""
    names = git_config.list_remotes(entries)
    if not names:
        return "There is none."
    return f"There are: {', '.join(quote(name, 60) for name in sorted(names)[:10])}."
