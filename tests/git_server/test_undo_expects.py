"""What an answer names as its undo undoes nothing that somebody else did meanwhile."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from git_server.made import Made
from git_server.serving import serving
from git_server.test_writes import calls_back
from thinning import some

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform == "win32", reason="it only reads there yet"),
]


class Foreign(NamedTuple):
    """What somebody did between a change and its undo.

    Attributes:
        do: does it; returns whether it is still there.
    """

    name: str
    do: Callable[[Made], Callable[[], bool]]


def stashes(made: Made) -> Callable[[], bool]:
    made.write("notes.txt", "of another\n")
    made.git("stash", "push", "--quiet", "--message", "of another")
    oid = made.git("rev-parse", "stash@{0}")
    return lambda: oid in made.git("stash", "list", "--format=%H")


def stashes_beside(made: Made) -> Callable[[], bool]:
    beside = Made(made.path.parent / "beside")
    beside.write("notes.txt", "of the worktree\n")
    beside.git("stash", "push", "--quiet", "--message", "of the worktree")
    oid = beside.git("rev-parse", "stash@{0}")
    return lambda: oid in made.git("stash", "list", "--format=%H")


def commits(made: Made) -> Callable[[], bool]:
    made.write("foreign.txt", "of another\n")
    made.git("add", "foreign.txt")
    made.git("commit", "--quiet", "--message", "of another", "--", "foreign.txt")
    oid, branch = made.git("rev-parse", "HEAD").strip(), made.git("symbolic-ref", "--short", "HEAD").strip()
    return lambda: oid in made.git("rev-list", branch)


def commits_on_new_branches(made: Made) -> Callable[[], bool]:
    """Move every ref that the change may have made."""
    oid = made.git("commit-tree", "-p", "HEAD", "-m", "of another", "HEAD^{tree}").strip()
    kinds = {"heads": "new", "tags": "v1"}
    refs = [f"refs/{kind}/{name}" for kind, name in kinds.items()]
    moved = [ref for ref in refs if made.git("for-each-ref", ref)]
    for ref in moved:
        made.git("update-ref", ref, oid)
    return lambda: all(made.git("rev-parse", ref).strip() == oid for ref in moved)


def switches(made: Made) -> Callable[[], bool]:
    made.git("switch", "--quiet", "--create", "of-another")
    oid = made.git("rev-parse", "HEAD")
    return lambda: made.git("rev-parse", "of-another") == oid


def edits(made: Made) -> Callable[[], bool]:
    path = made.write("notes.txt", "of another\n")
    return lambda: path.read_text() == "of another\n"


def edits_the_same(made: Made) -> Callable[[], bool]:
    path = made.write("side.txt", "of another\n")
    return lambda: path.read_text() == "of another\n"


def stages(made: Made) -> Callable[[], bool]:
    made.write("other.txt", "of another\n")
    made.git("add", "other.txt")
    made.write("other.txt", "changed again\n")
    oid = made.git("rev-parse", ":other.txt").strip()
    return lambda: oid in made.git("ls-files", "--stage", "other.txt") and (made.path / "other.txt").exists()


def adds(made: Made) -> Callable[[], bool]:
    path = made.write("brand/new.txt", "of another\n")
    made.git("add", "brand/new.txt")
    return lambda: path.exists()


FOREIGN = [
    Foreign(do.__name__, do)
    for do in (stashes, stashes_beside, commits, commits_on_new_branches, switches, edits, edits_the_same, stages, adds)
]

# Each change, with whether something is changed in a file and in the index before it.
CHANGES: dict[str, tuple[str, dict[str, Any]]] = {
    "commit": ("create_commit", {"message": "x", "all_tracked": True}),
    "commit paths": ("create_commit", {"message": "x", "paths": ["side.txt"]}),
    "amend": ("create_commit", {"message": "x", "amend": True}),
    "stage": ("stage_files", {"paths": ["side.txt"]}),
    "unstage": ("stage_files", {"paths": ["."], "unstage": True}),
    "branch": ("create_branch", {"name": "new"}),
    "branch and switch": ("create_branch", {"name": "new", "switch": True}),
    "tag": ("create_tag", {"name": "v1", "message": "One"}),
    "light tag": ("create_tag", {"name": "v1"}),
    "delete": ("delete_ref", {"name": "topic", "force": True}),
    "switch": ("run_switch", {"rev": "topic"}),
    "restore": ("run_restore", {"paths": ["side.txt"]}),
    "restore files": ("run_restore", {"paths": ["side.txt"], "rev": "HEAD~1", "index": False}),
    "restore all": ("run_restore", {"paths": ["."]}),
    "stash": ("run_stash", {}),
    "pop": ("run_stash", {"action": "pop"}),
    "apply": ("run_stash", {"action": "apply"}),
    "drop": ("run_stash", {"action": "drop"}),
    "move": ("move_path", {"path": "side.txt", "to": "moved.txt"}),
    "merge": ("run_merge", {"rev": "topic"}),
    "squash": ("run_merge", {"rev": "topic", "squash": True}),
    "pick": ("run_cherry_pick", {"rev": "topic"}),
    "rebase": ("run_rebase", {"rev": "topic"}),
    "soft": ("run_reset", {"rev": "HEAD~1", "mode": "soft"}),
    "mixed": ("run_reset", {"rev": "HEAD~1", "mode": "mixed"}),
    "keep": ("run_reset", {"rev": "HEAD~1", "mode": "keep"}),
    "hard": ("run_reset", {"rev": "HEAD~1", "mode": "hard"}),
}
# Changes that git makes only where nothing is changed, or which need nothing to be.
CLEAN = {"pop", "apply", "drop", "rebase", "pick", "squash", "amend"}


def made_busy(folder: Path, change: str) -> Made:
    made = Made(folder / "app")
    made.git("config", "user.name", "Grace Hopper")
    made.git("config", "user.email", "grace@example.org")
    made.commit("first", {"notes.txt": "one\n", "side.txt": "side\n", "other.txt": "other\n", "last.txt": "l\n"})
    made.git("branch", "topic")
    made.git("branch", "third")
    made.git("worktree", "add", "--quiet", str(folder / "beside"), "third")
    made.commit("second", {"last.txt": "last\n"})
    made.git("switch", "--quiet", "topic")
    made.commit("theirs", {"topic.txt": "topic\n"})
    made.git("switch", "--quiet", "main")
    made.write("side.txt", "aside\n")
    if change in ("pop", "apply", "drop"):
        made.write("brought.txt", "untracked\n")
        made.git("stash", "push", "--quiet", "--include-untracked", "--message", "mine")
    elif change in CLEAN:
        made.git("checkout", "--quiet", "side.txt")
    if change == "unstage":
        made.git("add", "side.txt")
    return made


@pytest.mark.share(8)
@pytest.mark.parametrize("foreign", some(FOREIGN, FOREIGN[4]), ids=lambda foreign: foreign.name)
@pytest.mark.parametrize("change", CHANGES)
async def test_an_undo_leaves_what_somebody_did_since(change: str, foreign: Foreign, tmp_path: Path) -> None:
    made = made_busy(tmp_path, change)
    tool, arguments = CHANGES[change]
    async with serving("--write", made.path) as asking:
        answer = await asking(tool, **arguments)
        assert calls_back(answer), answer
        is_there = foreign.do(made)
        for undo_tool, undo_arguments in calls_back(answer):
            said = await asking(undo_tool, **undo_arguments)
            assert is_there(), (undo_tool, undo_arguments, said)
            if said.startswith("failed"):
                assert "only_if" in said or not undo_arguments.get("only_if") or "HEAD" in said, said


@pytest.mark.parametrize("change", ["commit paths", "mixed", "keep"])
async def test_an_undo_leaves_what_somebody_did_between_its_calls(change: str, tmp_path: Path) -> None:
    made = made_busy(tmp_path, change)
    made.write("notes.txt", "staged\n")
    made.git("add", "notes.txt")
    tool, arguments = CHANGES[change]
    async with serving("--write", made.path) as asking:
        [first, second, *_] = calls_back(await asking(tool, **arguments))
        assert not (await asking(first[0], **first[1])).startswith("failed")
        is_there = stages(made)
        said = await asking(second[0], **second[1])
        assert "was staged in another form since" in said and is_there(), said


@pytest.mark.share(4, slow=9)
@pytest.mark.parametrize("change", [name for name in CHANGES if name not in ("amend",)])
async def test_an_undo_leads_back_where_nobody_did_anything(change: str, tmp_path: Path) -> None:
    made = made_busy(tmp_path, change)

    def state() -> list[str]:
        words = (
            ["status", "--porcelain=v2", "-b"],
            ["for-each-ref"],
            ["diff"],
            ["diff", "--cached"],
            ["stash", "list"],
        )
        return [made.git(*word) for word in words]

    before = state()
    tool, arguments = CHANGES[change]
    async with serving("--write", made.path) as asking:
        answer = await asking(tool, **arguments)
        for undo_tool, undo_arguments in calls_back(answer):
            said = await asking(undo_tool, **undo_arguments)
            assert not said.startswith("failed"), (undo_tool, undo_arguments, said)
    assert state() == before, answer


@pytest.mark.parametrize(
    ("text", "why"),
    [("HEAD main", "`only_if`"), ("files main 1234567", "`only_if`"), ("ref -x", "`only_if`")],
)
async def test_what_is_not_from_an_undo_is_refused(text: str, why: str, tmp_path: Path) -> None:
    made = made_busy(tmp_path, "commit")
    async with serving("--write", made.path) as asking:
        assert why in await asking("run_restore", paths=["side.txt"], only_if=text)
    assert os.listdir(made.path)
