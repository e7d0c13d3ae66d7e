"""Reads the configuration of the one who started the server as git itself would for a repository, with what it
includes, and knows when to read it again.

No repository can write it. Conditions such as `includeIf "gitdir:~/work/"` are git's own to decide.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mcp_git import git_config
from mcp_git.engine.program.git_binary import GitBinary, GitFailed

__all__ = ["FileSignature", "UserConfiguration", "read_signature", "read_user_configuration"]

FileSignature = tuple[int, int, int, int]

_SYSTEM_FILE = "/etc/gitconfig"
_USER_SCOPES = frozenset({"system", "global", "command"})
_FIELDS = 3
_BRANCH_CONDITION = "includeif.onbranch:"
# The keys that name a file to read, and the name of that file where no key does.
_NAMED_FILES = {"core.excludesfile": "ignore", "core.attributesfile": "attributes"}


@dataclass(frozen=True, slots=True)
class UserConfiguration:
    """What the user's configuration says for a repository.

    Attributes:
        entries: those that matter to every git here, with a file of ignored names and one of attributes in any case.
        all_entries: all of it.
        files: the files that it depends on, of which some may not be there.
    """

    entries: Sequence[git_config.Entry] = ()
    all_entries: Sequence[git_config.Entry] = ()
    files: Sequence[str] = field(default_factory=list[str])

    @property
    def named_files(self) -> list[str]:
        """The files of ignored names and of attributes, as real paths."""
        return [os.path.realpath(value) for key, value in self.entries if key in _NAMED_FILES]

    @property
    def attributes_file(self) -> str:
        return dict(self.entries).get("core.attributesfile", os.devnull)


def read_signature(path: str) -> FileSignature | None:
    """Return what changes when a file does; None where there is none."""
    try:
        status = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino, status.st_ctime_ns


def read_user_configuration(binary: GitBinary, environment: Mapping[str, str], git_dir: str) -> UserConfiguration:
    """Return what the user's configuration says for the repository that `environment` names."""
    variables = {**os.environ, **environment, "PATH": binary.environment["PATH"]}
    try:
        output = binary.run_without_repository(
            ["config", "--includes", "--show-scope", "--show-origin", "--list", "-z"], variables
        )
    except GitFailed:
        output = b""
    entries: list[git_config.Entry] = []
    files = [*_usual_files()]
    fields = output.split(b"\0")[:-1]
    for scope, origin, item in zip(fields[::_FIELDS], fields[1::_FIELDS], fields[2::_FIELDS], strict=False):
        if scope.decode() not in _USER_SCOPES:
            continue
        [(key, value)] = git_config.parse_entries(item + b"\0")
        entries.append((key, value))
        file = os.fsdecode(origin).removeprefix("file:")
        files.append(file)
        if key == "include.path" or key.startswith("includeif."):
            files.append(os.path.join(os.path.dirname(file), os.path.expanduser(value)))
        if key in _NAMED_FILES:
            files.append(os.path.expanduser(value))
        if key.startswith(_BRANCH_CONDITION):
            files.append(os.path.join(git_dir, "HEAD"))
    return UserConfiguration(_select_entries(entries), entries, list(dict.fromkeys(files)))


def _usual_files() -> list[str]:
    """Return where the user's configuration is, and where the files are that it names unless a key says so."""
    folder = _xdg_folder()
    own = os.environ.get("GIT_CONFIG_GLOBAL")
    files = [own] if own else [os.path.expanduser("~/.gitconfig"), os.path.join(folder, "config")]
    return [_SYSTEM_FILE, *files, *(os.path.join(folder, name) for name in _NAMED_FILES.values())]


def _xdg_folder() -> str:
    return os.path.join(os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config"), "git")


def _select_entries(entries: Sequence[git_config.Entry]) -> list[git_config.Entry]:
    """Return the last of each key that matters everywhere, with the files that have no key."""
    selected = dict(git_config.filter_user_entries(entries))
    if "EMAIL" in os.environ:
        selected.setdefault("user.email", os.environ["EMAIL"])
    for key, name in _NAMED_FILES.items():
        path = os.path.expanduser(selected.get(key, os.path.join(_xdg_folder(), name)))
        selected[key] = path if os.path.isfile(path) else os.devnull
    return list(selected.items())
