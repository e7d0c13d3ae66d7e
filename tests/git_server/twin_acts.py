"""Changes drawn by chance: a call of a tool, and what a person types into git for the same."""

from __future__ import annotations

import os
import random
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from git_server.made import GIT
from mcp_git.path_quoting import quote_path

__all__ = ["ACT_DATE", "Act", "ActMaker", "GitRun", "find_git_dir", "literal_pathspecs", "run_git"]

ACT_DATE = "1800000000 +0000"
_KEEP_COMMENTS = ("-c", "commit.cleanup=scissors")
# These would write a fresh index beside what they print.
_READING_COMMANDS = ("status", "diff", "ls-files", "for-each-ref", "config", "rev-parse", "stash")
# By the operation that is under way: what `git status` says of it.
_OPERATIONS = {
    "am": "am session",
    "rebase": "rebas",
    "cherry-pick": "herry-pick",
    "revert": "evert",
    "merge": "merg",
}


class GitRun(NamedTuple):
    """What came of a plain git."""

    code: int
    output: bytes = b""
    error: bytes = b""


def run_git(place: Path, *words: str, stdin: bytes = b"") -> GitRun:
    """Run plain git in a repository, as nobody's configuration has it."""
    environment = {
        "PATH": os.environ["PATH"], "HOME": str(place.parent), "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C.UTF-8",
        "GIT_CONFIG_GLOBAL": os.devnull, "GIT_AUTHOR_DATE": ACT_DATE, "GIT_COMMITTER_DATE": ACT_DATE, "GIT_EDITOR": ":",
    }  # fmt: skip
    if words[0] in _READING_COMMANDS:
        environment["GIT_OPTIONAL_LOCKS"] = "0"
    process = subprocess.run([GIT, *words], cwd=place, env=environment, input=stdin, capture_output=True, check=False)
    return GitRun(process.returncode, process.stdout, process.stderr)


def find_git_dir(place: Path) -> Path:
    """Return the folder in which git keeps what belongs to a work tree alone."""
    return Path(os.fsdecode(run_git(place, "rev-parse", "--absolute-git-dir").output).rstrip("\n"))


def literal_pathspecs(paths: Sequence[str]) -> list[str]:
    """Return paths as git takes them by their letters; the whole work tree stays what it is."""
    return [path if path == "." else f":(literal){path}" for path in paths]


@dataclass(frozen=True)
class Act:
    """One change.

    Attributes:
        tool, arguments: the call.
        words, stdin: what a person types for git, and what git reads.
    """

    tool: str
    arguments: dict[str, Any]
    words: Sequence[str]
    stdin: bytes = b""

    def __str__(self) -> str:
        return f"{self.tool} {self.arguments}"


@dataclass(frozen=True)
class _Choices:
    """What the acts of one moment are about, drawn from what there is.

    Attributes:
        rev: a revision that exists, or not.
        paths: as the tools take them.
        pathspecs: the same paths as git takes them, behind `--`.
        name: for what is new; it can be taken.
        staged: the argument `paths` of the tools that stage before they commit, or nothing.
        into: the argument `into` of the tools that change another branch, or nothing.
    """

    branches: list[str]
    tags: list[str]
    rev: str
    paths: list[str]
    pathspecs: list[str]
    name: str
    staged: dict[str, Any]
    into: dict[str, Any]


