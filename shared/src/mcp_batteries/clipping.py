"""Limits on the size of an answer, and how a text is cut to them."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["DEFAULT_PAGE_BYTES", "clip", "count_fitting", "cut_middle", "share_bytes", "truncate_utf8"]

# Text bytes of one answer unless the caller asks otherwise: every measured host passes as much on whole.
DEFAULT_PAGE_BYTES = 10_000


def clip(text: str, limit: int, next_move: str) -> str:
    """Return `text`, or its first `limit` characters after a line that says so and how to continue.

    The notice comes first because hosts cut the middle and the end of long results.
    """
    if len(text) <= limit:
        return text
    return f"[truncated: {limit} of {len(text)} characters; {next_move}]\n{text[:limit]}"


def count_fitting(lines: Sequence[str], max_bytes: int) -> int:
    """Return how many of the first lines have `max_bytes` bytes of UTF-8 together; the first always fits."""
    used_bytes = 0
    for number, line in enumerate(lines):
        used_bytes += len(line.encode())
        if number and used_bytes > max_bytes:
            return number
    return len(lines)


def cut_middle(text: str, max_bytes: int) -> tuple[str, str]:
    """Return the beginning and the end of a text that has more than `max_bytes` bytes of UTF-8.

    The beginning has two thirds of the bytes. Each is of whole lines, unless a long one would take half of it away.
    """
    data = text.encode("utf-8", "replace")
    end_bytes = max_bytes // 3
    beginning = data[: max_bytes - end_bytes]
    end = data[len(data) - end_bytes :]
    last_line_end = beginning.rfind(b"\n") + 1
    if last_line_end > len(beginning) // 2:
        beginning = beginning[:last_line_end]
    first_line_end = end.find(b"\n") + 1
    if first_line_end <= len(end) // 2:
        end = end[first_line_end:]
    return beginning.decode("utf-8", "ignore"), end.decode("utf-8", "ignore")


def share_bytes(sizes: Sequence[int], max_bytes: int) -> list[int]:
    """Return how many bytes of one answer each of several parts gets: a short one all of its own.

    The others get equal shares of what those leave.

    Args:
        sizes: the bytes of each part.
    """
    shares = [0] * len(sizes)
    bytes_left = max_bytes
    shortest_first = sorted(range(len(sizes)), key=sizes.__getitem__)
    for place, number in enumerate(shortest_first):
        share = bytes_left // (len(sizes) - place)
        shares[number] = min(sizes[number], share)
        bytes_left -= shares[number]
    return shares


def truncate_utf8(text: str, max_bytes: int) -> str:
    """Return as much of `text` as fits into `max_bytes` bytes of UTF-8."""
    if len(text) <= max_bytes and text.isascii():
        return text
    data = text.encode("utf-8", "replace")
    if len(data) <= max_bytes:
        return text
    return data[:max_bytes].decode("utf-8", "ignore")
