"""`list_changes` tells each change below a folder once, whatever happened; a subscription to a glob hears of it."""

from __future__ import annotations

import errno
import os
import random
import re
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from e2e.serving import connected, listening
from filesystem.test_findings import call, serving
from mcp_batteries.subscriptions import journal
from mcp_batteries.testing.wire import MODERN, HttpWire, WireError
from mcp_fs.engine.handles.path_opening import Folder
from mcp_fs.engine.listing.file_snapshot import FileSnapshot

pytestmark = pytest.mark.anyio
posix = pytest.mark.skipif(sys.platform == "win32", reason="POSIX names and links")

RENAMED = re.compile(r"^renamed \S+ (?:\d+ from )?(.+) to (.+)$", re.MULTILINE)
LINE = re.compile(r"^(created|changed|deleted) \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ (.+)$", re.MULTILINE)


class Following:
    """One who asks again and again."""

    def __init__(self, client: Client) -> None:
        self.client, self.since = client, ""
        self.renamed: list[tuple[str, str]] = []

    async def begin(self, *uris: str) -> str:
        return await self._ask(uris=list(uris))

    async def news(self, **arguments: object) -> str:
        return await self._ask(since=self.since, **arguments)

    async def changes(self) -> set[tuple[str, str]]:
        """(what, name) on all pages."""
        found: list[tuple[str, str]] = []
        while True:
            said = await self.news()
            found += [(what, name.partition(", another file")[0]) for what, name in LINE.findall(said)]
            self.renamed += RENAMED.findall(said)
            if not (page := re.match(r"\[changes [\d,]+ to ([\d,]+) of ([\d,]+);", said)) or page[1] == page[2]:
                assert len(set(found)) == len(found)
                return set(found)

    async def _ask(self, **arguments: object) -> str:
        failed, said = await call(self.client, "list_changes", **arguments)
        assert not failed, said
        self.since = re.findall(r'since="([^"]+)"', said.partition("\n")[0])[-1]
        return said


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8", newline="")


async def test_each_change_is_told_once_with_its_lines(tmp_path: Path) -> None:
    put(tmp_path / "src/a.py", "one\ntwo\nthree\n")
    put(tmp_path / "log", "begun\n")
    put(tmp_path / "gone", "x")
    async with serving(tmp_path) as client:
        following = Following(client)
        assert "following from now on" in await following.begin()
        assert "[no changes;" in await following.news()
        put(tmp_path / "src/a.py", "one\n2\nthree\n")
        with (tmp_path / "log").open("a") as log:
            log.write("more\nand more\n")
        put(tmp_path / "new/b.txt", "1\n2\n")
        (tmp_path / "gone").unlink()
        first = following.since
        said = await following.news()
        assert {*LINE.findall(said)} == {
            ("changed", "src/a.py"),
            ("changed", "log"),
            ("created", "new/b.txt"),
            ("deleted", "gone"),
        }
        assert "\n-two\n+2\n" in said and " log\n+more\n+and more\n" in said and "new/b.txt\n2 lines" in said
        assert "[no changes;" in await following.news()
        # Whoever asks again with an earlier cursor, because an answer was lost, is told the same.
        assert LINE.findall((await call(client, "list_changes", since=first))[1]) == LINE.findall(said)


async def test_changes_between_two_questions_are_one(tmp_path: Path) -> None:
    put(tmp_path / "a", "1\n")
    async with serving(tmp_path) as client:
        following = Following(client)
        await following.begin("a")
        first = following.since
        put(tmp_path / "a", "1\n2\n")
        await following.news()
        put(tmp_path / "a", "1\n2\n3\n")
        assert "+3" in await following.news() and "+2" not in await following.news()
        both = (await call(client, "list_changes", since=first))[1]
        assert both.count("\n+") == 2 and "+2\n+3" in both
        put(tmp_path / "a", "1\n")
        await following.news()
        assert "[no changes;" in (await call(client, "list_changes", since=first))[1]


async def test_a_file_a_glob_and_what_is_not_there_yet(tmp_path: Path) -> None:
    put(tmp_path / "d/a.py", "")
    (tmp_path / "a[1].txt").write_text("")
    async with serving(tmp_path) as client:
        following = Following(client)
        await following.begin("d/**/*.py", "later.txt", (tmp_path / "a[1].txt").as_uri())
        for name in ("d/b.py", "d/e/c.py", "d/x.txt", "later.txt", "other", "a[1].txt"):
            put(tmp_path / name, "text")
        (tmp_path / "d/a.py").unlink()
        assert await following.changes() == {
            ("created", "d/b.py"),
            ("created", "d/e/c.py"),
            ("deleted", "d/a.py"),
            ("created", "later.txt"),
            ("changed", "a[1].txt"),
        }


