"""Commits are searched for as long as there is time, and the next page goes on from there."""

import itertools
import random
import re
import sys
from pathlib import Path

import pytest

from git_server.made import Made
from git_server.serving import Asking, serving
from mcp_git.engine.history import commit_search

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform == "win32", reason="it is slow there"),
]

_COMMITS = 60


def made_history(folder: Path) -> Made:
    """Return a repository of which every fifth commit adds a `needle`, one is a rename and one a merge."""
    made = Made(folder / "app")
    stream: list[str] = []
    for number in range(_COMMITS):
        words = "".join(f"needle {earlier}\n" for earlier in range(0, number + 1, 5))
        stream.append(f"commit refs/heads/main\ncommitter A <a@b> {1_600_000_000 + number * 86_400} +0000\n")
        stream.append(f"data {len(str(number))}\n{number}\nM 100644 inline a.txt\ndata {len(words)}\n{words}\n")
    made.git("fast-import", "--quiet", given="".join(stream).encode())
    made.git("reset", "--quiet", "--hard")
    made.git("mv", "a.txt", "b.txt")
    made.commit("rename it")
    made.git("switch", "--quiet", "--create", "side", "HEAD~3")
    made.commit("aside", {"c.txt": "needle\n"})
    made.git("switch", "--quiet", "main")
    made.git("merge", "--quiet", "--no-edit", "side")
    return made


async def all_hashes(asking: Asking, **arguments: object) -> tuple[list[str], list[str]]:
    """Return the hashes of all pages, and the first lines."""
    hashes: list[str] = []
    heads: list[str] = []
    cursor = None
    while True:
        answer = await asking("list_commits", cursor=cursor, **arguments)
        head, *rows = answer.splitlines()
        heads.append(head)
        hashes += [row.split(" ")[0] for row in rows if row]
        if 'cursor="' not in head:
            return hashes, heads
        cursor = head.partition('cursor="')[2].partition('"')[0]


@pytest.mark.share(3)
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"text": "needle"}, ["-Sneedle"]),
        ({"text": "needle [0-9]5", "regex": True}, ["-Gneedle [0-9]5"]),
        ({"text": "needle", "path": "b.txt"}, ["-Sneedle", "--", "b.txt"]),
        ({"text": "needle", "path": "b.txt", "all_branches": True}, ["-Sneedle", "--all", "--", "b.txt"]),
        ({"text": "needle", "path": "a.txt", "rev": "HEAD~30..HEAD"}, ["-Sneedle", "HEAD~30..HEAD", "--", "a.txt"]),
        ({"text": "needle", "rev": "HEAD~30..HEAD"}, ["-Sneedle", "HEAD~30..HEAD"]),
        ({"text": "needle", "message": "aside"}, ["-Sneedle", "--grep=aside"]),
        ({"text": "needle", "all_branches": True}, ["-Sneedle", "--all"]),
        ({"text": "nothing of it"}, ["-Snothing of it"]),
        ({"message": "3"}, ["--grep=3"]),
        ({"message": "3", "path": "a.txt"}, ["--grep=3", "--", "a.txt"]),
        ({"message": "3", "all_branches": True, "path": "c.txt"}, ["--grep=3", "--all", "--", "c.txt"]),
        ({"message": "[23]5", "regex": True, "since": "2020-10-01"}, ["--grep=[23]5", "--since=2020-10-01 00:00"]),
        ({"author": "a@b", "until": "2020-10-01"}, ["--author=a@b", "--until=2020-10-01 23:59:59"]),
        ({"author": "A", "all_branches": True}, ["--author=A", "--all"]),
        ({"author": "a", "message": "e", "rev": "HEAD~1..HEAD"}, ["-i", "--author=a", "--grep=e", "HEAD~1..HEAD"]),
        ({"author": "A", "rev": "HEAD~1...side~2"}, ["--author=A", "HEAD~1...side~2"]),
    ],
    ids=range(17),
)
async def test_what_is_found_is_what_git_finds(
    arguments: dict[str, object], words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commit_search, "_FIRST_BATCH", 7)
    made = made_history(tmp_path)
    expected = made.git("log", "--format=%h", *words).split()
    async with serving(made.path) as asking:
        for limit in (2, 50):
            hashes, _ = await all_hashes(asking, limit=limit, **arguments)
            assert hashes == expected, limit


