"""Refuses changes of files that go through a filter, because none is run here."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import Refused
from mcp_git.engine.program.git import Git
from mcp_git.policy import Repository
from mcp_git.repository_paths import Layout, read_small_file

__all__ = ["refuse_filters"]

_FILTER = r"(^|[[:space:]])filter="
_ATTRIBUTE_FILES = ":(top,glob)**/.gitattributes"
_OWN_FILTER = re.compile(r"(?m)^[^#].*\sfilter=")


def refuse_filters(git: Git, repository: Repository, layout: Layout, cancel: CancelToken, tree: str = "") -> None:
    """Check that no file of the repository is to go through a filter: without it what is stored would be wrong.

    Args:
        tree: looked through instead of what lies in the index and the work tree.

    Raises:
        Refused: one is.
    """
    own_attributes = read_small_file(os.path.join(layout.common_dir, "info", "attributes")) or ""
    if _OWN_FILTER.search(own_attributes) or _has_filter(git, repository, tree, cancel):
        raise Refused(
            "Files of this repository go through a filter (`filter=` in `.gitattributes`), such as Git LFS, "
            "and none is run here.",
            "Use `git` itself for this change.",
        )


def _has_filter(git: Git, repository: Repository, tree: str, cancel: CancelToken) -> bool:
    if tree:
        return _finds_filter(git, repository, [], [tree], cancel)
    sources = ("--cached", "--untracked")
    return any(_finds_filter(git, repository, [source], [], cancel) for source in sources)


def _finds_filter(
    git: Git, repository: Repository, options: Sequence[str], trees: Sequence[str], cancel: CancelToken
) -> bool:
    arguments = [
        "grep",
        "-l",
        "--no-color",
        *options,
        "-E",
        "-e",
        _FILTER,
        *trees,
        "--",
        ":(top,glob)**/.gitattributes",
    ]
    return bool(git.run(repository, arguments, cancel, exit_codes=(0, 1), literal_paths=False).stdout)