async def test_what_is_named_later_is_said_to_be_new(tmp_path: Path) -> None:
    put(tmp_path / "a", "1")
    put(tmp_path / "b", "1")
    async with serving(tmp_path) as client:
        following = Following(client)
        await following.begin("a")
        put(tmp_path / "b", "2")
        said = await following.news(uris=["a", "b"])
        assert said.startswith("[no changes; followed from now on, unlike before: b; next since=")
        put(tmp_path / "b", "3")
        assert "changed" in (said := await following.news(uris=["a", "b"])) and "unlike before" not in said


@pytest.mark.parametrize(
    "followed",
    [(), ("lib", "in"), ("in", "lib"), ("lib", "lib/in/**"), ("lib/**/*.py", "in"), ("lib/in/a.py", "lib", "lib/in")],
)
async def test_what_is_followed_twice_is_told_once(tmp_path: Path, followed: Sequence[str]) -> None:
    inner = tmp_path / "lib/in"
    put(inner / "a.py", "1\n")
    put(inner / "gone.py", "1\n")
    async with serving(tmp_path / "lib", inner) as client:
        following = Following(client)
        await following.begin(*followed)
        put(inner / "a.py", "2\n")
        put(inner / "sub/b.py", "1\n")
        (inner / "gone.py").unlink()
        assert await following.changes() == {
            ("changed", "in/a.py"),
            ("created", "in/sub/b.py"),
            ("deleted", "in/gone.py"),
        }
        put(inner / "a.py", "3\n")
        said = await following.news()
        assert LINE.findall(said) == [("changed", "in/a.py")] and "\n-2\n+3" in said


async def test_what_is_left_out_is_not_told(tmp_path: Path) -> None:
    put(tmp_path / ".gitignore", "ignored\n")
    async with serving(tmp_path) as client:
        following = Following(client)
        await following.begin()
        for name in (".hidden", "ignored/a", ".git/index", "id_rsa", "seen"):
            put(tmp_path / name, "SECRET")
        said = await following.news()
        assert LINE.findall(said) == [("created", "seen")]
        failed, said = await call(client, "list_changes", uris=["id_rsa"])
        assert failed and "protected" in said


@posix
async def test_what_leads_outside_is_refused(tmp_path: Path) -> None:
    (tmp_path / "served").mkdir()
    put(tmp_path / "outside/a", "")
    (tmp_path / "served/out").symlink_to(tmp_path / "outside")
    async with serving(tmp_path / "served") as client:
        for uri in ("out", "out/*", "out/a", str(tmp_path / "outside")):
            failed, said = await call(client, "list_changes", uris=[uri])
            assert failed and "outside" in said


async def test_pages(tmp_path: Path) -> None:
    expected = [f"{number:03}{'x' * 150}" for number in range(120)]
    async with serving(tmp_path) as client:
        following = Following(client)
        await following.begin()
        for name in expected:
            put(tmp_path / name, "")
        names: list[str] = []
        while len(names) < len(expected):
            said = await following.news()
            found = [name for _, name in LINE.findall(said)]
            assert 0 < len(found) < len(expected) and len(said) < 11_000
            assert said.startswith(f"[changes {len(names) + 1} to {len(names) + len(found)} of 120;")
            names += found
            put(tmp_path / "meanwhile", str(len(names)))  # which is on no page of this list
        assert names == expected
        assert await following.changes() == {("created", "meanwhile")}


