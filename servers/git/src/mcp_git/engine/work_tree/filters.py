"""Refuses changes of files that go through a filter, because none is run here."""

from __future__ import annotations

import os
import re

from mcp_batteries.errors import Refused
from mcp_batteries.limits import Stop
from mcp_git.engine.program.git import Git
from mcp_git.policy import Repository
from mcp_git.repository_paths import Layout, read_small_file

__all__ = ["refuse_filters"]

_FILTER = r"(^|[[:space:]])filter="


def refuse_filters(git: Git, repository: Repository, layout: Layout, stop: Stop, tree: str = "") -> None:
    """Return if no file of the repository is to go through a filter: without it what is stored would be wrong.

    Args:
        tree: looked through instead of what lies in the index and the work tree.

    Raises:
        Refused: one is.
    """
    own = read_small_file(os.path.join(layout.common_dir, "info", "attributes")) or ""
    found = re.search(r"(?m)^[^#].*\sfilter=", own) is not None
    for where in [tree] if tree else ["--cached", "--untracked"]:
        words = ["grep", "-l", "--no-color", *([] if tree else [where]), "-E", "-e", _FILTER]
        words += [*([where] if tree else []), "--", ":(top,glob)**/.gitattributes"]
        if found or git.run(repository, words, stop, exit_codes=(0, 1), literal_paths=False).stdout:
            raise Refused(
                "Files of this repository go through a filter (`filter=` in `.gitattributes`), such as Git LFS, "
                "and none is run here.",
                "Use `git` itself for this change.",
            )
