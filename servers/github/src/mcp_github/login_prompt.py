"""Asks the person to log in before a tool's call, if the client can show them a page."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any

import anyio
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult, ElicitRequest, ElicitRequestURLParams, InputRequiredResult, TextContent
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from mcp_batteries.errors import Problem, Refused
from mcp_github.client.device_login import Code, DeviceLogin

__all__ = ["LoginPrompt"]

_SECONDS = 300.0
"""How long a person may take over the page."""
_KEY = "login"


@dataclass(frozen=True)
class LoginPrompt:
    """Middleware in front of tools. Without it, and in clients that show no page, the first request returns the
    code."""

    login: DeviceLogin

    async def __call__(self, ctx: ServerRequestContext[Any], call_next: CallNext) -> HandlerResult:
        able = ctx.session.client_capabilities
        shows = able is not None and able.elicitation is not None and able.elicitation.url is not None
        if ctx.method != "tools/call" or not shows:
            return await call_next(ctx)
        try:
            code = await self.login.code()
            asked = None if code is None else await self._asked(ctx, code)
        except Problem as problem:
            said = TextContent(type="text", text=str(problem))
            result = CallToolResult(content=[said], is_error=True, _meta=dict(problem.fields))
            return result.model_dump(by_alias=True, mode="json", exclude_none=True)
        return await call_next(ctx) if asked is None else asked

    async def _asked(self, ctx: ServerRequestContext[Any], code: Code) -> HandlerResult:
        """Ask the person to log in; None once they have, or the result that asks them."""
        params = ElicitRequestURLParams(message=f"GitHub asks who you are. {code.words}.", url=code.url)
        if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
            answers: Any = (ctx.params or {}).get("inputResponses")
            if not isinstance(answers, dict) or _KEY not in answers:
                wanted = InputRequiredResult(input_requests={_KEY: ElicitRequest(params=params)})
                return wanted.model_dump(by_alias=True, mode="json", exclude_none=True)
            answer: Any = answers[_KEY]  # pyright: ignore[reportUnknownVariableType]
            action = answer.get("action") if isinstance(answer, dict) else None  # pyright: ignore
        else:
            name = secrets.token_hex(8)
            try:
                with anyio.fail_after(_SECONDS):
                    action = (await ctx.session.elicit_url(params.message, code.url, name, ctx.request_id)).action
            except (MCPError, TimeoutError):
                action = None
        if action != "accept":
            raise Refused("Nobody is logged in to GitHub.", f"{code.words}; then call again.")
        with anyio.move_on_after(_SECONDS):
            await self.login.entered(code)
            return None
        raise Refused("The login was not finished in time.", f"{code.words}; then call again.")