async def test_a_large_file_tells_what_was_added(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("line\n" * 200_000)
    async with serving(tmp_path) as client:
        following = Following(client)
        await following.begin("log")
        with log.open("a") as opened:
            opened.write("the last\n")
        assert (await following.news()).rstrip().endswith(" log\n+the last")
        log.write_text("new\n" * 300_000)
        assert (await following.news()).rstrip().endswith(" log")


# The globs of a call, what is said of what is left out, and of which changes is told.
LEFT_OUT = [
    ([], "left out 2 hidden and 2 ignored (.gitignore, .hid, a.log, built/)", {"d/b.log", "seen"}),
    (["*"], "left out 2 hidden and 2 ignored", {"d/b.log", "seen"}),
    (["*.log"], "left out 1 ignored (built/)", {"a.log", "d/b.log"}),
    (["./*.log"], "", {"a.log"}),
    (["**/*.log"], "left out 1 ignored (built/)", {"a.log", "d/b.log"}),
    (["built/**"], "", {"built/c", "built/c.log"}),
    (["**/built/*.log"], "", {"built/c.log"}),
    ([".h*"], "left out 1 ignored (built/)", {".hid"}),
    (["*hid"], "left out 1 hidden and 1 ignored", set[str]()),
    (["built"], "", {"built/c", "built/c.log"}),
]


@pytest.mark.parametrize(("uris", "left_out", "expected"), LEFT_OUT)
async def test_what_is_left_out_is_said_and_what_is_named_is_followed(
    tmp_path: Path, uris: list[str], left_out: str, expected: set[str]
) -> None:
    names = ("a.log", "d/b.log", "built/c", "built/c.log", ".hid", "seen")
    put(tmp_path / ".gitignore", "/*.log\nbuilt/\n")
    for name in names:
        put(tmp_path / name, "1\n")
    async with serving(tmp_path) as client:
        following = Following(client)
        for said in (await following.begin(*uris), await following.news()):
            assert left_out in said and ("left out" in said) is bool(left_out), said
        for name in names:
            put(tmp_path / name, "1\n2\n")
        said = await following.news()
        assert {name for _, name in LINE.findall(said)} == expected
        assert ("left out" in said) is (bool(left_out) and not expected), said


async def test_of_many_added_lines_the_first_and_the_last_are_shown(tmp_path: Path) -> None:
    put(tmp_path / "small", "".join(f"{number}\n" for number in range(1, 101)))
    put(tmp_path / "large", "x\n" * 200_000)
    async with serving(tmp_path) as client:
        following = Following(client)
        await following.begin()
        for name in ("small", "large"):
            with (tmp_path / name).open("a") as file:
                file.writelines(f"{number}\n" for number in range(101, 5101))
        said = await following.news()
        assert said.count("\n+101\n") == said.count("\n+5100") == 2
        match = re.search(
            r'5,000 lines added, ([\d,]+) .*: read_text path="small" start_line=(\d+) end_line=(\d+)]', said
        )
        assert match is not None
        first, last = int(match[2]), int(match[3])
        assert f"\n+{first - 1}\n[" in said and f"]\n+{last + 1}\n" in said and match[1] == f"{last - first + 1:,}"
        assert 'read_text path="large" tail=5000]' in said


async def test_what_one_program_made_does_not_hide_what_a_person_did(tmp_path: Path) -> None:
    put(tmp_path / "notes.md", "a\n")
    async with serving(tmp_path) as client:
        following = Following(client)
        await following.begin()
        for number in range(500):
            put(tmp_path / f"unpacked/pack/{number % 7}/{number:03}", "")
        put(tmp_path / "unpacked/own", "")
        put(tmp_path / "notes.md", "a\nb\n")
        said = await following.news()
        assert said.startswith("[2 changes;") and " notes.md\n+b\n" in said
        assert re.search(r"^created \S+ 501 in unpacked/: own, pack/0/000, pack/0/007, \.\.\.$", said, re.MULTILINE)
        shutil.rmtree(tmp_path / "unpacked/pack")
        assert re.search(r"^deleted \S+ 500 in unpacked/pack/: ", await following.news(), re.MULTILINE)


@posix
async def test_what_is_no_change_of_lines_is_named(tmp_path: Path) -> None:
    for name in ("folder/a", "folder/b/c", "log", "edited", "other"):
        put(tmp_path / name, f"{name}\nline\n")
    async with serving(tmp_path) as client:
        following = Following(client)
        await following.begin()

        async def told() -> str:
            said = await following.news()
            return re.sub(r" 20\S+Z", "", said.partition("\n")[2]).rstrip("\n")

        (tmp_path / "folder").rename(tmp_path / "renamed")
        assert await told() == "renamed 2 from folder/ to renamed/"
        (tmp_path / "renamed/a").rename(tmp_path / "a")
        assert await told() == "renamed renamed/a to a"
        (tmp_path / "other").chmod(0o700)
        assert await told() == "changed other, mode -rwx------, was -rw-r--r--"
        put(tmp_path / "other", "other\r\nline\r\n")
        assert await told() == "changed other\n[line ends CRLF, were LF]"
        with (tmp_path / "log").open("a") as file:
            file.write("before\n")
        (tmp_path / "log").rename(tmp_path / "log.1")
        put(tmp_path / "log", "after\n")
        assert set((await told()).split("\n")) == {
            "renamed log to log.1",
            "+before",
            "changed log, another file, the old one is log.1",
            "+after",
        }
        # As an editor saves.
        (tmp_path / "edited").rename(tmp_path / "edited~")
        put(tmp_path / "edited", "edited\nmore\n")
        said = await told()
        # A look between the two steps saw a file that was renamed, and then another one.
        assert "changed edited\n@@" in said or "changed edited, another file, the old one is edited~" in said
        assert "+more" in said


async def test_what_is_too_much_is_forgotten_and_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "_MAX_CHANGES", 10)
    async with serving(tmp_path) as client:
        following = Following(client)
        await following.begin()
        for number in range(30):
            put(tmp_path / str(number), "")
        said = await following.news()
        assert "older ones that are forgotten" in said.partition("\n")[0] and len(LINE.findall(said)) == 10
        put(tmp_path / "last", "")
        assert "forgotten" not in await following.news()


