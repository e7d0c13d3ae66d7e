"""What changes out there reaches those who asked, whoever looks; and nobody looks for nobody."""

import json
import os
import sys
import threading
from pathlib import Path

import anyio
import pytest

from e2e.following import changes_since
from e2e.serving import TRANSPORTS
from mcp_batteries.remote import RemoteSource
from mcp_batteries.testing.wire import MODERN, StdioWire, Wire
from weather.serving import ZURICH, World, served
from weather.upstream import BIRMINGHAM, Upstream

pytestmark = pytest.mark.anyio
UPDATED = "notifications/resources/updated"
LISTED = "notifications/resources/list_changed"


async def read(wire: Wire, uri: str) -> dict:
    return json.loads(await wire.read(uri))


async def asked(upstream: Upstream, where: str, times: int) -> None:
    """Wait until `times` requests more have come."""
    until = upstream.count(where) + times

    def wait() -> None:
        with upstream.arrived:
            assert upstream.arrived.wait_for(lambda: upstream.count(where) >= until, timeout=30)

    await anyio.to_thread.run_sync(wait)


@pytest.mark.slow
@pytest.mark.share(1)
@pytest.mark.diagonal
@pytest.mark.parametrize("revision", ["2025-11-25", MODERN])
@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_change_upstream_reaches_each_era_over_each_transport(
    transport: str, revision: str, upstream: Upstream, tmp_path: Path
) -> None:
    alerts = f"weather://{BIRMINGHAM}/alerts"
    async with served(transport, revision, upstream, tmp_path / "cache") as wire:
        assert (await read(wire, ZURICH))["now"]["values"][0] == 10
        assert (await read(wire, alerts))["total"] == 4
        await wire.subscribe(ZURICH)
        await wire.subscribe(alerts)
        upstream.shift = 5.0
        await wire.updated(ZURICH)
        assert (await read(wire, ZURICH))["now"]["values"][0] == 15
        upstream.alerts = False
        await wire.updated(alerts)
        assert (await read(wire, alerts))["status"] == "none"
        await wire.unsubscribe(alerts)
        upstream.shift = 6.0
        await wire.updated(ZURICH)


async def test_memory_serves_subscriptions_too(upstream: Upstream) -> None:
    async with served("stdio", MODERN, upstream, "memory") as wire:
        await read(wire, ZURICH)
        await wire.subscribe(ZURICH)
        upstream.shift = 5.0
        await wire.updated(ZURICH)


@pytest.mark.slow
async def test_two_processes_share_each_request_and_survive_one_that_is_killed(
    upstream: Upstream, tmp_path: Path
) -> None:
    cache = tmp_path / "cache"
    words = [sys.executable, "-m", "mcp_weather", *upstream.arguments, "--cache", str(cache), "--refresh", "1"]
    async with StdioWire(words, revision=MODERN) as one, StdioWire(words, revision="2025-11-25") as two:
        for wire in (one, two):
            await wire.open()
            await read(wire, ZURICH)
            await wire.subscribe(ZURICH)
        # While each value was the present one, both were told of it once, and one asked for both.
        for shift in (1.0, 2.0, 3.0):
            upstream.shift = shift
            for wire in (one, two):
                await wire.updated(ZURICH)
                assert (await read(wire, ZURICH))["now"]["values"][0] == 10 + shift
        one.process.kill()
        with anyio.fail_after(30):
            await one.process.wait()
        upstream.shift = 4.0
        await two.updated(ZURICH)
        assert not [item for item in two.notifications if item["method"] == UPDATED]


@pytest.mark.slow
async def test_one_killed_in_the_middle_of_its_request_leaves_the_others_able(
    upstream: Upstream, tmp_path: Path
) -> None:
    hold = threading.Event()
    words = [sys.executable, "-m", "mcp_weather", *upstream.arguments, "--cache", str(tmp_path / "cache")]
    words += ["--refresh", "1", "--timeout", "300"]
    async with StdioWire(words, revision=MODERN) as doomed, StdioWire(words, revision=MODERN) as other:
        await doomed.open()
        await other.open()
        fault = upstream.fail("current=", hold=hold, times=1)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(asked, upstream, "current=", 1)
            await doomed.notify("nothing")
            await doomed._send(doomed.message("resources/read", {"uri": ZURICH}))
        assert fault.times == 0
        # It holds the lock of this resource and will never let go by itself.
        doomed.process.kill()
        with anyio.fail_after(30):
            await doomed.process.wait()
        assert (await read(other, ZURICH))["now"]["values"][0] == 10
        hold.set()


