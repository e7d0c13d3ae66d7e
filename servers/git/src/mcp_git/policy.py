"""The only place that says no: a caller's string becomes a trusted repository, revision or path, or a refusal.

A revision or path can't be read as an option, names nothing outside and holds no line end. What git is run on is a
`Layout` that was looked at just before; git never reads the repository's own configuration (module `config`).
"""

from __future__ import annotations

import logging
import os
import re
import sys
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol
from urllib.parse import quote_from_bytes, unquote, unquote_to_bytes

from mcp_batteries.errors import Invalid, NotFound, Problem, Refused, Unavailable, quote, reason
from mcp_git import config
from mcp_git.addresses import Address, address
from mcp_git.layout import Layout, inspect, refuse_links_below
from mcp_git.names import shown, spelled

__all__ = [
    "KINDS",
    "Changeable",
    "Fetchable",
    "Linked",
    "NewName",
    "NewWorktree",
    "Place",
    "Policy",
    "PolicySettings",
    "Pushable",
    "Range",
    "Remote",
    "Repository",
    "Revision",
    "Shown",
]

KINDS = ("status", "head", "branches", "log", "diff", "stash")
"""What a repository has one of, as the last part of a URI."""

_log = logging.getLogger(__name__)
_OPEN = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
_MOST_REVISION = 250
_SIMPLE = re.compile(r"\w[\w.+-]{0,99}")
_STAGE = re.compile(r":[0-3]")
_NAME = re.compile(r"[^\x00-\x20\x7f:?*\[\\]+")


class PolicySettings(Protocol):
    """What the policy needs to be told."""

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
    def remote_folder(self) -> Sequence[str]: ...
    @property
    def worktree_folder(self) -> str | None: ...


@dataclass(frozen=True, eq=False)
class Repository:
    """A served folder, opened once; when something else stands at its path later, that is not served.

    Attributes:
        name: last component of the path, with a number when two share it.
        path: absolute, links resolved.
        identity: which folder it is, by device and number.
        fd: keeps the number from being given to another folder; -1 on Windows.
    """

    name: str
    path: str
    identity: tuple[int, int] = field(repr=False)
    fd: int = field(repr=False)

    def __post_init__(self) -> None:
        if self.fd >= 0:
            weakref.finalize(self, os.close, self.fd).atexit = False

    def uri(self, what: str) -> str:
        return f"git://{self.name}/{what}"


@dataclass(frozen=True)
class Changeable:
    """A served folder that may also be changed."""

    repository: Repository


@dataclass(frozen=True)
class Fetchable:
    """A served repository into which may be fetched."""

    repository: Repository


@dataclass(frozen=True)
class Pushable:
    """A served repository from which may be pushed."""

    repository: Repository


@dataclass(frozen=True)
class Remote:
    """A remote of a repository's own configuration, by an address that git may talk to.

    Attributes:
        fetched: which branches go where, all of them below `refs/remotes/` and its name.
    """

    name: str
    address: Address
    fetched: Sequence[str]


@dataclass(frozen=True)
class NewName:
    """A name that a branch or tag may get."""

    text: str


@dataclass(frozen=True)
class NewWorktree:
    """Where a worktree may be made, and by which name it is served then."""

    name: str
    path: str


@dataclass(frozen=True)
class Linked:
    """A worktree in the operator's folder for them, which may be removed."""

    repository: Repository


@dataclass(frozen=True)
class Revision:
    """A name of one commit, tree or stage; it does not begin like an option."""

    text: str

    @property
    def stage(self) -> bool:
        """Whether it is a side of a conflict in the index."""
        return self.text.startswith(":")


@dataclass(frozen=True)
class Range:
    """What lies between two revisions.

    Attributes:
        dots: two for from `start` to `end`, three for from where they parted.
    """

    start: Revision
    dots: str
    end: Revision

    @property
    def text(self) -> str:
        return f"{self.start.text}{self.dots}{self.end.text}"


@dataclass(frozen=True)
class Place:
    """A file or folder of a repository, by its path from the top; empty for the top."""

    path: str

    @property
    def display(self) -> str:
        return shown(os.fsencode(self.path)) or "."


