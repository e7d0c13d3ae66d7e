"""What a shallow or partial clone lacks, and what came before a rename, is told and not taken for the whole."""

import sys
from pathlib import Path
from typing import Any

import pytest

from git_server.made import Made
from git_server.serving import serving
from git_server.test_writes import state

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform == "win32", reason="it clones by a file address"),
]


def made_source(folder: Path) -> Made:
    made = Made(folder / "source")
    lines = "".join(f"{number}\n" for number in range(30))
    for number in range(4):
        made.commit(f"change {number}", {"n.txt": f"{lines}v{number}\n"})
    made.git("mv", "n.txt", "m.txt")
    made.commit("rename it")
    made.commit("after", {"m.txt": f"{lines}v3\nx\n", "other.txt": "other\n"})
    made.git("config", "uploadpack.allowFilter", "true")
    return made


def cloned(folder: Path, *words: str) -> Made:
    source = made_source(folder)
    source.git("clone", "--quiet", *words, f"file://{source.path}", str(folder / "clone"))
    return Made(folder / "clone")


SHALLOW: dict[str, tuple[str, dict[str, Any], str]] = {
    "all": ("list_commits", {}, "what is before {boundary} is not here"),
    "a page before its end": ("list_commits", {"limit": 1}, ""),
    "of a file": ("list_commits", {"path": "m.txt"}, "what is before {boundary} is not here"),
    "none": ("list_commits", {"message": "change"}, "shallow clone: what is before its first commits is not here"),
    "by text": ("list_commits", {"text": "v1"}, "shallow clone: what is before its first commits is not here"),
    "blame": ("get_blame", {"path": "m.txt"}, "what is before {boundary} is not here"),
    "blame of another": ("get_blame", {"path": "other.txt"}, ""),
    "the first commit": ("read_diff", {"rev": "HEAD~1"}, "what is before {boundary} is not here"),
    "another commit": ("read_diff", {"rev": "HEAD"}, ""),
    "merge base": ("get_merge_base", {"one": "HEAD~1"}, "what is before {boundary} is not here"),
    "what is not there": ("list_commits", {"rev": "HEAD~3"}, "`run_fetch` with `deepen`"),
}


@pytest.mark.share(4)
@pytest.mark.parametrize("name", SHALLOW)
async def test_a_shallow_clone_says_where_it_begins(name: str, tmp_path: Path) -> None:
    made = cloned(tmp_path, "--depth=2")
    boundary = made.git("rev-parse", "HEAD~1")[:9]
    tool, arguments, words = SHALLOW[name]
    async with serving(made.path) as asking, serving(tmp_path / "source") as whole:
        head = (await asking(tool, **arguments)).partition("\n")[0]
        assert words.format(boundary=boundary) in head, head
        assert bool(words) is ("shallow" in head), head
        assert "shallow" not in await whole(tool, **arguments)


PARTIAL: dict[str, tuple[str, dict[str, Any]]] = {
    "file": ("read_file", {"path": "n.txt", "rev": "HEAD~3"}),
    "diff": ("read_diff", {"rev": "HEAD~3"}),
    "blame": ("get_blame", {"path": "m.txt"}),
    "text": ("list_commits", {"text": "v2"}),
    "regex": ("list_commits", {"text": "v2", "regex": True}),
}


@pytest.mark.share(2)
@pytest.mark.parametrize("name", PARTIAL)
async def test_a_partial_clone_says_that_contents_are_not_here(name: str, tmp_path: Path) -> None:
    made = cloned(tmp_path, "--filter=blob:none")
    tool, arguments = PARTIAL[name]
    async with serving(made.path) as asking:
        assert (await asking(tool, **arguments)).startswith("failed: This is a partial clone"), name
        assert "change 0" in await asking("list_commits")
        assert "There is no `missing.txt`" in await asking("read_file", path="missing.txt")


# What writes files of which the clone lacks the contents.
WRITES: dict[str, dict[str, Any]] = {
    "run_switch": {"rev": "HEAD~3"},
    "create_branch": {"name": "new", "rev": "HEAD~3", "switch": True},
    "run_reset": {"rev": "HEAD~3", "mode": "keep"},
    "git_reset": {"rev": "HEAD~3", "mode": "hard"},
    "run_restore": {"rev": "HEAD~3", "paths": ["."]},
    "revert_commit": {"rev": "HEAD~2"},
    "run_merge": {"rev": "origin/main"},
    "run_rebase": {"rev": "origin/main"},
    "run_cherry_pick": {"rev": "origin/main"},
    "create_worktree": {"name": "beside", "rev": "HEAD~3"},
}


@pytest.mark.share(4)
@pytest.mark.parametrize("tool", WRITES)
async def test_a_partial_clone_writes_all_of_a_change_or_nothing(tool: str, tmp_path: Path) -> None:
    made = cloned(tmp_path, "--filter=blob:none")
    Made(tmp_path / "source").commit("later", {"later.txt": "later\n", "m.txt": "all new\n"})
    made.git("fetch", "--quiet")
    before = state(made)
    folder = tmp_path / "worktrees"
    folder.mkdir()
    async with serving("--write", f"--worktree-folder={folder}", made.path) as asking:
        answer = await asking(tool, **WRITES[tool])
    assert answer.startswith("failed: This is a partial clone"), answer
    assert state(made) == before and list(folder.iterdir()) == []