async def test_where_the_time_is_over_the_answer_says_how_far_it_came(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commit_search, "_FIRST_BATCH", 7)
    made = made_history(tmp_path)
    expected = made.git("log", "--format=%h", "-Sneedle 0").split()
    ticks = itertools.count()
    # The time of each page is over after one batch.
    monkeypatch.setattr(commit_search, "_read_clock", lambda: float(next(ticks)))
    monkeypatch.setattr(commit_search, "_MAX_SECONDS", 1.5)
    async with serving(made.path) as asking:
        hashes, heads = await all_hashes(asking, text="needle 0")
    assert hashes == expected
    assert "no commits so far of HEAD; searched back to 2020-" in heads[1], heads
    # No commit is looked through twice.
    assert len(heads) == len(made.git("log", "--format=%h").split()) // 7 + 1


@pytest.mark.parametrize("arguments", [{"path": "a.txt"}, {}, {"all_branches": True}], ids=["path", "all", "branches"])
@pytest.mark.parametrize("condition", [{"text": "needle"}, {"author": "a@b"}], ids=["text", "author"])
async def test_the_next_page_begins_where_the_one_before_ended(
    condition: dict[str, object], arguments: dict[str, object], tmp_path: Path
) -> None:
    made = made_history(tmp_path)
    query = {"limit": 4, **condition, **arguments}
    async with serving(made.path) as asking:
        first = await asking("list_commits", **query)
        cursor = first.partition('cursor="')[2].partition('"')[0]
        expected = await asking("list_commits", cursor=cursor, **query)
        # What the first page went over is gone, so a walk over it fails.
        forget(made, made.git("rev-parse", "HEAD~1").strip())
        second = await asking("list_commits", cursor=cursor, **query)
        assert "failed" in await asking("list_commits", **query)
    assert second.splitlines()[1:] == expected.splitlines()[1:]
    assert len(second.splitlines()) == 5


@pytest.mark.share(3)
@pytest.mark.parametrize("room", [0, 1, 2, 50])
@pytest.mark.parametrize("arguments", [{"rev": "a"}, {"all_branches": True}], ids=["rev", "branches"])
async def test_pages_lose_none_whatever_a_cursor_has_room_for(
    arguments: dict[str, object], room: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commit_search, "_MAX_FRONTIER", room)
    made = made_skewed_history(tmp_path, random.Random(room), skew=0)
    words = ["--all"] if "all_branches" in arguments else ["a"]
    expected = made.git("log", "--format=%h", "-Sneedle", *words).split()
    async with serving(made.path) as asking:
        hashes, _ = await all_hashes(asking, text="needle", limit=2, **arguments)
    assert hashes == expected


@pytest.mark.share(2)
@pytest.mark.parametrize("seed", range(6))
async def test_pages_of_commits_older_than_their_parents_lose_none(seed: int, tmp_path: Path) -> None:
    made = made_skewed_history(tmp_path, random.Random(seed))
    expected = made.git("log", "--format=%h", "-Sneedle", "a", "--", "a.txt").split()
    async with serving(made.path) as asking:
        hashes, heads = await all_hashes(asking, text="needle", path="a.txt", rev="a", limit=2)
    assert set(hashes) == set(expected)
    if len(hashes) > len(expected):
        assert any("pages may have a commit twice" in head for head in heads), heads


