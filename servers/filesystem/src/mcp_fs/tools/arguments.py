"""Arguments that several tools share, each with its parser."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from mcp_batteries.server.declaration.trusted import trusted
from mcp_fs.engine.reading.text_page import MAX_PAGE_BYTES
from mcp_fs.policy import Policy, ReadablePath, WritablePath

__all__ = ["PageByteLimit", "PositiveInteger", "ReadPath", "StartPaths", "WritePath"]

ReadPath = Annotated[ReadablePath, trusted(Policy.readable)]
WritePath = Annotated[WritablePath, trusted(Policy.writable)]
# Of a walk, `default(".")` for all served folders.
StartPaths = Annotated[list[ReadablePath], trusted(Policy.search_roots)]
PositiveInteger = Annotated[int, Field(ge=1)]


def _limit_page_bytes(number: int) -> int:
    # In three schemas this bound, which nobody comes near, would be paid for by every conversation.
    return min(number, MAX_PAGE_BYTES)


PageByteLimit = Annotated[int, Field(ge=1), AfterValidator(_limit_page_bytes)]