@pytest.mark.share(3)
@pytest.mark.parametrize("seed", range(8))
async def test_random_changes(tmp_path: Path, seed: int) -> None:
    """What is told is the difference of the tree at one question and at the next, whatever was done between them."""
    chance = random.Random(seed)
    for number in range(40):
        put(tmp_path / _path(chance), str(number))
    async with serving(tmp_path) as client:
        following = Following(client)
        await following.begin()
        before = _state(tmp_path)
        for _ in range(25):
            for _ in range(chance.randrange(6)):
                _change(tmp_path, chance)
            now = _state(tmp_path)
            following.renamed = []
            told = await following.changes()
            for old, new in following.renamed:
                told |= _renaming(before, now, old, new)
            assert told == _difference(before, now)
            before = now


def _renaming(before: dict[str, str], now: dict[str, str], old: str, new: str) -> set[tuple[str, str]]:
    """What is told by a file that was renamed, or by a folder with what is in it."""
    if not new.endswith("/"):
        return {("deleted", old), ("created", new)} & _difference(before, now)
    gone = {("deleted", name) for name in before if name.startswith(old) and new + name.removeprefix(old) in now}
    come = {("created", name) for name in now if name.startswith(new) and old + name.removeprefix(new) in before}
    return (gone | come) & _difference(before, now)


def _path(chance: random.Random) -> str:
    return "/".join(chance.choice("abcd") for _ in range(chance.randrange(3))) + "/f" + chance.choice("0123456789")


def _change(top: Path, chance: random.Random) -> None:
    path = top / _path(chance).lstrip("/")
    files = [item for item in top.rglob("*") if item.is_file()]
    folders = [item for item in top.rglob("*") if item.is_dir()]
    match chance.randrange(6):
        case 0 if folders:
            shutil.rmtree(chance.choice(folders))
        case 1 if folders:
            source, target = chance.choice(folders), top / f"moved{chance.randrange(3)}"
            if not target.exists():
                source.rename(target)
        case 2 if files:
            chance.choice(files).unlink()
        case 3 if files:
            os.replace(chance.choice(files), path) if path.parent.is_dir() else None
        case 4 if files:
            with chance.choice(files).open("a") as opened:
                opened.write("more\n")
        case _:
            put(path, str(chance.random()))


def _state(top: Path) -> dict[str, str]:
    return {item.relative_to(top).as_posix(): item.read_text("utf-8") for item in top.rglob("*") if item.is_file()}


def _difference(before: dict[str, str], now: dict[str, str]) -> set[tuple[str, str]]:
    gone = {("deleted", name) for name in before.keys() - now.keys()}
    new = {("created", name) for name in now.keys() - before.keys()}
    return gone | new | {("changed", name) for name in before.keys() & now.keys() if before[name] != now[name]}


