"""A text is searched in the changes of commits for as long as there is time, and the next page goes on from there."""

import itertools
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
        ({"text": "needle", "rev": "HEAD~30..HEAD"}, ["-Sneedle", "HEAD~30..HEAD"]),
        ({"text": "needle", "message": "aside"}, ["-Sneedle", "--grep=aside"]),
        ({"text": "needle", "all_branches": True}, ["-Sneedle", "--all"]),
        ({"text": "nothing of it"}, ["-Snothing of it"]),
    ],
    ids=range(7),
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
