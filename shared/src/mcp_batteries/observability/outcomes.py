"""How a request ended that raised an exception, in figures and in the audit."""

from __future__ import annotations

from mcp.shared.jsonrpc_dispatcher import handler_exception_to_error_data

__all__ = ["outcome_of"]


def outcome_of(raised: Exception) -> int | str:
    """Return the code of the error that the client gets, or "failed" for a defect of the server.

    What the SDK cannot parse in a request raises no error of the protocol, and is still the client's mistake.
    """
    data = handler_exception_to_error_data(raised)
    if data is None:
        return "failed"
    return data.code
