"""The table of contents."""

from typing import Any

from mcp.server.context import ServerRequestContext
from mcp_types import EmptyResult, SetLevelRequestParams

from diagnostic.asking import Asking
from diagnostic.plain import Plain
from diagnostic.settings import Settings
from mcp_batteries.sdk import lowlevel, tool_table
from mcp_batteries.server.assemble import Assembled, assemble
from mcp_batteries.server.catalog import entry

SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


async def set_level(ctx: ServerRequestContext[Any], params: SetLevelRequestParams) -> EmptyResult:
    return EmptyResult()


def build(settings: Settings) -> Assembled:
    plain = Plain()
    server = assemble(
        settings.COMMAND,
        settings,
        rooms=[plain, Asking()],
        title="Diagnostic",
        version="1",
        instructions="For the conformance suite.",
    )
    plain.server = server
    tool_table(server)["json_schema_2020_12_tool"].parameters = SCHEMA
    server.catalog.tools = [entry(tool) for tool in tool_table(server).values()]
    lowlevel(server).add_request_handler("logging/setLevel", SetLevelRequestParams, set_level)
    return server
