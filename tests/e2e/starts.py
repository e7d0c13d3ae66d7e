"""A server that is started again with the same arguments, used for all that clients do, and left."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio

from mcp_batteries.testing.case import Case
from mcp_batteries.testing.wire import Message, StdioWire
from mcp_batteries.testing.wire.base import SECONDS

RELAY = Path(__file__).with_name("relay.py")
ENDS = ("input closed", "client killed")
ERAS = ("2025-11-25", "2026-07-28")
STORES_NOTHING = ("mcp_postgres", "mcp_example")
"""The first describes itself by what it finds out while it runs, the second is one file, which has no front."""
_LISTS = ("tools/list", "prompts/list", "resources/templates/list")


@dataclass(frozen=True)
class Start:
    """How a server is started, both times.

    Attributes:
        command: starts it.
        case: what it is asked.
        cache: the folder below which it stores its first answers.
        watched: the file behind `case.uri`, if it is one.
        environment: the whole environment; None for ours.
        cwd: the working folder.
    """

    command: Sequence[str]
    case: Case
    cache: Path
    watched: Path | None = None
    environment: Mapping[str, str] | None = None
    cwd: Path | None = None

    def wire(self, *prefix: str, revision: str, read_stderr: bool = True) -> StdioWire:
        return StdioWire(
            [*prefix, *self.command],
            revision=revision,
            env=self.environment,
            cwd=None if self.cwd is None else str(self.cwd),
            read_stderr=read_stderr,
        )

    @property
    def stored(self) -> list[Path]:
        """The files with first answers."""
        return list(self.cache.glob("**/first-answers/*"))


async def start_twice(start: Start, revision: str, end: str) -> Message:
    """Start a server that stores its first answers, and again; return the second one's answer to a call.

    Raises:
        TimeoutError: Something was not answered, or the server did not end.
    """
    async with start.wire(revision=revision) as wire:
        first = await open_and_list(wire)
    assert bool(start.stored) == (start.case.package not in STORES_NOTHING)
    async with start.wire(sys.executable, str(RELAY), revision=revision, read_stderr=False) as wire:
        assert await open_and_list(wire) == first
        answer = await use(wire, start)
        if end == "input closed":
            await wire.close_stdin()
        else:
            wire.process.kill()
        await no_process_left(wire)
    return answer


async def open_and_list(wire: StdioWire) -> list[Message]:
    """What a host asks first."""
    opening = await wire.open()
    return [opening, *[await wire.request(method) for method in _LISTS]]


async def use(wire: StdioWire, start: Start) -> Message:
    """Call, list, read, subscribe and hear of a change; return the call's answer."""
    tool, arguments = start.case.read
    answer = await wire.call(tool, **arguments)
    for method in (*_LISTS, "resources/list"):
        await wire.request(method)
    uri = start.case.uri
    if uri:
        await wire.read(uri)
        await wire.subscribe(uri)
    if start.watched is not None:
        start.watched.write_text("changed\n", "utf-8")
    if start.watched is not None or uri.startswith("clock:"):
        await wire.updated(uri)
    return answer


async def no_process_left(wire: StdioWire) -> None:
    """Wait until neither the relay nor the server has standard error open."""
    assert wire.process.stderr is not None
    with anyio.fail_after(SECONDS):
        async for _ in wire.process.stderr:
            pass
        await wire.process.wait()
