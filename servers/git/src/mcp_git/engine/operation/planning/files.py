"""Plans what writes files of the work tree as a commit has them, or moves them."""

from __future__ import annotations

import os
from collections.abc import Sequence

from mcp_batteries.errors import Conflict, Refused, quote
from mcp_git import git_config
from mcp_git.engine.operation.operation import FileOperation, GitInput, Operation
from mcp_git.engine.operation.planning.planner import OperationPlanner
from mcp_git.engine.operation.untracked_files import describe_sparse_files
from mcp_git.engine.program.output import split_names
from mcp_git.engine.undo.undo_kind import UndoKind
from mcp_git.path_quoting import quote_path
from mcp_git.policy import RepositoryPath, Revision
from mcp_git.tool_calls import format_call

__all__ = ["FilePlanner"]

# Systems bound the length of a command.
_MAX_NAMES_OF_COMMAND = 200


class FilePlanner(OperationPlanner):
    """Plans operations on files of the work tree."""

    def switch(self, revision: Revision) -> FileOperation:
        """Plan to switch to a branch, or to a commit that has none."""
        name = self._shorten_ref(revision.text, "heads")
        is_branch = bool(self.git.find_branch(self.repository, name, self.cancel))
        return_calls = self._return_calls(name if is_branch else "")
        arguments = ["switch", "--quiet", "--no-guess"]
        if not is_branch:
            arguments.append("--detach")
        return FileOperation(
            [*arguments, name],
            revision=revision,
            undo_calls=lambda: return_calls,
            undo_kind=UndoKind.CARRIED,
            overwritten_paths=["."],
        )

    def restore(self, source: Revision, paths: Sequence[str], *, stages: bool = True) -> FileOperation:
        """Plan to write files as a commit has them, and to stage them so unless the index is to stay as it is.

        Of a stash, what it had staged is staged again, and nothing else.
        """
        arguments = ["restore", f"--source={self._disambiguate(source)}", "--worktree", "--", *paths]
        created_files: list[str] = []
        next_steps: list[GitInput] = []
        stash = self._find_hash_of_listed_stash(source)
        if stages and not stash:
            arguments.insert(1, "--staged")
        else:
            created_files = self._list_missing(source, paths)
        if stages and stash:
            names = self._list_staged_of_stash(stash, paths)
            for start in range(0, len(names), _MAX_NAMES_OF_COMMAND):
                part = names[start : start + _MAX_NAMES_OF_COMMAND]
                next_steps.append(GitInput(["reset", "--quiet", f"{stash}^2", "--", *part]))
        unwritten = self._list_unwritten(paths)

        def describe_written() -> Sequence[str]:
            top = self.git.layout(self.repository).work_tree or ""
            names = [name for name in unwritten if os.path.lexists(os.path.join(top, name))]
            return [describe_sparse_files(names)] if names else []

        return FileOperation(
            arguments,
            revision=source,
            undo_kind=UndoKind.FILES,
            overwritten_paths=paths,
            source=source,
            created_files=created_files,
            next_steps=next_steps,
            after=describe_written,
        )

    def move_path(self, source: RepositoryPath, target: RepositoryPath) -> Operation:
        """Plan to move a tracked file or folder, and to stage that.

        Raises:
            Refused: a link is on the way, which git would follow.
            Conflict: the target is a folder, into which git would move it.
        """
        target_path = os.path.join(self.git.layout(self.repository).work_tree or "", target.text)
        folder = os.path.dirname(target_path)
        if os.path.realpath(folder) != os.path.normpath(folder):
            raise Refused(f"A link leads to {quote(target.display)}.", "Name a `to` without links.")
        if os.path.isdir(target_path) and not os.path.islink(target_path):
            name_inside = quote_path(os.fsencode(os.path.join(target.text, os.path.basename(source.text))))
            raise Conflict(
                f"{quote(target.display)} is a folder that exists.", f"To move into it pass to={quote(name_inside)}."
            )
        undo_calls = [format_call("move_path", path=target.display, to=source.display)]
        return Operation(["mv", "--", source.text, target.text], undo_calls=lambda: undo_calls)

    def _find_hash_of_listed_stash(self, revision: Revision) -> str:
        """Return the hash of a stash of the list; empty for any other commit."""
        oid = self.git.find_hash(self.repository, f"{revision.text}^{{commit}}", self.cancel)
        return oid if oid in self._list_stashes() else ""

    def _list_staged_of_stash(self, stash: str, paths: Sequence[str]) -> list[str]:
        """Return the files below `paths` that a stash had staged."""
        arguments = ["diff-tree", "-r", "--name-only", "--no-renames", "-z", f"{stash}^1", f"{stash}^2", "--", *paths]
        return split_names(self.git.run(self.repository, arguments, self.cancel).stdout)

    def _list_missing(self, source: Revision, paths: Sequence[str]) -> list[str]:
        """Return the files below `paths` that a commit has, and neither the index nor the disk."""
        arguments = ["diff-index", "--cached", "--name-only", "--no-renames", "--diff-filter=D", "-z"]
        arguments += [self._disambiguate(source), "--", *paths]
        output = self.git.run(self.repository, arguments, self.cancel, exit_codes=(0, 128))
        top = self.git.layout(self.repository).work_tree or ""
        return [name for name in split_names(output.stdout) if not os.path.lexists(os.path.join(top, name))]

    def _list_unwritten(self, paths: Sequence[str]) -> list[str]:
        """Return the files below `paths` that a sparse checkout leaves out of the work tree."""
        if not git_config.is_sparse_checkout(self.git.read_allowed_configuration(self.repository)):
            return []
        output = self.git.run(self.repository, ["ls-files", "-t", "-z", "--", *paths], self.cancel)
        return [entry[2:] for entry in split_names(output.stdout) if entry.startswith("S ")]