@pytest.mark.share(1)
@pytest.mark.parametrize("revision", ["2025-11-25", MODERN])
async def test_a_subscription_to_a_glob_hears_of_every_file_it_means(tmp_path: Path, revision: str) -> None:
    put(tmp_path / "src/a.py", "1")
    async with connected("stdio", revision, "mcp_fs", [str(tmp_path)]) as wire:
        uri = f"{tmp_path.as_uri()}/src/**/*.py"
        await wire.subscribe(uri)

        put(tmp_path / "src/a.py", "2")
        await wire.updated(uri)
        put(tmp_path / "src/new/deep/b.py", "1")
        await wire.updated(uri)
        put(tmp_path / "src/new/deep/b.py", "22")
        await wire.updated(uri)
        shutil.rmtree(tmp_path / "src/new")
        await wire.updated(uri)
        shutil.rmtree(tmp_path / "src")
        await wire.updated(uri)
        put(tmp_path / "src/c.py", "1")
        await wire.updated(uri)


@pytest.mark.share(1)
@pytest.mark.diagonal
@pytest.mark.parametrize("transport", ["stdio", "http"])
@pytest.mark.parametrize("revision", ["2025-03-26", "2025-11-25", MODERN])
async def test_over_the_wire(tmp_path: Path, transport: str, revision: str) -> None:
    put(tmp_path / "a", "1\n")
    async with connected(transport, revision, "mcp_fs", [str(tmp_path)]) as wire:
        said = (await wire.call("list_changes"))["content"][0]["text"]
        since = re.findall(r'since="([^"]+)"', said)[0]
        put(tmp_path / "a", "1\n2\n")
        said = (await wire.call("list_changes", since=since))["content"][0]["text"]
        assert LINE.findall(said) == [("changed", "a")]
        assert said.rstrip().endswith("+2")


@pytest.mark.slow
async def test_nobody_else_can_ask(tmp_path: Path) -> None:
    """A cursor of one session, copied into another, tells nothing; one that was made up neither."""
    async with (
        listening("mcp_fs", str(tmp_path)) as (_, url),
        HttpWire(url, revision="2025-11-25") as mine,
        HttpWire(url, revision="2025-11-25") as theirs,
    ):
        await mine.open()
        await theirs.open()
        said = (await mine.call("list_changes"))["content"][0]["text"]
        since = re.findall(r'since="([^"]+)"', said)[0]
        for cursor, words in ((since, "let go"), ("bm9uc2Vuc2U", "`since` is from no answer")):
            answer = await theirs.call("list_changes", since=cursor)
            assert answer["isError"] and words in answer["content"][0]["text"]
        assert "[no changes" in (await mine.call("list_changes", since=since))["content"][0]["text"]


async def test_a_glob_below_what_is_not_there_is_refused(tmp_path: Path) -> None:
    async with connected("stdio", "2025-11-25", "mcp_fs", [str(tmp_path)]) as wire:
        with pytest.raises(WireError, match="gone"):
            await wire.subscribe(f"{tmp_path.as_uri()}/gone/*.py")


async def follow_growing_log(client: Client, log: Path, uri: str) -> Following:
    """Follow a log, to which one line is added that the server sees and nobody has been told of."""
    following = Following(client)
    await following.begin(uri)
    with log.open("a") as file:
        file.write("more before\n")
    # Whoever begins makes the server look.
    await Following(client).begin(uri)
    return following


@posix
@pytest.mark.parametrize("uri", ["logs/app.log", "logs/*.log", "*.log", "logs"])
@pytest.mark.parametrize("large", [False, True])
async def test_lines_written_before_a_log_was_rotated_are_told(tmp_path: Path, uri: str, large: bool) -> None:
    log = tmp_path / "logs/app.log"
    put(log, "old\n" * (100_000 if large else 1))
    put(tmp_path / "logs/app.log.bak", "other\n")
    async with serving(tmp_path) as client:
        following = await follow_growing_log(client, log, uri)
        with log.open("a") as file:
            file.write("last before\n")
            log.rename(tmp_path / "logs/app.log.1")
            put(log, "first after\n")
            file.flush()
            said = await following.news()
            assert "renamed" in said and "logs/app.log to logs/app.log.1\n+more before\n+last before" in said, said
            assert "logs/app.log, another file, the old one is logs/app.log.1\n+first after" in said, said
        assert "[no changes;" in await following.news()
        with log.open("a") as file:
            file.write("more\n")
            log.rename(tmp_path / "logs/app.log-20261129")
            file.flush()
            said = await following.news()
            assert "logs/app.log to logs/app.log-20261129\n+more" in said and "deleted" not in said, said
            put(log, "anew\n")
        said = await following.news()
        assert "logs/app.log, another file, the old one is logs/app.log-20261129" in said and "1 line" in said, said


