"""A world in which time, the network and every fault are made by a seed: replicas with real hubs and real buses.

Time is virtual: the event loop jumps to the next moment at which something is due. A link between a replica and the
broker carries messages as TCP does: in order, late while the network or the broker stands still, or not at all once
the connection is lost, which either end may not know. Beyond TCP it also loses, doubles and reorders messages.
"""

from __future__ import annotations

import asyncio
import math
import random
import selectors
from collections.abc import AsyncGenerator, Callable, Collection, Hashable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
from mcp.shared.subscriptions import ResourceUpdated, ServerEvent

from mcp_batteries.replicas.bus import RemoteBus
from mcp_batteries.subscriptions.hub import Hub
from mcp_batteries.subscriptions.topics import Subscriber

__all__ = ["Broken", "simulate"]

RECOVERY_SECONDS = 2.0
"""After the last fault everybody has heard, or was told to look again."""
_FAULTY_SECONDS, _MOST_FAULTS, _LONGEST_FAULT = 12.0, 5, 6.0
_SYN_SECONDS = 1.0
"""Until a connection that gets no answer is asked for again (RFC 6298, section 2.1)."""
_TURN_SECONDS = 0.2


class Broken(AssertionError):
    """A promise was broken; the message tells which, and the history that led there."""


class _Selector(selectors.SelectSelector):
    """Nothing ever happens outside: instead of waiting, the clock moves on."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is None:
            raise Broken("Everybody waits for somebody else.")
        self.now += max(timeout, 0.0)
        return []


class Loop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._clock = _Selector()
        super().__init__(self._clock)
        self._clock_resolution = 1e-9

    def time(self) -> float:
        return self._clock.now


class Broker:
    """Carries each message to everybody who is connected, after a while, as the faults of the moment let it."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.connections: dict[Connection, None] = {}
        self.frozen_until = 0.0
        self.down_until = 0.0
        self.loses = self.doubles = self.reorders = 0.0

    def accept(self, message: bytes) -> None:
        for connection in list(self.connections):
            if self.chance.random() < self.loses:
                continue
            for _ in range(1 + (self.chance.random() < self.doubles)):
                late = self.chance.uniform(0.05, 1.0) if self.chance.random() < self.reorders else 0.0
                connection.down.put(message, late)

    def restart(self, seconds: float) -> None:
        self.down_until = anyio.current_time() + seconds
        for connection in list(self.connections):
            connection.close()


class Pipe:
    """One direction of a connection: what is put in comes out in order, after the network and the far end are ready."""

    def __init__(self, clear_at: Callable[[], float], out: Callable[[bytes], None]) -> None:
        self._clear_at, self._out = clear_at, out
        self._last = 0.0
        self.broken = False

    def put(self, message: bytes, late: float = 0.0) -> float:
        """When it arrives, as far as is known now."""
        due = max(self._last, anyio.current_time() + 0.002)
        if not late:
            self._last = due
        asyncio.get_running_loop().call_at(due + late, self._arrive, message)
        return due + late

    def _arrive(self, message: bytes) -> None:
        if self.broken:
            return
        clear = self._clear_at()
        if clear > anyio.current_time():
            # TCP sends it again: in order, and soon after there is a way.
            self._last = max(self._last, clear) + 1e-6
            asyncio.get_running_loop().call_at(self._last, self._arrive, message)
        else:
            self._out(message)


