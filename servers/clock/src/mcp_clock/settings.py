"""What the example can be told: nothing beyond what every server can."""

from typing import ClassVar

from mcp_batteries.settings import Settings as Common


class Settings(Common):
    """Calculate, and tell the time."""

    COMMAND: ClassVar[str] = "mcp-clock"
    DOCUMENTED: ClassVar[tuple[str, ...]] = ()
