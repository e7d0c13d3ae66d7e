"""The tools: a calculator and a clock."""

from datetime import datetime
from typing import Annotated, Any
from zoneinfo import ZoneInfo

from pydantic import Field
from simpleeval import SimpleEval

from mcp_batteries.errors import Invalid, NotFound, quote
from mcp_batteries.server.declaration.decorators import tool
from mcp_batteries.server.declaration.trusted import FreeText, default, trusted

# Typed as what it is used as: the library has no annotations.
EVALUATOR: Any = SimpleEval(names={}, functions={})


def find_zone(name: str) -> ZoneInfo:
    """Return the time zone of that name; what parses an argument also refuses it."""
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise NotFound(f"There is no time zone {quote(name)}.", "Use an IANA name such as Europe/Zurich.") from None


Expression = Annotated[FreeText, Field(description="Arithmetic, such as (2 + 3) * 4 ** 2.", max_length=200)]
Zone = Annotated[ZoneInfo, trusted(find_zone), Field(description="IANA time zone.")]


@tool("Calculate")
async def run_calculation(*, expression: Expression) -> str:
    """Calculate an arithmetic expression and return its value."""
    try:
        return str(EVALUATOR.eval(expression))
    except Exception as error:  # noqa: BLE001 - whatever it raises is about the expression
        raise Invalid(f"{quote(expression)} has no value: {error}.", "Use numbers, + - * / ** and ().") from None


@tool("Get the time", idempotent=False)
async def get_time(*, zone: Zone = default("UTC")) -> str:
    """Get the date and time in a time zone (RFC 3339)."""
    return datetime.now(zone).isoformat(timespec="seconds")
