"""Keeps the state before a change as trees, and names the calls that restore it.

The trees use our own index and object folder, so that a refused change leaves nothing behind.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Literal

from mcp_batteries.errors import Conflict, quote
from mcp_batteries.limits import Stop
from mcp_git.engine.program.git import Git, GitFailed
from mcp_git.engine.work_tree.status import Status, is_conflict, read_status
from mcp_git.path_quoting import quote_path
from mcp_git.policy import Repository, Revision
from mcp_git.repository_paths import Layout
from mcp_git.tool_calls import format_call

__all__ = [
    "Snapshot",
    "UndoKind",
    "describe_remaining_files",
    "list_staged_since",
    "list_untracked_of_stash",
    "refuse_obstructed_stash",
    "refuse_overwriting_untracked",
    "save_index",
    "take_snapshot",
]

UndoKind = Literal["keep", "soft", "mixed", "hard", "commit all", "files", "index", "carried"]
"""By a reset of that mode, by taking a commit apart, by writing files again, by staging what was staged; or by another
call, and then the files that it did not carry along."""

_HASH = 12
_MOST_PATHS = 20
_NO_CONFLICT = " (the files; not that they were in conflict)"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """How it was.

    Attributes:
        index: the tree of what was staged; empty where that was what HEAD has, or in a conflict.
        files: the tree of the tracked files; empty where none differed, or where they can't be lost.
    """

    status: Status
    index_tree: str = ""
    files_tree: str = ""
    _folder: str = field(default="", repr=False)

    @property
    def head(self) -> str:
        """The commit, empty if there was none."""
        return "" if self.status.oid[:1] == "(" else self.status.oid[:_HASH]

    @property
    def in_conflict(self) -> bool:
        return any(is_conflict(letters) for letters, _, _ in self.status.entries)

    def store(self, layout: Layout) -> None:
        """Let the repository have the trees."""
        made = os.path.join(self._folder, "objects")
        for above, _, names in os.walk(made if self._folder else ""):
            there = os.path.join(layout.objects, os.path.relpath(above, made))
            for name in sorted(names, key=lambda name: name.endswith(".idx")):
                os.makedirs(there, exist_ok=True)
                if not os.path.lexists(os.path.join(there, name)):
                    shutil.copy2(os.path.join(above, name), os.path.join(there, f"tmp_obj_{name}"))
                    os.replace(os.path.join(there, f"tmp_obj_{name}"), os.path.join(there, name))

    def undo_calls(self, back: UndoKind, after: Status, paths: Sequence[str] = (".",)) -> list[str]:
        """The calls that lead back to it, in their order.

        Args:
            paths: whose files were written, or what of the index was.
        """
        named = {"paths": [quote_path(os.fsencode(path)) for path in paths] if len(paths) <= _MOST_PATHS else ["."]}
        unstage = format_call(
            "edit_index", **named, unstage=True, **({"rev": self.index_tree} if self.index_tree else {})
        )
        if back == "index":
            return [] if self.in_conflict or not paths else [unstage]
        moved = after.oid != self.status.oid
        carried = after.entries == self.status.entries
        if not self.head or (back != "files" and not moved and carried):
            return []
        if back == "commit all":
            lost = _NO_CONFLICT if self.in_conflict else ""
            return [self._reset("soft"), unstage] if self.index_tree else [self._reset("mixed") + lost]
        found = [self._reset(back)] * (moved and back in ("keep", "soft", "mixed", "hard"))
        if back == "files" or (self.files_tree and (back == "hard" or (back in ("keep", "carried") and not carried))):
            met = [quote_path(path) for letters, path, _ in after.entries if is_conflict(letters)]
            if list(paths) == ["."] and met:
                # A file that is in conflict is not written over; a reset would end what is under way.
                found = [format_call("edit_index", paths=met)] if self.status.in_progress else [self._reset("hard")]
            files = format_call("run_restore", **named, rev=self.files_tree or self.head)
            return (
                [*found, files + _NO_CONFLICT]
                if self.in_conflict
                else [*found, files, *[unstage] * bool(self.files_tree)]
            )
        if found and back == "mixed" and self.in_conflict:
            return [found[0] + _NO_CONFLICT]
        return [*found, *([unstage] if self.index_tree and back in ("keep", "mixed") else [])]

    def _reset(self, mode: str) -> str:
        return format_call("run_reset", rev=self.head, mode=mode)


@contextmanager
def take_snapshot(git: Git, repository: Repository, layout: Layout, loses: bool, stop: Stop) -> Generator[Snapshot]:
    """How it is now, for the time of a change.

    Args:
        loses: whether what is not committed may go.
    """
    state = read_status(git, repository, stop, layout=layout)
    letters = [letters for letters, _, _ in state.entries if letters != "??"]
    staged = any(two[0] != " " for two in letters) and not any(map(is_conflict, letters))
    if not os.path.exists(os.path.join(layout.git_dir, "index")) or not (staged or (loses and letters)):
        yield Snapshot(state)
        return
    with git.copy_index(layout) as folder:

        def tree() -> str:
            return git.run(repository, ["write-tree"], stop, scratch_index=folder).text.strip()[:_HASH]

        try:
            in_index = tree() if staged else ""
            if loses and letters:
                git.run(repository, ["add", "--update"], stop, scratch_index=folder)
            in_files = tree() if loses and letters else ""
        except GitFailed as failure:
            fix = "Commit it, or put it aside with `run_stash`, first."
            raise Conflict(f"What is not committed can't be kept: {failure}", fix) from None
        yield Snapshot(state, in_index, in_files, folder)


def list_staged_since(git: Git, repository: Repository, was: Snapshot, stop: Stop) -> list[str]:
    """What is staged in another form than before."""
    tree = was.index_tree or was.head
    words = ["diff-index", "--cached", "--ita-invisible-in-index", "--name-only", "--no-renames", "-z", tree, "--"]
    words = words if tree else ["ls-files", "-z"]
    return [os.fsdecode(path) for path in git.run(repository, words, stop).stdout.split(b"\0")[:-1]]


def save_index(layout: Layout) -> Callable[[], None]:
    """What puts the index back as it is now; nothing where another program is writing it then.

    With its time: git looks again into files that were written no earlier than the index, which would be none then.
    """
    index, lock = (os.path.join(layout.git_dir, name) for name in ("index", "index.lock"))
    data: bytes | None = None
    times = 0, 0
    with suppress(FileNotFoundError), open(index, "rb") as file:
        data, found = file.read(), os.fstat(file.fileno())
        times = found.st_atime_ns, found.st_mtime_ns

    def put_back() -> None:
        with suppress(FileExistsError), open(lock, "xb") as file:
            try:
                file.write(data or b"")
            except OSError:
                os.unlink(lock)
                raise
            file.close()
            if data is None:
                with suppress(FileNotFoundError):
                    os.unlink(index)
                os.unlink(lock)
            else:
                os.utime(lock, ns=times)
                os.replace(lock, index)

    return put_back


def refuse_overwriting_untracked(
    git: Git,
    repository: Repository,
    layout: Layout,
    source: Revision,
    paths: Sequence[str],
    stop: Stop,
    *,
    alike: bool = False,
) -> None:
    """Return if no file that git does not know lies where one of `source` is to be written.

    Args:
        alike: whether one of the same content counts, which a way back would take away.

    Raises:
        Conflict: one does, and nothing would bring it back.
    """
    words = ["diff-index", "--cached", "--raw", "--no-renames", "--diff-filter=D", "-z", source.text, "--"]
    try:
        listed = git.run(repository, [*words, *paths], stop).stdout
    except GitFailed:
        return  # The change itself will say so.
    top = layout.work_tree or ""
    described = listed.split(b"\0")[:-1]
    in_the_way: set[str] = set()
    for what, name in zip(described[::2], map(os.fsdecode, described[1::2]), strict=True):
        mode, _, oid, *_ = what.decode().split(" ")
        # A submodule's folder stays as it is.
        if (
            mode != ":160000"
            and (there := _in_the_way(top, name))
            and (alike or not _is_same(git, repository, top, there, oid, stop))
        ):
            in_the_way.add(there)
    if not in_the_way:
        return
    words = ["ls-files", "-z", "--others", "--", *sorted(in_the_way)]
    if lost := git.run(repository, words, stop).stdout.split(b"\0")[0]:
        raise Conflict(
            f"{quote(quote_path(lost))} is untracked, and would be overwritten for good.",
            "Stage it with `edit_index` first, or move it away.",
        )


def refuse_obstructed_stash(git: Git, repository: Repository, layout: Layout, stash: str, stop: Stop) -> None:
    """Return if nothing lies where a stash has untracked files: git would bring back all else of it, and then fail.

    Raises:
        Conflict: something does.
    """
    for name in list_untracked_of_stash(git, repository, stash, stop):
        if there := _in_the_way(layout.work_tree or "", name):
            raise Conflict(
                f"The stash has {quote(quote_path(os.fsencode(there)))} as an untracked file, and it is there.",
                "Nothing was changed. Move it away, or put it aside as well: `run_stash` with untracked=true.",
            )


def list_untracked_of_stash(git: Git, repository: Repository, stash: str, stop: Stop) -> list[str]:
    """The untracked files that a stash has."""
    words = ["ls-tree", "-r", "--name-only", "-z", f"{stash}^3"]
    return [
        os.fsdecode(name) for name in git.run(repository, words, stop, exit_codes=(0, 128)).stdout.split(b"\0")[:-1]
    ]


def describe_remaining_files(names: Sequence[str]) -> str:
    """The line about new files that no undo takes away."""
    more = f" and {len(names) - _MOST_PATHS:,} more" if len(names) > _MOST_PATHS else ""
    return f"new files, which stay: {', '.join(names[:_MOST_PATHS])}{more}"


def _is_same(git: Git, repository: Repository, top: str, name: str, oid: str, stop: Stop) -> bool:
    """Whether a file has the content that it would get."""
    path = os.path.join(top, name)
    if not os.path.isfile(path) or os.path.islink(path):
        return False
    return git.run(repository, ["hash-object", "--", name], stop, exit_codes=(0, 128)).text.strip() == oid


def _in_the_way(top: str, name: str) -> str:
    """What lies at `name`, or is a file where it needs a folder; empty if nothing does."""
    parts = name.split("/")
    for number in range(1, len(parts)):
        above = "/".join(parts[:number])
        path = os.path.join(top, above)
        if os.path.lexists(path) and (os.path.islink(path) or not os.path.isdir(path)):
            return above
    return name if os.path.lexists(os.path.join(top, name)) else ""
