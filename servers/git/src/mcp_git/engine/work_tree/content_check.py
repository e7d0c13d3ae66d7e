"""Refuses changes of files whose contents would be wrong, or are not here.

No filter, such as the one of Git LFS, is run here. And of a partial clone git itself writes what it has, leaves out the
rest of the files, and may call that done.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import Refused, quote
from mcp_git import git_config
from mcp_git.engine.program.git import Git, GitFailed
from mcp_git.engine.program.git_binary import missing_contents
from mcp_git.engine.program.output import select_options, split_lines, split_names
from mcp_git.path_quoting import quote_path
from mcp_git.policy import Repository
from mcp_git.repository_paths import Layout, read_small_file

__all__ = ["ContentCheck"]

_FILTER = r"(^|[[:space:]])filter="
_ATTRIBUTE_FILES = ":(top,glob)**/.gitattributes"
_OWN_FILTER = re.compile(r"(?m)^[^#].*\sfilter=")
_FILTER_PROGRAM = re.compile(r"filter\.(.+)\.(?:clean|smudge|process|required)", re.DOTALL)
# What stands in the place of a name where a file has no filter.
_NO_FILTER = frozenset({"unspecified", "unset", "set", ""})
# Of Git LFS a file is never what git stores, whether or not the program is set up here.
_LFS = "lfs"
_NO_FILE_MODE = "000000"
_SUBMODULE_MODE = "160000"


class _FilteredFile(NamedTuple):
    path: str
    filter: str


class ContentCheck:
    """Refuses a change where a file that it reads or writes goes through a filter, or is not here.

    A filter that nobody has set up does nothing in git either, but for the one of Git LFS.
    """

    def __init__(self, git: Git, repository: Repository, layout: Layout, cancel: CancelToken) -> None:
        self._git = git
        self._repository = repository
        self._layout = layout
        self._cancel = cancel

    def refuse_staging(self, pathspecs: Sequence[str], *, with_untracked: bool = True) -> None:
        """Check the files below `pathspecs` that would be staged.

        Raises:
            Refused: one goes through a filter.
        """
        if not self._has_filters(""):
            return
        arguments = ["ls-files", "-z", "--modified", *select_options({"--others": with_untracked})]
        changed = self._list_names([*arguments, "--exclude-standard", "--", *pathspecs])
        deleted = self._list_names(["ls-files", "-z", "--deleted", "--", *pathspecs])
        self._refuse_filtered([name for name in changed if name not in set(deleted)], "")

    def refuse_writing(self, start: str, end: str, *, from_merge_base: bool = False) -> None:
        """Check the files that differ between two revisions, with the attributes of the work tree and of `end`.

        Args:
            from_merge_base: whether only what `end` has changed since the two parted has to be here.

        Raises:
            Refused: one goes through a filter.
            Unavailable: `end` has one that is not here.
        """
        with suppress(GitFailed):  # There is no such revision, and the operation itself will say so.
            self._refuse_missing(
                ["diff-tree", "-r", *select_options({"--merge-base": from_merge_base}), start, end], end
            )
        try:
            sources = [source for source in ("", end) if self._has_filters(source)]
            if not sources:
                return
            written = self._list_names(["diff-tree", "-r", "--name-only", "--no-renames", "-z", start, end, "--"])
            for source in sources:
                self._refuse_filtered(written, source)
        except GitFailed:
            return  # There is no such revision, and the operation itself will say so.

    def refuse_restoring(self, source: str, pathspecs: Sequence[str]) -> None:
        """Check the files below `pathspecs` that are not as `source` has them.

        Raises:
            Refused: one goes through a filter.
            Unavailable: `source` has one that is not here.
        """
        try:
            self._refuse_missing(["diff-index", "-R", source], source, pathspecs)
            if not self._has_filters("") and not self._has_filters(source):
                return
            arguments = ["diff-index", "--name-only", "--no-renames", "-z", source, "--", *pathspecs]
            names = self._list_names(arguments)
        except GitFailed:
            return  # There is no such revision, and the operation itself will say so.
        self._refuse_filtered(names, "")
        self._refuse_filtered(names, source)

    def refuse_any(self, tree: str = "") -> None:
        """Check all files, for a change of which nobody can say before what it writes.

        Args:
            tree: whose files, in place of those in the index.

        Raises:
            Refused: one goes through a filter.
        """
        if not self._has_filters(tree):
            return
        if tree:
            names = self._list_names(["ls-tree", "-r", "--name-only", "-z", tree])
        else:
            names = self._list_names(["ls-files", "-z"])
        self._refuse_filtered(names, tree)

    def _refuse_missing(self, comparison: Sequence[str], source: str, pathspecs: Sequence[str] = ()) -> None:
        """Check the files on the later side of a comparison, which `source` has, without those that stay unwritten.

        Raises:
            Unavailable: a partial clone lacks one.
        """
        if not self._git.is_partial(self._repository):
            return
        command, *rest = comparison
        arguments = [command, "--raw", "--no-renames", "--no-abbrev", "-z", *rest, "--", *pathspecs]
        fields = split_names(self._git.run(self._repository, arguments, self._cancel).stdout)
        oids: dict[str, str] = {}
        for difference, name in zip(fields[::2], fields[1::2], strict=True):
            _, mode, _, oid, _ = difference.split(" ")
            if mode not in (_NO_FILE_MODE, _SUBMODULE_MODE):
                oids[name] = oid
        for name in self._list_unwritten(source):
            oids.pop(name, None)
        stdin = "".join(f"{oid}\n" for oid in oids.values()).encode()
        if not stdin:
            return
        output = self._git.run(self._repository, ["cat-file", "--batch-check"], self._cancel, stdin=stdin)
        if any(line.endswith(" missing") for line in split_lines(output)):
            raise missing_contents()

    def _list_unwritten(self, source: str) -> list[str]:
        """Return the files of a revision that a sparse checkout leaves out."""
        if not git_config.is_sparse_checkout(self._git.read_allowed_configuration(self._repository)):
            return []
        with self._git.make_scratch_index() as folder:
            # Git applies the patterns only where it updates files, so it gets a folder without any, and none to write.
            work_tree = os.path.join(folder, "files")
            os.mkdir(work_tree)
            for options in (["-m"], ["-m", "-u"]):
                arguments = [f"--work-tree={work_tree}", "read-tree", *options, source]
                self._git.run(self._repository, arguments, self._cancel, scratch_index=folder)
            listed = self._git.run(self._repository, ["ls-files", "-t", "-z"], self._cancel, scratch_index=folder)
        return [entry[2:] for entry in split_names(listed.stdout) if entry.startswith("S ")]

    def _list_names(self, arguments: Sequence[str]) -> list[str]:
        return split_names(self._git.run(self._repository, arguments, self._cancel).stdout)

    def _has_filters(self, tree: str) -> bool:
        """Whether attributes in a tree, or in the index and the work tree, name a filter at all."""
        if tree:
            return self._finds_filter([], [tree])
        own_file = os.path.join(self._layout.common_dir, "info", "attributes")
        if any(map(_may_name_filter, (own_file, self._git.find_user_attributes(self._repository)))):
            return True
        return any(self._finds_filter([source], []) for source in ("--cached", "--untracked"))

    def _finds_filter(self, options: Sequence[str], trees: Sequence[str]) -> bool:
        arguments = ["grep", "-l", "--no-color", *options, "-E", "-e", _FILTER, *trees, "--", _ATTRIBUTE_FILES]
        output = self._git.run(self._repository, arguments, self._cancel, exit_codes=(0, 1), literal_paths=False)
        return bool(output.stdout)

    def _refuse_filtered(self, names: Sequence[str], tree: str) -> None:
        configured = _list_set_up(self._git.read_unheeded_configuration(self._repository))
        filtered = [file for file in self._list_filtered(names, tree) if file.filter in configured]
        if not filtered:
            return
        first = filtered[0]
        named = quote(quote_path(os.fsencode(first.path)))
        if len(filtered) > 1:
            named += f" and {len(filtered) - 1:,} more"
        kind = "Git LFS" if first.filter == _LFS else f"the filter {quote(first.filter)}"
        raise Refused(
            f"{named} would go through {kind}, and no filter is run here.",
            "Name other files in `paths` to change these, or use `git` itself.",
        )

    def _list_filtered(self, names: Sequence[str], tree: str) -> list[_FilteredFile]:
        """Return the files of `names` that have a filter, by the attributes in a tree or in the work tree."""
        if not names:
            return []
        stdin = b"".join(os.fsencode(name) + b"\0" for name in names)
        if not tree:
            output = self._git.run(
                self._repository, ["check-attr", "-z", "--stdin", "filter"], self._cancel, stdin=stdin
            ).stdout
            return _parse_filtered(output)
        with self._git.copy_index(self._layout) as folder:
            self._git.run(self._repository, ["read-tree", tree], self._cancel, scratch_index=folder)
            output = self._git.run(
                self._repository,
                ["check-attr", "--cached", "-z", "--stdin", "filter"],
                self._cancel,
                stdin=stdin,
                scratch_index=folder,
            ).stdout
        return _parse_filtered(output)


def _may_name_filter(path: str) -> bool:
    """Whether a file of attributes names a filter, or is too long to be looked through."""
    text = read_small_file(path)
    if text is None:
        return os.path.isfile(path)
    return _OWN_FILTER.search(text) is not None


def _parse_filtered(output: bytes) -> list[_FilteredFile]:
    """Parse what `git check-attr -z` prints: a path, the attribute and its value for each file."""
    fields = split_names(output)
    files = [_FilteredFile(path, value) for path, value in zip(fields[::3], fields[2::3], strict=True)]
    return [file for file in files if file.filter not in _NO_FILTER]


def _list_set_up(configuration: Mapping[str, str]) -> set[str]:
    """Return the names of the filters that would do something in git."""
    matches = (_FILTER_PROGRAM.fullmatch(key) for key in configuration)
    return {_LFS, *(match[1] for match in matches if match)}