class ActMaker:
    """Draws acts that fit what two twins have.

    Attributes:
        ours, theirs: the repository of the tools, and the one of plain git.
    """

    def __init__(self, ours: Path, theirs: Path, chance: random.Random) -> None:
        self.ours = ours
        self.theirs = theirs
        self.chance = chance

    def draw(self) -> Act:
        """Return the next act."""
        choices = self._draw_choices()
        match self.chance.randrange(21):
            case 0 | 1:
                return self._stage(choices)
            case 2:
                return self._unstage(choices)
            case 3 | 4:
                return self._commit(choices)
            case 5:
                return self._create_branch(choices)
            case 20:
                return self._rename_branch(choices)
            case 6:
                return self._create_tag(choices)
            case 7:
                return self._delete_ref(choices)
            case 8 | 9:
                return self._switch(choices)
            case 10:
                return self._restore(choices)
            case 11:
                return self._push_stash()
            case 12 | 13:
                return self._take_stash()
            case 14:
                return self._merge(choices)
            case 15:
                return self._rebase(choices)
            case 16:
                return self._pick_or_revert(choices)
            case 17:
                return self._continue(choices)
            case _:
                return self._reset(choices)

    def _draw_choices(self) -> _Choices:
        chance = self.chance
        tracked = self._list_paths("ls-files", "-z")
        others = self._list_paths("ls-files", "-z", "--others", "--exclude-standard")
        branches = self._list_lines("for-each-ref", "--format=%(refname:lstrip=2)", "refs/heads")
        tags = self._list_lines("tag")
        rev = chance.choice(["HEAD", "HEAD~1", "HEAD~2", "nothing", "theirs", "long", "@{1}", *branches[:4], *tags[:2]])
        one_path = chance.sample([*tracked, *others, "nothing.txt"], 1)
        paths = chance.choice([["."], one_path])
        quoted = [quote_path(os.fsencode(path)) for path in paths]
        name = chance.choice(["fresh", "v900", "a..b", *branches[:1], *tags[:1]])
        staged = {"paths": quoted} if self._has_luck(0.5) else {}
        into: dict[str, Any] = {}
        fixed_revisions = [*branches, *tags, "nothing"]  # which mean the same wherever HEAD is
        if rev in fixed_revisions and self._has_luck(0.5):
            into["into"] = chance.choice(fixed_revisions)
        pathspecs = ["--", *literal_pathspecs(paths)]
        return _Choices(branches, tags, rev, quoted, pathspecs, name, staged, into)

    def _stage(self, choices: _Choices) -> Act:
        return Act("stage_files", {"paths": choices.paths}, ["add", "--all", *choices.pathspecs])

    def _unstage(self, choices: _Choices) -> Act:
        arguments = {"paths": choices.paths, "unstage": True}
        return Act("stage_files", arguments, ["reset", "--quiet", *choices.pathspecs])

    def _commit(self, choices: _Choices) -> Act:
        takes_all = self._has_luck(0.5)
        amends = self._has_luck(0.3)
        words = ["commit", "--cleanup=whitespace"]
        if takes_all:
            words.append("--all")
        if amends:
            words.append("--amend")
        message = "An act\n\n# body"
        arguments = {"message": message, "all_tracked": takes_all, "amend": amends, **choices.staged}
        return Act("create_commit", arguments, [*words, "--file=-"], message.encode())

    def _create_branch(self, choices: _Choices) -> Act:
        switches = self._has_luck(0.5)
        words = ["switch", "--no-track", "-c"] if switches else ["branch", "--no-track"]
        arguments = {"name": choices.name, "rev": choices.rev, "switch": switches}
        return Act("create_branch", arguments, [*words, choices.name, choices.rev])

    def _rename_branch(self, choices: _Choices) -> Act:
        old = self.chance.choice([*choices.branches, "nothing"])
        new = self.chance.choice([choices.name, f"{old}/new", old.partition("/")[0]])
        return Act("create_branch", {"name": new, "rename": old}, ["branch", "--move", old, new])

    def _create_tag(self, choices: _Choices) -> Act:
        message = self.chance.choice(["", "A tag"])
        words = ["tag"]
        if message:
            words += ["--annotate", "--message", message]
        arguments = {"name": choices.name, "rev": choices.rev, "message": message}
        return Act("create_tag", arguments, [*words, choices.name, choices.rev])

    def _delete_ref(self, choices: _Choices) -> Act:
        kind = self.chance.choice(["branch", "tag"])
        names = choices.branches if kind == "branch" else choices.tags
        name = self.chance.choice([*names, "nothing"])
        forces = self._has_luck(0.6)
        if kind == "tag":
            words = ["tag", "--delete"]
        else:
            words = ["branch", "-D" if forces else "-d"]
        return Act("delete_ref", {"name": name, "kind": kind, "force": forces}, [*words, name])

    def _switch(self, choices: _Choices) -> Act:
        words = ["switch", "--no-guess"]
        if choices.rev not in choices.branches:
            words.append("--detach")
        return Act("run_switch", {"rev": choices.rev}, [*words, choices.rev])

    def _restore(self, choices: _Choices) -> Act:
        words = ["restore", f"--source={choices.rev}", "--staged", "--worktree", *choices.pathspecs]
        return Act("run_restore", {"paths": choices.paths, "rev": choices.rev}, words)

    def _push_stash(self) -> Act:
        takes_untracked = self._has_luck(0.4)
        words = ["stash", "push"]
        if takes_untracked:
            words.append("--include-untracked")
        return Act("run_stash", {"message": "aside", "untracked": takes_untracked}, [*words, "--message", "aside"])

    def _take_stash(self) -> Act:
        action = self.chance.choice(["pop", "apply", "drop"])
        takes_index = self._has_luck(0.3)
        stash = self.chance.choice(["stash@{0}", "stash@{1}"])
        words = ["stash", action]
        if takes_index and action != "drop":
            words.append("--index")
        return Act("run_stash", {"action": action, "rev": stash, "index": takes_index}, [*words, stash])

    def _merge(self, choices: _Choices) -> Act:
        squashes = self._has_luck(0.3)
        joins = self._has_luck(0.3)
        arguments: dict[str, Any] = {"rev": choices.rev}
        words = ["merge", "--no-edit"]
        if squashes:
            arguments["squash"] = True
            words.append("--squash")
        elif joins:
            arguments["message"] = "Both"
            words += ["--no-ff", "--message=Both"]
        return Act("run_merge", {**arguments, **choices.into}, [*words, choices.rev])

    def _rebase(self, choices: _Choices) -> Act:
        words = [*self._keep_comments(f"{choices.rev}..HEAD"), "rebase", choices.rev]
        return Act("run_rebase", {"rev": choices.rev}, words)

    def _pick_or_revert(self, choices: _Choices) -> Act:
        reverts = self._has_luck(0.5)
        words = ["revert", "--no-edit"] if reverts else ["cherry-pick"]
        tool = "revert_commit" if reverts else "run_cherry_pick"
        words = [*self._keep_comments("--no-walk", choices.rev), *words, choices.rev]
        return Act(tool, {"rev": choices.rev, **choices.into}, words)

    def _continue(self, choices: _Choices) -> Act:
        action = self.chance.choice(["continue", "skip", "abort"])
        staged = choices.staged if action == "continue" else {}
        words = [self._find_operation(), f"--{action}"]
        message = find_git_dir(self.theirs) / "MERGE_MSG"
        if message.exists() and re.search(rb"(?m)^# -+ >8 -+$", message.read_bytes()):
            if words == ["cherry-pick", "--continue"]:
                words = ["commit"]
            words = [*_KEEP_COMMENTS, *words]
        return Act("continue_operation", {"action": action, **staged}, words)

    def _reset(self, choices: _Choices) -> Act:
        mode = self.chance.choice(["soft", "mixed", "keep", "hard"])
        words = ["reset", "--quiet", f"--{mode}", choices.rev, "--"]
        return Act("run_reset", {"rev": choices.rev, "mode": mode}, words)

    def _has_luck(self, probability: float) -> bool:
        return self.chance.random() < probability

    def _keep_comments(self, *span: str) -> Sequence[str]:
        """Return the options with which lines with `#` stay, where a message of these commits has one."""
        commits = run_git(self.ours, "log", "--max-count=1", "--format=%H", "--grep=^#", *span, "--").output
        return _KEEP_COMMENTS if commits else ()

    def _find_operation(self) -> str:
        """Return the operation that is under way; `merge` where none is."""
        status = run_git(self.theirs, "status").output.decode("utf-8", "replace")
        for operation, pattern in _OPERATIONS.items():
            is_named = rf"(?:in progress|currently|middle of|still|have unmerged).*{pattern}|{pattern}.*in progress"
            if re.search(is_named, status):
                return operation
        return "merge"

    def _list_paths(self, *words: str) -> list[str]:
        return [os.fsdecode(path) for path in run_git(self.ours, *words).output.split(b"\0") if path]

    def _list_lines(self, *words: str) -> list[str]:
        return run_git(self.ours, *words).output.decode().split("\n")[:-1]
