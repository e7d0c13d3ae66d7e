"""What servers answer in each revision, held against that revision's own schema.

`revisions.json` has, of the five `schema.json` of the specification, what servers say, without its prose.
"""

import json
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from contract.cases import CASES
from e2e.installing import ROOT
from mcp_batteries.testing.wire import REVISIONS, Message, StdioWire, WireError
from thinning import some

SCHEMAS: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_name("revisions.json").read_text("utf-8"))
RESULTS = {
    "completion/complete": "CompleteResult",
    "initialize": "InitializeResult",
    "prompts/get": "GetPromptResult",
    "prompts/list": "ListPromptsResult",
    "resources/list": "ListResourcesResult",
    "resources/read": "ReadResourceResult",
    "resources/templates/list": "ListResourceTemplatesResult",
    "server/discover": "DiscoverResult",
    "tools/call": "CallToolResult",
    "tools/list": "ListToolsResult",
}
EVERYTHING = "everything"
"""The example that has a block of each kind."""


@cache
def schema(revision: str, name: str) -> Any:
    return Draft202012Validator({"$defs": SCHEMAS[revision], "$ref": f"#/$defs/{name}"})


def complaints(revision: str, method: str, result: Message) -> Iterator[str]:
    name = "InputRequiredResult" if "inputRequests" in result else RESULTS.get(method, "EmptyResult")
    for error in schema(revision, name).iter_errors(result):
        while error.context:
            error = max(error.context, key=lambda inner: len(inner.absolute_path))
        yield f"{method}: {error.json_path}: {error.message[:200]}"


class Checked(StdioWire):
    """Holds each result against the schema of the revision, and that of a tool against what it promised."""

    tools: dict[str, Message]
    wrong: list[str]

    async def request(self, method: str, params: Message | None = None, **more: Any) -> Message:
        result = await super().request(method, params, **more)
        self.wrong += complaints(self.revision, method, result)
        if method == "tools/call" and not result.get("isError") and "inputRequests" not in result:
            promised = self.tools[(params or {})["name"]].get("outputSchema")
            given = result.get("structuredContent")
            if promised is not None:
                validator: Any = Draft202012Validator(promised)
                self.wrong += [error.message for error in validator.iter_errors(given)]
            elif given is not None:
                self.wrong.append(f"{params}: structured content that no schema promises")
        return result

    async def ask(self, method: str, **params: Any) -> Message:
        """The result, or an empty one where the server refused."""
        try:
            return await self.request(method, params)
        except WireError:
            return {}


@pytest.mark.share(1)
@pytest.mark.diagonal
@pytest.mark.anyio
@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("package", some([EVERYTHING, *CASES], EVERYTHING, "mcp_fs"))
async def test_every_answer_is_one_of_its_revision(package: str, revision: str, tmp_path: Path) -> None:
    if package == EVERYTHING:
        command, calls, uris = [sys.executable, str(ROOT / "examples/everything/everything.py")], [], []
    else:
        case = CASES[package](tmp_path)
        command, calls, uris = case.command, [case.read, *case.refused], [case.uri]
    async with Checked(command, revision=revision) as wire:
        wire.tools, wire.wrong = {}, []
        await wire.open()
        wire.tools = {tool["name"]: tool for tool in (await wire.request("tools/list"))["tools"]}
        for name, arguments in calls:
            await wire.ask("tools/call", name=name, arguments=arguments)
        for name in wire.tools:
            await wire.ask("tools/call", name=name)
        uris += [resource["uri"] for resource in (await wire.request("resources/list"))["resources"]]
        for uri in uris:
            await wire.ask("resources/read", uri=uri)
        for template in (await wire.request("resources/templates/list"))["resourceTemplates"]:
            ref = {"type": "ref/resource", "uri": template["uriTemplate"]}
            name = template["uriTemplate"].partition("{")[2].strip("+").partition("}")[0]
            await wire.ask("completion/complete", ref=ref, argument={"name": name, "value": ""})
        for prompt in (await wire.request("prompts/list"))["prompts"]:
            named = {argument["name"]: "attic" for argument in prompt.get("arguments", ())}
            await wire.ask("prompts/get", name=prompt["name"], arguments=named)
            for name in named:
                ref = {"type": "ref/prompt", "name": prompt["name"]}
                await wire.ask("completion/complete", ref=ref, argument={"name": name, "value": "a"})
        for notice in wire.notifications:
            wire.wrong += [error.message for error in schema(revision, "ServerNotification").iter_errors(notice)]
        assert wire.wrong == []


WRONG: list[tuple[str, Message, str]] = [
    ("tools/call", {"name": "run_calculation", "arguments": "6 * 7"}, "`arguments` must be an object"),
    ("tools/call", {"name": "run_calculation", "arguments": [1]}, "`arguments` must be an object"),
    ("tools/call", {"arguments": {}}, "`name` is missing"),
    (
        "tools/call",
        {"name": "x", "_meta": {"progressToken": {}}},
        "`_meta.progressToken` must be a string or an integer",
    ),
    (
        "tools/call",
        {"name": "x", "_meta": {"progressToken": None}},
        "`_meta.progressToken` must be a string or an integer",
    ),
    ("tools/list", {"cursor": 5}, "`cursor` must be a string"),
    (
        "completion/complete",
        {"ref": {"type": "ref/tool", "uri": "a", "name": "a"}, "argument": {"name": "a", "value": ""}},
        "`ref.type` must be 'ref/prompt' or 'ref/resource'",
    ),
    ("prompts/get", {"name": "x", "arguments": {"a": 1}}, "`arguments.a` must be a string"),
]
ALIKE: list[tuple[str, Any]] = [("get_time", []), ("get_time", ""), ("run_calculation", '{"expression": "6 * 7"}')]
"""Arguments as clients send them that write an empty object as an array, or an object as JSON inside a string."""


@pytest.mark.anyio
async def test_what_is_wrong_with_a_request_is_said(tmp_path: Path) -> None:
    async with StdioWire(CASES["mcp_example"](tmp_path).command) as wire:
        with pytest.raises(WireError, match="Send `initialize` first"):
            await wire.request("tools/list")
        with pytest.raises(WireError, match=r"`capabilities` must be an object; `clientInfo.version` is missing"):
            await wire.request(
                "initialize", {"protocolVersion": "2025-11-25", "capabilities": None, "clientInfo": {"name": "a"}}
            )
        client = {"name": "a", "version": "1"}
        with pytest.raises(WireError, match=r"`capabilities.extensions.x` must be an object"):
            capabilities = {"extensions": {"x": 1}}
            await wire.request(
                "initialize", {"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": client}
            )
        await wire.open()
        for method, params, said in WRONG:
            with pytest.raises(WireError) as caught:
                await wire.request(method, params)
            assert caught.value.code == -32602 and said in caught.value.message
        for name, arguments in ALIKE:
            answer = await wire.request("tools/call", {"name": name, "arguments": arguments})
            assert not answer["isError"], answer