async def test_pages_of_wrong_clocks_say_that_they_may_have_a_commit_twice(tmp_path: Path) -> None:
    made = made_skewed_history(tmp_path, random.Random(3))
    expected = made.git("log", "--format=%h", "-Sneedle", "--all").split()
    async with serving(made.path) as asking:
        hashes, heads = await all_hashes(asking, text="needle", all_branches=True, limit=2)
    assert set(hashes) == set(expected) and len(hashes) > len(expected)
    assert any("pages may have a commit twice" in head for head in heads), heads


async def test_a_page_whose_commits_are_gone_leads_to_the_first_one(tmp_path: Path) -> None:
    made = made_history(tmp_path)
    async with serving(made.path) as asking:
        head = await asking("list_commits", text="needle", rev="side", limit=2)
        made.git("branch", "--force", "side", "side~30")
        made.git("update-ref", "refs/heads/main", "side~1")
        made.git("reflog", "expire", "--expire=now", "--all")
        made.git("gc", "--quiet", "--prune=now")
        cursor = head.partition('cursor="')[2].partition('"')[0]
        answer = await asking("list_commits", text="needle", rev="side", limit=2, cursor=cursor)
        assert answer == "failed: The commits of the page before are no longer here. Call again without `cursor`."


def forget(made: Made, oid: str) -> None:
    """Remove a loose object, with the packs unpacked first."""
    packs = made.path / ".git/objects/pack"
    for pack in packs.glob("*.pack"):
        data = pack.read_bytes()
        for file in packs.glob(f"{pack.stem}.*"):
            file.chmod(0o600)
            file.unlink()
        made.git("unpack-objects", "-q", given=data)
    (made.path / ".git/objects" / oid[:2] / oid[2:]).unlink()


def made_skewed_history(folder: Path, chance: random.Random, skew: int = 400) -> Made:
    """Return a repository of branches and merges whose clocks went wrong by so many seconds."""
    made = Made(folder / "app")
    stream: list[str] = []
    words = ""
    for number in range(1, _COMMITS):
        words += "needle\n" * (number % 3 == 0) + f"{number}\n"
        branch, *others = chance.sample(["a", "b", "c"], 2)
        seconds = 1_600_000_000 + number * 50 + chance.choice([0, 0, 0, -skew, skew])
        stream.append(f"commit refs/heads/{branch}\nmark :{number}\ncommitter A <a@b> {seconds} +0000\n")
        stream.append("data 1\nx\n")
        if number == 1:
            stream.append("")
        elif number <= 6 or chance.random() < 0.3:
            stream.append(f"from :{chance.randrange(max(1, number - 8), number)}\n")
            if number > 6 and others:
                stream.append(f"merge :{chance.randrange(max(1, number - 8), number)}\n")
        stream.append(f"M 100644 inline a.txt\ndata {len(words)}\n{words}\n")
    made.git("fast-import", "--quiet", "--force", given="".join(stream).encode())
    return made


async def test_merges_are_left_out_in_every_page(tmp_path: Path) -> None:
    made = Made(tmp_path / "app")
    made.commit("Add first")
    for number in range(4):
        made.git("switch", "--quiet", "--create", f"side{number}")
        made.commit(f"Add side{number}", {f"side{number}": "word"})
        made.git("switch", "--quiet", "main")
        made.commit(f"Add main{number}")
        made.git("merge", "--quiet", "--no-ff", "--message", f"Add merge{number}", f"side{number}")
    expected = re.findall(r"Add (\S+)", made.git("log", "--no-merges", "--format=%s"))
    async with serving(made.path) as asking:
        for condition in ({}, {"author": "ada"}, {"message": "add"}):
            found: list[str] = []
            cursor: dict[str, str] = {}
            while True:
                answer = await asking("list_commits", no_merges=True, limit=2, **condition, **cursor)
                found += re.findall(r"Add (\S+)", answer)
                match = re.search(r'cursor="([^"]+)"', answer)
                if match is None:
                    break
                cursor = {"cursor": match[1]}
            assert found == expected, condition
