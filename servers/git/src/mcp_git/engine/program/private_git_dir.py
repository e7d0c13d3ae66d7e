"""Our own common directory for each repository, which git uses instead of the repository's.

Its configuration is what `git_config` leaves of the repository's, and links lead on to the refs and logs. The git
directory proper stays the repository's. This is how `git new-workdir` shares a repository, but for the configuration
and the hooks.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace

from mcp_batteries.errors import Refused, Unavailable
from mcp_batteries.processes.confinement import Confinement
from mcp_git import git_config
from mcp_git.engine.program.git_binary import GitBinary, GitFailed
from mcp_git.engine.program.user_configuration import (
    FileSignature,
    UserConfiguration,
    read_signature,
    read_user_configuration,
)
from mcp_git.repository_paths import Layout, refuse_submodules_elsewhere

__all__ = ["FUNCTION_ATTRIBUTES", "PrivateGitDir", "PrivateGitDirs"]

_INDEX_TIMEOUT_SECONDS = 60
_MAX_CONFIGURATION_BYTES = 1024 * 1024
_MAX_READS_OF_CONFIGURATION = 5
_BAD_INDEX = re.compile(rb"(?:^|\0)/|(?:^|[\0/])(?:\.\.?|\.git)?(?:/|\0)", re.I)
_STAGED = re.compile(rb"(^|\0)\d{6} [0-9a-f]+ \d\t")
_SUBMODULE = re.compile(rb"(?:^|\0)160000 [0-9a-f]+ \d\t([^\0]+)")

# Attributes that say by which language git knows the functions in a file.
FUNCTION_ATTRIBUTES = "function-attributes"
_LANGUAGES = """\
*.ad[bs] diff=ada
*.sh diff=bash
*.c diff=cpp
*.cc diff=cpp
*.cpp diff=cpp
*.cxx diff=cpp
*.h diff=cpp
*.hpp diff=cpp
*.cs diff=csharp
*.css diff=css
*.ex diff=elixir
*.exs diff=elixir
*.f90 diff=fortran
*.go diff=golang
*.html diff=html
*.java diff=java
*.kt diff=kotlin
*.md diff=markdown
*.m diff=objc
*.pas diff=pascal
*.pl diff=perl
*.pm diff=perl
*.php diff=php
*.py diff=python
*.rb diff=ruby
*.rs diff=rust
*.scm diff=scheme
*.tex diff=tex
"""

_FIRST_WITH_REFTABLE = (2, 45)


class PrivateGitDir:
    """The common directory that git sees of one repository.

    Attributes:
        config_path: the path of its configuration.
        shallow_lock: held while git may write where a shallow clone begins.
        written_signature: what that file was when it was written.
        configuration: what git is told of the repository's configuration.
        user_configuration: what the user's own says for it.
        own_entries: all of that configuration.
        is_partial: whether objects are missing that its remote is to be asked for.
        has_work_tree: whether the folder that is served is the work tree, as its configuration has it.
        submodules: the paths of the submodules in the index.
    """

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.config_path = os.path.join(folder, "config")
        self.lock = threading.Lock()
        self.shallow_lock = threading.Lock()
        self.config_signatures: Sequence[FileSignature | None] = ()
        self.written_signature: FileSignature | None = None
        self.user_configuration = UserConfiguration()
        self.configuration: Sequence[git_config.Entry] = ()
        self.own_entries: Sequence[git_config.Entry] = ()
        self.is_partial = False
        self.has_work_tree = True
        self.index_signature: FileSignature | None = None
        self.submodules: Sequence[str] = ()


class PrivateGitDirs:
    """Makes and renews them; every method blocks."""

    def __init__(self, installed: GitBinary) -> None:
        self._binary = installed
        self._shadows: dict[Layout, PrivateGitDir] = {}
        self._lock = threading.Lock()

    def apply_configured_work_tree(self, layout: Layout) -> Layout:
        """Return the layout as the repository's configuration has it, which may say that it is bare.

        Raises:
            Unavailable, Refused: as `prepare`.
        """
        if not layout.work_tree:
            return layout
        private = self._get(layout)
        with private.lock:
            self._write_configuration(private, layout)
        return layout if private.has_work_tree else replace(layout, work_tree=None)

    def _get(self, layout: Layout) -> PrivateGitDir:
        with self._lock:
            private = self._shadows.get(layout)
            if (
                private is not None
                and private.written_signature is not None
                and private.written_signature != read_signature(private.config_path)
            ):
                # Cleaned up, and perhaps somebody else's by now.
                self._binary.renew_scratch_folder()
                self._shadows.clear()
                private = None
            if private is None:
                folder = os.path.join(self._binary.scratch_folder, str(len(self._shadows)))
                os.mkdir(folder)
                with open(os.path.join(folder, FUNCTION_ATTRIBUTES), "w", encoding="ascii") as file:
                    file.write(_LANGUAGES)
                private = self._shadows[layout] = PrivateGitDir(folder)
            return private

    def prepare(self, layout: Layout) -> tuple[PrivateGitDir, dict[str, str]]:
        """Return the private git directory of a repository, and what git is to find in its environment to work on it.

        Raises:
            Unavailable: there is no git, or no place for what it is to find.
            Refused: its configuration or its index is not to be given to git.
        """
        _ = self._binary.program  # there is none, or it is too old, before anything is made
        private = self._get(layout)
        environment = {
            **self._binary.environment,
            "GIT_DIR": layout.git_dir,
            "GIT_COMMON_DIR": private.folder,
            "GIT_OBJECT_DIRECTORY": layout.objects,
            **({"GIT_WORK_TREE": layout.work_tree} if layout.work_tree else {"GIT_IMPLICIT_WORK_TREE": "0"}),
        }
        shallow = f"{layout.common_dir}{os.sep}shallow"
        if os.path.lexists(shallow):
            environment["GIT_SHALLOW_FILE"] = shallow
        with private.lock:
            if sys.platform == "win32":
                self._link_shared_parts(private, layout)  # copies, which have to be new
            self._write_configuration(private, layout)
            if layout.work_tree:
                self._refuse_index_outside(private, layout, environment)
                if self._binary.confinements is None:
                    refuse_submodules_elsewhere(layout, private.submodules, self._binary.served_paths)
        return private, environment

    def confinement(
        self, layout: Layout, private: PrivateGitDir, *, writes: bool, scratch_folder: str = ""
    ) -> Confinement | None:
        """Return what a git may do that works on a repository; None where nothing confines it.

        Args:
            writes: whether it writes into the repository.
            scratch_folder: a folder with an index and objects, or with links to refs, that it writes instead.
        """
        confinements = self._binary.confinements
        if confinements is None:
            return None
        readable = [private.folder, *private.user_configuration.named_files]
        writable = [scratch_folder] if scratch_folder else []
        if writes:
            writable.append(private.folder)
        return confinements.local(layout, writes=writes, readable=readable, writable=writable)

    def _link_shared_parts(self, private: PrivateGitDir, layout: Layout) -> None:
        for name in ("refs", "logs", "info", "packed-refs", "reftable", "worktrees", "HEAD"):
            target = f"{layout.common_dir}{os.sep}{name}"
            link_path = f"{private.folder}{os.sep}{name}"
            if sys.platform == "win32":
                _link_on_windows(target, link_path)
            elif not os.path.lexists(link_path) and (name != "reftable" or os.path.isdir(target)):
                os.symlink(target, link_path)

    def _write_configuration(self, private: PrivateGitDir, layout: Layout) -> None:
        paths = f"{layout.common_dir}{os.sep}config", f"{layout.git_dir}{os.sep}config.worktree"
        now = [read_signature(path) for path in (*paths, *private.user_configuration.files)]
        if now == private.config_signatures:
            return
        self._link_shared_parts(private, layout)
        entries = self._read_configuration(paths[0])
        if dict(entries).get("extensions.worktreeconfig", "").lower() in git_config.TRUE_VALUES:
            entries += [entry for entry in self._read_configuration(paths[1]) if not entry[0].startswith("extensions.")]
        if ("extensions.refstorage", "reftable") in entries and self._binary.version < _FIRST_WITH_REFTABLE:
            raise Refused(
                "This repository keeps its refs in a reftable, which this `git` does not know.",
                "The operator can install git 2.45 or newer, or run `git refs migrate --ref-format=files`.",
            )
        private.has_work_tree = _has_work_tree(dict(entries), layout)
        private.own_entries = entries
        private.configuration = git_config.filter_repository_entries(entries)
        private.is_partial = git_config.is_partial(entries)
        bare = [("core.bare", "false" if layout.work_tree else "true")]
        own = [*private.configuration, *git_config.HARDENED.items(), *bare]
        private.user_configuration = self._read_user_configuration(private, layout, own)
        private.written_signature = None
        _write_entries(private.config_path, [*private.user_configuration.entries, *own])
        private.config_signatures = [read_signature(path) for path in (*paths, *private.user_configuration.files)]
        private.config_signatures[:2] = now[:2]
        private.written_signature = read_signature(private.config_path)

    def _read_user_configuration(
        self, private: PrivateGitDir, layout: Layout, own: Sequence[git_config.Entry]
    ) -> UserConfiguration:
        """Return what the user's configuration says here; its conditions ask for a repository with its remotes."""
        folder = os.path.join(private.folder, "conditions")
        os.makedirs(os.path.join(folder, "refs"), exist_ok=True)
        _write_entries(os.path.join(folder, "config"), own)
        environment = {
            "GIT_DIR": layout.git_dir,
            "GIT_COMMON_DIR": folder,
            "GIT_OBJECT_DIRECTORY": layout.objects,
        }
        return read_user_configuration(self._binary, environment, layout.git_dir)

    def _read_configuration(self, path: str) -> list[git_config.Entry]:
        for _ in range(_MAX_READS_OF_CONFIGURATION):
            signature = read_signature(path)
            if signature is None:
                return []
            if signature[1] > _MAX_CONFIGURATION_BYTES:
                raise Refused(
                    "The configuration of this repository is larger than 1 MB.", "The operator can shorten it."
                )
            try:
                return git_config.parse_entries(self._binary.run_config(["--no-includes", "--list", "-z"], path))
            except GitFailed:
                if read_signature(path) == signature:
                    break
                # Another git has put a new file in its place, which the confinement of this one does not know.
        raise Refused("The configuration of this repository can't be read (`config`).", "The operator can mend it.")

    def _refuse_index_outside(self, private: PrivateGitDir, layout: Layout, environment: Mapping[str, str]) -> None:
        """Check that all names in the index lie in the work tree: git checks them when they come in, not when it reads.

        Raises:
            Refused: one of them leads out, so that a diff would show what is there.
        """
        now = read_signature(f"{layout.git_dir}{os.sep}index")
        if now is None or now == private.index_signature:
            return
        try:
            result = self._binary.run(
                ["ls-files", "-z", "--stage"],
                layout.work_tree or layout.git_dir,
                environment,
                _INDEX_TIMEOUT_SECONDS,
                self.confinement(layout, private, writes=False),
            )
        except subprocess.TimeoutExpired:
            raise Unavailable(
                f"The index of this repository takes longer than {_INDEX_TIMEOUT_SECONDS} s to read.",
                "The operator can see with `git ls-files --stage` what takes so long.",
            ) from None
        names = _STAGED.sub(rb"\1", result.stdout)
        if sys.platform == "win32":
            names = names.replace(b"\\", b"/").replace(b":", b"/..")
        if result.returncode == 0 and _BAD_INDEX.search(names):
            raise Refused(
                "The `index` of this repository names files outside of it.", "`git read-tree HEAD` renews it."
            )
        private.index_signature = now
        private.submodules = [os.fsdecode(path) for path in _SUBMODULE.findall(result.stdout)]


