"""The languages of what is generated: English stands in the code, Chinese in `docs/zh-CN.toml`, sentence by sentence.

A sentence that has changed in the code has no translation any more. In a page the generator then stops, in a bundle it
leaves the English; the old translation, which nobody asks for, fails a test.
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
        suffix: what the names of its pages have before `.md`.
        sentences: by the English ones; None for English itself.
    """

    def __init__(self, suffix: str = "", sentences: Mapping[str, str] | None = None) -> None:
        self.suffix = suffix
        self._sentences = sentences
        self._said = set[str]()

    def say(self, english: str, **values: str) -> str:
        """The sentences of `english` in this language, with `values` in their places.

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
        """The same, and `english` where nobody has translated it."""
        return self._found(english) or english

    @property
    def unsaid(self) -> list[str]:
        """The English of each translation that was not asked for."""
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
    found = tomllib.loads((root / _CHINESE).read_text("utf-8"))
    return Language(".zh-CN", dict(_sentences(found)))


def _sentences(table: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for key, value in table.items():
        if isinstance(value, str):
            yield key, value
        else:
            yield from _sentences(value)
