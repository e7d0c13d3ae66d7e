"""The programs that the operator lets a change run: the hooks of a repository, and what signs commits and tags."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from mcp_git import git_config
from mcp_git.repository_paths import Layout

__all__ = ["OperatorPrograms"]

# What signs, and with which key, is said by the operator's own configuration.
_SIGNING_KEYS = re.compile(r"gpg\..+|user\.signingkey|(?:commit|tag)\.gpgsign|tag\.forcesignannotated", re.DOTALL)
# A repository may say that its commits are to be signed, and which of the operator's keys is for it.
_REPOSITORY_SIGNING_KEYS = re.compile(r"user\.signingkey|(?:commit|tag)\.gpgsign")
# What makes commits and tags.
_SIGNING_COMMANDS = frozenset({"am", "cherry-pick", "commit", "merge", "rebase", "revert", "tag"})
# The end of the names of hooks that come with git, which it does not run.
_SAMPLE = ".sample"
_WITHOUT_HOOKS = frozenset({"--no-verify"})
_WITHOUT_SIGNATURE = frozenset({"--no-gpg-sign", "--no-sign"})


@dataclass(frozen=True, slots=True)
class OperatorPrograms:
    """What the operator allows.

    Attributes:
        hooks: the hooks of a repository, which are programs that may do anything.
        signing: the program that signs, as the operator's configuration names it.
    """

    hooks: bool
    signing: bool

    def limit_to(self, layout: Layout, hooks_folder: str) -> OperatorPrograms:
        """Return what a repository has of these: where no hook is set up, nothing needs to be free for one."""
        if self.hooks and not _has_programs(hooks_folder, layout):
            return replace(self, hooks=False)
        return self

    def are_run_by(self, command: str) -> bool:
        """Return whether a command runs them: any command may have hooks, but few sign."""
        return self.hooks or self.only_sign(command)

    def only_sign(self, command: str) -> bool:
        """Return whether a command signs and runs no hooks, so that nothing that is served may run."""
        return self.signing and not self.hooks and command in _SIGNING_COMMANDS

    def permit(self, arguments: Sequence[str]) -> list[str]:
        """Return the arguments of a command without the options that keep what is allowed from running.

        What stands behind `--` are paths, which may be called like an option.
        """
        refused: set[str] = set()
        if self.hooks:
            refused |= _WITHOUT_HOOKS
        if self.signing:
            refused |= _WITHOUT_SIGNATURE
        end_of_options = len(arguments)
        if "--" in arguments:
            end_of_options = arguments.index("--")
        options = [argument for argument in arguments[:end_of_options] if argument not in refused]
        return [*options, *arguments[end_of_options:]]

    def environment(
        self, hooks_folder: str, user: Sequence[git_config.Entry], repository: Sequence[git_config.Entry]
    ) -> dict[str, str]:
        """Return what is added to the environment of a git that may run them: the operator's own, and configuration.

        Args:
            user: the operator's own configuration.
            repository: the repository's.
        """
        entries: list[git_config.Entry] = []
        if self.signing:
            entries += [entry for entry in user if _SIGNING_KEYS.fullmatch(entry[0])]
            entries += [entry for entry in repository if _REPOSITORY_SIGNING_KEYS.fullmatch(entry[0])]
        if self.hooks:
            entries.append(("core.hookspath", hooks_folder))
        own = {name: value for name, value in os.environ.items() if not name.startswith("GIT_") and name != "GPG_TTY"}
        return own | git_config.format_environment(entries)


def _has_programs(folder: str, layout: Layout) -> bool:
    """Whether a folder, which may be named from where git runs its hooks, has a file that can be executed."""
    path = os.path.join(layout.work_tree or layout.git_dir, folder)
    try:
        names = os.listdir(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True  # Git may see what is not shown here.
    return any(not name.endswith(_SAMPLE) and os.access(os.path.join(path, name), os.X_OK) for name in names)
