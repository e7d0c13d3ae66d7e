"""The languages of generated files: English is in the code, Chinese in `docs/zh-CN.toml`, sentence by sentence.

A sentence that changed in the code loses its translation: it drops out of the Chinese files, and `MISSING` lists it
with the pages that are older than their English. Whoever changes the English has nothing else to do; a weekly test
fails until somebody has translated the list.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

__all__ = ["ENGLISH", "MISSING", "Language", "chinese", "list_untranslated", "page_digest"]

_CHINESE = "docs/zh-CN.toml"
# What the Chinese lacks, one line each.
MISSING = "docs/zh-CN-missing.txt"
_TRANSLATES = re.compile(r"<!-- translates (\S+) (\w+) -->\n")


class Language:
    """One language of the pages.

    Args:
        suffix: the part before `.md` in the names of its pages.
        sentences: its sentences by the English ones; None for English itself.
    """

    def __init__(self, suffix: str = "", sentences: Mapping[str, str] | None = None) -> None:
        self.suffix = suffix
        self.sentences = sentences or {}
        self._is_english = sentences is None
        self._said = set[str]()
        self.missing: dict[str, None] = {}
        """The sentences that nobody has translated."""

    def say(self, english: str, **values: str) -> str:
        """The sentences of `english` in this language, with `values` filled in; empty if nobody has translated them."""
        text = self._translate(english)
        return (text or "").format(**values) if values else text or ""

    def label(self, english: str, **values: str) -> str:
        """The heading `english` in this language, or as it is: what stands below needs one."""
        text = self._translate(english) or english
        return text.format(**values) if values else text

    def _translate(self, english: str) -> str | None:
        text = self._found(english)
        if text is not None:
            return text
        if " " not in english:
            # Names and paths are the same everywhere.
            return english
        self.missing[" ".join(english.split())] = None
        return None

    def say_if_known(self, english: str) -> str:
        """The same, or `english` if there is no translation."""
        return self._found(english) or english

    @property
    def unsaid(self) -> list[str]:
        """The English of each unused translation."""
        return [english for english in self.sentences if english not in self._said]

    def _found(self, english: str) -> str | None:
        if self._is_english:
            return english
        key = " ".join(english.split())
        self._said.add(key)
        return self.sentences.get(key)


ENGLISH = Language()


def chinese(root: Path) -> Language:
    """The simplified Chinese of the workspace in `root`."""
    translations = tomllib.loads((root / _CHINESE).read_text("utf-8"))
    return Language(".zh-CN", dict(_sentences(translations)))


def list_untranslated(root: Path, language: Language) -> str:
    """Return what a translator has to do, after the files have been generated in `language`."""
    lines = [f"# What the Chinese lacks. `just docs` writes this file; put sentences into {_CHINESE}.", ""]
    lines += [f"translate: {english}" for english in language.missing]
    lines += [f"remove: {english}" for english in language.unsaid]
    for page in sorted([*root.glob("*.zh-CN.md"), *root.glob("servers/*/*.zh-CN.md")]):
        match = _TRANSLATES.match(page.read_text("utf-8"))
        if match is None:
            continue
        digest = page_digest(page.parent / match[1])
        if match[2] != digest:
            name = page.relative_to(root).as_posix()
            lines.append(f"update: {name} to what {match[1]} says now, then its first line to {digest}")
    return "\n".join(lines).rstrip("\n") + "\n"


def page_digest(page: Path) -> str:
    """Return a digest of what people wrote in a page to be translated; tables are generated for each language alike."""
    text = re.sub(r"<!-- (badges \w+) -->.*?<!-- /\1 -->", "", page.read_text("utf-8"), flags=re.DOTALL)
    return hashlib.sha256(" ".join(text.split()).encode()).hexdigest()[:16]


def _sentences(table: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for key, value in table.items():
        if isinstance(value, str):
            yield key, value
        else:
            yield from _sentences(value)
