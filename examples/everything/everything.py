"""A server with one of everything that MCP has, to see what a host makes of it.

    uv run python examples/everything/everything.py

Every kind of content, progress, a question to the person, a resource that changes, templates with completions, a prompt
with an attachment, a skill, data with a schema, an error that helps; over stdio or HTTP, in every revision.
"""

import base64
import sys
from collections.abc import Callable, Collection, Hashable, Mapping
from typing import Annotated, ClassVar

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.resolve import Elicit, Resolve
from mcp_types import (
    AudioContent,
    BlobResourceContents,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)
from pydantic import BaseModel, Field

from mcp_batteries.errors import Invalid, NotFound, quote
from mcp_batteries.program import Demonstration, Program
from mcp_batteries.run import run
from mcp_batteries.server.assemble import Assembled, assemble
from mcp_batteries.server.calling.results import DataResult
from mcp_batteries.server.declaration.decorators import completes, prompt, resource, tool
from mcp_batteries.server.list_changes import ChangeFeedConfig
from mcp_batteries.server.skills import PackagedSkills
from mcp_batteries.settings import Settings as CommonSettings

COUNT = "everything://count"
SQUARE = "everything://square/{number}"
PIXEL = "everything://pixel"
ROOMS = ("attic", "cellar", "kitchen")
# One red pixel.
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC"
# One sample of silence.
WAV = base64.b64encode(
    b"RIFF\x26\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0\x40\x1f\0\0\x80\x3e\0\0\2\0\x10\0data\2\0\0\0\0\0"
).decode()


class Settings(CommonSettings):
    """Serve one of everything that MCP has, to see what a host makes of it."""

    COMMAND: ClassVar[str] = "mcp-everything"
    FILE: ClassVar[str | None] = __file__
    EXAMPLES: ClassVar[tuple[str, ...]] = ("--transport http --port 8000",)


class Name(BaseModel):
    """What the person fills in."""

    name: str = Field(description="Any name will do.")
    room: str = Field("kitchen", description="Where you are.", json_schema_extra={"enum": list(ROOMS)})


class Numbers(DataResult):
    """Numbers with their squares."""

    columns: list[str]
    rows: list[list[int]]


async def ask_who() -> Elicit[Name]:
    return Elicit("Who is there?", Name)


class Counter:
    """The source of changes: whoever counts tells, as long as somebody listens."""

    list_keys: Collection[Hashable] = ()

    def __init__(self) -> None:
        self.count = 0
        self._changed: Callable[[Collection[Hashable]], None] = lambda keys: None

    def key(self, uri: str) -> Hashable | None:
        return COUNT if uri == COUNT else None

    async def add(self, keys: Collection[Hashable]) -> None: ...

    def discard(self, keys: Collection[Hashable]) -> None: ...

    async def run(self, changed: Callable[[Collection[Hashable]], None]) -> None:
        self._changed = changed

    def step(self) -> None:
        self.count += 1
        self._changed([COUNT])


class Everything:
    def __init__(self, counter: Counter) -> None:
        self.counter = counter

    @tool("Show contents")
    async def show_contents(self) -> list[ContentBlock]:
        """Show a block of each kind of content: text, image, sound, an attached resource and a link to one."""
        return [
            TextContent(type="text", text="One block of each kind."),
            ImageContent(type="image", data=PNG, mime_type="image/png"),
            AudioContent(type="audio", data=WAV, mime_type="audio/wav"),
            EmbeddedResource(type="resource", resource=await self.count()),
            ResourceLink(type="resource_link", uri=PIXEL, name="pixel", mime_type="image/png"),
        ]

    @tool("Get numbers")
    async def get_numbers(self, most: Annotated[int, Field(ge=1, le=100, description="The last one.")] = 3) -> Numbers:
        """Get numbers and their squares, as data with a schema and complete in text too."""
        return Numbers(columns=["number", "square"], rows=[[number, number**2] for number in range(1, most + 1)])

    @tool("Ask for a name", idempotent=False)
    async def ask_name(self, who: Annotated[Name, Resolve(ask_who)]) -> str:
        """Ask the person for a name with a form, and greet them. Fails where the host cannot ask."""
        return f"Hello, {who.name} in the {who.room}."

    @tool("Count up", effect="write")
    async def count_up(self, ctx: Context, steps: Annotated[int, Field(ge=1, le=50)] = 3) -> str:
        """Count on, telling progress and everybody who follows `everything://count`. What was counted stays."""
        for step in range(1, steps + 1):
            self.counter.step()
            await ctx.report_progress(step, steps, f"counted to {self.counter.count}")
        return f"Counted to {self.counter.count}."

    @tool("Fail")
    async def run_failure(self) -> str:
        """Fail, to show what an error looks like: what failed, then the next move."""
        raise Invalid("This always fails.", "Do not repeat it: there is nothing to mend.")

    @resource(COUNT, name="count", title="How far was counted", mime_type="text/plain")
    async def count(self) -> TextResourceContents:
        return TextResourceContents(uri=COUNT, mime_type="text/plain", text=f"{self.counter.count}\n")

    @resource(PIXEL, name="pixel", title="A red pixel", mime_type="image/png")
    async def pixel(self) -> BlobResourceContents:
        return BlobResourceContents(uri=PIXEL, mime_type="image/png", blob=PNG)

    @resource(SQUARE, name="square", title="A number's square", mime_type="text/plain")
    async def square(self, uri: str, number: str) -> TextResourceContents:
        if not number.isdecimal() or len(number) > 20:
            raise NotFound(f"{quote(number)} is no number.", "Ask for everything://square/7.")
        return TextResourceContents(uri=uri, mime_type="text/plain", text=f"{int(number) ** 2}\n")

    @completes("number", of="resource")
    async def numbers(self, typed: str, others: Mapping[str, str]) -> list[str]:
        return [f"{typed}{digit}" for digit in range(10)]

    @completes("room", of="prompt")
    async def rooms(self, typed: str, others: Mapping[str, str]) -> list[str]:
        return [room for room in ROOMS if room.startswith(typed)]

    @prompt("Describe a room")
    async def describe_room(
        self, room: Annotated[str, Field(description="One of those offered.")]
    ) -> list[str | TextResourceContents | BlobResourceContents]:
        """Describe a room, with a resource attached."""
        return [f"Describe the {room} in two sentences; the number attached is that of its chairs.", await self.count()]


def build(settings: Settings) -> Assembled:
    counter = Counter()
    return assemble(
        settings.COMMAND,
        settings,
        rooms=[Everything(counter)],
        sources=[counter],
        follows=ChangeFeedConfig(uris=f"By default `{COUNT}`.", usual=lambda: [COUNT]),
        skills=[PackagedSkills(settings.COMMAND, __file__)],
        title="Everything",
        version="1",
        instructions="One of everything. Begin with `show_contents`; `everything://count` changes with `count_up`.",
    )


def demonstration(settings: Settings) -> Demonstration:
    """What `--check` would have to do to see a change: nothing outside the process does."""
    return None


PROGRAM = Program((sys.executable, __file__), lambda: Settings, build, demonstration)

if __name__ == "__main__":
    run(PROGRAM)
