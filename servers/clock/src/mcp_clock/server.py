"""The whole example: two tools, a resource that ticks, a prompt."""

from datetime import UTC, datetime
from importlib.metadata import version

from mcp_types import TextResourceContents

from mcp_batteries.server.assemble import Assembled, assemble
from mcp_batteries.server.declaration.decorators import prompt, resource
from mcp_clock import tools
from mcp_clock.changes import Clock
from mcp_clock.settings import Settings
from mcp_clock.tools import Expression


class ClockResource:
    @resource("clock://now", name="now", title="The time, every second", mime_type="text/plain")
    async def now(self) -> TextResourceContents:
        return TextResourceContents(uri="clock://now", text=datetime.now(UTC).isoformat(timespec="seconds"))


class Prompts:
    @prompt("Explain a calculation")
    async def explain_calculation(self, expression: Expression) -> str:
        """Explain step by step how an expression is calculated."""
        return f"Explain step by step how {expression} is calculated, then check the value with `run_calculation`."


def build(settings: Settings) -> Assembled:
    return assemble(
        "mcp-clock",
        settings,
        rooms=[tools, ClockResource(), Prompts()],
        sources=[Clock()],
        title="Calculator and clock",
        version=version("mcp-clock"),
        instructions="Calculates arithmetic and tells the time. Subscribe to clock://now for a tick each second.",
    )
