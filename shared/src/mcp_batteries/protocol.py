"""Constants of the protocol that the SDK does not name, and names of clients that need special treatment."""

__all__ = ["RESOURCE_NOT_FOUND", "VS_CODE"]

RESOURCE_NOT_FOUND = -32002
"""The code of the handshake revisions (2024-11-05 to 2025-11-25); 2026-07-28 uses -32602 (SEP-2164)."""

VS_CODE = ("Visual Studio Code", "VSCodium", "code-server")
"""How VS Code and its builds begin their names."""
