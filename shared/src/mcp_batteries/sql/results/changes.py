"""What a change did, or would do, as one text: each statement, what the schema gained and lost, rows before and after.

Both SQL servers fill the same form, so that a migration reads the same; what only one of them knows is a finding.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

from mcp_batteries.errors import Problem
from mcp_batteries.server.calling.results import to_compact_json
from mcp_batteries.sql.results.rows import RowPage, format_count, to_one_line

__all__ = ["Change", "Export", "Import", "Sample", "Step", "show_completed_steps"]

_NO_SAFE_INVERSE = "There is no safe inverse: keep a copy of what it changes or drops, or a backup."
# A section of the answer has at most so many lines.
_MAX_LINES = 200
# Of rows with more columns than this, those that are alike before and after are left out.
_MAX_SHOWN_COLUMNS = 8
# A longer cell may have been cut, so that it looks alike where it isn't.
_MAX_UNCUT_CELL = 90
# Columns of an export that are named.
_MAX_EXPORT_COLUMNS = 50


@dataclass(frozen=True)
class Step:
    """What one statement did.

    Attributes:
        action: in the database's words, such as `CREATE INDEX`, or `UPDATE in books`.
        rows: how many it touched; None if that means nothing.
        detail: other facts: rows that triggers touched, its locks, its time.
        returned: rows that it returned.
    """

    action: str
    rows: int | None = None
    detail: str = ""
    returned: RowPage | None = None

    def text(self) -> str:
        line = self._summary()
        if self.returned is None:
            return line
        head, _, rows = self.returned.text().rstrip().partition("\n")
        # The summary may already give the number of rows.
        is_repeated = re.search(rf"(?:^|: ){re.escape(head.strip('[]'))}(?: in |, |$)", line) is not None
        lines = [line, rows] if is_repeated else [line, head, rows]
        return "\n".join(filter(None, lines))

    def _summary(self) -> str:
        summary = self.action
        if self.rows is not None:
            summary = ": ".join(filter(None, (summary, format_count(self.rows, "row"))))
        return ", ".join(filter(None, (summary, self.detail)))


@dataclass(frozen=True)
class Sample:
    """Some rows of a table as they were and as they are.

    Attributes:
        columns: their names; rows are lines of JSON, as in `RowPage`.
        old_columns: the old names, if the table has others now.
        key_columns: those that tell one row from another; empty where they are not known.
    """

    table: str
    columns: Sequence[str]
    before: str
    after: str
    old_columns: Sequence[str] = ()
    key_columns: Sequence[str] = ()

    def text(self) -> str:
        old_columns = self.old_columns or self.columns
        # Lines end with line feeds alone: a value may have what else ends lines, such as U+2028.
        before = [line for line in self.before.split("\n") if line]
        after = [line for line in self.after.split("\n") if line]
        unchanged = self._find_unchanged_columns(before, after)
        columns = [name for name in self.columns if name not in unchanged]
        columns_before = [name for name in old_columns if name not in unchanged]
        lines = [f"{self.table}: {to_compact_json(columns)}"]
        if columns_before != columns:
            lines.append(f"before: {to_compact_json(columns_before)}")
        if unchanged:
            lines.append(f"{format_count(len(unchanged), 'other column')} as before")
            before = _Table.parse(old_columns, before).select(columns_before)
            after = _Table.parse(self.columns, after).select(columns)
        lines.extend(f"- {line}" for line in before)
        lines.extend(f"+ {line}" for line in after)
        return "\n".join(lines)

    def _find_unchanged_columns(self, before: Sequence[str], after: Sequence[str]) -> list[str]:
        """Return the columns that need not be shown, because they are the same in these rows; none where all fit."""
        if len(self.columns) <= _MAX_SHOWN_COLUMNS:
            return []
        old_table = _Table.parse(self.old_columns or self.columns, before)
        new_table = _Table.parse(self.columns, after)
        return _find_unchanged_columns(old_table, new_table, self.key_columns or self.columns[:1])


@dataclass(frozen=True)
class _Table:
    """Rows with the names of their columns; each cell is the JSON that stands in its line, so that none changes."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]

    @classmethod
    def parse(cls, columns: Sequence[str], lines: Sequence[str]) -> _Table:
        """Read rows from lines of JSON."""
        return cls(columns, [_split_cells(line) for line in lines])

    def cells(self, name: str) -> list[str]:
        """Return the cells of a column, from the first row to the last."""
        number = self.columns.index(name)
        return [row[number] for row in self.rows]

    def select(self, names: Sequence[str]) -> list[str]:
        """Return the rows as lines of JSON, of some columns only."""
        numbers = [self.columns.index(name) for name in names]
        return [f"[{','.join(row[number] for number in numbers)}]" for row in self.rows]

    def count_different(self, names: Sequence[str]) -> int:
        """Return how many rows differ in some columns."""
        return len(set(self.select(names)))