class Connection:
    def __init__(self, link: SimulatedLink, receive: Callable[[bytes], None]) -> None:
        self.link, self.broker = link, link.broker
        self.lost = anyio.Event()
        self.acknowledged: dict[bytes, anyio.Event] = {}
        self.up = Pipe(self._up_clear, self._at_broker)
        self.down = Pipe(self._down_clear, receive)
        self.replies = Pipe(self._down_clear, self._confirmed)
        self.open = True
        self.broker.connections[self] = None

    def _up_clear(self) -> float:
        return max(self.link.parted_until, self.link.frozen_until, self.broker.frozen_until)

    def _down_clear(self) -> float:
        return max(self.link.parted_until, self.link.frozen_until)

    def _at_broker(self, message: bytes) -> None:
        if self.open:
            self.broker.accept(message)
            self.replies.put(message)
        else:
            self.lost.set()  # The broker knows this connection no more, and says so.

    def _confirmed(self, message: bytes) -> None:
        if message in self.acknowledged:
            self.acknowledged.pop(message).set()

    def close(self, *, told: bool = True) -> None:
        """The broker's end is gone; the replica hears of it unless its network is away or `told` is false."""
        self.open = False
        self.broker.connections.pop(self, None)
        self.down.broken = self.replies.broken = True
        if told and self.link.parted_until <= anyio.current_time():
            self.lost.set()


class SimulatedLink:
    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.parted_until = 0.0
        self.frozen_until = 0.0
        self.connection: Connection | None = None

    async def hold(self, receive: Callable[[bytes], None], connected: Callable[[], None]) -> None:
        while anyio.current_time() < self.parted_until:
            await anyio.sleep(_SYN_SECONDS)
        if anyio.current_time() < self.broker.down_until:
            raise ConnectionRefusedError
        while anyio.current_time() < max(self.broker.frozen_until, self.frozen_until):
            await anyio.sleep(0.01)  # The kernel has taken the connection; nobody says hello.
        await anyio.sleep(0.004)
        if anyio.current_time() < self.broker.down_until:
            raise ConnectionResetError
        self.connection = connection = Connection(self, receive)
        try:
            connected()
            await connection.lost.wait()
            raise ConnectionResetError
        finally:
            self.connection = None
            connection.close()

    async def send(self, message: bytes) -> None:
        connection = self.connection
        if connection is None:
            raise ConnectionError
        connection.acknowledged[message] = done = anyio.Event()
        connection.up.put(message)
        await done.wait()


class Watched:
    """A source of a replica: slow and sometimes unable to watch; tells only of what it watches."""

    list_keys: Collection[Hashable] = ()

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.keys: set[Hashable] = set()
        self.changed: Callable[[Collection[Hashable]], None] = lambda keys: None

    def key(self, uri: str) -> Hashable | None:
        return uri.removeprefix("s:") if uri.startswith("s:") else None

    async def add(self, keys: Collection[Hashable]) -> None:
        if not self.keys.isdisjoint(keys):
            raise Broken(f"{keys} are watched twice.")
        await anyio.sleep(self.chance.choice((0, 0, 0.01, 0.3)))
        if self.chance.random() < 0.05:
            raise OSError("no more")
        self.keys.update(keys)

    def discard(self, keys: Collection[Hashable]) -> None:
        self.keys.difference_update(keys)

    async def run(self, changed: Callable[[Collection[Hashable]], None]) -> None:
        self.changed = changed
        await anyio.sleep_forever()


@dataclass(eq=False)
class Listener:
    """A client of a replica: what it is subscribed to since when, and what it must hear of."""

    subscriber: Subscriber
    replica: Replica
    since: dict[str, float] = field(default_factory=dict)
    debts: dict[str, float] = field(default_factory=dict)
    """URI to the moment after which it must be told."""
    own_seconds: float = 0.0
    """What it has taken to read since the faults ended."""


@dataclass(eq=False)
class Replica:
    name: str
    link: SimulatedLink
    bus: RemoteBus
    hub: Hub
    source: Watched
    scope: anyio.CancelScope
    listeners: list[Listener] = field(default_factory=list)


