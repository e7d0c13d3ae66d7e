"""Asks the person to log in before a tool's call, if the client can show them a page."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any, cast

import anyio
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult, ElicitRequest, ElicitRequestURLParams, InputRequiredResult, TextContent
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from mcp_batteries.errors import Problem, Refused
from mcp_github.client.device_login import DeviceCode, DeviceLogin

__all__ = ["LoginPrompt"]

# A person may take so long over the page.
_PAGE_SECONDS = 300.0
_INPUT_KEY = "login"


@dataclass(frozen=True)
class LoginPrompt:
    """Middleware in front of tools. Without it, and in clients that show no page, the first request returns the
    code."""

    login: DeviceLogin

    async def __call__(self, ctx: ServerRequestContext[Any], call_next: CallNext) -> HandlerResult:
        if ctx.method != "tools/call" or not _can_show_pages(ctx):
            return await call_next(ctx)
        try:
            code = await self.login.get_code()
            if code is not None:
                input_request = await self._log_in(ctx, code)
                if input_request is not None:
                    return input_request
        except Problem as problem:
            return _error_result(problem)
        return await call_next(ctx)

    async def _log_in(self, ctx: ServerRequestContext[Any], code: DeviceCode) -> HandlerResult:
        """Ask the person to log in, and wait until they have; return None then, or the result that asks them.

        Raises:
            Refused: they said no, or did not finish in time.
        """
        params = ElicitRequestURLParams(message=f"GitHub asks who you are. {code.instruction}.", url=code.url)
        if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
            answers: Any = (ctx.params or {}).get("inputResponses")
            if not isinstance(answers, dict) or _INPUT_KEY not in answers:
                request = InputRequiredResult(input_requests={_INPUT_KEY: ElicitRequest(params=params)})
                return request.model_dump(by_alias=True, mode="json", exclude_none=True)
            action = _action_of(answers[_INPUT_KEY])  # pyright: ignore[reportUnknownArgumentType]
        else:
            action = await _elicit(ctx, params)
        if action != "accept":
            raise Refused("Nobody is logged in to GitHub.", f"{code.instruction}; then call again.")
        with anyio.move_on_after(_PAGE_SECONDS):
            await self.login.wait_until_entered(code)
            return None
        raise Refused("The login was not finished in time.", f"{code.instruction}; then call again.")


def _can_show_pages(ctx: ServerRequestContext[Any]) -> bool:
    capabilities = ctx.session.client_capabilities
    if capabilities is None or capabilities.elicitation is None:
        return False
    return capabilities.elicitation.url is not None


def _action_of(answer: object) -> object:
    """Return what the person did with the page, from a modern client's answer."""
    if not isinstance(answer, dict):
        return None
    return cast("dict[str, Any]", answer).get("action")


async def _elicit(ctx: ServerRequestContext[Any], params: ElicitRequestURLParams) -> str | None:
    """Return what the person did with the page, as a client with a session tells it; None if nothing in time."""
    elicitation_id = secrets.token_hex(8)
    try:
        with anyio.fail_after(_PAGE_SECONDS):
            result = await ctx.session.elicit_url(params.message, params.url, elicitation_id, ctx.request_id)
    except (MCPError, TimeoutError):
        return None
    return result.action


def _error_result(problem: Problem) -> HandlerResult:
    content = TextContent(type="text", text=str(problem))
    result = CallToolResult(content=[content], is_error=True, _meta=dict(problem.fields))
    return result.model_dump(by_alias=True, mode="json", exclude_none=True)
