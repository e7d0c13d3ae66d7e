"""The only module that refuses: turns a caller's string into a trusted path beneath a served folder, or refuses it.

A path is a served folder and the names that lead down from it; it holds no `..`, no empty name, no NUL and
nothing protected, so it can't be spelled to mean anything outside. Where links on the way lead is decided while the
kernel walks, by `engine.handles`, which asks `ReadablePath.at` again for each path that a link leads to.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from mcp_batteries.errors import Invalid, NotFound, Refused, Unavailable, describe_os_error, quote
from mcp_batteries.settings import explain_missing_path
from mcp_fs.paths import (
    file_uri,
    fold_names,
    is_absolute,
    is_uri,
    path_of_uri,
    refuse_impossible_path,
    resolve_dots,
    split_names,
    to_native,
)
from mcp_fs.policy.roots import Root, open_inner, open_root
from mcp_fs.repositories import COMPLETES_GIT_FOLDER, is_repository_folder
from mcp_fs.secrets import Secrets

__all__ = ["Policy", "PolicySettings", "ReadablePath", "Root", "WritablePath", "WritableTreePath"]

_log = logging.getLogger(__name__)
_P = TypeVar("_P", bound="ReadablePath")


class PolicySettings(Protocol):
    """The settings that the policy needs."""

    @property
    def folders(self) -> Sequence[str]: ...
    @property
    def read_only(self) -> bool: ...
    @property
    def allow_secrets(self) -> Sequence[str]: ...
    @property
    def allow_repository_internals(self) -> bool: ...


@dataclass(frozen=True)
class ReadablePath:
    """A path beneath a served folder that may be read; made by `Policy` only."""

    root: Root
    parts: tuple[str, ...]
    policy: Policy = field(repr=False, compare=False)

    def __truediv__(self: _P, name: str) -> _P:
        """Return the entry `name` of this folder.

        Raises:
            Refused: it is a protected secret, or is to be written and belongs to a repository itself.
        """
        return self.at(self.root, (*self.parts, name))

    def at(self: _P, root: Root, parts: tuple[str, ...]) -> _P:
        """Return the path `parts` beneath `root`, as trusted as this one: where a link on the way has led.

        Raises:
            Refused: as for an entry of a folder.
        """
        path = type(self)(root, parts, self.policy)
        self.policy.check(path)
        return path

    @property
    def name(self) -> str:
        """The last name; the served folder's own for the folder itself."""
        return self.parts[-1] if self.parts else self.root.name

    @property
    def parent(self: _P) -> _P:
        """The folder this lies in; a served folder is its own parent."""
        return type(self)(self.root, self.parts[:-1], self.policy)

    def to_readable(self) -> ReadablePath:
        """Return the same path, only to be read."""
        return ReadablePath(self.root, self.parts, self.policy)

    def uri_of(self, name: str) -> str:
        """Return the URI of the entry `name`, which may be protected: for lists, which only name it."""
        return file_uri(os.path.join(self.root.path, *self.parts, name))

    @property
    def uri(self) -> str:
        """`file://` URI; bytes that are not UTF-8 are percent-encoded, so that nothing is lost."""
        return file_uri(os.path.join(self.root.path, *self.parts))

    @property
    def display(self) -> str:
        """The path as tools take it: relative to the one served folder, else behind the folder's name.

        A name that is not UTF-8 makes it the URI: no text spells such a name.
        """
        names = self.parts if len(self.policy.roots) == 1 else (self.root.name, *self.parts)
        text = "/".join(names) or "."
        try:
            text.encode()
        except UnicodeEncodeError:
            return self.uri
        return text


class WritablePath(ReadablePath):
    """A path beneath a served folder that may also be changed."""

    def as_tree(self) -> WritableTreePath:
        """Return the same folder, to be copied, moved or deleted with all that is in it."""
        return WritableTreePath(self.root, self.parts, self.policy)


class WritableTreePath(WritablePath):
    """A folder that is copied, moved or deleted as a whole: repositories in it go along, with what is their own."""


# A policy, and the narrower one that decides in its place; others, such as that of what is kept for undo, stay.
_narrowed_policies: ContextVar[tuple[Policy, Policy] | None] = ContextVar("narrower", default=None)


