"""What git prints: takes it apart, piece by piece, and cuts lines to the size of an answer."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass

from mcp_batteries.clipping import truncate_utf8

__all__ = ["Output", "clip", "select_options", "split_lines", "split_names", "split_records"]


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
    """Return what stands between the ends in `pieces`, and behind the last one if there is anything.

    Each byte is copied once, however many pieces a record has.

    Args:
        end: one byte.
    """
    unfinished: list[bytes] = []
    for piece in pieces:
        first, *records = piece.split(end)
        unfinished.append(first)
        if records:
            yield b"".join(unfinished)
            unfinished = [records.pop()]
            yield from records
    if any(unfinished):
        yield b"".join(unfinished)


def split_lines(output: Output) -> list[str]:
    """Return the lines that git printed: what else ends a line for Python may stand in a subject."""
    if not output.stdout:
        return []
    return output.text.removesuffix("\n").split("\n")


def split_names(stdout: bytes) -> list[str]:
    """Return the names of files that git printed, each of which a NUL ends."""
    return [os.fsdecode(name) for name in stdout.split(b"\0")[:-1]]


def select_options(conditions: Mapping[str, object]) -> list[str]:
    """Return the options of a command whose conditions are true."""
    return [option for option, condition in conditions.items() if condition]


def clip(text: str, max_bytes: int) -> str:
    """Return a text, cut to so many bytes of UTF-8."""
    if len(text) <= max_bytes and text.isascii():
        return text
    if truncate_utf8(text, max_bytes) == text:
        return text
    return truncate_utf8(text, max_bytes - 3) + "…"
