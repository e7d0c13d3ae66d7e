"""Remote data: kept, shared among processes, followed while somebody wants it, and honest when it can't be had."""

import json
import os
import stat
import sys
from collections.abc import AsyncGenerator, Callable, Collection, Hashable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from subprocess import PIPE

import anyio
import anyio.abc
import pytest
from anyio.lowlevel import checkpoint

from mcp_batteries.errors import Invalid, NotFound, Refused, Unavailable
from mcp_batteries.remote import (
    Cache,
    DiskStore,
    Failed,
    FetchResult,
    MemoryStore,
    NotModified,
    Outcome,
    RemoteSource,
    Snapshot,
    Store,
    Validators,
    open_store,
)

pytestmark = pytest.mark.anyio
SECONDS = 30


class World:
    """An upstream that answers what it is told to, and a clock that moves when it is told to."""

    def __init__(self) -> None:
        self.now = 1_000_000.0
        self.asked: list[tuple[str, Validators]] = []
        self.answers: dict[str, Outcome | Exception] = {}
        self.hold: anyio.Event | None = None
        self.moved = anyio.Event()
        self.sleepers = 0
        self.readings = 0

    async def fetch(self, key: str, validators: Validators) -> Outcome:
        self.asked.append((key, validators))
        if self.hold is not None:
            await self.hold.wait()
        answer = self.answers.get(key, FetchResult(b"v1", 60))
        if isinstance(answer, Exception):
            raise answer
        return answer

    def clock(self) -> float:
        # No two readings are the same, as with real ones; all together are far below a millisecond.
        self.readings += 1
        return self.now + self.readings * 1e-8

    async def sleep(self, seconds: float) -> None:
        until = self.now + seconds
        self.sleepers += 1
        try:
            while self.now < until:
                await self.moved.wait()
        finally:
            self.sleepers -= 1

    def advance(self, seconds: float) -> None:
        self.now += seconds
        self.moved.set()
        self.moved = anyio.Event()

    @staticmethod
    def of(found: Snapshot) -> tuple[bytes, bool, float, float]:
        """Body, stale, age, ttl."""
        return found.body, found.stale, round(found.age, 3), round(found.ttl, 3)

    def cache(self, store: Store) -> Cache:
        return Cache(store, self.fetch, clock=self.clock, sleep=self.sleep)


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture(params=["memory", "disk"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return MemoryStore() if request.param == "memory" else DiskStore(str(tmp_path / "cache"), ["me"])


async def until(condition: Callable[[], bool]) -> None:
    with anyio.fail_after(SECONDS):
        while not condition():
            await checkpoint()


@asynccontextmanager
async def following(cache: Cache, *uris: str) -> AsyncGenerator[tuple[RemoteSource, list[Hashable]]]:
    heard: list[Hashable] = []

    async def shown(uri: str) -> Collection[str]:
        return [uri]

    source = RemoteSource(cache, lambda uri: uri, shown)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(source.run, heard.extend)
        with anyio.fail_after(SECONDS):
            await source.add(uris)
        yield source, heard
        tasks.cancel_scope.cancel()


async def test_an_answer_is_kept_for_as_long_as_the_upstream_says(world: World, store: Store) -> None:
    cache = world.cache(store)
    async with cache:
        assert world.of(await cache.get("k")) == (b"v1", False, 0, 60)
        world.advance(59)
        assert world.of(await cache.get("k")) == (b"v1", False, 59, 1)
        assert len(world.asked) == 1
        world.advance(1)
        assert world.of(await cache.get("k")) == (b"v1", False, 0, 60)
        assert len(world.asked) == 2
        world.advance(5)
        assert world.of(await cache.get("k", max_age=5)) == (b"v1", False, 0, 60)
        assert world.of(await cache.get("k", max_age=0)) == (b"v1", False, 0, 60)
        assert len(world.asked) == 4


async def test_validators_are_sent_and_not_modified_renews(world: World, store: Store) -> None:
    cache = world.cache(store)
    world.answers["k"] = FetchResult(b"v1", 10, etag='"a"', last_modified="yesterday")
    await cache.get("k")
    world.answers["k"] = NotModified(20)
    world.advance(10)
    renewed = await cache.get("k")
    assert world.of(renewed) == (b"v1", False, 0, 20)
    world.advance(20)
    await cache.get("k")
    assert [asked for _, asked in world.asked] == [
        Validators(),
        Validators('"a"', "yesterday", 0),
        Validators('"a"', "yesterday", 1),
    ]


async def test_the_last_good_answer_is_served_with_its_age_and_the_reason(world: World, store: Store) -> None:
    cache = world.cache(store)
    await cache.get("k")
    world.answers["k"] = Failed("The upstream answered 503.")
    world.advance(100)
    old = await cache.get("k")
    assert world.of(old) == (b"v1", True, 100, 0)
    assert old.error == "The upstream answered 503."
    world.answers["k"] = FetchResult(b"v2", 60)
    new = await cache.get("k")
    assert (new.body, new.stale, new.error) == (b"v2", False, None)


async def test_a_dead_upstream_is_not_asked_by_every_call(world: World, store: Store) -> None:
    cache = world.cache(store)
    await cache.get("k")
    world.answers["k"] = Failed("Dead.")
    world.advance(100)
    for _ in range(10):
        assert (await cache.get("k")).stale
    assert len(world.asked) == 3
    world.advance(1000)
    world.answers["k"] = FetchResult(b"v2", 60)
    assert (await cache.get("k")).body == b"v2"


async def test_with_nothing_kept_a_failure_is_a_failure_and_the_next_call_asks_again(
    world: World, store: Store
) -> None:
    cache = world.cache(store)
    world.answers["k"] = Failed("Timed out.")
    for _ in range(4):
        with pytest.raises(Unavailable, match=r"Timed out\. Try again in a moment\."):
            await cache.get("k")
    assert len(world.asked) == 4
    world.answers["k"] = FetchResult(b"v1", 60)
    assert not (await cache.get("k")).stale


async def test_retry_after_is_kept_by_all_keys_of_the_scope_and_all_processes(world: World, tmp_path: Path) -> None:
    one, other = (world.cache(DiskStore(str(tmp_path / "cache"), ["me"])) for _ in range(2))
    world.answers["a"] = Failed("Too many requests.", retry_after=30, everything=True)
    for cache, key in ((one, "a"), (one, "b"), (other, "a"), (other, "b"), (other, "c")):
        with pytest.raises(Unavailable) as caught:
            await cache.get(key)
        assert round(caught.value.retry_after or 0) == 30
        assert "Try again in 30 s." in str(caught.value)
    assert len(world.asked) == 1
    world.advance(30)
    assert (await other.get("b")).body == b"v1"


async def test_not_found_forgets_and_other_problems_do_not(world: World, store: Store) -> None:
    cache = world.cache(store)
    await cache.get("k")
    world.advance(60)
    world.answers["k"] = Invalid("No.")
    with pytest.raises(Invalid):
        await cache.get("k")
    assert store.read("k").body == b"v1"
    world.answers["k"] = NotFound("Gone.")
    with pytest.raises(NotFound):
        await cache.get("k")
    assert store.read("k").body is None


async def test_calls_at_once_are_one_request_even_if_it_fails(world: World, store: Store) -> None:
    for outcome in (FetchResult(b"v1", 60), Failed("Dead.")):
        cache = world.cache(store)
        key = type(outcome).__name__
        world.asked.clear()
        world.hold, world.answers[key] = anyio.Event(), outcome
        ended: list[object] = []

        async def call(cache: Cache = cache, key: str = key, ended: list[object] = ended) -> None:
            try:
                ended.append(await cache.get(key))
            except Unavailable as problem:
                ended.append(problem)

        async with anyio.create_task_group() as tasks:
            for _ in range(20):
                tasks.start_soon(call)
            await until(lambda: bool(world.asked))
            world.hold.set()
        assert len(ended) == 20
        assert len(world.asked) == 1


async def test_a_cancelled_call_leaves_no_lock(world: World, store: Store) -> None:
    cache = world.cache(store)
    world.hold = anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(cache.get, "k")
        await until(lambda: bool(world.asked))
        tasks.cancel_scope.cancel()
    world.hold.set()
    with anyio.fail_after(SECONDS):
        assert (await cache.get("k")).body == b"v1"


async def test_only_what_is_followed_is_polled_and_only_changes_are_told(world: World, store: Store) -> None:
    cache = world.cache(store)
    async with following(cache, "a") as (source, heard):
        # Nobody has seen anything before the very first look: it is no change.
        await until(lambda: len(world.asked) == 1 and world.sleepers == 1)
        world.advance(60)
        await until(lambda: len(world.asked) == 2 and world.sleepers == 1)
        assert heard == []
        world.answers["a"] = FetchResult(b"v2", 60)
        world.advance(60)
        await until(lambda: heard == ["a"] and world.sleepers == 1)
        source.discard(["a"])
        await until(lambda: world.sleepers == 0)
        asked = len(world.asked)
        for _ in range(60):
            world.advance(60)
            await checkpoint()
        assert len(world.asked) == asked
        # A control: what is followed again is looked at again.
        await source.add(["a"])
        await until(lambda: len(world.asked) == asked + 1)


async def test_a_volatile_part_is_no_change(world: World, store: Store) -> None:
    cache = world.cache(store)
    world.answers["a"] = FetchResult(b"v1 took 1 ms", 60, digest="v1")
    async with following(cache, "a", "control") as (_, heard):
        await until(lambda: len(world.asked) == 2 and world.sleepers == 2)
        world.answers["a"] = FetchResult(b"v1 took 2 ms", 60, digest="v1")
        world.answers["control"] = FetchResult(b"v2", 60)
        world.advance(60)
        await until(lambda: len(world.asked) == 4 and heard == ["control"])


async def test_an_upstream_that_vanishes_is_told_and_failures_slow_the_polls_down(world: World, store: Store) -> None:
    cache = world.cache(store)
    async with following(cache, "a") as (_, heard):
        await until(lambda: len(world.asked) == 1 and world.sleepers == 1)
        world.answers["a"] = Failed("Dead.")
        world.advance(60)
        await until(lambda: len(world.asked) == 2 and world.sleepers == 1)
        for wait in (5, 10, 20, 40):
            asked = len(world.asked)
            world.advance(wait - 1)
            await until(lambda: world.sleepers == 1)
            assert len(world.asked) == asked
            world.advance(1)
            await until(lambda asked=asked: len(world.asked) == asked + 1 and world.sleepers == 1)
        world.answers["a"] = NotFound("Gone.")
        world.advance(1000)
        await until(lambda: heard == ["a"])


async def test_a_look_that_nobody_foresaw_ends_no_other(world: World, store: Store) -> None:
    world.answers["a"] = ValueError("an odd answer")
    async with following(world.cache(store), "a", "b") as (source, heard):
        await until(lambda: world.sleepers == 2)
        world.answers = {"a": FetchResult(b"v1", 60), "b": FetchResult(b"v2", 60)}
        world.advance(60)
        await until(lambda: {"a", "b"} <= set(heard))
        world.answers["b"] = ValueError("an odd answer")
        world.advance(60)
        await until(lambda: world.sleepers == 2)
        with anyio.fail_after(SECONDS):
            await source.add(["c"])
        world.answers["c"] = FetchResult(b"v2", 60)
        world.advance(60)
        await until(lambda: "c" in heard)


async def test_what_a_uri_shows_may_change(world: World, store: Store) -> None:
    shows = ["one"]
    heard: list[Hashable] = []

    async def shown(uri: str) -> Collection[str]:
        if not shows:
            raise Unavailable("The names cannot be looked up.")
        return shows

    source = RemoteSource(world.cache(store), lambda uri: uri, shown)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(source.run, heard.extend)
        await source.add(["uri"])
        await until(lambda: len(world.asked) == 1 and world.sleepers == 1)
        assert heard == []
        shows[:] = ["two"]
        await source.reconsider()
        assert heard == ["uri"]
        await until(lambda: world.sleepers == 1 and world.asked[-1][0] == "two")
        world.advance(60)
        await until(lambda: [key for key, _ in world.asked] == ["one", "two", "two"])
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize("problem", [Unavailable("The names cannot be looked up."), KeyError("an odd answer")])
async def test_what_cannot_be_resolved_is_tried_later(
    world: World, store: Store, monkeypatch: pytest.MonkeyPatch, problem: Exception
) -> None:
    monkeypatch.setattr("mcp_batteries.remote.source._SUBSCRIBE_SECONDS", 0.0)
    tries: list[str] = []
    heard: list[Hashable] = []

    async def shown(uri: str) -> Collection[str]:
        tries.append(uri)
        if len(tries) < 3:
            raise problem
        return [uri]

    source = RemoteSource(world.cache(store), lambda uri: uri, shown)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(source.run, heard.extend)
        await source.add(["uri"])
        for number in (1, 2):
            await until(lambda number=number: len(tries) == number and world.sleepers == 1)
            world.advance(30)
        # Told once it is followed, since its subscriber was promised to hear before.
        await until(lambda: "uri" in heard and len(world.asked) == 1)
        tasks.cancel_scope.cancel()


async def test_the_folder_is_private_and_tells_nothing(world: World, tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    cache = world.cache(DiskStore(str(folder), ["https://upstream", "token hunter2"]))
    world.answers["places/my home"] = Failed("Dead.", retry_after=1, everything=True)
    with pytest.raises(Unavailable):
        await cache.get("places/my home")
    world.advance(2)
    world.answers["places/my home"] = FetchResult(b"v1", 60)
    await cache.get("places/my home")
    seen = [folder, *folder.rglob("*")]
    assert len(seen) > 8
    for path in seen:
        mode = stat.S_IMODE(path.stat().st_mode)
        assert sys.platform == "win32" or mode & 0o077 == 0, path
        told = path.name.encode() + (path.read_bytes() if path.is_file() else b"")
        assert b"hunter2" not in told and b"home" not in told
    assert not list((folder / "tmp").iterdir())


async def test_another_identity_shares_nothing(world: World, tmp_path: Path) -> None:
    mine, theirs = (world.cache(DiskStore(str(tmp_path / "cache"), [who])) for who in ("me", "you"))
    await mine.get("k")
    await theirs.get("k")
    assert len(world.asked) == 2
    assert len(list((tmp_path / "cache" / "data").iterdir())) == 2


@pytest.mark.skipif(sys.platform == "win32", reason="access lists say there who may look, modes say nothing")
async def test_a_folder_others_can_look_into_is_refused(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir(mode=0o755)
    with pytest.raises(Refused, match="open to other users"):
        DiskStore(str(tmp_path / "open"), ["me"])
    (tmp_path / "mine").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "mine")
    with pytest.raises(Refused, match="a link"):
        DiskStore(str(tmp_path / "link"), ["me"])
    (tmp_path / "file").write_text("")
    with pytest.raises((Refused, Unavailable)):
        DiskStore(str(tmp_path / "file" / "below"), ["me"])


async def test_the_default_folder_is_the_users_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    if sys.platform == "linux":
        assert isinstance(open_store(None, "mcp-thing", []), DiskStore)
        assert (tmp_path / "mcp-thing" / "data").is_dir()
    assert isinstance(open_store("memory", "mcp-thing", []), MemoryStore)


async def test_where_nothing_can_be_written_nothing_is_kept_unless_a_folder_was_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA", "HOME"):
        monkeypatch.setenv(name, str(tmp_path / "file"))
    if sys.platform == "linux":
        assert isinstance(open_store(None, "mcp-thing", []), MemoryStore)
    with pytest.raises(Unavailable, match="cache folder"):
        open_store(str(tmp_path / "file" / "below"), "mcp-thing", [])


@pytest.mark.parametrize("damage", [b"", b"not json", b'{"digest": 1}', b"[]\nbody", b"\xff\n"])
async def test_damaged_files_are_as_good_as_none(world: World, tmp_path: Path, damage: bytes) -> None:
    folder = tmp_path / "cache"
    cache = world.cache(DiskStore(str(folder), ["me"]))
    for kind in ("data", "meta", "state"):
        await cache.get("k")
        for path in (folder / kind).iterdir():
            path.write_bytes(damage)
        assert (await cache.get("k")).body == b"v1"


async def test_who_dies_between_data_and_metadata_loses_nothing(world: World, tmp_path: Path) -> None:
    cache = world.cache(DiskStore(str(tmp_path / "cache"), ["me"]))
    world.answers["k"] = FetchResult(b"v1", 60, etag='"old"')
    await cache.get("k")
    (meta,) = (tmp_path / "cache" / "meta").iterdir()
    before = meta.read_bytes()
    world.answers["k"] = FetchResult(b"v2", 60, etag='"new"')
    await cache.get("k", max_age=0)
    meta.write_bytes(before)
    (data,) = (tmp_path / "cache" / "data").iterdir()
    written = data.stat().st_mtime_ns
    again = await cache.get("k")
    # The old validators do not belong to this body; the content is the same, so nothing is told again.
    assert world.asked[-1] == ("k", Validators())
    assert (again.body, data.stat().st_mtime_ns) == (b"v2", written)


async def test_a_full_disk_keeps_no_answer_from_the_caller(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    store = DiskStore(str(tmp_path / "cache"), ["me"])

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(store, "write", full)
    assert (await world.cache(store).get("k")).body == b"v1"
    assert "No space left" in caplog.text


async def test_old_and_too_much_goes(tmp_path: Path) -> None:
    now = World().now
    folder = tmp_path / "cache"
    cache = Cache(DiskStore(str(folder), ["me"], max_bytes=3000), World().fetch)
    world = World()
    world.answers = {name: FetchResult(name.encode() * 1000, 60) for name in "abcd"}
    filling = world.cache(DiskStore(str(folder), ["me"]))
    for age, name in enumerate("abcd"):
        known = {path.name for path in (folder / "meta").iterdir()}
        await filling.get(name)
        for kind in ("data", "meta", "locks"):
            for path in (folder / kind).iterdir():
                if path.name not in known:
                    os.utime(path, (path.stat().st_atime, path.stat().st_mtime - (10 - age) * 60))
    (folder / "tmp" / "left behind").write_bytes(b"x")
    os.utime(folder / "tmp" / "left behind", (now, now))
    async with cache:
        pass
    kept = {json.loads(path.read_bytes().partition(b"\n")[0])["digest"] for path in (folder / "data").iterdir()}
    assert kept == {filling.store.read(name).digest for name in "cd"}
    assert not list((folder / "tmp").iterdir())
    # And after a month, all of it.
    for path in [path for kind in ("data", "meta", "locks") for path in (folder / kind).iterdir()]:
        os.utime(path, (now, now))
    async with cache:
        pass
    assert not [path for kind in ("data", "meta", "locks") for path in (folder / kind).iterdir()]


async def test_state_is_changed_by_one_process_at_a_time(tmp_path: Path) -> None:
    stores = [DiskStore(str(tmp_path / "cache"), ["me"]) for _ in range(4)]

    async def count(store: DiskStore) -> None:
        for _ in range(25):
            await anyio.to_thread.run_sync(store.update, "n", lambda state: {"n": state.get("n", 0) + 1})

    async with anyio.create_task_group() as tasks:
        for store in stores:
            tasks.start_soon(count, store)
    assert stores[0].state("n") == {"n": 100}


async def test_two_that_follow_the_same_send_one_request_for_each_look_and_both_hear(
    world: World, tmp_path: Path
) -> None:
    one, other = (world.cache(DiskStore(str(tmp_path / "cache"), ["me"])) for _ in range(2))
    await one.get("a")
    async with following(one, "a") as (_, heard), following(other, "a") as (_, heard_too):
        await until(lambda: world.sleepers == 2)
        for number in range(2, 7):
            world.answers["a"] = FetchResult(f"v{number}".encode(), 60)
            world.advance(60)
            # Whoever did not get the lock looks again in a moment, and finds that nothing is due.
            await until(lambda number=number: len(world.asked) == number and world.sleepers == 2)
            world.advance(1)
            await until(lambda number=number: world.sleepers == 2 and len(heard) == len(heard_too) == number - 1)
            assert len(world.asked) == number


class Upstream:
    """Answers each line with the current value; counts, and holds a request back on demand."""

    def __init__(self) -> None:
        self.value = "v1"
        self.at_once = self.most_at_once = 0
        self.port = 0

    async def serve(self, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
        self.port = listener.extra(anyio.abc.SocketAttribute.local_port)
        task_status.started()
        async with listener:
            await listener.serve(self._answer)

    async def _answer(self, stream: anyio.abc.SocketStream) -> None:
        async with stream:
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
            with suppress(anyio.BrokenResourceError, anyio.EndOfStream):
                await stream.receive()
                for _ in range(1000):
                    await checkpoint()
                self.at_once -= 1
                await stream.send(self.value.encode())


class Follower:
    """A process of `remote_follower`, and what it said."""

    def __init__(self, process: anyio.abc.Process) -> None:
        self.process = process
        self.said: list[str] = []
        self.news = anyio.Event()

    async def listen(self) -> None:
        assert self.process.stdout is not None
        rest = b""
        with suppress(anyio.ClosedResourceError):
            async for chunk in self.process.stdout:
                *lines, rest = (rest + chunk).split(b"\n")
                self.said += [line.decode().rstrip("\r") for line in lines]
                self.news.set()
                self.news = anyio.Event()

    async def says(self, line: str) -> None:
        with anyio.fail_after(SECONDS):
            while line not in self.said:
                await self.news.wait()


@asynccontextmanager
async def follower(tasks: anyio.abc.TaskGroup, folder: Path, port: int, *more: str) -> AsyncGenerator[Follower]:
    words = [sys.executable, "-m", "shared.remote_follower", str(folder), str(port), "k", *more]
    async with await anyio.open_process(words, stdout=PIPE, stderr=None, cwd=Path(__file__).parents[1]) as process:
        found = Follower(process)
        tasks.start_soon(found.listen)
        try:
            yield found
        finally:
            if process.returncode is None:
                process.kill()


@pytest.mark.slow
async def test_processes_share_each_request_and_all_hear_of_each_change_even_when_one_is_killed(tmp_path: Path) -> None:
    upstream, folder = Upstream(), tmp_path / "cache"
    async with anyio.create_task_group() as tasks:
        await tasks.start(upstream.serve)
        async with follower(tasks, folder, upstream.port, "--hang") as doomed:
            await doomed.says("hanging")
            async with (
                follower(tasks, folder, upstream.port) as one,
                follower(tasks, folder, upstream.port) as two,
            ):
                for process in (one, two):
                    await process.says("following")
                # It holds the lock, is in the middle of its request, and dies.
                doomed.process.kill()
                await doomed.process.wait()
                for value in ("v1", "v2", "v3"):
                    upstream.value = value
                    for process in (one, two):
                        await process.says(f"changed k {value}")
                # Whoever asked, nobody asked at the same time, and each change was told exactly once.
                assert upstream.most_at_once == 1
                for process in (one, two):
                    told = [line for line in process.said if line.startswith("changed")]
                    assert told == ["changed k v1", "changed k v2", "changed k v3"]
        tasks.cancel_scope.cancel()
