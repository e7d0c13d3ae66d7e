"""Log lines for machines, one JSON object each, on standard error, and not more than somebody can read.

Of an exception they hold only kinds and places, because its text may quote a file, a row or a caller.
"""

from __future__ import annotations

import json
import logging
import sys
import time
import traceback
from dataclasses import dataclass
from datetime import UTC, datetime

from mcp_batteries.redaction.text import redact

__all__ = ["JsonFormatter", "RateLimitFilter", "TextFormatter", "log_announcement"]


class TextFormatter(logging.Formatter):
    """Level, logger and message, and the whole of an exception, for people; without secrets."""

    def __init__(self) -> None:
        super().__init__("%(levelname)s %(name)s: %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        # Libraries quote addresses, headers and settings in what they log and raise.
        return redact(super().format(record))


class JsonFormatter(logging.Formatter):
    """`time` (UTC, RFC 3339), `level`, `logger`, `message`; of an exception `error` and `at`, the innermost last."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": redact(record.getMessage()),
        }
        if record.exc_info and record.exc_info[1] is not None:
            error = record.exc_info[1]
            frames = traceback.extract_tb(error.__traceback__)
            line["error"] = type(error).__qualname__
            line["at"] = [f"{_module(frame.filename)}:{frame.lineno} {frame.name}" for frame in frames[-12:]]
        return json.dumps(line, default=str)


def log_announcement(message: str, level: int = logging.INFO) -> None:
    """Tell the person who started the server, at any log level and in the log's form."""
    text = redact(message)
    for handler in logging.getLogger().handlers:
        if isinstance(handler.formatter, JsonFormatter):
            record = logging.LogRecord("mcp_batteries", level, "", 0, text, None, None)
            text = handler.formatter.format(record)
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


@dataclass(slots=True)
class _LoggedPlace:
    """When a place in the code logged last, and how many lines were suppressed since then."""

    logged_at: float
    suppressed: int = 0


class RateLimitFilter(logging.Filter):
    """Lets each place in the code log once per `seconds`, with the number of suppressed lines.

    For library messages that any client can trigger as often as it likes.
    """

    def __init__(self, seconds: float = 60) -> None:
        super().__init__()
        self._seconds = seconds
        self._places: dict[tuple[str, int], _LoggedPlace] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        key = (record.pathname, record.lineno)
        now = time.monotonic()
        place = self._places.get(key)
        if place is not None and now - place.logged_at < self._seconds:
            place.suppressed += 1
            return False
        self._places[key] = _LoggedPlace(now)
        if place is not None and place.suppressed:
            record.msg = f"{record.getMessage()} ({place.suppressed} more since the last)"
            record.args = None
        return True


def _module(path: str) -> str:
    return "/".join(path.replace("\\", "/").rsplit("/", 2)[-2:])
