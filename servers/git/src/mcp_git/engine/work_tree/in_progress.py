"""Finds the operations that are in progress in a repository: a merge, a rebase, a bisect."""

from __future__ import annotations

import os

from mcp_batteries.limits import Stop
from mcp_git.engine.program.git import Git
from mcp_git.engine.program.revisions import find_hash
from mcp_git.path_quoting import escape_line_breaks
from mcp_git.policy import Repository
from mcp_git.repository_paths import Layout, read_small_file

__all__ = ["find_operations_in_progress"]


def find_operations_in_progress(git: Git, repository: Repository, layout: Layout, stop: Stop) -> list[str]:
    """What was begun in a repository and is not finished; the first word is git's own for it."""

    def there(name: str) -> bool:
        return os.path.exists(f"{layout.git_dir}{os.sep}{name}")

    def is_commit(name: str) -> bool:
        # A reftable holds what is otherwise a file.
        return there(name) or (layout.has_reftable and bool(find_hash(git, repository, name, stop)))

    found: list[str] = []
    for folder, number, last in (("rebase-merge", "msgnum", "end"), ("rebase-apply", "next", "last")):
        if there(folder):
            step, end = (read_small_file(os.path.join(layout.git_dir, folder, name)) for name in (number, last))
            what = "am" if there(os.path.join(folder, "applying")) else "rebase"
            branch = read_small_file(os.path.join(layout.git_dir, folder, "head-name")) or ""
            of = f", of {escape_line_breaks(branch[11:])[:60]}" if branch.startswith("refs/heads/") else ""
            found.append(
                f"{what} under way, step {escape_line_breaks(step or '?')[:9]} of {escape_line_breaks(end or '?')[:9]}{of}"
            )
    if there("MERGE_HEAD"):
        found.append("merge under way")
    if not found:
        # Between two commits of several only the list is there.
        todo = read_small_file(os.path.join(layout.git_dir, "sequencer", "todo")) or ""
        of_several = {"pick": "cherry-pick", "revert": "revert"}.get(todo.split(" ")[0])
        for name, what in {"CHERRY_PICK_HEAD": "cherry-pick", "REVERT_HEAD": "revert"}.items():
            if what == of_several or is_commit(name):
                found.append(f"{what} under way")
    return [*found, *(["bisect under way"] if there("BISECT_LOG") else [])]