@dataclass(frozen=True)
class Shown:
    """What a `git://` URI stands for.

    Attributes:
        kind: one of `KINDS`, or `files`, which has a revision and a place.
    """

    repository: Repository
    kind: str
    revision: Revision = Revision("HEAD")
    place: Place = Place("")

    @property
    def uri(self) -> str:
        if self.kind != "files":
            return self.repository.uri(self.kind)
        path = quote_from_bytes(os.fsencode(self.place.path))
        return self.repository.uri(f"files/{quote_from_bytes(self.revision.text.encode(), safe='')}/{path}")


class Policy:
    """What is served.

    Raises:
        Unavailable: there are no folders, or none of them can be served.
    """

    def __init__(self, settings: PolicySettings) -> None:
        if not settings.repositories:
            raise Unavailable("There is no repository to serve.", "Name one, such as `mcp-git .`.")
        self._write, self._fetch, self._push = (
            is_open and not settings.read_only for is_open in (settings.write, settings.fetch, settings.push)
        )
        self._remote_folders = [os.path.realpath(folder) for folder in settings.remote_folder]
        self._worktree_folder = settings.worktree_folder and os.path.realpath(settings.worktree_folder)
        self.repositories: dict[str, Repository] = {}
        failed: list[str] = []
        for folder in settings.repositories:
            try:
                repository = _open(folder, self.repositories)
            except OSError as error:
                failed.append(f"{quote(folder, 1000)} can't be opened: {reason(error)}.")
            else:
                self.repositories[repository.name] = repository
        if not self.repositories:
            raise Unavailable(" ".join(failed), "Name the top folder of a repository.")
        for why in failed:
            _log.warning("not served: %s", why)
        self._served = [repository.path for repository in self.repositories.values()]
        if self._worktree_folder and os.path.isdir(self._worktree_folder):
            for name in sorted(os.listdir(self._worktree_folder)):
                self.adopt(name)

    def repository(self, name: str) -> Repository:
        """The served repository of a name; the only one for an empty name.

        Raises:
            NotFound: none has that name.
            Invalid: several are served and none is named.
        """
        if not name and len(self._served) == 1:
            return next(iter(self.repositories.values()))
        names = ", ".join(map(quote, list(self.repositories)[:20]))
        if not name:
            raise Invalid("Several repositories are served: `repo` says which.", f"Use one of: {names}.")
        if name not in self.repositories and self.adopt(name) is None:
            raise NotFound(f"No repository {quote(name)} is served.", f"Use one of: {names}.")
        return self.repositories[name]

    def changeable(self, name: str) -> Changeable:
        """The same as `repository`, to be changed.

        Raises:
            Refused: changes are not open, or not possible here.
        """
        _refuse_closed(self._write, "changes nothing", "write")
        return Changeable(self.repository(name))

    def adopt(self, name: str) -> Repository | None:
        """Serve the worktree of a name in the operator's folder for them, if it belongs to a served repository."""
        path = os.path.join(self._worktree_folder or "", name)
        if not self._worktree_folder or not _SIMPLE.fullmatch(name) or os.path.islink(path) or not os.path.isdir(path):
            return None
        if name not in self.repositories:
            try:
                common = inspect(path, self._served).common_dir
                if common not in {inspect(served, self._served).common_dir for served in self._served}:
                    return None
                self.repositories[name] = _open(path, self.repositories)
            except (Problem, OSError) as problem:
                _log.info("not served: %s", problem)
                return None
        return self.repositories[name]

    def new_worktree(self, name: str) -> NewWorktree:
        """A name for a worktree to make.

        Raises:
            Refused: there is no folder for it.
            Invalid: it can't be one, or is taken.
        """
        _refuse_closed(self._write and self._worktree_folder is not None, "makes no worktrees", "worktree-folder")
        path = os.path.join(self._worktree_folder or "", name)
        if not _SIMPLE.fullmatch(name) or name in self.repositories or os.path.lexists(path):
            raise Invalid(f"{quote(name)} is taken, or can't be the name of a folder.", "Use letters, digits, `-`.")
        return NewWorktree(name, path)

    def linked(self, name: str) -> Linked:
        """A worktree to remove.

        Raises:
            Refused: it is not in the folder for worktrees.
            NotFound: there is none of that name.
        """
        repository = self.changeable(name or "?").repository
        if os.path.dirname(repository.path) != self._worktree_folder or repository.path in self._served:
            raise Refused(f"{quote(name)} was not made here, so it stays.", "The user can remove it.")
        return Linked(repository)

    def forget(self, linked: Linked) -> None:
        """Serve a worktree no longer."""
        self.repositories.pop(linked.repository.name, None)

    def fetchable(self, name: str) -> Fetchable:
        """The same as `repository`, to fetch into.

        Raises:
            Refused: that is not open, or not possible here.
        """
        _refuse_closed(self._fetch, "fetches nothing", "fetch")
        return Fetchable(self.repository(name))

    def pushable(self, name: str) -> Pushable:
        """The same as `repository`, to push from.

        Raises:
            Refused: that is not open, or not possible here.
        """
        _refuse_closed(self._push, "pushes nothing", "push")
        return Pushable(self.repository(name))

    def remote(
        self,
        name: str,
        layout: Layout,
        entries: Sequence[config.Entry],
        users: Sequence[config.Entry],
        *,
        push: bool = False,
    ) -> Remote:
        """A remote by its name; blocks.

        Args:
            entries: of the repository's configuration.
            users: the operator's own configuration, which may stand another address for some.
            push: whether where it is pushed to is meant.

        Raises:
            NotFound: there is none of that name.
            Refused: its name or its address is none that git is let use.
        """
        ref = self.ref(name)
        urls = [value for key, value in entries if key == f"remote.{name}.url"]
        if not urls:
            known = {key[7:].rpartition(".")[0] for key, _ in entries if re.fullmatch(r"remote\..+\.url", key, re.S)}
            there = ", ".join(quote(other, 60) for other in sorted(known)[:10])
            raise NotFound(f"There is no remote {quote(name)}.", f"There are: {there}." if there else "There is none.")
        own = [value for key, value in entries if key == f"remote.{name}.pushurl"] if push else []
        if len(own or urls) > 1 and push:
            raise Refused(f"The remote {quote(name)} has several addresses to push to.", "Use `git` itself for that.")
        url = config.rewritten((own or urls)[0], users, push and not own)
        below = re.escape(f"refs/remotes/{ref.text}/")
        refs = re.compile(rf"\+?refs/heads/([^\s:]+):{below}([^\s:]+)")
        fetched = [value for key, value in entries if key == f"remote.{name}.fetch" and refs.fullmatch(value)]
        usual = f"+refs/heads/*:refs/remotes/{ref.text}/*"
        found = address(url, layout.work_tree or layout.git_dir, self._remote_folders)
        return Remote(ref.text, found, fetched or [usual])

    def layout(self, repository: Repository, *, changes: bool = False) -> Layout:
        """Where the parts of a repository are now; blocks, and is asked before each run of git.

        Args:
            changes: whether git will write, for which more is looked at.

        Raises:
            Refused: something leads out of it, or another folder stands at its path.
            NotFound: it is not a repository now.
        """
        try:
            there = _identity(repository.path)
        except OSError:
            there = None
        if there != repository.identity:
            raise Refused(
                f"The folder {quote(repository.name)} was moved or replaced.",
                "The operator can start the server again.",
            )
        layout = inspect(repository.path, self._served)
        if changes:
            refuse_links_below(layout)
        return layout

    def revision(self, text: str) -> Revision:
        """The revision that `text` names: a hash, branch, tag, `HEAD~2`, `stash@{1}`.

        Raises:
            Invalid: it can't be a revision.
        """
        if _STAGE.fullmatch(text):
            return Revision(text)
        _refuse_options(text)
        if ".." in text or text.startswith("^"):
            raise Invalid(f"{quote(text)} is a range, and one revision is wanted.", "Name one, such as `HEAD~2`.")
        if ":" in text.partition("{")[0] or not text:
            raise Invalid(f"{quote(text)} is not a revision.", "Give the path as `path`, the revision alone as `rev`.")
        return Revision(text)

    def range(self, text: str) -> Range | Revision:
        """A revision, or two with `..` or `...` between them; a missing side is HEAD.

        Raises:
            Invalid: it can't be either.
        """
        _refuse_options(text)
        start, dots, end = text.partition("...") if "..." in text else text.partition("..")
        if not dots:
            return self.revision(text)
        return Range(self.revision(start or "HEAD"), dots, self.revision(end or "HEAD"))

    def place(self, path: str) -> Place:
        """The file or folder at `path`, from the top of a repository.

        Raises:
            Refused: it leads out, or into the git directory.
            Invalid: not a path.
        """
        given, path = path, spelled(path)
        if "\0" in path:
            raise Invalid(f"{quote(given)} holds a NUL.", "Paths have none.")
        if os.sep != "/":
            path = path.replace(os.sep, "/")
        if path.startswith("/") or re.match(r"[A-Za-z]:", path) or path[:6].lower() == "file:/":
            raise Refused(f"{quote(given)} is absolute.", "Paths are relative to the top folder of the repository.")
        parts = [part for part in path.split("/") if part not in ("", ".")]
        if ".." in parts:
            raise Refused(f"{quote(given)} may lead out of the repository.", "Use a path from its top, without `..`.")
        if any(part.casefold().rstrip(" .") in (".git", "git~1") for part in parts):
            raise Refused(f"{quote(given)} is inside of the git directory.", "The tools show what is in it.")
        return Place("/".join(parts))

    def shown(self, uri: str) -> Shown | None:
        """What a URI stands for; None if it is not of this server.

        Raises:
            NotFound: there is no such thing, or no such repository.
            Problem: as `revision` and `place`.
        """
        scheme, _, rest = uri.partition("://")
        if scheme.lower() != "git":
            return None
        name, _, what = rest.partition("/")
        repository = self.repository(unquote(name) or "?")
        if what in KINDS:
            return Shown(repository, what)
        kind, _, rest = what.partition("/")
        revision, slash, path = rest.partition("/")
        if kind != "files" or not slash or not path:
            raise NotFound(f"There is no resource {quote(uri)}.", "`resources/list` has those there are.")
        place = self.place(os.fsdecode(unquote_to_bytes(path)))
        return Shown(repository, kind, self.revision(unquote(revision)), place)

    def ref(self, name: str) -> Revision:
        """A name of a branch or tag, for what lists or follows one.

        Raises:
            Invalid: no branch can have it.
        """
        if not _NAME.fullmatch(name) or name.startswith("-") or ".." in name or "@{" in name:
            raise Invalid(f"{quote(name)} can't be the name of a branch or tag.", "`list_refs` has those there are.")
        return Revision(name)

    def new_name(self, name: str) -> NewName:
        """A name for a branch or tag; git has more rules, and says so.

        Raises:
            Invalid: it can't be one.
        """
        if name == "HEAD" or name.startswith("refs/"):
            raise Invalid(f"{quote(name)} is a name that git keeps for itself.", "Use another.")
        return NewName(self.ref(name).text)


