"""Asks the person first, in both protocol eras, and treats every kind of no as a no.

Handshake-era clients get a request from the server; 2026-07-28 clients get an input-required result, which they answer
by calling again. The SDK's resolvers hide the difference. Nothing is changed before the answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import anyio
from mcp.server.elicitation import AcceptedElicitation
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.resolve import Elicit, Resolve, build_resolver_plans, resolve_arguments
from mcp.shared.exceptions import MCPError
from mcp_types import InputRequiredResult
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel, Field

from mcp_batteries.errors import Refused
from mcp_batteries.server.calling.confirmation_text import describe_call
from mcp_batteries.server.calling.read_history import find_read_origins

__all__ = ["Question", "ask_for_confirmation"]

# A person may think for this long. Some hosts declare that they can ask and then never do.
_ANSWER_SECONDS = 300.0


@dataclass(frozen=True)
class Question:
    """A server's own reason to ask.

    Attributes:
        fix: one sentence on what to do if nobody can be asked.
    """

    text: str
    fix: str


class Confirmation(BaseModel):
    """The form. It has no preset answer, so that a careless Enter is no yes."""

    confirm: bool = Field(description="Go ahead?")


class _Obstacle(NamedTuple):
    """Why nobody can be asked, and the options without which nothing would be asked."""

    failure: str
    options: str


async def ask_for_confirmation(
    tool: str, arguments: Mapping[str, Any], context: Context[Any, Any], question: Question | None = None
) -> InputRequiredResult | None:
    """Ask the person to confirm a call; None once they have, or the result that carries the question.

    Args:
        question: a server's own reason to ask; by default that the call can replace or remove something.

    Raises:
        Refused: they said no or did not answer in time, or the client cannot ask or does not answer.
    """
    obstacle = _find_obstacle(context)
    if obstacle is not None:
        refusal = f"`{tool}` needs the user's consent here, and {obstacle.failure}"
        if question is None:
            raise Refused(refusal, f"The operator can start the server without {obstacle.options}.")
        raise Refused(f"{refusal} The question was: {question.text}", question.fix)

    async def consent() -> Elicit[Confirmation]:
        text = f"Allow {tool}? It can replace or remove what is there."
        if question is not None:
            text = question.text
        return Elicit(f"{text} {describe_call(tool, arguments, find_read_origins(arguments))}", Confirmation)

    marker = {"consent": (Resolve(consent), True)}
    answer: Any = None
    with anyio.move_on_after(_ANSWER_SECONDS):
        try:
            resolved = await resolve_arguments(marker, build_resolver_plans(marker, set()), {}, context)
        except ToolError:
            raise _not_answered(tool, question) from None
        except MCPError:
            # A handshake-era client answers the question so; later ones send a state back, which may be wrong.
            if context.request_context.protocol_version in MODERN_PROTOCOL_VERSIONS:
                raise
            raise _not_answered(tool, question) from None
        if isinstance(resolved, InputRequiredResult):
            return resolved
        answer = resolved["consent"]
    if isinstance(answer, AcceptedElicitation) and answer.data.confirm:  # pyright: ignore[reportUnknownMemberType]
        return None
    raise Refused(f"The user did not consent to `{tool}`; nothing was changed.", "Ask them what they want instead.")


def _find_obstacle(context: Context[Any, Any]) -> _Obstacle | None:
    """Return why the client cannot be asked for consent by a form, or None if it can."""
    capabilities = context.client_capabilities
    elicitation = None
    if capabilities is not None:
        elicitation = capabilities.elicitation
    if elicitation is None:
        return _Obstacle("this client cannot ask for it.", "`--confirm`")
    # Before there were pages, a client that could ask declared an empty object (MCP 2025-11-25, "Elicitation").
    if elicitation.url is not None and elicitation.form is None:
        return _Obstacle("this client can open pages but shows no form to ask for it.", "`--confirm`")
    is_handshake_era = context.request_context.protocol_version not in MODERN_PROTOCOL_VERSIONS
    if is_handshake_era and not context.session.can_send_request:
        return _Obstacle(
            "no question can come before the answer, which is one JSON message.",
            "`--json-response` or `--confirm`",
        )
    return None


def _not_answered(tool: str, question: Question | None) -> Refused:
    """Return the refusal where the client does not pass the question on: it would not do so another time."""
    failure = (
        f"`{tool}` needs the user's consent, and the client's answer to the question was none; nothing was changed."
    )
    if question is None:
        return Refused(failure, "The operator can start the server without `--confirm`.")
    return Refused(f"{failure} The question was: {question.text}", question.fix)
