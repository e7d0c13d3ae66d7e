"""Nothing beyond what every server can be told."""

from typing import ClassVar

from mcp_batteries.settings import Settings as Common


class Settings(Common):
    """Be what the conformance suite expects."""

    COMMAND: ClassVar[str] = "mcp-diagnostic"
