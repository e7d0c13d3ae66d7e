"""What `count_forms` and `count_values` tell a script: how its texts are written, and how often there is each value."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from mcp_batteries.text_forms import TextForms, show_text

__all__ = ["describe_columns", "describe_texts", "describe_values"]

_MAX_FORMS = 20
# The rarest forms are mostly those that a script did not expect.
_MAX_RARE_FORMS = 4
_MAX_VALUES = 40
_MAX_SHOWN_CHARACTERS = 100


def describe_texts(texts: Sequence[str]) -> str:
    """Return a line for each form of the texts: how many have it, and the first of them."""
    form_count, rows = _describe_forms(texts)
    return "\n".join([f"[{len(texts)} texts, {form_count} forms]", *rows])


def describe_columns(row_count: int, columns: Sequence[tuple[str, Sequence[str]]]) -> str:
    """Return a line for each column, with the forms of its values."""
    lines = [f"[{row_count} rows]"]
    for name, texts in columns:
        note = ""
        if len(texts) < row_count:
            note = f" (in {len(texts)} rows)"
        _, rows = _describe_forms(texts)
        lines.append(f"{_show(name)}{note}: {' | '.join(rows)}")
    return "\n".join(lines)


def describe_values(texts: Sequence[str]) -> str:
    """Return how often there is each of the most frequent values, in one line."""
    counts = Counter(texts).most_common()
    shown = [f"{count}x {_show(text)}" for text, count in counts[:_MAX_VALUES]]
    others = [count for _, count in counts[_MAX_VALUES:]]
    if others:
        shown.append(f"({sum(others)} of {len(others)} other values)")
    return f"[{len(texts)} values, {len(counts)} different] {' | '.join(shown)}".rstrip()


def _describe_forms(texts: Sequence[str]) -> tuple[int, list[str]]:
    """Return how many forms there are, and a row for each; of too many the most frequent and the rarest."""
    text_forms = TextForms(Counter(texts))
    forms = text_forms.tell_apart(text_forms.forms, _MAX_FORMS)
    rows: list[str] = []
    for form in forms:
        values = ""
        if len(form.texts) > 1:
            values = f" ({len(form.texts)} values)"
        rows.append(f"{form.count}x {_show(form.texts[0])}{values}")
    if len(forms) > _MAX_FORMS:
        between = forms[_MAX_FORMS - _MAX_RARE_FORMS : -_MAX_RARE_FORMS]
        note = f"({sum(form.count for form in between)} of {len(between)} forms between)"
        rows[_MAX_FORMS - _MAX_RARE_FORMS : -_MAX_RARE_FORMS] = [note]
    return len(forms), rows


def _show(text: str) -> str:
    return show_text(text, _MAX_SHOWN_CHARACTERS)
