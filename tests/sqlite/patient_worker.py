"""A worker that counts rows and values to the end, however busy the machine is.

Those that serve stop after parts of a second, and say that they did.
"""

from mcp_sqlite.worker.__main__ import main
from mcp_sqlite.worker.schema import catalog, description, shapes

__all__ = ["main"]

_SECONDS = 60
catalog._VALUES_SECONDS = description._COUNT_SECONDS = description._VALUES_SECONDS = shapes._COUNT_SECONDS = _SECONDS