class World:
    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.seed = seed
        self.broker = Broker(self.chance)
        self.replicas: list[Replica] = []
        self.history: list[str] = []
        self.names = 0
        self.last_fault = 0.0
        self.failure: Broken | None = None

    def note(self, what: str) -> None:
        self.history.append(f"{anyio.current_time():8.3f} {what}")

    def broken(self, what: str) -> Broken:
        return Broken(f"seed {self.seed}: {what}\n" + "\n".join(self.history))

    # Who there is

    async def start(self, tasks: anyio.abc.TaskGroup) -> Replica:
        self.names += 1
        link, source = SimulatedLink(self.broker), Watched(self.chance)
        bus = RemoteBus(link)
        hub = Hub((source,), bus=bus)
        bus.subscribe(hub._subscribers.announce)
        bus.on_gap, bus.is_needed = hub.resync, lambda: hub.subscriptions > 0
        replica = Replica(f"r{self.names}", link, bus, hub, source, anyio.CancelScope())

        async def run(*, task_status: anyio.abc.TaskStatus[None]) -> None:
            with replica.scope:
                async with bus.running(), hub.running():
                    task_status.started()
                    await anyio.sleep_forever()

        await tasks.start(run)
        self.replicas.append(replica)
        self.note(f"{replica.name} starts")
        for _ in range(self.chance.randint(0, 2)):
            self.join(replica)
        return replica

    def join(self, replica: Replica) -> Listener:
        async def send(event: ServerEvent) -> None:
            assert isinstance(event, ResourceUpdated)
            if event.uri not in listener.subscriber.uris:
                self.failure = self.broken(f"{replica.name} tells of {event.uri} to who did not ask")
            told = anyio.current_time()
            if self.chance.random() < 0.1:
                seconds = self.chance.choice((0.01, 0.3))
                await anyio.sleep(seconds)
                listener.own_seconds += seconds
            if listener.debts.get(event.uri, math.inf) <= told:
                del listener.debts[event.uri]

        listener = Listener(Subscriber(send), replica)
        replica.listeners.append(listener)
        replica.hub._subscribers.start(listener.subscriber)
        return listener

    # What people do

    async def subscribe(self, listener: Listener, uri: str) -> None:
        topic = listener.replica.hub._subscribers.subscribe(listener.subscriber, uri)
        await topic.wait_settled()
        if listener.subscriber.uris.get(uri) is not topic:
            return
        if topic.failure is not None:
            listener.replica.hub._subscribers.unsubscribe(listener.subscriber, uri)
            return
        self.note(f"{listener.replica.name} has a subscriber of {uri}")
        listener.since.setdefault(uri, anyio.current_time())

    def unsubscribe(self, listener: Listener, uri: str) -> None:
        listener.since.pop(uri, None)
        listener.debts.pop(uri, None)
        listener.replica.hub._subscribers.unsubscribe(listener.subscriber, uri)

    async def announce(self, replica: Replica, uri: str) -> None:
        self.note(f"{replica.name} announces {uri}")
        self._owe(uri, self.replicas)
        await replica.hub.updated(uri)

    def change(self, replica: Replica, uri: str) -> None:
        key = uri.removeprefix("s:")
        if key in replica.source.keys:
            self._owe(uri, [replica])
            replica.source.changed([key])

    def _owe(self, uri: str, replicas: list[Replica]) -> None:
        for replica in replicas:
            for listener in replica.listeners:
                if uri in listener.since:
                    listener.debts[uri] = anyio.current_time()

    async def act(self, tasks: anyio.abc.TaskGroup) -> None:
        replica = self.chance.choice(self.replicas)
        uri = self.chance.choice(("a:1", "a:2", "a:3", "s:1", "s:2"))
        listener = self.chance.choice(replica.listeners or [None])
        match self.chance.choices(("subscribe", "unsubscribe", "announce", "change"), (4, 1, 4, 2))[0]:
            case "subscribe" if listener:
                tasks.start_soon(self.subscribe, listener, uri)
            case "unsubscribe" if listener:
                self.unsubscribe(listener, uri)
            case "change":
                self.change(replica, uri)
            case _:
                await self.announce(replica, uri)

    # What goes wrong

    async def fail(self, tasks: anyio.abc.TaskGroup) -> None:
        now, seconds = anyio.current_time(), self.chance.uniform(0.0, _LONGEST_FAULT)
        replica = self.chance.choice(self.replicas)
        kind = self.chance.choice(
            (
                "freeze",
                "stop",
                "partition",
                "restart",
                "reset",
                "forget",
                "deafen",
                "lose",
                "double",
                "reorder",
                "crash",
            )
        )
        self.note(f"{kind} {replica.name} for {seconds:.2f} s")
        match kind:
            case "freeze":
                self.broker.frozen_until = max(self.broker.frozen_until, now + seconds)
            case "stop":
                replica.link.frozen_until = now + seconds
            case "partition":
                replica.link.parted_until = now + seconds
            case "restart":
                self.broker.restart(seconds)
            case "reset" | "forget":
                seconds = 0.0
                if replica.link.connection is not None:
                    replica.link.connection.close(told=kind == "reset")
            case "deafen":
                # What is sent arrives, nothing comes back: only own beats tell, within four of them.
                seconds = 4.0
                if replica.link.connection is not None:
                    replica.link.connection.down.broken = True
            case "crash":
                seconds = 0.0
                replica.scope.cancel()
                self.replicas.remove(replica)
                # What it had not yet sent nobody can know of.
                for other in self.replicas:
                    for listener in other.listeners:
                        listener.debts.clear()
                await self.start(tasks)
            case _:
                chance = self.chance.uniform(0.2, 1.0)
                setattr(self.broker, {"lose": "loses", "double": "doubles", "reorder": "reorders"}[kind], chance)
                tasks.start_soon(self._heal, kind, seconds)
        self.last_fault = max(self.last_fault, now + seconds)

    async def _heal(self, kind: str, seconds: float) -> None:
        await anyio.sleep(seconds)
        setattr(self.broker, {"lose": "loses", "double": "doubles", "reorder": "reorders"}[kind], 0.0)

    # What must hold

    async def check(self) -> None:
        """Within two seconds of the last fault, and of the last news, every debt is paid."""
        await anyio.sleep(max(self.last_fault - anyio.current_time(), 0.0) + RECOVERY_SECONDS)
        if self.failure is not None:
            raise self.failure
        for replica in self.replicas:
            for listener in replica.listeners:
                for uri, since in listener.debts.items():
                    raise self.broken(f"{replica.name} has not told of {uri}, which changed at {since:.3f}")
            if not replica.bus.connected:
                raise self.broken(f"{replica.name} is not connected")
        for replica in self.replicas:
            for listener in replica.listeners:
                for uri in list(listener.subscriber.uris):
                    self.unsubscribe(listener, uri)
        await anyio.sleep(1)
        for replica in self.replicas:
            if replica.hub.subscriptions or replica.source.keys:
                raise self.broken(f"{replica.name} still watches {replica.source.keys} for nobody")


