"""Loads sqlite-vec into every connection of this process if the operator wants it: tables of vectors, and their search.

This process loads only the library in its own wheel, before a connection's authorizer forbids loading, as everywhere
else.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import sqlite3
import sys

from mcp_sqlite.worker.language.failure import Failure
from mcp_sqlite.worker.language.values import RowEncoder

__all__ = ["load", "load_into"]

_PACKAGE = "sqlite_vec"
_ENTRY_POINT = "sqlite3_vec_init"
_HOW_TO_LOAD = (
    "The operator can leave `--sqlite-vec` away, or use a Python whose sqlite3 loads extensions, such as uv's."
)
# The library, for connections that load it themselves.
_path: str | None = None


def load() -> None:
    """Have every connection opened from now on know sqlite-vec.

    Raises:
        Failure: it is not installed, or this Python's SQLite can't load it.
    """
    global _path
    package = importlib.util.find_spec(_PACKAGE)
    if package is None or package.origin is None:
        raise Failure("unavailable", "sqlite-vec is not installed.", "The operator can: `mcp-sqlite[sqlite-vec]`.")
    # Not by its module, which imports numpy where that is.
    path = os.path.join(os.path.dirname(package.origin), "vec0")
    if hasattr(sqlite3.Connection, "enable_load_extension"):
        _path = path
    else:
        _register(path)
    try:
        connection = sqlite3.connect(":memory:")
        load_into(connection)
        connection.execute("SELECT vec_version()").close()
        connection.close()
    except sqlite3.Error as error:
        raise Failure("unavailable", f"sqlite-vec can't be loaded: {error}.", _HOW_TO_LOAD) from None
    RowEncoder.shortens_vectors = True


def load_into(connection: sqlite3.Connection) -> None:
    """Load it into `connection`, if the operator asked for it and connections have to do that one by one."""
    if _path is None:
        return
    connection.enable_load_extension(True)
    try:
        connection.load_extension(_path)
    finally:
        connection.enable_load_extension(False)


def _register(path: str) -> None:
    """Have SQLite itself call the library's entry for each new connection (sqlite3_auto_extension).

    This is the way for a Python that was built without loading, as is its build's default, over a SQLite that has it.
    """
    import _sqlite3

    ending = {"win32": ".dll", "darwin": ".dylib"}.get(sys.platform, ".so")
    try:
        libraries = [ctypes.CDLL(_sqlite3.__file__)]
        if sys.platform != "win32":
            # What is linked into or preloaded by the program comes before what the module was linked with.
            libraries.insert(0, ctypes.CDLL(None))
        library = next(library for library in libraries if hasattr(library, "sqlite3_auto_extension"))
        entry_point = getattr(ctypes.CDLL(path + ending), _ENTRY_POINT)
        code = library.sqlite3_auto_extension(ctypes.cast(entry_point, ctypes.c_void_p))
    except (OSError, AttributeError, StopIteration) as error:
        raise Failure("unavailable", f"This Python's SQLite can't load sqlite-vec: {error}.", _HOW_TO_LOAD) from None
    if code != sqlite3.SQLITE_OK:
        raise Failure("unavailable", f"This Python's SQLite does not take sqlite-vec: error {code}.", _HOW_TO_LOAD)
