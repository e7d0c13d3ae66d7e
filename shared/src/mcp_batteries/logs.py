"""Log lines for machines: one JSON object each, on standard error.

Of an exception they hold the kinds and the places: its words may quote what a file, a row or a caller said.
"""

from __future__ import annotations

import json
import logging
import traceback
from datetime import UTC, datetime

__all__ = ["JsonFormatter"]


class JsonFormatter(logging.Formatter):
    """`time` (UTC, RFC 3339), `level`, `logger`, `message`; of an exception `error` and `at`, the innermost last."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info and record.exc_info[1] is not None:
            error = record.exc_info[1]
            frames = traceback.extract_tb(error.__traceback__)
            line["error"] = type(error).__qualname__
            line["at"] = [f"{_module(frame.filename)}:{frame.lineno} {frame.name}" for frame in frames[-12:]]
        return json.dumps(line, default=str)


def _module(path: str) -> str:
    return "/".join(path.replace("\\", "/").rsplit("/", 2)[-2:])
