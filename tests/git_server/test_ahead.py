"""Gits that are started before they are needed: never before the look at the repository, and never another answer."""

import errno
import os
import signal
import sys
from pathlib import Path
from typing import IO

import pytest

from git_server.made import GIT, Made
from git_server.serving import serving
from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.settings import load
from mcp_git.engine.program.git import Git
from mcp_git.engine.program.prespawn import Prespawner, RunningGit
from mcp_git.engine.program.process import Command, PipeReader, StandbyProcess, open_unnamed_file, start
from mcp_git.policy import Policy
from mcp_git.settings import Settings

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a git waits for its configuration only there")


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Of each call whether a git was waiting for it."""
    found: list[bool] = []
    take = Prespawner.take

    def told(self: Prespawner, command: Command, given: bytes) -> RunningGit | None:
        run = take(self, command, given)
        found.append(run is not None)
        return run

    monkeypatch.setattr(Prespawner, "take", told)
    return found


@pytest.mark.anyio
async def test_a_git_that_waited_sees_the_repository_as_it_is_now(tmp_path: Path, taken: list[bool]) -> None:
    made = Made(tmp_path / "app")
    made.commit("first", {"a.txt": "a\n"})
    async with serving(made.path) as asking:
        for tool, before, now in (("list_commits", "second", "third"), ("get_status", "clean", "?? new.txt")):
            made.commit("second")
            assert before in await asking(tool)
            made.commit("third")
            made.write("new.txt", "new\n")
            assert now in await asking(tool)
            # Words that are not those of the call before, and what a git reads in their place.
            made.git("clean", "--quiet", "--force")
        assert taken == [False, True, False, True]
        assert "no commits" in await asking("list_commits", rev="HEAD..HEAD")
        assert "third" not in await asking("list_commits", path="a.txt") and taken[-1]
        # A path is no pattern, and a message is looked for as its letters are.
        made.commit("Größer", {"[ab].txt": "b\n"})
        assert "1-1 of HEAD" in await asking("list_commits", path="[ab].txt") and taken[-1]
        assert "Größer" in (await asking("list_commits", rev="HEAD^{/gr.[^s]er|Gr.ßer}")).splitlines()[1]
        assert "There is no revision `nope`" in await asking("list_commits", rev="nope")
        assert "third" in await asking("list_commits") and taken[-1]


@pytest.mark.anyio
async def test_a_repository_that_turned_hostile_lets_no_git_go_on(tmp_path: Path, taken: list[bool]) -> None:
    made = Made(tmp_path / "app")
    made.commit("first", {"a.txt": "a\n"})
    async with serving(made.path) as asking:
        for _ in range(2):
            assert "first" in await asking("list_commits")
        (made.path / ".git/refs/heads/away").symlink_to(tmp_path)
        assert "may lead anywhere" in await asking("list_commits")
        assert len(taken) == 2
        (made.path / ".git/refs/heads/away").unlink()
        # The environment is another one, so the one that waits is of no use.
        (made.path / ".git/shallow").write_text(made.git("rev-parse", "HEAD"), "utf-8")
        assert "first" in await asking("list_commits") and taken[2:] == [False]


def test_a_git_whose_server_is_gone_finds_no_repository(tmp_path: Path) -> None:
    made = Made(tmp_path / "app")
    made.commit("first")
    environment = {"GIT_DIR": str(tmp_path / "ahead1"), "GIT_CONFIG_NOSYSTEM": "1", "PATH": os.environ["PATH"]}
    words = ["log", "--format=%s", "--stdin"]
    for link, printed in ((False, b""), (True, b"first\n")):
        with open_unnamed_file(str(tmp_path)) as said:
            held = StandbyProcess(Command(GIT, words, str(made.path), environment), said, has_stdin=True)
            assert held.process.poll() is None
            if link:
                (tmp_path / "ahead1").symlink_to(made.path / ".git")
            held.release(b"HEAD\n--\n")
            pipe = PipeReader(held.process.stdout)
            assert b"".join(pipe.stream(CancelToken(10))) == printed
            pipe.close()
            assert (held.process.wait() == 0) is link
            said.seek(0)
            assert (b"not a git repository" in said.read()) is not link


@pytest.mark.anyio
@pytest.mark.parametrize("is_seen", [True, False])
async def test_a_git_that_did_not_wait_is_not_missed(
    is_seen: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, taken: list[bool]
) -> None:
    made = Made(tmp_path / "app")
    made.commit("first")
    made_ahead: list[StandbyProcess] = []
    make = StandbyProcess.__init__

    def told(self: StandbyProcess, command: Command, stderr: IO[bytes], *, has_stdin: bool) -> None:
        make(self, command, stderr, has_stdin=has_stdin)
        made_ahead.append(self)

    monkeypatch.setattr(StandbyProcess, "__init__", told)
    async with serving(made.path) as asking:
        assert "first" in await asking("list_commits")
        [held] = made_ahead
        held.release(b"HEAD\n--\n")
        os.waitid(os.P_PID, held.process.pid, os.WEXITED | os.WNOWAIT)
        if not is_seen:
            monkeypatch.setattr(held.process, "poll", lambda: None)
        for _ in range(2):
            assert "first" in await asking("list_commits")
        # Seen once, no other is started; not seen, the answer comes from one that was not ahead.
        assert taken == ([False, False, False] if is_seen else [False, True, True])


def test_how_many_wait_has_a_bound(tmp_path: Path) -> None:
    made = Made(tmp_path / "app")
    made.commit("first")
    policy = Policy(load(Settings, [str(made.path)]))
    git = Git(policy)
    repository, stop = policy.repository(""), CancelToken(60)
    for limit in range(1, 9):
        with git.stream(repository, ["log", "--format=%s", f"--max-count={limit}"], stop, is_repeated=True) as pieces:
            assert b"".join(pieces) == b"first\n"
    waiting = git._prespawner._standbys  # pyright: ignore[reportPrivateUsage]
    assert [key[-1] for key in waiting] == [f"--max-count={limit}" for limit in range(5, 9)]


def test_an_end_that_nobody_learns_is_a_failure(tmp_path: Path) -> None:
    with open_unnamed_file(str(tmp_path)) as said:
        process = start(Command(GIT, ["version"], str(tmp_path), {}), stdin=None, stderr=said, new_session=False)
        assert process.stdout is not None and process.stdout.read(4) == b"git "
        os.waitpid(process.pid, 0)
        process.stdout.close()
        assert process.wait() not in (0, 1, 128)


def test_what_there_is_no_room_for_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Made(tmp_path / "app")
    made.commit("first")
    policy = Policy(load(Settings, [str(made.path)]))
    git = Git(policy)
    repository, stop = policy.repository(""), CancelToken(60)
    waiting = git._prespawner._standbys  # pyright: ignore[reportPrivateUsage]

    def subjects() -> bytes:
        words = ["log", "--format=%s", "--stdin"]
        with git.stream(repository, words, stop, stdin=b"HEAD\n--\n", is_repeated=True) as pieces:
            return b"".join(pieces)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "full")

    def gone(*_: object) -> None:
        raise FileNotFoundError

    assert subjects() == b"first\n"
    waiting.popitem()[1].end()
    opened = len(os.listdir("/dev/fd"))
    pipe, left = os.pipe, 0

    def limited() -> tuple[int, int]:
        nonlocal left
        left -= 1
        if left == 0:
            raise OSError(errno.EMFILE, "too many open files")
        return pipe()

    with monkeypatch.context() as patched:
        patched.setattr(os, "pipe", limited)
        for left in (2, 3, 4):  # the first is that of the git at work
            assert subjects() == b"first\n" and not waiting
            assert len(os.listdir("/dev/fd")) == opened, left
    for name, refuse, waits in (("symlink", full, False), ("unlink", gone, True)):
        assert subjects() == b"first\n"
        [held] = [each.process for each in waiting.values()]
        with monkeypatch.context() as patched:
            patched.setattr(os, name, refuse)
            assert subjects() == b"first\n"
        assert held.process.poll() == (0 if waits else -signal.SIGTERM)
