"""Groups lines of files that are written alike."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from mcp_batteries.text_forms import LEVELS, Form, TextForms, without_words
from mcp_fs.models import pluralize

__all__ = ["LineForms", "describe_dates", "line_form"]

# Those of the coarsest level, before they are told apart.
_MAX_COARSE_FORMS = 12
_MAX_FORMS = 30
_MAX_SHOWN_CHARACTERS = 120
_REGULAR_SHARE = 0.75

_REPEATED_SIGN = re.compile(r"([^\w\s])\1{3,}")
_SPACES = re.compile(r"[ \t]{3,}")
_DATE = re.compile(r"(?<!\d)(?:19|20)\d\d-[01]\d-[0-3]\d(?!\d)")


def line_form(line: str) -> str:
    """Return how a line is written, whatever its indent, the width of its columns and the length of its rules."""
    form = without_words(line)
    form = _REPEATED_SIGN.sub(r"\1\1\1", form)
    return _SPACES.sub("  ", form).strip()


def describe_dates(texts: Iterable[str]) -> str:
    """Return the first and the last date in the texts, which their forms don't tell; empty if there are no two."""
    dates = {match[0] for match in map(_DATE.search, texts) if match}
    if len(dates) < 2:
        return ""
    return f"{min(dates)} to {max(dates)}"


def _max_parts(count: int) -> int:
    """Return into how many parts a form of so many lines may be told apart: each has three lines on average."""
    return count // 3


class LineForms:
    """Counts lines by their forms, file by file."""

    def __init__(self) -> None:
        self._file_count = 0
        self._counts = Counter[str]()
        # A bit is set for each file that has the line.
        self._file_bits: dict[str, int] = {}
        self._rows: dict[Form, str] = {}

    def add_file(self, lines: Sequence[str]) -> None:
        file_bit = 1 << self._file_count
        self._file_count += 1
        filled = [line for line in lines if line.strip()]
        self._counts.update(filled)
        for line in set(filled):
            self._file_bits[line] = self._file_bits.get(line, 0) | file_bit

    def describe(self, max_bytes: int) -> tuple[str, list[str]] | None:
        """Return the dates of the lines, and one of each form behind its counts; None if most lines are unlike.

        Args:
            max_bytes: that these lines may take, but for one.
        """
        text_forms = TextForms(self._counts, (*LEVELS, line_form), _max_parts)
        by_count = sorted(text_forms.forms, key=lambda form: -form.count)
        if not self._is_regular(by_count):
            return None

        def fits(forms: Sequence[Form]) -> bool:
            return len(self._fitting_rows(forms, max_bytes)) == len(forms)

        forms = text_forms.tell_apart(by_count[:_MAX_COARSE_FORMS], _MAX_FORMS, fits)
        rows = self._fitting_rows(forms, max_bytes)
        left_out = [*forms[len(rows) :], *by_count[_MAX_COARSE_FORMS:]]
        if left_out:
            line_count = sum(form.count for form in left_out)
            rows.append(f"[{pluralize(len(left_out), 'form')} more, {pluralize(line_count, 'line')}]")
        dates = ""
        if any(len(form.texts) > 1 for form in forms):
            dates = describe_dates(self._counts)
        return dates, rows

    def _is_regular(self, by_count: Sequence[Form]) -> bool:
        """Return whether most lines have one of the most frequent forms, as in logs and unlike in prose."""
        regular_count = sum(form.count for form in by_count[:_MAX_COARSE_FORMS] if form.count > 1)
        return regular_count >= self._counts.total() * _REGULAR_SHARE

    def _fitting_rows(self, forms: Sequence[Form], max_bytes: int) -> list[str]:
        """Return rows for the first forms, as many as fit, and at least one."""
        rows: list[str] = []
        for form in forms:
            row = self._rows.get(form) or self._describe_form(form)
            self._rows[form] = row
            max_bytes -= len(row.encode("utf-8", "replace")) + 1
            if rows and max_bytes < 0:
                break
            rows.append(row)
        return rows

    def _describe_form(self, form: Form) -> str:
        count = f"{form.count:,}"
        file_bits = 0
        for text in form.texts:
            file_bits |= self._file_bits[text]
        if file_bits.bit_count() < self._file_count:
            count += f" in {file_bits.bit_count():,}"
        text = form.texts[0]
        if len(text) > _MAX_SHOWN_CHARACTERS:
            text = f"{text[:_MAX_SHOWN_CHARACTERS]}... ({len(text):,} characters)"
        if len(form.texts) > 1:
            text += f" ({len(form.texts):,} values)"
        return f"{count}\t{text}"