async def test_without_a_subscriber_no_request_leaves_for_a_minute_and_more(upstream: Upstream) -> None:
    """Under a clock of its own: an hour of it passes, step by step, and a subscriber then is the control."""
    async with World(upstream) as world:
        waits: list[tuple[float, anyio.Event]] = []

        async def sleep(seconds: float) -> None:
            event = anyio.Event()
            waits.append((world.now + seconds, event))
            await event.wait()

        async def advance(seconds: float) -> None:
            world.now += seconds
            due = [item for item in waits if item[0] <= world.now]
            for item in due:
                waits.remove(item)
                item[1].set()
            await anyio.wait_all_tasks_blocked()

        world.cache.sleep = sleep
        heard: list[object] = []

        async def keys(uri: str) -> list[str]:
            subject = world.policy.parse_uri(uri)
            assert subject is not None
            return await world.engine.cache_keys(await world.place(subject.place), subject.kind)

        source = RemoteSource(world.cache, lambda uri: uri, keys)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(source.run, heard.extend)
            await world.engine.open_meteo.fetch_present(await world.place("47.37,8.55"), "metric")
            await source.add([ZURICH])
            await anyio.wait_all_tasks_blocked()
            source.discard([ZURICH])
            sent = len(upstream.requests)
            for _ in range(60):
                await advance(60)
            assert len(upstream.requests) == sent
            await source.add([ZURICH])
            with anyio.fail_after(30):
                while len(upstream.requests) == sent:
                    await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()


PLACES = """
[home]
latitude = 47.37
longitude = 8.55
name = "Zurich, at home"
"""


@pytest.mark.share(1)
@pytest.mark.parametrize("revision", ["2025-11-25", MODERN])
async def test_the_places_file_is_followed(revision: str, upstream: Upstream, tmp_path: Path) -> None:
    places = tmp_path / "places.toml"
    places.write_text(PLACES)
    async with served("stdio", revision, upstream, tmp_path / "cache", "--places", places) as wire:

        async def listed() -> set[str]:
            return {item["uri"] for item in (await wire.request("resources/list"))["resources"]}

        assert "weather://home/now" in await listed()
        if wire.modern:
            await wire.listen({"resourcesListChanged": True})
        await wire.subscribe("weather://places")
        assert (await read(wire, "weather://home/now"))["place"]["name"] == "Zurich, at home"
        await wire.subscribe("weather://home/now")

        places.write_text(PLACES + "\n[office]\nlatitude = 33.521\nlongitude = -86.812\n")
        await wire.notification(LISTED)
        await wire.updated("weather://places")
        assert "weather://office/alerts" in await listed()

        # Broken: the last good list stays, and what is wrong can be read.
        places.write_text("[home\n")
        await wire.updated("weather://places")
        assert "weather://office/alerts" in await listed()
        problem = await wire.request("resources/read", {"uri": "weather://places/problem"})
        assert "not TOML" in problem["contents"][0]["text"]
        assert "not TOML" in (await read(wire, "weather://places"))["problem"]

        # An alias that moves is another place, to its subscribers too.
        places.write_text(PLACES.replace("47.37", "46.95"))
        await wire.updated("weather://home/now")
        assert (await read(wire, "weather://home/now"))["place"]["latitude"] == 46.95
        assert (await read(wire, "weather://places"))["problem"] is None
        upstream.shift = 7.0
        await wire.updated("weather://home/now")


@pytest.mark.slow
async def test_the_self_test_starts_reads_and_receives_an_update(upstream: Upstream, tmp_path: Path) -> None:
    words = [sys.executable, "-m", "mcp_weather", "--check", "--cache", str(tmp_path / "cache"), *upstream.arguments]
    with anyio.fail_after(120):
        done = await anyio.run_process(words, check=False, env={**os.environ, "COLUMNS": "200"})
    said = done.stdout.decode()
    assert done.returncode == 0, said
    assert "Everything works." in said and "announced after" in said


@pytest.mark.slow
async def test_the_self_test_says_why_nothing_is_announced(upstream: Upstream, tmp_path: Path) -> None:
    words = [sys.executable, "-m", "mcp_weather", "--check", "--cache", str(tmp_path / "cache"), *upstream.arguments]
    words = [word.replace(upstream.url, "http://127.0.0.1:9") for word in words]
    with anyio.fail_after(120):
        done = await anyio.run_process(words, check=False, env={**os.environ, "COLUMNS": "200"})
    said = done.stdout.decode()
    assert done.returncode == 1, said
    line = next(line for line in said.splitlines() if line.startswith("✗ subscribe"))
    assert "Open-Meteo cannot be reached: `127.0.0.1` port 9 refused the connection, and no proxy is set." in line


@pytest.mark.parametrize("revision", ["2025-11-25", MODERN])
async def test_what_changed_since_of_what_is_subscribed_to(revision: str, upstream: Upstream, tmp_path: Path) -> None:
    async with served("stdio", revision, upstream, tmp_path / "cache") as wire:
        failed = await wire.call("list_changes")
        assert failed["isError"] and "nothing to follow. Name some as `weather://" in failed["content"][0]["text"]
        await wire.subscribe(ZURICH)
        _, since = await changes_since(wire)
        assert (await changes_since(wire, since))[0] == set()
        upstream.shift = 5.0
        await wire.updated(ZURICH)
        found, since = await changes_since(wire, since)
        assert found == {ZURICH}
        assert (await changes_since(wire, since))[0] == set()