_DECODER = json.JSONDecoder()
_BETWEEN_CELLS = re.compile(r"[\s,]*")


def _split_cells(line: str) -> list[str]:
    """Return the cells of a line that is an array of JSON, as they are written."""
    cells: list[str] = []
    position = line.index("[") + 1
    while True:
        between = _BETWEEN_CELLS.match(line, position)
        if between is not None:
            position = between.end()
        if line[position] == "]":
            return cells
        _, end = _DECODER.raw_decode(line, position)
        cells.append(line[position:end])
        position = end


def _find_unchanged_columns(before: _Table, after: _Table, key_columns: Sequence[str]) -> list[str]:
    """Return the columns that are the same before and after, for the rows that both sides show.

    The key tells that they are the same rows, so it stays, with as many others as tell one row from another.
    """
    if not _can_compare(before, after):
        return []
    same = [name for name in after.columns if name in before.columns and before.cells(name) == after.cells(name)]
    if not set(key_columns) <= set(same):
        return []
    unchanged = [name for name in same if name not in key_columns and _are_uncut(after.cells(name))]
    identifying = [*key_columns]
    for name in unchanged:
        if after.count_different([*identifying, name]) > after.count_different(identifying):
            identifying.append(name)
    if after.count_different(identifying) < len(after.rows):
        return []
    return [name for name in unchanged if name not in identifying]


def _can_compare(before: _Table, after: _Table) -> bool:
    """Return whether both have as many rows, and names that each mean one column."""
    if len(set(after.columns)) < len(after.columns):
        return False
    return bool(before.rows) and len(before.rows) == len(after.rows)


def _are_uncut(cells: Sequence[str]) -> bool:
    """Return whether no cell may have been cut."""
    return all(len(cell) <= _MAX_UNCUT_CELL for cell in cells)


@dataclass(frozen=True)
class Change:
    """What statements did, or would do, in one transaction.

    Attributes:
        objects: what the schema gained (+), lost (-) and changed (~); None if none could change.
        samples: rows of changed tables; in a dry run.
        findings: remarkable facts, each a heading with lines below it: locks, rewrites, keys that point nowhere.
        undo: in a dry run, statements that would undo it; None where no inverse is safe.
    """

    steps: Sequence[Step]
    dry_run: bool
    objects: Sequence[str] | None = None
    samples: Sequence[Sample] = ()
    findings: Sequence[tuple[str, Sequence[str]]] = ()
    undo: Sequence[str] | None = ()

    def text(self) -> str:
        lines = ["Done and committed."]
        if self.dry_run:
            lines = ["Dry run, nothing was changed. It would do this:"]
        lines.extend(self._step_lines())
        if self.objects is not None:
            lines += ["Schema:", *_limit_lines(self.objects or ["nothing"])]
        if self.samples:
            lines.append("Rows (- before, + after), a sample:")
            lines.extend(sample.text() for sample in self.samples)
        for title, details in self.findings:
            lines += [title, *_limit_lines(details)]
        lines.extend(self._undo_lines())
        return "\n".join(line for line in lines if line)

    def _step_lines(self) -> list[str]:
        if len(self.steps) == 1:
            return [self.steps[0].text()]
        return [f"{number}. {step.text()}" for number, step in enumerate(self.steps, 1)]

    def _undo_lines(self) -> list[str]:
        if self.undo is None:
            return [_NO_SAFE_INVERSE]
        if not self.undo:
            return []
        return ["The way back:", *_limit_lines(self.undo)]


