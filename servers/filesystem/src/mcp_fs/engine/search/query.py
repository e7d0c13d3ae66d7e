"""The query of a search in files."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from mcp_batteries.errors import Invalid
from mcp_fs.engine.listing.selection import names_files_with_parts, refuse_excluded_part, refuse_nested_part
from mcp_fs.engine.listing.walk import WalkFilter
from mcp_fs.engine.patterns.line_breaks import asks_for_line_breaks, remove_classes
from mcp_fs.engine.search.grep import MAX_SHOWN_BYTES

__all__ = ["MAX_LAST_MATCHES", "Query"]

# As many as `limit` allows, because no cursor leads behind the last matches.
MAX_LAST_MATCHES = 5000

_WILDCARD = re.compile(r"[*?\[{]")
# Behind an escaped character: what follows a backslash that is itself escaped is a letter.
_CR_LF = re.compile(r"(\\[^r])|\\r(?=\\n)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Query:
    """What is searched for.

    Attributes:
        pattern: RE2 syntax, or the text itself when `literal`.
        context: lines shown before and after each match.
        glob: paths to search; without a slash names; a `!` in front leaves out instead; behind `!/` a part of each.
        file_type: name of a kind of file (`filetypes`).
        max_per_file: matching lines wanted of one file, on all pages.
        last_matches: whether these are a file's last ones.
        limit: matching lines in one answer; files when `files_only` or `count_only`, texts when `only_matching`.
        count_only: how many lines match in each file, instead of the lines.
        only_matching: what matched, or the named groups of the pattern, each text once, instead of the lines.
        include_binary: whether binary files are searched too.
        max_line_bytes: to which longer lines are cut.
    """

    pattern: str
    literal: bool = False
    ignore_case: bool = False
    context: int = 0
    glob: str | None = None
    file_type: str | None = None
    max_per_file: int = 20
    last_matches: bool = False
    limit: int = 100
    files_only: bool = False
    count_only: bool = False
    only_matching: bool = False
    include_binary: bool = False
    max_line_bytes: int = MAX_SHOWN_BYTES
    walk_filter: WalkFilter = field(default_factory=WalkFilter)

    @property
    def file_glob(self) -> str | None:
        """The glob of the files, without the part of each that is searched."""
        return self._split_glob()[0]

    @property
    def part(self) -> str:
        """The part of each file that is searched: a sheet, pages, a file in an archive; empty for all of it."""
        part = self._split_glob()[1]
        if self.member_glob:
            return ""
        return part

    @property
    def member_glob(self) -> str:
        """The glob of the files in archives that are searched; empty where it stands for one part, or for none."""
        part = self._split_glob()[1]
        if _WILDCARD.search(part) or part.endswith("/"):
            return part
        return ""

    def _split_glob(self) -> tuple[str | None, str]:
        if self.glob is None or self.glob.startswith("!"):
            return self.glob, ""
        file_glob, mark, part = self.glob.partition("!/")
        if mark and not part:
            part = "*"
        if _WILDCARD.search(part) and not names_files_with_parts(file_glob):
            return self.glob, ""  # a folder whose name ends in `!`
        return file_glob, part

    @property
    def is_multiline(self) -> bool:
        """Whether a match may go over several lines."""
        if self.literal:
            return "\n" in self.pattern
        return asks_for_line_breaks(self.pattern)

    @property
    def lf_pattern(self) -> str:
        """The pattern for texts whose lines end in line feeds alone."""
        plain = self.pattern.replace("\r\n", "\n")
        if self.literal:
            return plain
        return _CR_LF.sub(r"\1", plain)

    def validate(self) -> None:
        """Check that it could match in some text.

        Raises:
            Invalid: it is empty where lines are not counted, asks for NUL, which no text holds, or leaves out a part
                of files, or goes into archives in archives.
        """
        if self.glob is not None:
            refuse_excluded_part(self.glob)
            refuse_nested_part(self.member_glob)
        if not self.pattern and not self.count_only:
            raise Invalid("The pattern is empty and would match every line.", "Name some text or expression.")
        if "\0" in self._outside_classes:
            raise Invalid("The pattern holds a NUL, which no text file does.", "Leave it out.")

    @property
    def _outside_classes(self) -> str:
        if self.literal:
            return self.pattern
        return remove_classes(self.pattern)
