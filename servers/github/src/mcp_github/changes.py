"""Which source tells which URIs to refresh: none yet."""

from __future__ import annotations

from collections.abc import Callable

from mcp_github.settings import Settings

__all__ = ["demonstration"]


def demonstration(settings: Settings) -> tuple[str, Callable[[], None]] | None:
    """For `--check`: nothing on GitHub is changed to show that changes are seen."""
    return None
