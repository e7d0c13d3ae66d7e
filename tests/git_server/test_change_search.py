"""A text is searched in the changes of commits for as long as there is time, and the next page goes on from there."""

import itertools
import random
import sys
from pathlib import Path

import pytest

from git_server.made import Made
from git_server.serving import Asking, serving
from mcp_git.engine.history import change_search

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
    ],
    ids=range(9),
)
async def test_what_is_found_is_what_git_finds(
    arguments: dict[str, object], words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(change_search, "_FIRST_BATCH", 7)
    made = made_history(tmp_path)
    expected = made.git("log", "--format=%h", *words).split()
    async with serving(made.path) as asking:
        for limit in (2, 50):
            hashes, _ = await all_hashes(asking, limit=limit, **arguments)
            assert hashes == expected, limit


async def test_where_the_time_is_over_the_answer_says_how_far_it_came(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(change_search, "_FIRST_BATCH", 7)
    made = made_history(tmp_path)
    expected = made.git("log", "--format=%h", "-Sneedle 0").split()
    ticks = itertools.count()
    # The time of each page is over after one batch.
    monkeypatch.setattr(change_search, "_read_clock", lambda: float(next(ticks)))
    monkeypatch.setattr(change_search, "_MAX_SECONDS", 1.5)
    async with serving(made.path) as asking:
        hashes, heads = await all_hashes(asking, text="needle 0")
    assert hashes == expected
    assert "no commits so far of HEAD; searched back to 2020-" in heads[1], heads
    # No commit is looked through twice.
    assert len(heads) == len(made.git("log", "--format=%h").split()) // 7 + 1


async def test_the_next_page_begins_where_the_one_before_ended(tmp_path: Path) -> None:
    made = made_history(tmp_path)
    expected = made.git("log", "--format=%h", "-Sneedle", "--", "a.txt").split()
    async with serving(made.path) as asking:
        first = await asking("list_commits", text="needle", path="a.txt", limit=2)
        cursor = first.partition('cursor="')[2].partition('"')[0]
        # What the first page went over is gone, so a walk over it fails.
        (made.path / ".git/refs/heads/side").unlink()
        forget(made, made.git("rev-parse", "HEAD~1^{tree}").strip())
        second = await asking("list_commits", text="needle", path="a.txt", limit=2, cursor=cursor)
        assert "failed" in await asking("list_commits", text="needle", path="a.txt", limit=2)
    assert [row.split(" ")[0] for row in second.splitlines()[1:3]] == expected[2:4]


@pytest.mark.share(2)
@pytest.mark.parametrize("seed", range(6))
async def test_pages_of_commits_older_than_their_parents_lose_none(seed: int, tmp_path: Path) -> None:
    made = made_skewed_history(tmp_path, random.Random(seed))
    expected = made.git("log", "--format=%h", "-Sneedle", "a", "--", "a.txt").split()
    async with serving(made.path) as asking:
        hashes, _ = await all_hashes(asking, text="needle", path="a.txt", rev="a", limit=2)
    assert set(hashes) == set(expected)


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


def made_skewed_history(folder: Path, chance: random.Random) -> Made:
    """Return a repository of branches and merges whose clocks went wrong."""
    made = Made(folder / "app")
    stream: list[str] = []
    words = ""
    for number in range(1, _COMMITS):
        words += "needle\n" * (number % 3 == 0) + f"{number}\n"
        branch, *others = chance.sample(["a", "b", "c"], 2)
        seconds = 1_600_000_000 + number * 50 + chance.choice([0, 0, 0, -400, 400])
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
