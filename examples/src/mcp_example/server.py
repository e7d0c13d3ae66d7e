"""The whole example: two tools, a resource that ticks, a prompt."""

from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Annotated, Any
from zoneinfo import ZoneInfo

from mcp_types import TextResourceContents
from pydantic import Field
from simpleeval import SimpleEval

from mcp_batteries.errors import Invalid, NotFound, quote
from mcp_batteries.server.assemble import Assembled, assemble
from mcp_batteries.server.declaration.decorators import prompt, resource, tool
from mcp_example.changes import Clock
from mcp_example.settings import Settings

# Typed as what it is used as: the library has no annotations.
EVALUATOR: Any = SimpleEval(names={}, functions={})
Expression = Annotated[str, Field(description="Arithmetic, such as (2 + 3) * 4 ** 2.", max_length=200)]


@dataclass(frozen=True)
class Tools:
    @tool("Calculate")
    async def run_calculation(self, expression: Expression) -> str:
        """Calculate an arithmetic expression and return its value."""
        try:
            return str(EVALUATOR.eval(expression))
        except Exception as error:  # noqa: BLE001 - whatever it raises is about the expression
            raise Invalid(f"{quote(expression)} has no value: {error}.", "Use numbers, + - * / ** and ().") from None

    @tool("Get the time", idempotent=False)
    async def get_time(self, zone: Annotated[str, Field(description="IANA time zone.")] = "UTC") -> str:
        """Get the date and time in a time zone (RFC 3339)."""
        try:
            return datetime.now(ZoneInfo(zone)).isoformat(timespec="seconds")
        except (KeyError, ValueError, OSError):
            raise NotFound(f"There is no time zone {quote(zone)}.", "Use an IANA name such as Europe/Zurich.") from None

    @resource("clock://now", name="now", title="The time, every second", mime_type="text/plain")
    async def now(self) -> TextResourceContents:
        return TextResourceContents(uri="clock://now", text=datetime.now(UTC).isoformat(timespec="seconds"))

    @prompt("Explain a calculation")
    async def explain_calculation(self, expression: Expression) -> str:
        """Explain step by step how an expression is calculated."""
        return f"Explain step by step how {expression} is calculated, then check the value with `run_calculation`."


def build(settings: Settings) -> Assembled:
    return assemble(
        "mcp-example",
        settings,
        rooms=[Tools()],
        sources=[Clock()],
        title="Calculator and clock",
        version=version("mcp-example"),
        instructions="Calculates arithmetic and tells the time. Subscribe to clock://now for a tick each second.",
    )
