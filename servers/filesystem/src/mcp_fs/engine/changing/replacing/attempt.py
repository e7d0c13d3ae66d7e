"""Tries what would become of files, and changes none."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.errors import Invalid, Problem, TooLarge, quote
from mcp_fs.engine.changing.edit_errors import MAX_TOTAL_BYTES, too_large_error, too_much_error
from mcp_fs.engine.changing.notebook_edit import Notebook, substitute_in_cells
from mcp_fs.engine.changing.replacing.line_differences import LineDifference, find_changed_lines
from mcp_fs.engine.changing.replacing.near_matches import NearMatches
from mcp_fs.engine.changing.replacing.substitution import Substitute
from mcp_fs.engine.document_kinds import HEAD_BYTES, kind_of
from mcp_fs.engine.handles.open_entries import max_open_entries
from mcp_fs.engine.handles.path_opening import describe_cause, open_file
from mcp_fs.engine.listing.walk import Skipped
from mcp_fs.engine.text.encodings import MAX_EDIT_BYTES, Decoded, Encoding, decode, replace_undecodable
from mcp_fs.models import ReplacedFile
from mcp_fs.policy import WritablePath

__all__ = ["Attempt", "FileReplacement"]

_FOREIGN_WORD = re.compile(r"[!-~]{0,15}[^\x00-\xa0\s]\S{0,15}")


@dataclass(slots=True)
class FileReplacement:
    """What would become of one file.

    Attributes:
        counts: how often each old text is replaced.
        new_length: characters of the new text.
        old_encoding: what it is written in; empty if that stays.
        example: a word of it that shows whether `old_encoding` is right, where that is a guess.
    """

    path: WritablePath
    counts: Sequence[int]
    new_length: int
    changed_lines: Sequence[LineDifference] = field(default_factory=list[LineDifference])
    old_encoding: str = ""
    example: str = ""

    @property
    def summary(self) -> ReplacedFile:
        return ReplacedFile(self.path.display, sum(self.counts), self.old_encoding, self.example)


@dataclass(slots=True)
class Attempt:
    """Tries with each file what would become of it, and changes none.

    Args:
        near_matches: searches each text for what stays, though it is nearly an old one.
        encoding: what the files would be written in; None for the encoding that each has.
        old_encoding: what those are read in whose encoding would be a guess; None for the guess.

    Attributes:
        skipped: what would not be changed, and why.
        binary_paths: files that are no text.
        file_count: of files with which it was tried.
    """

    substitute: Substitute
    near_matches: NearMatches
    encoding: Encoding | None
    old_encoding: Encoding | None
    cancel: CancelToken
    skipped: Skipped = field(default_factory=lambda: Skipped(tells_links=True, reads_contents=True))
    binary_paths: list[str] = field(default_factory=list[str])
    file_count: int = 0

    def try_files(self, paths: Iterable[WritablePath]) -> list[FileReplacement]:
        """Return the files that would be changed.

        Raises:
            TooLarge: they are too many, or would get too large.
            Problem: one of them can't be changed.
        """
        files: list[FileReplacement] = []
        total_length = 0
        limit = max_open_entries()
        for path in paths:
            file = self.try_file(path)
            if file is None:
                continue
            files.append(file)
            total_length += file.new_length
            if total_length > MAX_TOTAL_BYTES:
                raise too_much_error()
            if len(files) > limit:
                raise TooLarge(f"More than {limit:,} files would change.", "Narrow `glob` or `path`.")
        return files

    def try_file(self, path: WritablePath) -> FileReplacement | None:
        """Return what would become of one file, None when nothing would."""
        self.cancel.check()
        self.file_count += 1
        data = self._read(path)
        if data is None:
            return None
        decoded = decode(data, self.old_encoding)
        if decoded is None:
            self.binary_paths.append(path.display)
            return None
        kind = kind_of(path.name, data[:HEAD_BYTES])
        notebook = None
        if kind == "notebook":
            notebook = Notebook.parse(data, decoded.text)
        try:
            if notebook is not None:
                return self._try_notebook(path, notebook)
            self.near_matches.count(decoded.text)
            new, counts = self.substitute(decoded.text)
        except OverflowError:
            raise too_large_error(path) from None
        old_encoding = self._find_change(path, data, decoded, new)
        if old_encoding is None:
            return None
        if kind not in (None, "notebook"):
            self.skipped.add("read in another form than it is stored, so not changed", path.display)
            return None
        if old_encoding and not self._is_read_back(new):
            self.skipped.add("once converted, read as another encoding or as binary", path.display)
        differences = find_changed_lines(replace_undecodable(decoded.text), replace_undecodable(new))
        example = self._find_example(decoded) if old_encoding else ""
        return FileReplacement(path, counts, len(new), differences, old_encoding, example)

    def _read(self, path: WritablePath) -> bytes | None:
        """Return what is in a file; None if it can't be read or is too large, which is noted."""
        try:
            with open_file(path) as file:
                data = file.read(MAX_EDIT_BYTES + 1)
        except Problem as problem:
            self.skipped.add(describe_cause(problem) or problem.failure.rstrip("."), path.display)
            return None
        if len(data) > MAX_EDIT_BYTES:
            self.skipped.add(f"larger than {MAX_EDIT_BYTES:,} bytes, which is as much as can be edited", path.display)
            return None
        return data

    def _try_notebook(self, path: WritablePath, notebook: Notebook) -> FileReplacement | None:
        """Return what would become of a notebook, None when nothing would."""
        if self.encoding is not None and self.encoding != Encoding("utf-8"):
            self.skipped.add("notebooks, which are always UTF-8, so not converted", path.display)
        self.near_matches.count(notebook.text)
        changed, counts = substitute_in_cells(notebook, self.substitute)
        if changed.json == notebook.json:
            return None
        differences = find_changed_lines(replace_undecodable(notebook.text), replace_undecodable(changed.text))
        return FileReplacement(path, counts, len(changed.json), differences)

    def _find_change(self, path: WritablePath, data: bytes, decoded: Decoded, new: str) -> str | None:
        """Return what a file would be converted from, empty if only its text changes; None if nothing would.

        Raises:
            Invalid: some character can't be written in the encoding that is asked for.
        """
        if self.encoding is not None and decoded.undecodable:
            self.skipped.add("not all text in one encoding, so not changed", path.display)
            return None
        old_encoding = self._find_old_encoding(path, decoded, data, new)
        if new != decoded.text or old_encoding:
            return old_encoding
        if not self._would_read_the_same(data, decoded):
            reason = f"{decoded.encoding_label} by their bytes, so not read in {self.old_encoding}"
            self.skipped.add(reason, path.display)
        return None

    def _find_example(self, decoded: Decoded) -> str:
        """Return a word that shows whether the encoding of a text was guessed right; empty where it was no guess."""
        if self.old_encoding is not None or decoded.encoding.startswith("utf-"):
            return ""
        return _find_foreign_word(decoded.text)

    def _find_old_encoding(self, path: WritablePath, decoded: Decoded, data: bytes, new: str) -> str:
        """Return what a file is written in, if it is not the encoding that is asked for.

        Raises:
            Invalid: some character has no bytes in that.
        """
        if self.encoding is None or decoded.encoding_label == str(self.encoding):
            return ""
        try:
            converted = new.encode(self.encoding.name)
        except UnicodeEncodeError as error:
            raise Invalid(
                f"{quote(new[error.start])} of {quote(path.display)} can't be written in {self.encoding}; nothing was "
                "changed.",
                "Choose another encoding, or leave the file out.",
            ) from None
        if new == decoded.text and self.encoding.bom + converted == data:
            return ""
        return decoded.encoding_label

    def _would_read_the_same(self, data: bytes, decoded: Decoded) -> bool:
        """Return whether a file that was read in its own encoding has the same text in the one that is named."""
        if self.old_encoding is None or decoded.encoding == self.old_encoding.name:
            return True
        return data.decode(self.old_encoding.name, "replace") == decoded.text

    def _is_read_back(self, new: str) -> bool:
        """Return whether a text is told from its bytes in the new encoding, which can be a guess."""
        if self.encoding is None or self.encoding.bom or self.encoding.name == "utf-8":
            return True
        decoded = decode(new.encode(self.encoding.name))
        return decoded is not None and decoded.text == new


def _find_foreign_word(text: str) -> str:
    """Return the first word with a character beyond ASCII, or its beginning."""
    word = _FOREIGN_WORD.search(text)
    if word is None:
        return ""
    return word[0]