def show_completed_steps(problem: Problem, steps: Sequence[Step]) -> Problem:
    """Return the problem of statements that were only tried, behind what those before it did.

    It stays a problem, so that a script throws: what it was to tell of all statements is not known.
    """
    lines = ["Done before the failure, and taken back:"]
    lines.extend(f"{number}. {step.text()}" for number, step in enumerate(steps, 1))
    return problem.reword("\n".join([*lines, problem.failure]), problem.fix)


@dataclass(frozen=True)
class Import:
    """Rows of a file in a table.

    Attributes:
        new_columns: the definitions of its columns, if the table was created.
        descriptions: what the values of each column are like; in a dry run.
        dialect: the form of the file, if it is unusual.
        records: how many the file has: the table's triggers or constraints may let fewer in.
        notes: sentences about the table as it is now.
        texts: columns of numbers that got texts.
        replaced: rows that were removed to make room for these.
    """

    table: str
    columns: Sequence[str]
    rows: int
    dry_run: bool
    new_columns: Sequence[str] = ()
    descriptions: Sequence[str] = ()
    dialect: str = ""
    records: int | None = None
    notes: Sequence[str] = ()
    texts: Sequence[str] = ()
    replaced: int = 0

    def text(self) -> str:
        lines = [self._summary()]
        if self.records is not None and self.rows < self.records:
            left_out = f"{self.records - self.rows:,} of the file's {format_count(self.records, 'record')}"
            lines.append(f"Left out by a trigger or constraint of the table: {left_out}.")
        if self.replaced:
            lines.append(
                f"They are in place of {format_count(self.replaced, 'row')}: a constraint of the table replaces."
            )
        if self.texts:
            lines.append(to_one_line(f"Not numbers, so kept as text in columns of numbers: {'; '.join(self.texts)}."))
        if self.dialect:
            lines.append(f"In the file {to_one_line(self.dialect)}.")
        lines.extend(map(to_one_line, self.notes))
        return "\n".join(lines)

    def _summary(self) -> str:
        verb = "Dry run, nothing was changed; it would insert" if self.dry_run else "Inserted"
        summary = f"{verb} {format_count(self.rows, 'row')} into `{self.table}`"
        if not self.new_columns:
            return to_one_line(f"{summary} ({', '.join(self.columns)}).")
        if not self.descriptions:
            return to_one_line(f"{summary}, a new table: {', '.join(self.new_columns)}")
        lines = [
            f"{column}: {description}"
            for column, description in zip_longest(self.new_columns, self.descriptions, fillvalue="empty")
        ]
        return "\n".join([f"{summary}, a new table:", *map(to_one_line, lines)])


@dataclass(frozen=True)
class Export:
    """A file of rows that was written."""

    name: str
    columns: Sequence[str]
    rows: int
    size: int

    def text(self) -> str:
        """Return all that a look at the file would tell, but the rows."""
        names = ", ".join(self.columns[:_MAX_EXPORT_COLUMNS])
        if len(self.columns) > _MAX_EXPORT_COLUMNS:
            names += f" and {len(self.columns) - _MAX_EXPORT_COLUMNS} more"
        return to_one_line(
            f"Wrote {format_count(self.rows, 'row')}, {self.size:,} bytes, to `{self.name}`, with the columns {names}."
        )


def _limit_lines(lines: Sequence[str]) -> Sequence[str]:
    """Return as many of the lines of a section as it may have."""
    if len(lines) <= _MAX_LINES:
        return lines
    return [*lines[:_MAX_LINES], f"… {len(lines) - _MAX_LINES} more"]