@asynccontextmanager
async def _tasks() -> AsyncGenerator[anyio.abc.TaskGroup]:
    async with anyio.create_task_group() as tasks:
        yield tasks
        tasks.cancel_scope.cancel()


async def _live(seed: int) -> int:
    world = World(seed)
    async with _tasks() as tasks:
        for _ in range(world.chance.randint(2, 4)):
            await world.start(tasks)
        number = world.chance.randint(0, _MOST_FAULTS)
        faults = sorted(world.chance.uniform(0.0, _FAULTY_SECONDS) for _ in range(number))
        while anyio.current_time() < max(_FAULTY_SECONDS, world.last_fault):
            while faults and faults[0] <= anyio.current_time():
                faults.pop(0)
                await world.fail(tasks)
            await world.act(tasks)
            await anyio.sleep(world.chance.choice((0.0, 0.01, _TURN_SECONDS, _TURN_SECONDS)))
        await world.check()
    return len(world.history)


def simulate(seed: int) -> int:
    """Live through the world of `seed`; the number of things that happened.

    Raises:
        Broken: somebody has not heard.
    """
    try:
        return anyio.run(_live, seed, backend_options={"loop_factory": Loop})
    except BaseExceptionGroup as group:
        raise _first(group) from group


def _first(problem: BaseException) -> BaseException:
    return _first(problem.exceptions[0]) if isinstance(problem, BaseExceptionGroup) else problem