def _refuse_closed(is_open: bool, does: str, flag: str) -> None:
    if not is_open:
        raise Refused(f"This server {does}.", f"Only the operator can open that, with `--{flag}`.")
    if sys.platform == "win32":
        raise Refused("On Windows this server only reads yet.", "Use `git` itself.")


def _refuse_options(text: str) -> None:
    if text.startswith("-"):
        raise Invalid(f"{quote(text)} begins with a dash, as no revision does.", "`list_refs` has names of revisions.")
    if len(text) > _MOST_REVISION or any(ord(character) < 32 or character == "\x7f" for character in text):
        raise Invalid(f"{quote(text)} is not a revision.", "Use a hash, a branch, a tag, `HEAD~2`.")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Invalid(f"{quote(text)} is not text.", "Use a hash instead.") from None


def _open(folder: str, taken: dict[str, Repository]) -> Repository:
    path = os.path.realpath(folder)
    if not os.path.isdir(path):
        os.listdir(path)  # says in the kernel's words why it cannot be served
    base = re.sub(r"[^\w.+-]", "-", os.path.basename(folder) or "repository").strip(".-") or "repository"
    name, number = base, 2
    while name in taken:
        name, number = f"{base}-{number}", number + 1
    fd = -1 if os.name == "nt" else os.open(path, _OPEN)
    return Repository(name, path, _identity(path), fd)


def _identity(path: str) -> tuple[int, int]:
    found = os.stat(path)
    return found.st_dev, found.st_ino
