"""Numbers of the protocol that the SDK does not name."""

__all__ = ["RESOURCE_NOT_FOUND"]

RESOURCE_NOT_FOUND = -32002
"""The code of the handshake revisions (2024-11-05 to 2025-11-25); 2026-07-28 uses -32602 (SEP-2164)."""