async def test_a_sparse_checkout_of_a_partial_clone_lacks_only_what_it_writes(tmp_path: Path) -> None:
    source = made_source(tmp_path)
    source.commit("folders", {"in/a.txt": "a\n", "out/b.txt": "b\n"})
    source.commit("outside", {"out/b.txt": "new\n", "out/c.txt": "c\n"})
    source.commit("inside", {"in/a.txt": "new\n"})
    words = ["--quiet", "--filter=blob:none", "--sparse", f"file://{source.path}", str(tmp_path / "clone")]
    source.git("clone", *words)
    made = Made(tmp_path / "clone")
    made.git("sparse-checkout", "set", "in")
    made.git("switch", "--quiet", "--detach", "HEAD~1")
    async with serving("--write", made.path) as asking:
        answer = await asking("run_switch", rev="HEAD~1")
        assert "other file" not in answer and "failed" not in answer, answer
        assert made.git("status", "--porcelain") == "" and (made.path / "in/a.txt").read_text() == "a\n"


# What brings files that a sparse checkout leaves out, and some that it has not seen before.
OUTSIDE: dict[str, dict[str, Any]] = {
    "create_branch": {"name": "new", "rev": "origin/main", "switch": True},
    "run_merge": {"rev": "origin/main"},
    "run_rebase": {"rev": "origin/main"},
    "run_reset": {"rev": "origin/main", "mode": "keep"},
}


@pytest.mark.parametrize("tool", OUTSIDE)
async def test_a_sparse_checkout_of_a_partial_clone_takes_new_files_outside(tool: str, tmp_path: Path) -> None:
    source = made_source(tmp_path)
    source.commit("folders", {"in/a/a.txt": "a\n", "out/b.txt": "b\n"})
    words = ["--quiet", "--filter=blob:none", "--sparse", f"file://{source.path}", str(tmp_path / "clone")]
    source.git("clone", *words)
    made = Made(tmp_path / "clone")
    made.git("sparse-checkout", "set", "in/a")
    source.commit("outside", {"out/new.txt": "new\n", "in/b/new.txt": "b\n"})
    made.git("fetch", "--quiet")
    async with serving("--write", made.path) as asking:
        answer = await asking(tool, **OUTSIDE[tool])
        assert "failed" not in answer and "git: " not in answer, answer
        assert made.git("rev-parse", "HEAD") == source.git("rev-parse", "HEAD")
        assert made.git("status", "--porcelain") == "" and not (made.path / "out").exists()
        source.commit("inside", {"in/a/new.txt": "not here\n"})
        made.git("fetch", "--quiet")
        assert (await asking("run_merge", rev="origin/main")).startswith("failed: This is a partial clone")


async def test_a_sparse_checkout_of_a_partial_clone_begins_without_an_index(tmp_path: Path) -> None:
    made = cloned(tmp_path, "--filter=blob:none", "--sparse", "--no-checkout")
    async with serving("--write", made.path) as asking:
        answer = await asking("run_reset", rev="HEAD", mode="keep")
    assert "inside the server" not in answer, answer


async def test_a_pull_into_a_partial_clone_brings_the_contents(tmp_path: Path) -> None:
    made = cloned(tmp_path, "--filter=blob:none")
    Made(tmp_path / "source").commit("later", {"later.txt": "later\n", "m.txt": "all new\n"})
    made.commit("ours", {"ours.txt": "ours\n"})
    async with serving("--write", "--fetch", "--remote-folder", tmp_path, made.path) as asking:
        answer = await asking("run_pull")
    assert "missing objects of origin/main fetched" in answer, answer
    assert made.git("status", "--porcelain") == "" and (made.path / "later.txt").exists()


@pytest.mark.parametrize("words", [["--filter=tree:0"], ["--filter=blob:none"]], ids=lambda words: words[0])
async def test_a_partial_clone_does_not_say_that_a_path_is_not_there(words: list[str], tmp_path: Path) -> None:
    made = cloned(tmp_path, "--no-checkout", *words)
    calls: list[tuple[str, dict[str, Any]]] = [
        ("read_file", {"path": "m.txt"}),
        ("get_blame", {"path": "m.txt"}),
        ("list_commits", {"path": "m.txt", "lines": "1-2"}),
    ]
    if "tree:0" in words[0]:
        calls += [
            ("run_restore", {"paths": ["m.txt"]}),
            ("get_status", {}),
            ("list_files", {}),
            ("read_file", {"path": "x", "rev": "HEAD~1"}),
        ]
    async with serving("--write", made.path) as asking:
        for tool, arguments in calls:
            answer = await asking(tool, **arguments)
            assert answer.startswith("failed: This is a partial clone"), (tool, arguments, answer)
        if "tree:0" not in words[0]:
            assert "There is no `x`" in await asking("read_file", path="x")
            assert "committed what can't be compared here" in await asking("create_commit", message="x", paths=["."])


async def test_a_listing_says_where_a_file_had_another_name_and_follows_it(tmp_path: Path) -> None:
    made = made_source(tmp_path)
    async with serving(made.path) as asking:
        answer = await asking("list_commits", path="m.txt")
        assert "commits 1-2 of HEAD" in answer and "renamed from n.txt there" in answer.partition("\n")[0]
        assert "renamed" not in await asking("list_commits", path="m.txt", limit=1)
        assert "renamed" not in await asking("list_commits", path="other.txt")
        listed: list[str] = []
        cursor = None
        while True:
            answer = await asking("list_commits", path="m.txt", follow=True, limit=2, cursor=cursor)
            head, *rows = answer.splitlines()
            listed += [row.partition(": ")[2] or row for row in rows if row]
            if "cursor=" not in head:
                break
            cursor = head.partition('cursor="')[2].partition('"')[0]
        assert len(listed) == 6 and "change 0" in listed[-1], listed
        assert "failed" in await asking("list_commits", follow=True)
