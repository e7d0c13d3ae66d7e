"""The part of its settings that every server needs to be built."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

__all__ = ["ServerSettings"]


class ServerSettings(Protocol):
    """The part of a server's settings that `assemble` needs."""

    @property
    def read_only(self) -> bool: ...

    @property
    def confirm(self) -> bool: ...

    @property
    def tools(self) -> Sequence[str]: ...

    @property
    def exclude_tools(self) -> Sequence[str]: ...

    @property
    def audit_file(self) -> str | None: ...

    @property
    def max_streams(self) -> int: ...

    @property
    def telemetry(self) -> bool: ...

    @property
    def bus(self) -> str | None: ...

    @property
    def state_key_file(self) -> str | None: ...
