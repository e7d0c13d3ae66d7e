"""How much of what a script printed its answer shows."""

from __future__ import annotations

from collections.abc import Sequence

from mcp_batteries.clipping import cut_middle, share_bytes, truncate_utf8

__all__ = ["cut_output"]

# What one `print` writes is whole up to here, as long as the others leave room for it.
_SHORT_PRINT_BYTES = 500
# An output that is longer by so few bytes is shown: to say that they are missing would take nearly as many.
_MAX_EXCESS_BYTES = 200


def cut_output(prints: Sequence[str], max_bytes: int, *, is_whole: bool) -> tuple[str, int]:
    """Return what a script printed, and how many bytes of that it is.

    Of what is too long the middle is left out, because scripts print sums last: of each long print, or of all together
    if there are too many prints for that.

    Args:
        is_whole: whether the prints are all that it printed.
    """
    output = "".join(prints)
    sizes = [len(text.encode()) for text in prints]
    if not is_whole:
        beginning = truncate_utf8(output, max_bytes)
        return beginning, len(beginning.encode())
    if sum(sizes) <= max_bytes + _MAX_EXCESS_BYTES:
        return output, sum(sizes)
    long_prints = [number for number, size in enumerate(sizes) if size > _SHORT_PRINT_BYTES]
    room = max_bytes - sum(size for size in sizes if size <= _SHORT_PRINT_BYTES)
    if room < _SHORT_PRINT_BYTES * max(len(long_prints), 1):
        return _cut(output, max_bytes)
    shares = share_bytes([sizes[number] for number in long_prints], room)
    return _cut_each(prints, dict(zip(long_prints, shares, strict=True)))


def _cut_each(prints: Sequence[str], shares: dict[int, int]) -> tuple[str, int]:
    """Cut some prints, each to its share of bytes."""
    output = ""
    shown_bytes = 0
    for number, text in enumerate(prints):
        share = shares.get(number, len(text.encode()))
        shown, size = _cut(text, share)
        output += shown
        shown_bytes += size
    return output, shown_bytes


def _cut(text: str, max_bytes: int) -> tuple[str, int]:
    """Return a text without its middle, which a line in its place tells, and how many bytes of the text it is."""
    size = len(text.encode())
    if size <= max_bytes:
        return text, size
    beginning, end = cut_middle(text, max_bytes)
    shown_bytes = len(beginning.encode()) + len(end.encode())
    left_out = f"[{size - shown_bytes:,} bytes left out here]"
    return "\n".join([beginning.removesuffix("\n"), left_out, end]), shown_bytes