@posix
async def test_a_rotated_log_is_found_behind_one_that_is_gone_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path / "app.log", "old\n")
    real = Folder.stat

    def stat_unless_gone(folder: Folder[Any], name: str) -> os.stat_result:
        if name == "app.log.1":
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        return real(folder, name)

    monkeypatch.setattr(Folder, "stat", stat_unless_gone)
    async with serving(tmp_path) as client:
        following = Following(client)
        await following.begin("app.log")
        put(tmp_path / "app.log.1", "another\n")
        (tmp_path / "app.log").rename(tmp_path / "app.log.2")
        put(tmp_path / "app.log", "new\n")
        assert "app.log, another file, the old one is app.log.2" in await following.news()


@posix
async def test_links_that_are_not_followed_are_named(tmp_path: Path) -> None:
    put(tmp_path / "data/x.csv", "1\n")
    (tmp_path / "app").mkdir()
    (tmp_path / "app/lib").symlink_to("../data")
    async with serving(tmp_path) as client:
        following = Following(client)
        told = "did not follow 1 link to a folder (app/lib)"
        assert told in await following.begin("app") and told in await following.news()
        put(tmp_path / "data/x.csv", "2\n")
        assert "[no changes;" in await following.news()
        await following.begin("app/lib")
        put(tmp_path / "data/x.csv", "3\n")
        assert ("changed", "data/x.csv") in await following.changes()


async def test_who_begins_later_hears_of_nothing_before(tmp_path: Path) -> None:
    put(tmp_path / "a.txt", "1\n")
    async with serving(tmp_path) as client:
        first, second = Following(client), Following(client)
        await first.begin()
        put(tmp_path / "a.txt", "1\n2\n")
        put(tmp_path / "b.txt", "new\n")
        await second.begin()
        assert "[no changes;" in await second.news()
        assert await first.changes() == {("changed", "a.txt"), ("created", "b.txt")}


@posix
@pytest.mark.parametrize("uri", ["logs/app.log", "logs/*.log", "logs"])
@pytest.mark.parametrize("after", ["", "first after\n", "much more after the rotation than there was before it\n" * 9])
async def test_lines_written_before_a_log_was_copied_and_emptied_are_told(tmp_path: Path, uri: str, after: str) -> None:
    log = tmp_path / "logs/app.log"
    put(log, "old\n")
    put(tmp_path / "logs/app.log.2", "other\n")
    async with serving(tmp_path) as client:
        following = await follow_growing_log(client, log, uri)
        with log.open("a") as file:
            file.write("last before\n")
        shutil.copy(log, tmp_path / "logs/app.log.1")
        log.write_text(after)
        said = await following.news()
        assert "logs/app.log, begun anew, the old lines are in logs/app.log.1" in said and "other" not in said, said
        # The server may look between the copy and the emptying: then the copy is a new file.
        copied = "logs/app.log.1, a copy of logs/app.log\n+more before\n+last before" in said
        assert copied or re.search(r"created \S+ logs/app.log.1", said), said
        assert "[no changes;" in await following.news()


@posix
async def test_a_file_that_is_only_rewritten_is_shown_as_a_diff(tmp_path: Path) -> None:
    put(tmp_path / "a.txt", "one\n")
    put(tmp_path / "a.txt.1", "an old copy\n")
    async with serving(tmp_path) as client:
        following = Following(client)
        await following.begin()
        put(tmp_path / "a.txt", "two\n")
        said = await following.news()
        assert "[1 change;" in said and "-one\n+two" in said, said


@pytest.mark.parametrize("changed", ["st_mtime_ns", "st_ctime_ns"])
def test_what_was_changed_just_now_is_looked_at_again_also_where_ctime_is_when_it_was_made(changed: str) -> None:
    times = {"st_mtime_ns": 1, "st_ctime_ns": 1, changed: time.time_ns() + 60_000_000_000}
    far = os.stat_result((0o100644, 1, 1, 1, 0, 0, 4, 1, 1, 1), times)
    assert not FileSnapshot.from_status(far).is_uncertain
    near = os.stat_result((0o100644, 1, 1, 1, 0, 0, 4, 1, 1, 1), times | {changed: time.time_ns()})
    assert FileSnapshot.from_status(near).is_uncertain
