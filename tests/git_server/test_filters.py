"""Files that go through a filter: only a change that touches one is refused, and it names the file."""

import sys
from pathlib import Path
from typing import Any

import pytest

from git_server.made import Made
from git_server.serving import serving
from git_server.test_writes import made_app

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform == "win32", reason="it only reads there yet"),
]

_POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:{}\nsize 5\n"


def made_lfs(folder: Path) -> Made:
    """Return a repository with files of Git LFS, of which main and topic have different ones."""
    made = made_app(folder)
    made.commit("lfs", {".gitattributes": "*.bin filter=lfs diff=lfs merge=lfs -text\n", "a.bin": _POINTER.format("a")})
    made.git("switch", "--quiet", "--create", "bins")
    made.commit("other bin", {"a.bin": _POINTER.format("b"), "text.txt": "text\n"})
    made.git("switch", "--quiet", "main")
    made.git("switch", "--quiet", "--create", "texts")
    made.commit("other text", {"side.txt": "texts\n"})
    made.git("switch", "--quiet", "main")
    made.write("side.txt", "aside\n")
    made.git("stash", "push", "--quiet")
    made.write("notes.txt", "changed\n")
    made.write("a.bin", "real content\n")
    made.write("new.bin", "real content\n")
    return made


# Each call, with the file that it would take through a filter.
CALLS: dict[str, tuple[str, dict[str, Any], str]] = {
    "stage others": ("stage_files", {"paths": ["notes.txt"]}, ""),
    "stage": ("stage_files", {"paths": ["a.bin"]}, "a.bin"),
    "stage a new one": ("stage_files", {"paths": ["new.bin"]}, "new.bin"),
    "stage all": ("stage_files", {"paths": ["."]}, "and 1 more"),
    "unstage": ("stage_files", {"paths": ["."], "unstage": True}, ""),
    "commit around": ("create_commit", {"message": "x", "paths": ["notes.txt"]}, ""),
    "commit": ("create_commit", {"message": "x", "paths": ["notes.txt", "a.bin"]}, "a.bin"),
    "commit tracked": ("create_commit", {"message": "x", "all_tracked": True}, "a.bin"),
    "amend": ("create_commit", {"message": "x", "amend": True}, ""),
    "restore others": ("run_restore", {"paths": ["notes.txt"]}, ""),
    "restore": ("run_restore", {"paths": ["."]}, "a.bin"),
    "switch": ("run_switch", {"rev": "texts"}, ""),
    "switch to others": ("run_switch", {"rev": "bins"}, "a.bin"),
    "merge": ("run_merge", {"rev": "texts"}, ""),
    "merge others": ("run_merge", {"rev": "bins"}, "a.bin"),
    "pick": ("run_cherry_pick", {"rev": "texts"}, ""),
    "pick others": ("run_cherry_pick", {"rev": "bins"}, "a.bin"),
    "pick several": ("run_cherry_pick", {"rev": "texts bins"}, "a.bin"),
    "stash": ("run_stash", {}, "a.bin"),
    "apply": ("run_stash", {"action": "apply"}, ""),
    "drop": ("run_stash", {"action": "drop"}, ""),
    "soft": ("run_reset", {"rev": "HEAD~1", "mode": "soft"}, ""),
    "mixed": ("run_reset", {"rev": "HEAD~1", "mode": "mixed"}, ""),
    "hard": ("run_reset", {"rev": "HEAD", "mode": "hard"}, "a.bin"),
    "branch": ("create_branch", {"name": "new"}, ""),
}


@pytest.mark.share(5, slow=20)
@pytest.mark.parametrize("name", CALLS)
async def test_a_change_is_refused_where_it_touches_a_filtered_file(name: str, tmp_path: Path) -> None:
    made = made_lfs(tmp_path)
    tool, arguments, filtered = CALLS[name]
    before = made.git("status", "--porcelain=v2", "--branch")
    async with serving("--write", made.path) as asking:
        answer = await asking(tool, **arguments)
    if filtered:
        assert answer.startswith("failed: ") and "Git LFS" in answer and filtered in answer, answer
        assert made.git("status", "--porcelain=v2", "--branch") == before
    else:
        assert not answer.startswith("failed"), answer


# Attributes, and whether a file that they concern can be committed.
ATTRIBUTES: dict[str, tuple[str, dict[str, str], bool]] = {
    "a comment": ("# *.txt filter=lfs\n", {}, True),
    "a fixture": ("tests/*.gz filter=lfs\n", {}, True),
    "a filter that nobody set up": ("*.txt filter=mine\n", {}, True),
    "one that is set up": ("*.txt filter=mine\n", {"filter.mine.clean": "sed s/a/b/"}, False),
    "one that is required": ("*.txt filter=mine\n", {"filter.mine.required": "true"}, False),
    "one that is taken back": ("*.txt filter=lfs\nnotes.txt -filter\n", {}, True),
    "Git LFS": ("*.txt filter=lfs\n", {}, False),
}


@pytest.mark.share(2)
@pytest.mark.parametrize("name", ATTRIBUTES)
@pytest.mark.parametrize("file", [".gitattributes", ".git/info/attributes"])
async def test_only_a_filter_that_would_do_something_counts(name: str, file: str, tmp_path: Path) -> None:
    text, configuration, is_committed = ATTRIBUTES[name]
    made = made_app(tmp_path)
    made.write(file, text)
    for key, value in configuration.items():
        made.git("config", key, value)
    made.write("notes.txt", "changed\n")
    async with serving("--write", made.path) as asking:
        answer = await asking("create_commit", message="x", paths=["notes.txt"])
        assert answer.startswith("failed") is not is_committed, answer


@pytest.mark.parametrize("mainline", [1, 2])
@pytest.mark.parametrize("tool", ["run_cherry_pick", "revert_commit"])
async def test_of_a_merge_what_differs_from_its_mainline_counts(tool: str, mainline: int, tmp_path: Path) -> None:
    made = made_lfs(tmp_path)
    made.git("checkout", "--quiet", "--force", "texts")
    made.git("merge", "--quiet", "--no-edit", "bins")
    if tool == "run_cherry_pick":
        made.git("checkout", "--quiet", "--detach", f"HEAD^{mainline}")
    async with serving("--write", made.path) as asking:
        answer = await asking(tool, rev="texts", mainline=mainline)
    # Against the branch with texts it brings a file of Git LFS, against the other one a text.
    assert answer.startswith("failed") is (mainline == 1), answer
    assert ("Git LFS" in answer) is (mainline == 1), answer


async def test_attributes_of_the_branch_that_comes_count_too(tmp_path: Path) -> None:
    made = made_app(tmp_path)
    made.git("switch", "--quiet", "topic")
    made.commit("lfs", {".gitattributes": "*.bin filter=lfs\n", "a.bin": _POINTER.format("a")})
    made.git("switch", "--quiet", "main")
    async with serving("--write", "--worktree-folder", tmp_path / "trees", made.path) as asking:
        assert "`a.bin` would go through Git LFS" in await asking("run_switch", rev="topic")
        assert "`a.bin` would go through Git LFS" in await asking("create_worktree", name="linked", branch="topic")
