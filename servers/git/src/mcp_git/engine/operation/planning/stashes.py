"""Plans what is put aside as a stash, brought back and dropped."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Literal

from mcp_batteries.errors import NotFound, quote
from mcp_git.engine.operation.operation import FileOperation, RefOperation
from mcp_git.engine.operation.planning.planner import OperationPlanner
from mcp_git.engine.operation.untracked_files import list_untracked_of_stash, name_some, refuse_obstructed_stash
from mcp_git.engine.program.git import GitFailed
from mcp_git.engine.program.output import clip, select_options, split_names
from mcp_git.engine.program.revisions import find_commits
from mcp_git.engine.undo.undo_kind import HASH_LENGTH, UndoKind
from mcp_git.engine.work_tree.status_reader import read_status
from mcp_git.models import count
from mcp_git.path_quoting import escape_line_breaks, quote_paths
from mcp_git.policy import Message, Revision, parse_revision
from mcp_git.tool_calls import ToolCall, format_call

__all__ = ["StashPlanner"]

_STASH_MESSAGE = re.compile(r"(?:WIP on|On) ([^:]+): ")
_HASH = re.compile("[0-9a-f]{7,64}")
_MAX_ROW_BYTES = 120


class StashPlanner(OperationPlanner):
    """Plans operations on stashes."""

    def push(self, message: Message, with_untracked: bool, paths: Sequence[str] = ()) -> RefOperation:
        """Plan to put uncommitted changes aside, all or those below `paths`.

        Its undo brings back that stash, wherever it stands by then.
        """

        def name_undo() -> Sequence[ToolCall]:
            return [format_call("run_stash", action="pop", rev=self._find_hash("refs/stash"), index=True)]

        def name_stashed() -> Sequence[str]:
            names = quote_paths(map(os.fsencode, self._list_stashed()))
            if not names:
                return ["stashed no file: what lies in a repository inside this one stays there"]
            return [f"stashed {count(len(names), 'file')}: {name_some(names)}"]

        arguments = ["stash", "push", "--quiet"]
        if with_untracked:
            arguments.append("--include-untracked")
        if message.text:
            arguments.append(f"--message={message.text}")
        if paths:
            arguments += ["--", *paths]
        return RefOperation(arguments, undo_calls=name_undo, moved_ref="refs/stash", after=name_stashed)

    def apply(self, action: Literal["apply", "pop"], revision: Revision, restores_index: bool) -> FileOperation:
        """Plan to bring a stash back, and with `pop` to drop it then."""
        store_calls = self._store_calls(revision) if action == "pop" else []
        layout = self.git.layout(self.repository)
        refuse_obstructed_stash(self.git, self.repository, layout, revision.text, self.cancel)
        options = select_options({"--index": restores_index})
        stash_before = self._find_hash("refs/stash")
        number_before = len(self._list_stashes())
        origin = self._describe_stash_of_another(revision)

        def name_undo_if_dropped() -> Sequence[str]:
            if self._find_hash("refs/stash") != stash_before or len(self._list_stashes()) != number_before:
                return [*origin, *(f"undo: {call}" for call in store_calls)]
            if action == "pop":
                return [*origin, "the stash stays: drop it once its changes are resolved"]
            return origin

        stash = revision.text
        if action == "pop":
            stash = self._locate_stash(revision)
        return FileOperation(
            ["stash", action, "--quiet", *options, stash],
            revision=revision,
            undo_kind=UndoKind.FILES,
            overwritten_paths=["."],
            after=name_undo_if_dropped,
            created_files=list_untracked_of_stash(self.git, self.repository, revision.text, self.cancel),
        )

    def drop(self, revision: Revision) -> RefOperation:
        """Plan to drop a stash."""
        undo_calls = self._store_calls(revision)
        arguments = ["stash", "drop", "--quiet", self._locate_stash(revision)]
        return RefOperation(arguments, revision=revision, undo_calls=lambda: undo_calls)

    def store(self, revision: Revision, message: Message) -> RefOperation:
        """Plan to put a stash back that was dropped."""
        arguments = ["stash", "store", "--quiet"]
        if message.text:
            arguments.append(f"--message={message.text}")
        oid = self._find_stash(revision)
        arguments.append(oid or revision.text)
        undo_calls = [format_call("run_stash", action="drop", rev=oid)]
        return RefOperation(arguments, revision=revision, undo_calls=lambda: undo_calls, moved_ref="refs/stash")

    def _list_stashed(self) -> list[str]:
        """Return the files that the latest stash has: changed ones, staged ones and untracked ones."""
        names = list_untracked_of_stash(self.git, self.repository, "refs/stash", self.cancel)
        for side in ("refs/stash", "refs/stash^2"):
            arguments = ["diff-tree", "-r", "--name-only", "--no-renames", "-z", "refs/stash^1", side]
            names += split_names(self.git.run(self.repository, arguments, self.cancel, exit_codes=(0, 128)).stdout)
        return sorted(set(names))

    def _describe_stash_of_another(self, revision: Revision) -> list[str]:
        """Return a line about a stash that was made on another branch, as all worktrees share one list; else none."""
        if _HASH.fullmatch(revision.text):
            return []
        message = self._read_stash_message(revision)
        match = _STASH_MESSAGE.match(message)
        if match is None:
            return []
        status = read_status(self.git, self.repository, self.cancel)
        if match[1] == ("(no branch)" if status.is_detached else status.head):
            return []
        return [f"it was stashed on another branch: {clip(escape_line_breaks(message), _MAX_ROW_BYTES)}"]

    def _locate_stash(self, revision: Revision) -> str:
        """Return what names a stash to git that drops it: its position now, if the revision is a hash.

        Raises:
            NotFound: it is not in the list.
        """
        if not _HASH.fullmatch(revision.text):
            return revision.text
        for position, oid in enumerate(self._list_stashes()):
            if oid.startswith(revision.text):
                return f"stash@{{{position}}}"
        raise NotFound(
            f"The stash {quote(revision.text)} is not in the list any more: somebody has popped or dropped it.",
            "`run_stash` with action=apply brings its changes back all the same.",
        )

    def _store_calls(self, revision: Revision) -> list[ToolCall]:
        """Return the call that puts a stash back once it is dropped; none if there is no such stash."""
        oid = self._find_stash(revision)
        if not oid:
            return []
        message = self._read_stash_message(parse_revision(self._locate_stash(revision)))
        call = format_call("run_stash", action="store", rev=oid, message=message)
        if oid != self._find_hash("refs/stash"):
            call = call.with_remark(" (as the first of the stashes then)")
        return [call]

    def _find_stash(self, revision: Revision) -> str:
        commits = find_commits(self.git, self.repository, revision, self.cancel)
        return commits[0][:HASH_LENGTH] if commits else ""

    def _read_stash_message(self, revision: Revision) -> str:
        arguments = ["log", "--walk-reflogs", "--max-count=1", "--format=%gs", revision.text, "--"]
        try:
            return self.git.run(self.repository, arguments, self.cancel).text.removesuffix("\n")
        except GitFailed:
            return ""
