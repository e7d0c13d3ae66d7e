"""The example that has one of everything: the SDK's client finds each of them, in both eras."""

import importlib.util
import sys
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp_types import ElicitRequestParams, ElicitResult

from e2e.installing import ROOT
from mcp_batteries.testing.wire import MODERN, StdioWire

FILE = ROOT / "examples/everything/everything.py"
_SPEC = importlib.util.spec_from_file_location("everything", FILE)
assert _SPEC and _SPEC.loader
everything = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(everything)


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["legacy", MODERN])
async def test_a_client_finds_one_of_everything(mode: str) -> None:
    async def answer(_: object, params: ElicitRequestParams) -> ElicitResult:
        return ElicitResult(action="accept", content={"name": "Ann", "room": "attic"})

    told: list[float] = []

    async def heard(done: float, total: float | None, message: str | None) -> None:
        told.append(done)

    server: Any = everything.build(everything.Settings())
    async with Client(server, mode=mode, elicitation_callback=answer) as client:
        blocks = (await client.call_tool("show_contents", {})).content
        assert [block.type for block in blocks] == ["text", "image", "audio", "resource", "resource_link"]
        listed = {item.uri for item in (await client.list_resources()).resources}
        assert getattr(blocks[-1], "uri", None) in listed
        greeted: Any = await client.call_tool("ask_name", {})
        assert greeted.content[0].text == "Hello, Ann in the attic.\n"
        numbers = await client.call_tool("get_numbers", {"most": 2})
        assert numbers.structured_content == {"columns": ["number", "square"], "rows": [[1, 1], [2, 4]]}
        await client.call_tool("count_up", {"steps": 3}, progress_callback=heard)
        assert told == [1, 2, 3]
        count: Any = (await client.read_resource("everything://count")).contents[0]
        assert count.text == "3\n"
        assert (await client.call_tool("run_failure", {})).is_error
        prompt = await client.get_prompt("describe_room", {"room": "cellar"})
        assert [message.content.type for message in prompt.messages] == ["text", "resource"]


@pytest.mark.anyio
@pytest.mark.process
async def test_it_runs_from_its_file_and_tells_of_changes_and_skills() -> None:
    async with StdioWire([sys.executable, str(FILE)], revision=MODERN) as wire:
        await wire.open()
        await wire.listen({"resourceSubscriptions": ["everything://count"]})
        await wire.request("tools/call", {"name": "count_up", "arguments": {}})
        with anyio.fail_after(20):
            await wire.notification("notifications/resources/updated")
        (skill,) = (await wire.request("skills/list"))["skills"]
        assert skill["frontmatter"]["name"] == "try-everything"
        read = await wire.request("resources/read", {"uri": skill["uri"]})
        said = read["contents"][0]["text"]
        tools = {tool["name"] for tool in (await wire.request("tools/list"))["tools"]}
        assert tools == {name for name in tools if f"`{name}`" in said}, "the skill tries each tool"
