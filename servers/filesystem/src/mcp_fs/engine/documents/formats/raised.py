"""Writes what a document raises above the line so that it isn't read as digits of the number before it."""

from __future__ import annotations

__all__ = ["raise_text"]

_SUPERSCRIPTS = str.maketrans("0123456789+-\u2212", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻")
_RAISED_NUMBER = frozenset("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻")


def raise_text(before: str, text: str) -> str:
    """Return raised text as it is to stand behind other text: `10⁶`, `1,234²`, but `m2` as it is written.

    Args:
        before: what it stands behind, at least the last character of that.
    """
    end = before[-1:]
    if not (end.isdecimal() or end in _RAISED_NUMBER) or not text[:1].strip():
        return text
    raised = text.translate(_SUPERSCRIPTS)
    if _RAISED_NUMBER.issuperset(raised.rstrip()):
        return raised
    if text[0].isdecimal():
        return "^" + text
    return text