def _has_work_tree(entries: Mapping[str, str], layout: Layout) -> bool:
    """Whether git itself would take the folder for the work tree."""
    if (
        layout.git_dir != layout.common_dir
        and entries.get("extensions.worktreeconfig", "").lower() not in git_config.TRUE_VALUES
    ):
        return True
    named = entries.get("core.worktree")
    is_elsewhere = named is not None and os.path.realpath(os.path.join(layout.git_dir, named)) != layout.work_tree
    return not is_elsewhere and entries.get("core.bare", "").lower() not in git_config.TRUE_VALUES


def _write_entries(path: str, entries: Sequence[git_config.Entry]) -> None:
    """Write a configuration file in the place of the one that is there."""
    with open(f"{path}.new", "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(git_config.format_entries(entries))
    os.replace(f"{path}.new", path)


def _link_on_windows(target: str, link_path: str) -> None:
    """Make a junction, which needs no right; of a file a copy, which is renewed before each run."""
    if os.path.isdir(target):
        if not os.path.lexists(link_path):
            import _winapi

            try:
                _winapi.CreateJunction(target, link_path)  # pyright: ignore
            except OSError as error:
                raise Unavailable(
                    f"No junction can be made in `{os.path.dirname(link_path)}`: {error.strerror}.",
                    "The operator can set TEMP to a folder of an NTFS drive.",
                ) from None
    elif os.path.isfile(target):
        shutil.copy2(target, link_path)
    elif os.path.isfile(link_path):
        os.unlink(link_path)
