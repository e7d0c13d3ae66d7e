"""Groups texts that are written alike, as finely as few groups are enough: lines of files, values of columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from mcp_fs.models import pluralize

__all__ = ["Form", "FormLevel", "LineForms", "TextForms", "line_form"]

# What stands behind these tells no more of how a text is written.
_MAX_FORM_CHARACTERS = 500
_MAX_SHOWN_CHARACTERS = 120
# A text each, of kinds whose texts are all unlike.
_MAX_FORMS = 10_000
_REGULAR_SHARE = 0.75

# Begins at the beginning of a word only: elsewhere a long number would be tried from each of its digits.
_WORD = re.compile(r"\b\d*[^\W\d]\w*")
_NUMBER = re.compile(r"\d+")
_WORDS = re.compile(r"a(?:[,.]? +a)+")
_REPEATED_SIGN = re.compile(r"([^\w\s])\1{3,}")
_SPACES = re.compile(r"[ \t]{3,}")
# As in `Due: 1 May`, `rate = 5` and `Partner | Borg AB`.
_LABEL = re.compile(r"[^:=|]{1,40}[:=|]")
_LIKE_BEHIND_LABEL = "alike but for numbers and words behind a label"
_DATE = re.compile(r"(?<!\d)(?:19|20)\d\d-[01]\d-[0-3]\d(?!\d)")


def line_form(text: str) -> str:
    """Return how a text is written: `a` for words, `9` for numbers, and the signs between them."""
    if text.isalnum():
        return "9" if text.isdecimal() else "a"
    form = _WORD.sub("a", text[:_MAX_FORM_CHARACTERS])
    form = _NUMBER.sub("9", form)
    form = _WORDS.sub("a", form)
    form = _REPEATED_SIGN.sub(r"\1\1\1", form)
    return _SPACES.sub("  ", form).strip()


def _without_numbers(text: str) -> str:
    return _NUMBER.sub("9", text)


def _form_behind_label(text: str) -> str:
    label = _LABEL.match(text)
    if label is None:
        return line_form(text)
    return _without_numbers(label[0]) + line_form(text[label.end() :])


@dataclass(slots=True)
class Form:
    """Texts of one form.

    Attributes:
        example: the first of them.
        last_file: number of the last file that has it.
    """

    example: str
    count: int = 0
    file_count: int = 0
    last_file: int = 0


@dataclass(slots=True)
class FormLevel:
    """Texts by their forms, as finely as one of the levels tells them apart.

    Attributes:
        likeness: how texts of one form are alike; empty where they are equal.
        max_forms: that are counted.
    """

    likeness: str
    form_of: Callable[[str], str]
    max_forms: int
    uncounted: int = 0
    _forms: dict[str, Form] = field(default_factory=dict[str, Form])

    def __len__(self) -> int:
        return len(self._forms)

    def add(self, text: str, file_number: int, times: int) -> None:
        key = self.form_of(text)
        form = self._forms.get(key)
        if form is None and len(self._forms) == self.max_forms:
            self.uncounted += times
            return
        if form is None:
            form = Form(text)
            self._forms[key] = form
        form.count += times
        if form.last_file != file_number:
            form.file_count += 1
            form.last_file = file_number

    def by_count(self) -> list[Form]:
        """Return the forms, the most frequent first."""
        return sorted(self._forms.values(), key=lambda form: -form.count)

    def is_regular(self, max_forms: int) -> bool:
        """Return whether most texts have one of the most frequent forms, as in logs and unlike in prose."""
        forms = self.by_count()
        count = sum(form.count for form in forms) + self.uncounted
        regular_count = sum(form.count for form in forms[:max_forms] if form.count > 1)
        return regular_count >= count * _REGULAR_SHARE


class TextForms:
    """Counts texts by their forms, at each of four levels.

    Attributes:
        first_date: the first in any of the texts, which their forms don't tell; empty if there is none.
        last_date: the last.
    """

    def __init__(self, max_forms: int) -> None:
        self.first_date = ""
        self.last_date = ""
        # From the finest on. One that would have more forms is given up.
        self._finer_levels = [
            FormLevel("", str, max_forms),
            FormLevel("alike but for numbers", _without_numbers, max_forms),
            FormLevel(_LIKE_BEHIND_LABEL, _form_behind_label, max_forms),
        ]
        self._last_level = FormLevel("alike but for words and numbers", line_form, _MAX_FORMS)

    def add(self, text: str, file_number: int = 0, times: int = 1) -> None:
        for level in (*self._finer_levels, self._last_level):
            level.add(text, file_number, times)
        self._finer_levels = [level for level in self._finer_levels if not level.uncounted]
        date = _DATE.search(text)
        if date is not None:
            self.first_date = min(self.first_date or date[0], date[0])
            self.last_date = max(self.last_date, date[0])

    @property
    def levels(self) -> list[FormLevel]:
        """The levels that have few forms, the finest first, and behind them the last."""
        levels = [*self._finer_levels, self._last_level]
        # Where no text has a label, both are the same.
        return [level for level in levels if level.likeness != _LIKE_BEHIND_LABEL or len(level) > len(self._last_level)]

    def describe_level(self, level: FormLevel) -> list[str]:
        """Say how texts of one form are alike, and from when to when they are if that differs."""
        if not level.likeness:
            return []
        notes = [level.likeness]
        if self.first_date != self.last_date:
            notes.append(f"{self.first_date} to {self.last_date}")
        return notes


class LineForms:
    """Counts lines by their forms, file by file.

    Args:
        max_forms: that are shown.
    """

    def __init__(self, max_forms: int) -> None:
        self._file_count = 0
        self._max_forms = max_forms
        self._forms = TextForms(max_forms)

    def add_file(self, lines: Sequence[str]) -> None:
        self._file_count += 1
        for line in lines:
            if line.strip():
                self._forms.add(line, self._file_count)

    def describe(self, max_bytes: int) -> tuple[list[str], list[str]] | None:
        """Return notes on the lines, and one of each form behind its counts; None if most lines are unlike.

        Args:
            max_bytes: that these lines may take, but for one.
        """
        regular_levels = [level for level in self._forms.levels if level.is_regular(self._max_forms)]
        for level in regular_levels:
            rows = self._fitting_rows(level, max_bytes)
            if level is regular_levels[-1] or len(rows) == len(level):
                return self._forms.describe_level(level), [*rows, *_describe_left_out(level, len(rows))]
        return None

    def _fitting_rows(self, level: FormLevel, max_bytes: int) -> list[str]:
        """Return rows for the most frequent forms, as many as fit, and at least one."""
        rows: list[str] = []
        for form in level.by_count()[: self._max_forms]:
            row = self._describe_form(form)
            max_bytes -= len(row.encode("utf-8", "replace")) + 1
            if rows and max_bytes < 0:
                break
            rows.append(row)
        return rows

    def _describe_form(self, form: Form) -> str:
        count = f"{form.count:,}"
        if form.file_count < self._file_count:
            count += f" in {form.file_count:,}"
        text = form.example
        if len(text) > _MAX_SHOWN_CHARACTERS:
            text = f"{text[:_MAX_SHOWN_CHARACTERS]}... ({len(text):,} characters)"
        return f"{count}\t{text}"


def _describe_left_out(level: FormLevel, shown_count: int) -> list[str]:
    left_out = level.by_count()[shown_count:]
    if not left_out:
        return []
    line_count = sum(form.count for form in left_out) + level.uncounted
    return [f"[{pluralize(len(left_out), 'form')} more, {pluralize(line_count, 'line')}]"]
