"""The rules that every server keeps, as one test suite.

Use it for your own server: write a test module with a fixture `case` that returns a `Case`, and `from
mcp_batteries.testing.contract import *`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

import anyio
import pytest
from jsonschema import Draft202012Validator
from mcp import Client
from mcp.client.extension import advertise
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError
from mcp_types import SERVER_INFO_META_KEY, TextContent, Tool

from mcp_batteries.errors import Problem
from mcp_batteries.server.calling.tool import without_names
from mcp_batteries.testing.case import Case
from mcp_batteries.testing.wire import StdioWire

VERBS = {
    "list", "get", "read", "search", "query", "explain", "create", "write", "edit", "move", "copy", "delete", "run",
    "watch", "find", "plot", "replace", "undo", "stage", "continue", "revert", "call",
}  # fmt: skip
LEGACY = "2025-11-25"
MODERN = "2026-07-28"
VIEWS = advertise("io.modelcontextprotocol/ui", {"mimeTypes": ["text/html;profile=mcp-app"]})


@pytest.fixture
def anyio_backend() -> str:
    """The event loop that the servers run on."""
    return "asyncio"


def keep_offered(tools: Sequence[Tool], offered: Callable[[Tool], bool]) -> list[Tool]:
    """Return those of `tools` that are `offered`, without mentions of the others."""
    missing = [tool.name for tool in tools if not offered(tool)]
    return [
        tool.model_copy(update={"description": without_names(tool.description or "", missing)})
        for tool in tools
        if offered(tool)
    ]


async def tools_of(case: Case, *more: str) -> list[Tool]:
    async with Client(case.build(*more)) as client:
        return (await client.list_tools()).tools


def text_of(result: Any) -> str:
    return "".join(block.text for block in result.content if isinstance(block, TextContent))


@pytest.mark.anyio
async def test_tool_names_are_verb_noun_and_short(case: Case) -> None:
    for tool in await tools_of(case):
        assert re.fullmatch(r"[a-z]+(_[a-z]+)+", tool.name), tool.name
        words = tool.name.split("_")
        assert words[words[0] in case.prefixes] in VERBS, f"{tool.name}: its verb is not in `VERBS` of {__name__}"
        assert len(tool.name) <= 40


@pytest.mark.anyio
async def test_tools_are_described_and_titled(case: Case) -> None:
    for tool in await tools_of(case):
        assert tool.title and tool.title[0].isupper() and not tool.title.endswith("."), tool.name
        assert tool.description, tool.name
        first = tool.description.partition("\n")[0]
        assert first.endswith("."), f"{tool.name}: the first line of the description is one sentence"
        assert len(tool.description) <= 1024, tool.name


@pytest.mark.anyio
async def test_hints_are_complete_and_consistent(case: Case) -> None:
    for tool in await tools_of(case):
        hints = tool.annotations
        assert hints is not None, tool.name
        values = (hints.read_only_hint, hints.destructive_hint, hints.idempotent_hint, hints.open_world_hint)
        assert None not in values, tool.name
        assert not (hints.read_only_hint and hints.destructive_hint), tool.name


@pytest.mark.anyio
async def test_schemas_are_valid_lean_and_closed(case: Case) -> None:
    for tool in await tools_of(case):
        for schema in filter(None, (tool.input_schema, tool.output_schema)):
            Draft202012Validator.check_schema(schema)
            assert schema["type"] == "object", tool.name
            assert '"title"' not in json.dumps({**schema, "properties": None, "required": None}), tool.name
            assert "$ref" not in json.dumps(schema), tool.name
        assert tool.input_schema["additionalProperties"] is False, tool.name
        # Some model providers refuse a whole list for one top-level combinator.
        assert not {"anyOf", "oneOf", "allOf"} & tool.input_schema.keys(), tool.name
        for name, argument in tool.input_schema.get("properties", {}).items():
            # A switch, a bounded number, a choice and the house's own words speak for themselves.
            plain = argument.get("type") in ("boolean", "integer", "number") or "enum" in argument
            plain = plain or "properties" in argument.get("items", {})
            speaks = plain or name in ("content", "cursor", "message", "path", "paths", "repo", "source", "target")
            assert speaks or argument.get("description"), f"{tool.name}.{name} has no description"


@pytest.mark.anyio
async def test_one_word_for_one_thing(case: Case) -> None:
    descriptions: dict[str, set[str]] = {}
    for tool in await tools_of(case):
        for name, argument in tool.input_schema.get("properties", {}).items():
            descriptions.setdefault(name, set()).add(str(argument.get("type", argument.get("anyOf"))))
    assert {name: kinds for name, kinds in descriptions.items() if len(kinds) > 1} == {}


@pytest.mark.anyio
async def test_lists_are_deterministic(case: Case) -> None:
    assert await tools_of(case) == await tools_of(case)


@pytest.mark.anyio
async def test_unknown_and_mistyped_arguments_are_refused(case: Case) -> None:
    async with Client(case.build()) as client:
        for tool in (await client.list_tools()).tools:
            refused = await client.call_tool(tool.name, {"no_such_argument": 1})
            assert refused.is_error, tool.name
            assert "`no_such_argument`" in text_of(refused)
            for name, argument in tool.input_schema.get("properties", {}).items():
                if argument.get("type") in ("integer", "number"):
                    refused = await client.call_tool(tool.name, {name: True})
                    assert refused.is_error and f"`{name}` must be" in text_of(refused), f"{tool.name}.{name}"


@pytest.mark.anyio
async def test_null_is_taken_for_an_argument_that_is_left_out(case: Case) -> None:
    name, arguments = case.read
    async with Client(case.build()) as client:
        tool = next(tool for tool in (await client.list_tools()).tools if tool.name == name)
        nothing = dict.fromkeys(tool.input_schema["properties"])
        result = await client.call_tool(name, {**nothing, **arguments})
        assert not result.is_error, text_of(result)


@pytest.mark.anyio
async def test_an_optional_argument_that_says_nothing_is_left_out(case: Case) -> None:
    """Models in strict modes must send every argument; a call without the required ones runs nothing."""
    name, arguments = case.read
    async with Client(case.build()) as client:
        for tool in (await client.list_tools()).tools:
            required = tool.input_schema.get("required", ())
            nothing = {
                argument: _say_nothing(schema)
                for argument, schema in tool.input_schema.get("properties", {}).items()
                if argument not in required
            }
            if tool.name == name:
                result = await client.call_tool(name, {**nothing, **arguments})
                assert not result.is_error, text_of(result)
            elif required and nothing:
                text = text_of(await client.call_tool(tool.name, nothing))
                blamed = [argument for argument in nothing if f"`{argument}` must be" in text]
                assert not blamed, f"{tool.name}: {text}"


def _say_nothing(schema: dict[str, Any]) -> Any:
    """Return what a strict mode sends for an argument that it wants to leave out."""
    match schema.get("type"):
        case "integer" | "number":
            return schema.get("default", 0)
        case "boolean":
            return schema.get("default", False)
        case "array":
            return []
        case "object":
            return {}
        case _:
            return schema.get("enum", [""])[0]


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["legacy", MODERN])
async def test_a_tool_that_is_not_there_is_an_error_of_the_protocol(case: Case, mode: str) -> None:
    name, _ = case.read
    async with Client(case.build(), mode=mode) as client:
        with pytest.raises(MCPError) as caught:
            await client.call_tool(name[:-1], {})
        assert caught.value.error.code == -32602 and f"`{name}`" in caught.value.error.message


@pytest.mark.anyio
@pytest.mark.parametrize("uri", ["nowhere", "nowhere://a/b", ""])
async def test_what_can_be_no_resource_is_not_subscribed_to(case: Case, uri: str) -> None:
    async with Client(case.build(), mode="legacy") as client:
        with pytest.raises(MCPError) as caught, pytest.warns(MCPDeprecationWarning):
            await client.subscribe_resource(uri)  # pyright: ignore[reportDeprecated] - this era has no other
        assert caught.value.error.code == -32002
    async with (
        Client(case.build(), mode=MODERN) as client,
        client.listen(resource_subscriptions=[uri], tools_list_changed=True) as events,
    ):
        assert not events.honored.resource_subscriptions


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["legacy", MODERN])
async def test_the_read_call_answers_in_one_text_block(case: Case, mode: str) -> None:
    name, arguments = case.read
    async with Client(case.build(), mode=mode) as client:
        result = await client.call_tool(name, dict(arguments))
        assert not result.is_error, text_of(result)
        assert [block.type for block in result.content] == ["text"]
        assert text_of(result).endswith("\n")
        tool = next(tool for tool in (await client.list_tools()).tools if tool.name == name)
        assert (result.structured_content is None) == (tool.output_schema is None)
        if tool.output_schema is not None:
            validator: Any = Draft202012Validator(tool.output_schema)
            validator.validate(result.structured_content)


@pytest.mark.anyio
async def test_errors_help_and_leak_nothing(case: Case) -> None:
    async with Client(case.build()) as client:
        for name, arguments in case.refused:
            result = await client.call_tool(name, dict(arguments))
            message = text_of(result)
            assert result.is_error, f"{name}({arguments}) should be refused, said: {message}"
            assert "Traceback" not in message and 'File "' not in message
            assert "`" in message, f"quote what was wrong: {message}"
            sent_text = " ".join(map(str, arguments.values()))
            for secret in case.foreign:
                assert secret in sent_text or secret not in message


@pytest.mark.anyio
async def test_the_operator_chooses_among_the_tools(case: Case) -> None:
    async def offered(*chosen: str, excluded: Sequence[str] = ()) -> list[Tool]:
        settings = case.settings().model_copy(update={"tools": chosen, "exclude_tools": tuple(excluded)})
        async with Client(case.program.build(settings)) as client:
            return (await client.list_tools()).tools

    everything = await offered("all")
    (name, _) = case.read
    assert [tool.name for tool in await offered(name)] == [name]
    assert await offered("all", excluded=[name]) == keep_offered(everything, lambda tool: tool.name != name)
    assert await offered("default", name) == await offered()
    with pytest.raises(Problem, match=f"`--tools` names `no_such_tool`.* tools .*{name}"):
        await offered("no_such_tool")
    with pytest.raises(Problem, match=f"`--exclude-tools` names `no_such_tool`.* tools .*{name}"):
        await offered(excluded=["no_such_tool"])
    settings = case.settings().model_copy(update={"tools": (name,), "exclude_tools": ()})
    for tool in everything:
        if tool.name != name:
            async with Client(case.program.build(settings)) as client:
                with pytest.raises(MCPError, match=f"turned off. .*`--tools {name},{tool.name}"):
                    await client.call_tool(tool.name, {})
            break


@pytest.mark.anyio
async def test_read_only_offers_readers_only(case: Case) -> None:
    everything = await tools_of(case)
    readers = await tools_of(case, "--read-only")
    assert readers == keep_offered(everything, lambda tool: bool(tool.annotations and tool.annotations.read_only_hint))
    async with Client(case.build("--read-only")) as client:
        for tool in everything:
            if tool.name not in {reader.name for reader in readers}:
                with pytest.raises(MCPError, match=f"There is no tool `{tool.name}`"):
                    await client.call_tool(tool.name, {})


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["legacy", MODERN])
async def test_views_are_told_to_hosts_that_show_them_and_cost_little(case: Case, mode: str) -> None:
    plain = await tools_of(case)
    async with Client(case.build(), mode=mode, extensions=[VIEWS]) as client:
        tools = (await client.list_tools()).tools
        for uri in {tool.meta["ui"].get("resourceUri") for tool in tools if tool.meta} - {None}:
            [page] = (await client.read_resource(uri)).contents
            assert page.mime_type == "text/html;profile=mcp-app" and page.meta, uri
    assert not [tool.name for tool in plain if tool.meta]
    app_only = [tool for tool in tools if tool.meta and tool.meta["ui"].get("visibility") == ["app"]]
    assert plain == [tool.model_copy(update={"meta": None}) for tool in tools if tool not in app_only]
    more = sum(len(tool.model_dump_json(by_alias=True, exclude_none=True)) for tool in tools)
    more -= sum(len(tool.model_dump_json(by_alias=True, exclude_none=True)) for tool in plain)
    assert more <= 400 * max(1, len(case.prefixes)), f"views cost {more} bytes of tools/list"


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["legacy", MODERN])
async def test_resources_can_be_read_and_templates_are_described(case: Case, mode: str) -> None:
    async with Client(case.build(), mode=mode) as client:
        if case.uri:
            assert (await client.read_resource(case.uri)).contents
        resources = (await client.list_resources()).resources
        assert len({resource.uri for resource in resources}) == len(resources)
        for resource in resources:
            assert resource.name
            assert (await client.read_resource(resource.uri)).contents, resource.uri
        for template in (await client.list_resource_templates()).resource_templates:
            assert template.name and template.title and "{" in template.uri_template


@pytest.mark.anyio
async def test_lists_say_how_long_they_hold(case: Case) -> None:
    async with Client(case.build(), mode=MODERN) as client:
        for page in (await client.list_prompts(), await client.list_resource_templates()):
            assert page.ttl_ms and page.cache_scope == "private"
        # What there is to read may change at any moment, and not everybody listens (docs/decisions/0019).
        assert not (await client.list_resources()).ttl_ms


@pytest.mark.anyio
@pytest.mark.parametrize(("mode", "code"), [("legacy", -32002), (MODERN, -32602)])
async def test_a_missing_resource_has_the_code_of_its_revision(case: Case, mode: str, code: int) -> None:
    missing = (case.uri or "nowhere://a") + "-no-such-thing"
    async with Client(case.build(), mode=mode) as client:
        with pytest.raises(MCPError) as caught:
            await client.read_resource(missing)
        assert caught.value.error.code == code
        # A service's own status may stand beside.
        assert {"uri": missing, "kind": "not_found"}.items() <= caught.value.error.data.items()


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["legacy", MODERN])
async def test_a_garbage_cursor_is_refused_everywhere(case: Case, mode: str) -> None:
    async with Client(case.build(), mode=mode) as client:
        for method in (
            client.list_tools,
            client.list_resources,
            client.list_resource_templates,
            client.list_prompts,
        ):
            with pytest.raises(MCPError) as caught:
                await method(cursor="garbage")
            assert caught.value.error.code == -32602


@pytest.mark.anyio
async def test_prompts_are_described_and_check_their_arguments(case: Case) -> None:
    async with Client(case.build()) as client:
        for prompt in (await client.list_prompts()).prompts:
            assert prompt.title and prompt.description, prompt.name
            assert all(argument.description for argument in prompt.arguments or []), prompt.name
            with pytest.raises(MCPError) as caught:
                await client.get_prompt(prompt.name, {"no_such_argument": "1"})
            assert caught.value.error.code == -32602 and "`no_such_argument`" in caught.value.error.message


@pytest.mark.anyio
@pytest.mark.parametrize("revision", [LEGACY, MODERN])
async def test_a_process_is_quiet_and_leaves_at_once(case: Case, revision: str) -> None:
    async with StdioWire(case.command, revision=revision) as wire:
        await wire.open()
        name, arguments = case.read
        assert not (await wire.request("tools/call", {"name": name, "arguments": dict(arguments)})).get("isError")
        await wire.close_stdin()
        # Generous for a loaded machine: the rule is one second, a missing one is seen as five or never.
        with anyio.fail_after(4):
            assert await wire.wait() == 0
        assert wire.garbage == []
        assert wire.stderr == ""


@pytest.mark.anyio
async def test_the_first_calls_may_come_all_at_once(case: Case) -> None:
    """What a server starts on first use, such as a pool or a database, starts once for all calls."""
    name, arguments = case.read
    answers: list[Any] = []
    async with StdioWire(case.command) as wire:
        await wire.open()

        async def call() -> None:
            answers.append(await wire.request("tools/call", {"name": name, "arguments": dict(arguments)}))

        async with anyio.create_task_group() as tasks:
            for _ in range(16):
                tasks.start_soon(call)
    assert [answer.get("isError", False) for answer in answers] == [False] * 16


def test_every_setting_is_documented(case: Case) -> None:
    for name, field in case.kind.model_fields.items():
        assert field.description and field.description.endswith("."), name


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["legacy", MODERN])
async def test_a_server_introduces_itself_once(case: Case, mode: str) -> None:
    """What hosts show of it comes when a client begins, and not in every answer."""
    async with Client(case.build(), mode="auto" if mode == MODERN else mode) as client:
        info = client.server_info
        assert info is not None and info.title and info.description
        assert (client.protocol_version == MODERN) == (mode == MODERN)
        again = (await client.list_tools()).meta or {}
    assert "icons" not in again.get(SERVER_INFO_META_KEY, {})
    for icon in info.icons or ():
        assert icon.src.startswith("data:image/") and icon.mime_type and icon.sizes
    assert len(info.icons or ()) in (0, 2)
