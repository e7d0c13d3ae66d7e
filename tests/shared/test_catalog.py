"""Lists in pages, resources with several contents, prompts and completions that check what they are asked."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Annotated, Any

import pytest
from mcp import Client
from mcp.server.mcpserver import MCPServer
from mcp.shared.exceptions import MCPError
from mcp_types import (
    BlobResourceContents,
    PromptReference,
    Resource,
    ResourceTemplateReference,
    TextContent,
    TextResourceContents,
)
from pydantic import Field

from mcp_batteries.errors import NotFound, Refused, Unavailable
from mcp_batteries.server.catalog import Catalog, prompt_entry
from mcp_batteries.server.declaration.decorators import (
    Completes,
    DeclaredPrompt,
    DeclaredResource,
    ListsResources,
    completes,
    declarations,
    lists_resources,
    prompt,
    resource,
)

MODES = ["legacy", "2026-07-28"]


class Room:
    @lists_resources
    async def many(self) -> list[Resource]:
        return [Resource(uri=f"toy://thing/{number}", name=str(number)) for number in range(250)]

    @resource("toy://fixed", name="fixed", title="Fixed")
    async def fixed(self) -> list[TextResourceContents | BlobResourceContents]:
        return [
            TextResourceContents(uri="toy://fixed/a", text="a"),
            BlobResourceContents(uri="toy://fixed/b", blob="AA=="),
        ]

    @resource("toy://thing/{name}", name="thing", title="A thing")
    async def thing(self, name: str, uri: str) -> TextResourceContents:
        match name:
            case "missing":
                raise NotFound("There is no `missing`.")
            case "refused":
                raise Refused("`refused` is not for you.")
            case "later":
                raise Unavailable("Not now.")
            case "defect":
                raise RuntimeError("password=hunter2")
        return TextResourceContents(uri=uri, text=name)

    @prompt("Explain a thing")
    async def explain_thing(
        self,
        name: Annotated[str, Field(description="Which one.")],
        tone: Annotated[str, Field(description="How.")] = "dry",
    ) -> str:
        """Explain a thing."""
        return f"Explain {name}, {tone}."

    @completes("name", of="prompt")
    async def names(self, typed: str, others: Mapping[str, str]) -> list[str]:
        return [f"{typed}{number}" for number in range(120)] if others.get("tone") != "none" else []


@asynccontextmanager
async def connected(mode: str = "2026-07-28") -> AsyncGenerator[Client]:
    catalog = Catalog()
    for declared, method in declarations(Room()):
        match declared:
            case DeclaredResource():
                catalog.add_resource(declared, method)
            case DeclaredPrompt():
                catalog.prompts[method.__name__] = (prompt_entry(method, declared), method)
            case Completes():
                catalog.completions[declared.of, declared.argument] = method
            case ListsResources():
                catalog.listings.append(method)
            case _:
                raise AssertionError(declared)
    server = MCPServer("toy")
    catalog.install(server)
    async with Client(server, mode=mode) as client:
        yield client


@pytest.mark.anyio
@pytest.mark.parametrize("mode", MODES)
async def test_pages_neither_skip_nor_repeat(mode: str) -> None:
    async with connected(mode) as client:
        seen, cursor = [], None
        while True:
            page = await client.list_resources(cursor=cursor)
            seen += [item.uri for item in page.resources]
            if (cursor := page.next_cursor) is None:
                break
        assert seen == ["toy://fixed", *(f"toy://thing/{number}" for number in range(250))]


@pytest.mark.anyio
async def test_a_cursor_of_one_list_is_no_cursor_of_another() -> None:
    async with connected() as client:
        cursor = (await client.list_resources()).next_cursor
        with pytest.raises(MCPError) as caught:
            await client.list_prompts(cursor=cursor)
        assert caught.value.error.code == -32602


@pytest.mark.anyio
async def test_a_resource_may_have_several_contents() -> None:
    async with connected() as client:
        assert [item.uri for item in (await client.read_resource("toy://fixed")).contents] == [
            "toy://fixed/a",
            "toy://fixed/b",
        ]


@pytest.mark.anyio
async def test_a_reader_sees_the_uri_as_it_was_sent() -> None:
    async with connected() as client:
        (content,) = (await client.read_resource("toy://thing/caf%E9")).contents
        assert content.uri == "toy://thing/caf%E9"


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("name", "legacy", "modern", "said"),
    [
        ("missing", -32002, -32602, "There is no `missing`."),
        ("refused", -32602, -32602, "`refused` is not for you."),
        ("later", -32603, -32603, "Not now."),
        ("defect", -32603, -32603, "The server failed on this request and has logged the reason."),
    ],
)
async def test_failures_have_the_codes_of_the_revision(
    name: str, legacy: int, modern: int, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    for mode, code in zip(MODES, (legacy, modern), strict=True):
        async with connected(mode) as client:
            with pytest.raises(MCPError) as caught:
                await client.read_resource(f"toy://thing/{name}")
            error = caught.value.error
            assert (error.code, error.message) == (code, said)
            kind = {"missing": "not_found", "refused": "refused", "later": "unavailable"}.get(name)
            assert error.data == {"uri": f"toy://thing/{name}", **({"kind": kind} if kind else {})}


@pytest.mark.anyio
async def test_an_unknown_uri_is_told_what_uris_look_like() -> None:
    async with connected() as client:
        with pytest.raises(MCPError, match=r"look like `toy://thing/\{name\}`"):
            await client.read_resource("other://thing")
        # The name of a thing may hold what ends the path of a URI.
        for name in ("a?b", "a#b", "a?b#c"):
            with pytest.raises(MCPError, match=r"Write `[?]` as %3F and `#` as %23"):
                await client.read_resource(f"toy://thing/{name}")


@pytest.mark.anyio
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("explain_nothing", {}, "There is no prompt `explain_nothing`. There are: `explain_thing`."),
        ("explain_thing", {}, "`name` is required"),
        ("explain_thing", {"name": "x", "nmae": "y"}, "there is no argument `nmae`"),
    ],
)
async def test_a_mistaken_prompt_is_invalid_params(mode: str, name: str, arguments: dict[str, str], said: str) -> None:
    async with connected(mode) as client:
        with pytest.raises(MCPError) as caught:
            await client.get_prompt(name, arguments)
        assert caught.value.error.code == -32602 and said in caught.value.error.message


@pytest.mark.anyio
async def test_a_prompt_is_listed_and_rendered() -> None:
    async with connected() as client:
        (entry,) = (await client.list_prompts()).prompts
        assert [(item.name, item.description, item.required) for item in entry.arguments or []] == [
            ("name", "Which one.", True),
            ("tone", "How.", False),
        ]
        (message,) = (await client.get_prompt("explain_thing", {"name": "it"})).messages
        assert isinstance(message.content, TextContent) and message.content.text == "Explain it, dry."


@pytest.mark.anyio
async def test_completions_are_capped_and_say_so() -> None:
    async with connected() as client:
        ref: Any = PromptReference(type="ref/prompt", name="explain_thing")
        found = (await client.complete(ref, {"name": "name", "value": "a"})).completion
        assert (len(found.values), found.total, found.has_more) == (100, 120, True)
        none = (await client.complete(ref, {"name": "name", "value": "a"}, {"tone": "none"})).completion
        assert none.values == []


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("ref", "argument"),
    [
        (PromptReference(type="ref/prompt", name="nothing"), "name"),
        (ResourceTemplateReference(type="ref/resource", uri="toy://other/{x}"), "x"),
        (PromptReference(type="ref/prompt", name="explain_thing"), "nmae"),
    ],
)
async def test_completing_what_is_not_there_is_invalid_params(ref: Any, argument: str) -> None:
    async with connected() as client:
        with pytest.raises(MCPError) as caught:
            await client.complete(ref, {"name": argument, "value": ""})
        assert caught.value.error.code == -32602
