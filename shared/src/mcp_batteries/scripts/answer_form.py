"""Says in which form a script reads an answer: as text, or by `TOOL.all` as objects."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["answering_rows", "is_answering_rows"]

_wants_rows: ContextVar[bool] = ContextVar("wants_rows", default=False)


@contextmanager
def answering_rows(wants_rows: bool) -> Generator[None]:
    """Let answers be tables where a tool has such, because the script gets an object for each row."""
    token = _wants_rows.set(wants_rows)
    try:
        yield
    finally:
        _wants_rows.reset(token)


def is_answering_rows() -> bool:
    """Return whether the answer is to be a table of columns and rows, if the tool has one."""
    return _wants_rows.get()
