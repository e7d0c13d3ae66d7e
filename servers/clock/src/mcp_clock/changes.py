"""When what the example shows has changed: once a second, as long as somebody wants to know."""

from collections.abc import Callable, Collection, Hashable

import anyio

from mcp_clock.settings import Settings

NOW = "clock://now"


class Clock:
    """A source of changes that works only while it is subscribed to."""

    list_keys: Collection[Hashable] = ()

    def __init__(self) -> None:
        self._wanted = anyio.Event()

    def key(self, uri: str) -> Hashable | None:
        return NOW if uri == NOW else None

    async def add(self, keys: Collection[Hashable]) -> None:
        self._wanted.set()

    def discard(self, keys: Collection[Hashable]) -> None:
        self._wanted = anyio.Event()

    async def run(self, changed: Callable[[Collection[Hashable]], None]) -> None:
        while True:
            await self._wanted.wait()
            await anyio.sleep(1)
            changed([NOW])


def demonstration(settings: Settings) -> tuple[str, Callable[[], None]]:
    """For `--check`: the clock changes without help."""
    return NOW, lambda: None