class Policy:
    """Decides what is served.

    Args:
        settings: `folders` (absolute paths), `read_only`, `allow_secrets` (patterns), `allow_repository_internals`.

    Raises:
        Unavailable: there are no folders, or none of them can be served.
    """

    def __init__(self, settings: PolicySettings) -> None:
        if not settings.folders:
            raise Unavailable("There is no folder to serve.", "Name one, such as `mcp-fs .` for the current folder.")
        self.read_only = settings.read_only
        self._secrets = Secrets(settings.allow_secrets)
        self._allows_internals = settings.allow_repository_internals
        roots: list[Root] = []
        failures: list[str] = []
        fix = ""
        for folder in settings.folders:
            path = os.path.abspath(folder)
            try:
                roots.append(open_root(path, {root.name for root in roots}))
            except OSError as error:
                failures.append(f"{quote(folder, 1000)} can't be opened: {describe_os_error(error)}.")
                fix = fix or explain_missing_path(folder)
        if not roots:
            raise Unavailable(" ".join(failures), fix or "Name a folder that exists.")
        for failure in failures:
            _log.warning("not served: %s", failure)
        self._set_roots(roots)

    def _set_roots(self, roots: Sequence[Root]) -> None:
        self._roots = tuple(roots)
        bases: list[tuple[tuple[str, ...], Root]] = []
        for root in roots:
            bases.append((fold_names(split_names(root.path)), root))
            bases.append((fold_names(split_names(root.real_path)), root))
        # The deepest first, so that of two nested folders the inner one answers.
        self._bases = sorted(bases, key=lambda item: -len(item[0]))

    @property
    def roots(self) -> tuple[Root, ...]:
        """The served folders, as far as the client of the current request may use them."""
        return self._current._roots

    @property
    def _current(self) -> Policy:
        wide, narrow = _narrowed_policies.get() or (self, self)
        return narrow if wide is self else self

    @contextmanager
    def use_narrowed(self, policy: Policy) -> Generator[None]:
        """Use `policy`, made by `narrow_to_roots`, in this task and the tasks that it starts."""
        token = _narrowed_policies.set((self, policy))
        try:
            yield
        finally:
            _narrowed_policies.reset(token)

    def readable(self, path: str) -> ReadablePath:
        """Return the path that `path` names: relative, absolute or a `file://` URI.

        Raises:
            Refused: outside what is served, or a protected secret.
            NotFound: several folders are served and the first name is none of theirs.
            Invalid: not a path.
        """
        policy = self._current
        readable_path = ReadablePath(*policy._parse_path(path), policy)
        policy.check(readable_path)
        return readable_path

    def writable(self, path: str) -> WritablePath:
        """Return the same path as `readable`, to be changed.

        Raises:
            Refused: also when the server is read-only, or the path belongs to a repository itself.
        """
        if self.read_only:
            raise Refused("This server is read-only.", "Only the operator can change that.")
        policy = self._current
        writable_path = WritablePath(*policy._parse_path(path), policy)
        policy.check(writable_path)
        return writable_path

    def search_roots(self, path: str) -> list[ReadablePath]:
        """Return where a walk begins: at `path`, or in every served folder when it names them all.

        Raises:
            Problem: as `readable`.
        """
        if path in ("", ".", "./", "/") and len(self.roots) > 1:
            return [self.root_path(root) for root in self.roots]
        return [self.readable(path)]

    def root_path(self, root: Root) -> ReadablePath:
        """Return a served folder itself."""
        return ReadablePath(root, (), self)

    def is_protected(self, parts: tuple[str, ...]) -> bool:
        """True if the path `parts` below any served folder is a secret, which lists may only name."""
        return self._secrets.is_secret(parts)

    def is_secret_folder(self, parts: tuple[str, ...]) -> bool:
        """True for a folder whose name shows that it contains secrets, such as `.aws`."""
        return self._secrets.is_secret_folder(parts)

    def check(self, path: ReadablePath) -> None:
        """Check that the names of a path allow what it is for.

        Raises:
            Refused: it is a protected secret, or is to be written and belongs to a repository itself.
        """
        if self._secrets.is_secret(path.parts):
            raise Refused(
                f"{quote(path.display)} is protected: its name is that of a key or credential file.",
                "Only the operator can serve it, with `--allow-secrets`.",
            )
        if self._closes_internals(path) and any(map(is_repository_folder, (*path.root.real_names, *path.parts))):
            raise _repository_internal_error(path)

    def check_folders(self, path: ReadablePath) -> None:
        """Check on the disk that a path to be written, links resolved, is in no folder of Git, whatever its name.

        A file may not make its folder one either: from nothing, three names are a repository.

        Raises:
            Refused: it is, or does.
        """
        if not path.parts or not self._closes_internals(path):
            return
        root = path.root
        (*parent_names, name) = path.parts
        if root.is_in_git_folder() or any(
            root.has_git_folder(parent_names[:depth]) for depth in range(len(parent_names) + 1)
        ):
            raise _repository_internal_error(path)
        if name.casefold() in COMPLETES_GIT_FOLDER and root.has_git_folder(parent_names, name):
            raise Refused(
                f"{quote(path.display)} would make a Git repository of its folder, and programs run what the "
                "configuration of a repository says.",
                "Choose another name, or ask the operator for `--allow-repository-internals`.",
            )

    def _closes_internals(self, path: ReadablePath) -> bool:
        """Whether what belongs to a repository itself is closed to `path`."""
        if self._allows_internals:
            return False
        return isinstance(path, WritablePath) and not isinstance(path, WritableTreePath)

    def locate(self, absolute: str) -> tuple[Root, tuple[str, ...]] | None:
        """Return the served folder above an absolute path and the names below it; None when outside.

        Lexical: dot segments are removed as in RFC 3986, and the folder may be spelled either way.
        """
        parts = resolve_dots(split_names(absolute))
        if parts is None:
            return None
        folded = fold_names(parts)
        for base, root in self._bases:
            if folded[: len(base)] == base:
                return root, parts[len(base) :]
        return None

    def narrow_to_roots(self, uris: Iterable[str]) -> Policy:
        """Return the policy that serves what both the operator and a client's roots name, never more than this one.

        An empty list of roots means no information and changes nothing. Roots that are wider than a served folder give
        the served folder; roots that lie outside give nothing.

        Raises:
            Refused: there are roots and none of them touches what is served.
        """
        uris = tuple(uris)
        if not uris:
            return self
        chosen_roots: dict[str, Root] = {}
        for uri in uris:
            try:
                path = os.path.realpath(path_of_uri(uri))
            except (Invalid, Refused, OSError, ValueError):
                continue
            chosen_roots.update((root.real_path, root) for root in self._roots_below(path))
            inner_root = self._open_inner_root(path, chosen_roots)
            if inner_root is not None:
                chosen_roots[inner_root.real_path] = inner_root
        if not chosen_roots:
            raise Refused("The client's roots lie outside the served folders.", f"Served are: {self._served_names()}.")
        policy = Policy.__new__(Policy)
        policy.read_only = self.read_only
        policy._secrets = self._secrets
        policy._allows_internals = self._allows_internals
        policy._set_roots(tuple(chosen_roots.values()))
        return policy

    def _roots_below(self, folder: str) -> list[Root]:
        """Return the served folders that are `folder` or lie in it."""
        names = fold_names(split_names(folder))
        return [root for root in self._roots if fold_names(root.real_names)[: len(names)] == names]

    def _open_inner_root(self, path: str, chosen_roots: Mapping[str, Root]) -> Root | None:
        """Open the folder at an absolute path below a served folder; None if it is outside or may not be served alone.

        Args:
            chosen_roots: by real path; what lies in one of them is served with it.
        """
        located = self.locate(path)
        if located is None:
            return None
        root, parts = located
        # Below a folder such as `.aws` served by itself, its secrets would no longer be known by their paths.
        is_secret = self._secrets.is_secret(parts) or self._secrets.is_secret_folder(parts)
        if root.real_path in chosen_roots or is_secret:
            return None
        try:
            return open_inner(root, parts, {chosen.name for chosen in chosen_roots.values()})
        except OSError:
            return None

    def _parse_path(self, path: str) -> tuple[Root, tuple[str, ...]]:
        refuse_impossible_path(path)
        if is_uri(path):
            path = path_of_uri(path)
            refuse_impossible_path(path)
        native_path = to_native(path, (os.path.splitdrive(root.path)[0] for root in self.roots))
        if is_absolute(native_path):
            located = self.locate(native_path)
            if located is None:
                raise self._outside_error(path)
            return located
        parts = resolve_dots(split_names(path))
        if parts is None:
            raise self._outside_error(path)
        if len(self.roots) == 1:
            return self.roots[0], parts
        if not parts:
            raise Invalid("Several folders are served, and a path begins with one.", f"Use {self._served_names()}.")
        for root in self.roots:
            if fold_names((root.name,)) == fold_names(parts[:1]):
                return root, parts[1:]
        raise NotFound(f"No folder {quote(parts[0])} is served.", f"Begin with one of: {self._served_names()}.")

    def _outside_error(self, path: str) -> Refused:
        return Refused(f"{quote(path)} is outside the served folders.", f"Served are: {self._served_names()}.")

    def _served_names(self) -> str:
        return ", ".join(quote(root.path if len(self.roots) == 1 else root.name) for root in self.roots[:20])


def _repository_internal_error(path: ReadablePath) -> Refused:
    return Refused(
        f"{quote(path.display)} belongs to a repository itself: programs run what its configuration and hooks say, so "
        "it can be read, but not changed.",
        "Use mcp-git for what it can do; only the operator can open the rest, with `--allow-repository-internals`.",
    )
