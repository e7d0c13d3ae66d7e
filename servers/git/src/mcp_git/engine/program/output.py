"""What git prints: takes it apart, piece by piece, and cuts lines to the size of an answer."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from dataclasses import dataclass

from mcp_batteries.limits import head

__all__ = ["Output", "clip", "split_lines", "split_records"]


@dataclass(frozen=True, slots=True)
class Output:
    """What a run of git printed.

    Attributes:
        is_cut: whether there was more than was wanted.
        stderr: what it said beside that, such as how far it is.
    """

    stdout: bytes
    is_cut: bool = False
    stderr: str = ""

    @property
    def text(self) -> str:
        return self.stdout.decode("utf-8", "replace")


def split_records(pieces: Iterable[bytes], end: bytes = b"\0") -> Generator[bytes]:
    """Return what stands between the ends in `pieces`, and behind the last one if there is anything."""
    unfinished = b""
    for piece in pieces:
        *records, unfinished = (unfinished + piece).split(end)
        yield from records
    if unfinished:
        yield unfinished


def split_lines(output: Output) -> list[str]:
    """Return the lines that git printed: what else ends a line for Python may stand in a subject."""
    return output.text.removesuffix("\n").split("\n") if output.stdout else []


def clip(text: str, max_bytes: int) -> str:
    """`text`, cut to `most` bytes of UTF-8."""
    if len(text) <= max_bytes and text.isascii():
        return text
    return text if head(text, max_bytes) == text else head(text, max_bytes - 3) + "…"
