"""Groups lines that are written alike: the same but for the words and numbers in them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from mcp_fs.models import pluralize

__all__ = ["LineForms", "line_form"]

# What stands behind these tells no more of how a line is written.
_MAX_FORM_CHARACTERS = 500
_MAX_SHOWN_CHARACTERS = 120
# A line each, of kinds whose lines are all unlike.
_MAX_FORMS = 10_000
_REGULAR_SHARE = 0.75

# Begins at the beginning of a word only: elsewhere a long number would be tried from each of its digits.
_WORD = re.compile(r"\b\d*[^\W\d]\w*")
_NUMBER = re.compile(r"\d+")
_WORDS = re.compile(r"a(?:[,.]? +a)+")
_REPEATED_SIGN = re.compile(r"([^\w\s])\1{3,}")
_SPACES = re.compile(r"[ \t]{3,}")


def line_form(line: str) -> str:
    """Return how a line is written: `a` for words, `9` for numbers, and the signs between them."""
    form = _WORD.sub("a", line[:_MAX_FORM_CHARACTERS])
    form = _NUMBER.sub("9", form)
    form = _WORDS.sub("a", form)
    form = _REPEATED_SIGN.sub(r"\1\1\1", form)
    return _SPACES.sub("  ", form).strip()


@dataclass(slots=True)
class _Form:
    """Lines of one form.

    Attributes:
        example: the first of them.
        is_first: whether it is the first line of a table.
        last_file: number of the last file that has it.
    """

    example: str
    is_first: bool
    line_count: int = 0
    file_count: int = 0
    last_file: int = 0


@dataclass(slots=True)
class LineForms:
    """Counts lines by their forms, file by file.

    Attributes:
        are_tables: whether the first line of a file has names of columns, which are told as they are.
    """

    are_tables: bool = False
    file_count: int = 0
    _forms: dict[str, _Form] = field(default_factory=dict[str, _Form])
    _uncounted_lines: int = 0

    def add_file(self, lines: Sequence[str]) -> None:
        self.file_count += 1
        for number, line in enumerate(lines):
            if not line.strip():
                continue
            # Who has numbers there has no names of columns.
            if self.are_tables and number == 0 and not _NUMBER.search(line):
                self._add_line(f"first line: {line}", line, is_first=True)
            else:
                self._add_line(line_form(line), line)

    def _add_line(self, key: str, line: str, *, is_first: bool = False) -> None:
        form = self._forms.get(key)
        if form is None and len(self._forms) == _MAX_FORMS:
            self._uncounted_lines += 1
            return
        if form is None:
            form = _Form(line, is_first)
            self._forms[key] = form
        form.line_count += 1
        if form.last_file != self.file_count:
            form.file_count += 1
            form.last_file = self.file_count

    def are_regular(self, max_forms: int) -> bool:
        """Return whether most lines have one of the most frequent forms, as in logs and tables and unlike in prose."""
        line_count = self._uncounted_lines
        regular_count = 0
        for number, form in enumerate(self._by_count()):
            line_count += form.line_count
            if number < max_forms and (form.is_first or form.line_count > 1):
                regular_count += form.line_count
        return regular_count >= line_count * _REGULAR_SHARE

    def describe(self, max_forms: int, max_bytes: int) -> list[str]:
        """Return a line of each form behind its counts, the most frequent first, and what is left out.

        Args:
            max_bytes: that these may take, but for one.
        """
        rows: list[str] = []
        forms = self._by_count()
        for form in forms[:max_forms]:
            row = self._describe_form(form)
            max_bytes -= len(row.encode("utf-8", "replace")) + 1
            if rows and max_bytes < 0:
                break
            rows.append(row)
        rest = forms[len(rows) :]
        if rest:
            line_count = sum(form.line_count for form in rest) + self._uncounted_lines
            rows.append(f"[{pluralize(len(rest), 'form')} more, {pluralize(line_count, 'line')}]")
        return rows

    def _by_count(self) -> list[_Form]:
        return sorted(self._forms.values(), key=lambda form: (not form.is_first, -form.line_count))

    def _describe_form(self, form: _Form) -> str:
        count = f"{form.line_count:,}"
        if form.file_count < self.file_count:
            count += f" in {form.file_count:,}"
        text = form.example
        if len(text) > _MAX_SHOWN_CHARACTERS:
            text = f"{text[:_MAX_SHOWN_CHARACTERS]}... ({len(text):,} characters)"
        return f"{count}\t{text}"
