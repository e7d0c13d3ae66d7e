"""Plans of statements, checks of files, and backups."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from mcp_batteries.clipping import clip
from mcp_batteries.sql.language.identifiers import spell_identifier
from mcp_batteries.sql.results.rows import format_size

__all__ = ["Backup", "Check", "Plan"]

# Characters of a result; hardly any is that long.
_MAX_LENGTH = 20_000
# What integrity_check says of indexes that lack rows or have too many, and of rows that no constraint would let in.
_INDEX_COMPLAINT = re.compile(r"row \d+ missing from index |wrong # of entries in index ")
_FULL_TEXT_COMPLAINT = re.compile(r"full-text index |malformed inverted index for FTS|fts[345]: ", re.IGNORECASE)
_ROW_COMPLAINT = re.compile(r"(?:NULL|non-\w+) value in |CHECK constraint failed in ")


@dataclass(frozen=True)
class Plan:
    """How SQLite would run a statement.

    Attributes:
        scans: the steps that read whole tables.
        indexes: the DDL of indexes that would help.
        tree_with_indexes: the plan with these.
        candidate_count: how many candidates for indexes were tried.
    """

    tree: str
    scans: Sequence[str]
    indexes: Sequence[str]
    tree_with_indexes: str = ""
    candidate_count: int = 0

    def text(self) -> str:
        """Return the plan as a tree, and what would make a better one."""
        lines = [self.tree or "Nothing to plan: the statement reads no table."]
        if self.scans:
            lines.append(f"Reads whole: {'; '.join(scan.removeprefix('SCAN ') for scan in self.scans)}.")
        if self.indexes:
            lines += ["With these indexes:", *self.indexes, "The plan then:", self.tree_with_indexes]
        elif self.scans and self.candidate_count:
            lines.append(
                f"None of the {self.candidate_count} indexes that were tried would help: over what is compared and "
                "ordered by, alone and together."
            )
        elif self.scans:
            lines.append("No index was found to try.")
        return clip("\n".join(lines), _MAX_LENGTH, "explain a part of the statement")


@dataclass(frozen=True)
class Check:
    """The result of an integrity check.

    Attributes:
        complaints: what SQLite says is wrong in the file.
        broken_keys: foreign keys that point nowhere.
        unchecked: full-text tables whose words were not compared with their rows.
        collated: tables that were not checked, because an index needs a collation of their application.
    """

    database: str
    complaints: Sequence[str]
    broken_keys: Sequence[str]
    unchecked: Sequence[str] = ()
    collated: Sequence[str] = ()

    def text(self) -> str:
        """Return what is wrong, and what helps."""
        lines = [f"`{self.database}` is whole: no damage, no foreign key points nowhere."]
        if self.complaints or self.broken_keys:
            lines = [f"`{self.database}` has problems:", *self.complaints, *self.broken_keys]
        if self.complaints:
            lines.append(self._remedy())
        if self.collated:
            names = ", ".join(map(spell_identifier, self.collated))
            lines.append(f"Not checked, because their order needs a collation of their application: {names}.")
        if self.unchecked:
            names = ", ".join(map(spell_identifier, self.unchecked))
            lines.append(
                f"Not compared with their rows: the words of the full-text indexes {names}; "
                "`INSERT INTO name(name) VALUES ('integrity-check')` does that (of FTS5 with `rank` as 1)."
            )
        return "\n".join(lines)

    def _remedy(self) -> str:
        if all(map(_INDEX_COMPLAINT.match, self.complaints)):
            return "The rows are whole: `REINDEX` makes the indexes anew (`edit_schema`, or the operator)."
        if all(map(_FULL_TEXT_COMPLAINT.match, self.complaints)):
            return "The rows are whole: `INSERT INTO name(name) VALUES ('rebuild')` makes such an index anew."
        if all(map(_ROW_COMPLAINT.match, self.complaints)):
            return "The file is whole: these rows broke a rule that came later. Change them."
        return "A backup is the remedy; `.recover` of the sqlite3 shell saves what it can."


@dataclass(frozen=True)
class Backup:
    """A copy of a database that was written."""

    name: str
    size: int

    def text(self) -> str:
        """Return a sentence on the file."""
        return f"Wrote a consistent copy, {format_size(self.size)}, to `{self.name}`."
