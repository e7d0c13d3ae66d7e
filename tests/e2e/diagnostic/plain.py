"""Tools, resources, prompts and completions that need nothing of the client."""

import base64
import json
from typing import Annotated

import anyio
from mcp.server.mcpserver import Context
from mcp.shared.exceptions import MCPError
from mcp_types import (
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    AudioContent,
    BlobResourceContents,
    EmbeddedResource,
    GetPromptRequestParams,
    ImageContent,
    InputRequiredResult,
    PromptMessage,
    TextContent,
    TextResourceContents,
)
from pydantic import Field

from mcp_batteries.errors import Unavailable
from mcp_batteries.server.assemble import Assembled
from mcp_batteries.server.declaration.decorators import completes, prompt, resource, tool

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC"
SILENCE = base64.b64encode(
    b"RIFF\x26\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x40\x1f\x00\x00\x80\x3e\x00\x00\x02\x00\x10\x00data"
    b"\x02\x00\x00\x00\x00\x00"
).decode()
STEP_SECONDS = 0.05
"""Asked for by the suite."""


def embedded(uri: str, kind: str, text: str) -> EmbeddedResource:
    return EmbeddedResource(type="resource", resource=TextResourceContents(uri=uri, mime_type=kind, text=text))


IMAGE = ImageContent(type="image", data=PIXEL, mime_type="image/png")


class Plain:
    server: Assembled

    @tool("Simple text")
    async def test_simple_text(self) -> str:
        """Return a simple text."""
        return "This is a simple text response for testing."

    @tool("Image")
    async def test_image_content(self) -> list[ImageContent]:
        """Return an image."""
        return [IMAGE]

    @tool("Audio")
    async def test_audio_content(self) -> list[AudioContent]:
        """Return a sound."""
        return [AudioContent(type="audio", data=SILENCE, mime_type="audio/wav")]

    @tool("Embedded resource")
    async def test_embedded_resource(self) -> list[EmbeddedResource]:
        """Return a resource."""
        return [embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")]

    @tool("Several kinds")
    async def test_multiple_content_types(self) -> list[TextContent | ImageContent | EmbeddedResource]:
        """Return a text, an image and a resource."""
        data = json.dumps({"test": "data", "value": 123})
        return [
            TextContent(type="text", text="Multiple content types test:"),
            IMAGE,
            embedded("test://mixed-content-resource", "application/json", data),
        ]

    @tool("Logging")
    async def test_tool_with_logging(self, ctx: Context) -> str:
        """Log three messages."""
        for line in ("Tool execution started", "Tool processing data", "Tool execution completed"):
            await ctx.info(line)
            await anyio.sleep(STEP_SECONDS)
        return "Logged."

    @tool("Logging, once")
    async def test_logging_tool(self, ctx: Context) -> str:
        """Log a message."""
        await ctx.info("Only for those who asked for a level.")
        return "Logged."

    @tool("Progress")
    async def test_tool_with_progress(self, ctx: Context) -> str:
        """Report progress three times."""
        for done in (0, 50, 100):
            await ctx.report_progress(done, 100)
            await anyio.sleep(STEP_SECONDS)
        return "Done."

    @tool("Error")
    async def test_error_handling(self) -> str:
        """Fail."""
        raise Unavailable("This tool intentionally returns an error for testing")

    @tool("Missing capability")
    async def test_missing_capability(self, ctx: Context) -> str:
        """Need a capability of the client."""
        if ctx.client_capabilities is None or ctx.client_capabilities.sampling is None:
            data = {"requiredCapabilities": {"sampling": {}}}
            raise MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, "The client has to offer sampling.", data)
        return "It is there."

    @tool("Change of tools")
    async def test_trigger_tool_change(self) -> str:
        """Announce that the tools changed."""
        await self.server.hub.tools_changed()
        return "Announced."

    @tool("Change of prompts")
    async def test_trigger_prompt_change(self, ctx: Context) -> str:
        """Announce that the prompts changed."""
        await ctx.notify_prompts_changed()
        return "Announced."

    @tool("Change of a resource")
    async def announce(self, uri: str) -> str:
        """Announce that a resource changed."""
        await self.server.hub.updated(uri)
        return "Announced."

    @tool("Header")
    async def test_x_mcp_header(
        self, region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})] = ""
    ) -> str:
        """Have an argument that clients also send as a header."""
        return f"region={region}"

    @tool("Schema")
    async def json_schema_2020_12_tool(self, name: str = "") -> str:
        """Have a schema with every keyword of 2020-12."""
        return name

    @resource("test://static-text", name="static-text", title="Text", mime_type="text/plain")
    async def static_text(self) -> TextResourceContents:
        text = "This is the content of the static text resource."
        return TextResourceContents(uri="test://static-text", mime_type="text/plain", text=text)

    @resource("test://static-binary", name="static-binary", title="Image", mime_type="image/png")
    async def static_binary(self) -> BlobResourceContents:
        return BlobResourceContents(uri="test://static-binary", mime_type="image/png", blob=PIXEL)

    @resource("test://watched-resource", name="watched-resource", title="Watched", mime_type="text/plain")
    async def watched(self) -> TextResourceContents:
        return TextResourceContents(uri="test://watched-resource", mime_type="text/plain", text="Watched.")

    @resource("test://template/{id}/data", name="template", title="Template", mime_type="application/json")
    async def template(self, id: str) -> TextResourceContents:  # noqa: A002 - the suite's name
        text = json.dumps({"id": id, "templateTest": True, "data": f"Data for ID: {id}"})
        return TextResourceContents(uri=f"test://template/{id}/data", mime_type="application/json", text=text)

    @prompt("Simple")
    async def test_simple_prompt(self) -> str:
        """Say something simple."""
        return "This is a simple prompt for testing."

    @prompt("Arguments")
    async def test_prompt_with_arguments(self, arg1: str, arg2: str) -> str:
        """Say what the arguments are."""
        return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"

    @prompt("Resource")
    async def test_prompt_with_embedded_resource(self, resourceUri: str) -> list[PromptMessage]:
        """Embed a resource."""
        text = TextContent(type="text", text="Please process the embedded resource above.")
        found = embedded(resourceUri, "text/plain", "Embedded resource content for testing.")
        return [PromptMessage(role="user", content=found), PromptMessage(role="user", content=text)]

    @prompt("Image")
    async def test_prompt_with_image(self) -> list[PromptMessage]:
        """Show an image."""
        text = TextContent(type="text", text="Please analyze the image above.")
        return [PromptMessage(role="user", content=IMAGE), PromptMessage(role="user", content=text)]

    @prompt("Input")
    async def test_input_required_result_prompt(self, request: GetPromptRequestParams) -> str | InputRequiredResult:
        """Ask for something first."""
        from diagnostic.asking import question

        if request.input_responses and "user_context" in request.input_responses:
            return "The context was given."
        return InputRequiredResult(input_requests={"user_context": question("What context?", "context")})

    @completes("arg1", of="prompt")
    async def arguments(self, typed: str, others: dict[str, str]) -> list[str]:
        return [word for word in ("paris", "park", "party") if word.startswith(typed)]
