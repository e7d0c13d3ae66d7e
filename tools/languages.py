"""The languages of generated files: English is in the code, Chinese in `docs/zh-CN.toml`, sentence by sentence.

A sentence that changed in the code loses its translation. Then the generator stops for a page, and keeps the English
for a bundle; the unused old translation fails a test.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

__all__ = ["ENGLISH", "Language", "chinese"]

_CHINESE = "docs/zh-CN.toml"


class Language:
    """One language of the pages.

    Args:
        suffix: the part before `.md` in the names of its pages.
        sentences: its sentences by the English ones; None for English itself.
    """

    def __init__(self, suffix: str = "", sentences: Mapping[str, str] | None = None) -> None:
        self.suffix = suffix
        self._sentences = sentences
        self._said = set[str]()

    def say(self, english: str, **values: str) -> str:
        """The sentences of `english` in this language, with `values` filled in.

        Raises:
            ValueError: nobody has translated them.
        """
        text = self._found(english)
        if text is None:
            # Names and paths are the same everywhere.
            if " " in english:
                raise ValueError(f"{_CHINESE} does not say in Chinese: {english}")
            text = english
        return text.format(**values) if values else text

    def say_if_known(self, english: str) -> str:
        """The same, or `english` if there is no translation."""
        return self._found(english) or english

    @property
    def unsaid(self) -> list[str]:
        """The English of each unused translation."""
        return [english for english in self._sentences or () if english not in self._said]

    def _found(self, english: str) -> str | None:
        if self._sentences is None:
            return english
        key = " ".join(english.split())
        self._said.add(key)
        return self._sentences.get(key)


ENGLISH = Language()


def chinese(root: Path) -> Language:
    """The simplified Chinese of the workspace in `root`."""
    translations = tomllib.loads((root / _CHINESE).read_text("utf-8"))
    return Language(".zh-CN", dict(_sentences(translations)))


def _sentences(table: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for key, value in table.items():
        if isinstance(value, str):
            yield key, value
        else:
            yield from _sentences(value)
