"""Groups texts that are written alike: lines, values of columns. Each form is told as finely as there is room."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

__all__ = ["LEVELS", "Form", "FormLevel", "TextForms", "show_text", "without_words"]

FormLevel = Callable[[str], str]
"""Returns what texts that are alike have in common; it gets the beginning of each, without numbers."""

# What stands behind so many tells no more of how a text is written.
_MAX_FORM_CHARACTERS = 500
_NUMBER = re.compile(r"\d+")
_WORDS = re.compile(r"a(?:[,.]? +a)+")
# As in `Due: 1 May`, `rate = 5` and `Partner | Borg AB`.
_LABEL = re.compile(r"[^:=|]{1,40}[:=|]")
_FOLDERS = re.compile(r"[^\s:]*/")
# Blanks at the ends of a text would not be seen, and a line end would end the line.
_UNSEEN = re.compile(r"\A\Z|\A\s|\s\Z|[\x00-\x08\n-\x1f\x7f-\x9f\u2028\u2029]")


def _without_numbers(text: str) -> str:
    return _NUMBER.sub("9", text)


@cache
def _word() -> re.Pattern[str]:
    """Return the pattern of a word, with the marks on its letters, of which `re` knows nothing."""
    marks = [mark for mark in map(chr, range(0x300, 0x10000)) if unicodedata.category(mark).startswith("M")]
    # A long number is searched for a letter from its beginning alone.
    return re.compile(rf"(?<!\d)\d*+[^\W\d_][\w{''.join(marks)}]*")


def without_words(text: str) -> str:
    """Return how a text is written: `a` for words, `9` for numbers, and the signs between them."""
    return _WORDS.sub("a", _without_numbers(_word().sub("a", text)))


def _without_words_behind(head: re.Match[str] | None, text: str) -> str:
    if head is None:
        return without_words(text)
    return _without_numbers(head[0]) + without_words(text[head.end() :])


def _without_words_behind_label(text: str) -> str:
    return _without_words_behind(_LABEL.match(text), text)


def _without_words_of_folders(text: str) -> str:
    folders = _FOLDERS.match(text)
    if folders is None:
        return without_words(text)
    return without_words(folders[0]) + _without_numbers(text[folders.end() :])


# Of texts without numbers, from the finest on; texts themselves are finer.
LEVELS: Sequence[FormLevel] = (str, _without_words_behind_label, _without_words_of_folders, without_words)


def _max_repeated_parts(count: int) -> int:
    """Return how many parts are told apart: to tell those that hardly repeat would be to tell the texts, unless few."""
    return max(4, count // 2)


@dataclass(slots=True, eq=False)
class Form:
    """Texts that are alike at a level.

    Attributes:
        count: how often there is any of them.
        parts: its forms at the next finer level; none if these are too many, None until they are asked for.
    """

    level: int
    texts: list[str] = field(default_factory=list[str])
    count: int = 0
    parts: list[Form] | None = None


def _fits_always(forms: Sequence[Form]) -> bool:
    del forms
    return True


class TextForms:
    """The forms of texts.

    Args:
        counts: how often there is each text.
        levels: from the finest on.
        max_parts: returns into how many parts a form of so many texts may be told apart.

    Attributes:
        forms: those of the coarsest level.
    """

    def __init__(
        self,
        counts: Mapping[str, int],
        levels: Sequence[FormLevel] = LEVELS,
        max_parts: Callable[[int], int] = _max_repeated_parts,
    ) -> None:
        self._counts = counts
        # The levels are slow. Most texts that differ do so in their numbers alone: these become one, which is cached.
        self._numberless = {text: _without_numbers(text[:_MAX_FORM_CHARACTERS]) for text in counts}
        self._levels = [cache(level) for level in levels]
        self._max_parts = max_parts
        self.forms = self._group(counts, len(levels), len(counts))

    def tell_apart(
        self, forms: Iterable[Form], max_forms: int, fits: Callable[[Sequence[Form]], bool] = _fits_always
    ) -> list[Form]:
        """Return the forms as finely as there is room, first those of few different texts; the most frequent first.

        Args:
            fits: returns whether who shows them has room for these.
        """
        finest = list(forms)
        while (room := max_forms - len(finest)) > 0:
            divisible = [form for form in finest if self._is_divisible(form, room)]
            if not divisible:
                break
            form = min(divisible, key=_count_parts)
            index = finest.index(form)
            finer = [*finest[:index], *(form.parts or ()), *finest[index + 1 :]]
            if fits(finer):
                finest = finer
            else:
                form.parts = []
        return sorted(finest, key=lambda form: -form.count)

    def _is_divisible(self, form: Form, room: int) -> bool:
        if form.parts is None:
            # Room only becomes less, so what has too many parts for it now is never parted.
            max_parts = min(room + 1, self._max_parts(form.count))
            form.parts = self._group(form.texts, form.level - 1, max_parts)
        return 0 < len(form.parts) <= room + 1

    def _group(self, texts: Iterable[str], level: int, max_forms: int) -> list[Form]:
        """Return the forms at a level; none if they are more than `max_forms` or there is no such level."""
        if level < 0:
            return []
        forms: dict[str, Form] = {}
        for text in texts:
            key = self._form_of(text, level)
            form = forms.get(key)
            if form is None:
                if len(forms) == max_forms:
                    return []
                form = Form(level)
                forms[key] = form
            form.texts.append(text)
            form.count += self._counts[text]
        return list(forms.values())

    def _form_of(self, text: str, level: int) -> str:
        if level == 0:
            return text
        return self._levels[level - 1](self._numberless[text])


def _count_parts(form: Form) -> int:
    return len(form.parts or ())


def show_text(text: str, max_characters: int) -> str:
    """Return a text as it is if it can be seen so, otherwise as JSON; of a long one the beginning."""
    shown = text
    if len(text) > max_characters:
        shown = f"{text[:max_characters]}..."
    if _UNSEEN.search(shown):
        return json.dumps(shown, ensure_ascii=False)
    return shown
